//! Zero-order hold: Ā = e^{ΔA}, B̄ = (Ā − 1)/A with A = −e^{log_real} + i imaginary, and the way back for slopes.

use super::{IMAGINARY, LOG_REAL, LOG_STEP, S4};
use crate::mechanism::Given;
use crate::number::Number;

/// A complex number, or the slopes in its two parts.
#[derive(Clone, Copy)]
pub(super) struct Complex<N> {
    pub(super) real: N,
    pub(super) imaginary: N,
}

impl<N: Number> Complex<N> {
    pub(super) fn zero() -> Self {
        Complex { real: N::zero(), imaginary: N::zero() }
    }

    fn times(self, other: Self) -> Self {
        Complex {
            real: self.real * other.real - self.imaginary * other.imaginary,
            imaginary: self.real * other.imaginary + self.imaginary * other.real,
        }
    }

    /// Slopes in z from slopes in `factor` · z.
    fn times_conjugate_of(self, factor: Self) -> Self {
        self.times(Complex { real: factor.real, imaginary: -factor.imaginary })
    }

    fn plus(self, other: Self) -> Self {
        Complex { real: self.real + other.real, imaginary: self.imaginary + other.imaginary }
    }
}

/// A, Ā and B̄ of one state.
#[derive(Clone, Copy)]
pub(super) struct Held<N> {
    step: N,
    rate: Complex<N>,
    inverse_rate: Complex<N>,
    pub(super) decay: Complex<N>,
    pub(super) input: Complex<N>,
}

/// Slopes in the parameters of one state.
pub(super) struct HeldSlopes<N> {
    pub(super) log_step: N,
    pub(super) log_real: N,
    pub(super) imaginary: N,
}

/// All states of all channels, in the order of the state.
pub(super) fn hold_all<N: Number>(mechanism: &S4, given: &Given<'_, N>) -> Vec<Held<N>> {
    (0..mechanism.size())
        .map(|state| {
            hold(
                given.parameters[LOG_STEP][state / mechanism.pairs].exp(),
                Complex {
                    real: -given.parameters[LOG_REAL][state].exp(),
                    imaginary: given.parameters[IMAGINARY][state],
                },
            )
        })
        .collect()
}

fn hold<N: Number>(step: N, rate: Complex<N>) -> Held<N> {
    let (real, imaginary) = (step * rate.real, step * rate.imaginary);
    let kept = real.exp();
    let half_sine = (imaginary * N::constant(0.5)).sin();
    // Ā − 1 = (e^x − 1) cos y − 2 sin²(y/2) + i e^x sin y: no cancellation for short steps.
    let change = Complex {
        real: real.exp_m1() * imaginary.cos() - N::constant(2.0) * half_sine * half_sine,
        imaginary: kept * imaginary.sin(),
    };
    let square = rate.real * rate.real + rate.imaginary * rate.imaginary;
    let inverse_rate = Complex { real: rate.real / square, imaginary: -rate.imaginary / square };
    Held {
        step,
        rate,
        inverse_rate,
        decay: Complex { real: kept * imaginary.cos(), imaginary: kept * imaginary.sin() },
        input: change.times(inverse_rate),
    }
}

impl<N: Number> Held<N> {
    /// Slopes in the parameters from those in Ā and B̄.
    pub(super) fn slopes(&self, decay_slope: Complex<N>, input_slope: Complex<N>) -> HeldSlopes<N> {
        // B̄ = (Ā − 1)/A: dB̄ = dĀ/A − B̄ dA/A.
        let through_input = input_slope.times_conjugate_of(self.inverse_rate);
        let exponent_slope = decay_slope.plus(through_input).times_conjugate_of(self.decay);
        let divided = through_input.times_conjugate_of(self.input);
        let rate_slope = Complex {
            real: self.step * exponent_slope.real - divided.real,
            imaginary: self.step * exponent_slope.imaginary - divided.imaginary,
        };
        let step_slope =
            self.rate.real * exponent_slope.real + self.rate.imaginary * exponent_slope.imaginary;
        HeldSlopes {
            log_step: self.step * step_slope,
            log_real: self.rate.real * rate_slope.real,
            imaginary: rate_slope.imaginary,
        }
    }
}
