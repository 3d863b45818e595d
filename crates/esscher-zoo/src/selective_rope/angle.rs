//! Which angles: none, position · base^{−2j/d}, or temperature c_j times the running sum Φ_j; and the turning of a pair.

use crate::number::Number;
use std::f64::consts::PI;

/// By which angles queries and keys are rotated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rotation {
    /// Not at all.
    None,
    /// By position · base^{−2j/d}: rotary position embedding. Usual bases are 10 000 and 500 000.
    Fixed {
        /// The longest wavelength is about 2π times this.
        base: f64,
    },
    /// By temperature c_j times the sum of the tokens' angles so far.
    Selective {
        /// The factors on the sums, which are not trained.
        temperatures: Temperatures,
    },
}

/// Factors c_j on running sums of angles, for the pairs j = 0, …, h − 1 of d = 2h channels.
///
/// The released code of selective rotations has the latter two. That tan(ϑ/2) is optimal is claimed for random features, but
/// holds only without the complex conjugate (see [`random_features`](super::random_features)): a choice of design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Temperatures {
    /// c_j = 1.
    One,
    /// c_j = largest · base^{−2j/d}, the wavelengths of rotary position embedding; the released code has base 500 000.
    Rope {
        /// c_0.
        largest: f64,
        /// The ratio of c_0 to a c beyond the last.
        base: f64,
    },
    /// c_j ∝ tan(ϑ_j/2) with ϑ evenly spaced from 0 to 0.9999 π, scaled so that the largest is `largest`; a single c is `largest`.
    Rfa {
        /// c_{h−1}.
        largest: f64,
    },
}

impl Temperatures {
    /// The factors of this many pairs.
    pub fn values(&self, pairs: usize) -> Vec<f64> {
        match *self {
            Temperatures::One => vec![1.0; pairs],
            Temperatures::Rope { largest, base } => {
                frequencies(base, pairs).into_iter().map(|frequency| largest * frequency).collect()
            }
            Temperatures::Rfa { largest } => {
                let tangent = |place: f64| (0.5 * 0.9999 * PI * place).tan();
                let last = pairs.saturating_sub(1).max(1) as f64;
                (0..pairs)
                    .map(|j| match pairs {
                        1 => largest,
                        _ => largest * tangent(j as f64 / last) / tangent(1.0),
                    })
                    .collect()
            }
        }
    }
}

/// base^{−2j/d} for the pairs j of d = 2 · `pairs` channels.
pub(super) fn frequencies(base: f64, pairs: usize) -> Vec<f64> {
    (0..pairs).map(|j| base.powf(-(j as f64) / pairs as f64)).collect()
}

/// Turns the pairs (j, j + h) of a row by angles with these cosines and sines: (x, y) ← (x cos − y sin, x sin + y cos).
pub(super) fn turn<N: Number>(row: &mut [N], cosines: &[N], sines: &[N]) {
    let (first, second) = row.split_at_mut(cosines.len());
    for ((x, y), (&cosine, &sine)) in first.iter_mut().zip(second).zip(cosines.iter().zip(sines)) {
        (*x, *y) = (*x * cosine - *y * sine, *x * sine + *y * cosine);
    }
}
