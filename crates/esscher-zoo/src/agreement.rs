//! The law of the zoo: every form of a mechanism gives the reference's outputs, final state and gradients.
//!
//! [`check_agreement`] draws a sequence, evaluates the reference and takes its gradient with traced numbers, and
//! compares the recurrent form (values and traced gradient), the chunked form in f64 and f32 with its hand-written backward
//! pass, and the chunked form on a split sequence with states and their derivatives handed over. Call it for your own
//! mechanism too.

use crate::mechanism::{
    Definition, Given, Gradient, In, Initial, Meaning, Mechanism, Order, Pass, Saved, State, stream,
};
use crate::number::{Number, Real};
use crate::traced::{self, Traced};
use esscher_core::numerics::Stream;
use std::fmt;

/// How large the gates of a drawn sequence are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gates {
    /// Decays of a tenth per token, logits of order one.
    Moderate,
    /// Decays so small that 1 − α is lost in single precision.
    Tiny,
    /// Decays so large that products of two underflow.
    Huge,
    /// Each token takes one of the three.
    Mixed,
}

impl Gates {
    /// Every way to draw gates.
    pub const ALL: [Gates; 4] = [Gates::Moderate, Gates::Tiny, Gates::Huge, Gates::Mixed];
}

/// Two forms that should agree and do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Disagreement {
    /// The form that differs from the reference.
    pub form: &'static str,
    /// What differs: outputs, state, or the gradient in a port.
    pub quantity: String,
    /// The difference, relative to the reference.
    pub difference: f64,
    /// What was allowed.
    pub allowed: f64,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement { form, quantity, difference, allowed } = self;
        write!(
            formatter,
            "{form}: {quantity} differs from the reference by {difference:.1e} of its size (allowed {allowed:.0e})"
        )
    }
}

impl std::error::Error for Disagreement {}

/// What forms may differ by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// In the largest entry, relative to the reference's largest.
    Everywhere(f64),
    /// In the root of the sum of squares, relative to the reference's.
    OnTheWhole(f64),
}

/// In double precision: rounding of sums of a few hundred terms.
pub const DOUBLE: Allowed = Allowed::Everywhere(1e-10);

/// In single precision. On the whole, since quotients by sums that happen to be small magnify the roundings of single rows:
/// with one active feature φ of a ReLU map, a derivative is 1/φ times a difference that vanishes.
pub const SINGLE: Allowed = Allowed::OnTheWhole(2e-4);

/// In single precision with huge gates: weights of e^12 that cancel in a divisor (mLSTM's) leave three digits.
pub const SINGLE_HUGE: Allowed = Allowed::OnTheWhole(2e-3);

/// The gradient in a port is compared at no finer scale than this fraction of the largest derivative in any port.
const FLOOR: f64 = 1e-2;

/// A sequence drawn for a test: every port and parameter in f64.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// How many tokens.
    pub length: usize,
    /// Rows of every token port.
    pub tokens: Vec<Vec<f64>>,
    /// Numbers of every parameter.
    pub parameters: Vec<Vec<f64>>,
}

impl Drawn {
    /// A sequence for this mechanism; same arguments, same numbers, all of them representable in f32.
    pub fn new(mechanism: &dyn Mechanism, length: usize, gates: Gates, seed: u64) -> Self {
        let signature = mechanism.signature();
        let mut stream = Stream::new(seed, length as u32, 0);
        let tokens = signature
            .tokens
            .iter()
            .map(|port| {
                (0..length)
                    .flat_map(|_| {
                        let gates = match gates {
                            Gates::Mixed => Gates::ALL[(stream.bits() % 3) as usize],
                            one => one,
                        };
                        (0..port.width).map(|_| draw(port.meaning, gates, &mut stream)).collect::<Vec<_>>()
                    })
                    .collect()
            })
            .collect();
        let parameters = signature
            .parameters
            .iter()
            .map(|parameter| {
                (0..parameter.size)
                    .map(|index| {
                        let start = match &parameter.initial {
                            Initial::Constant(value) => *value,
                            Initial::Normal(deviation) => deviation * stream.normal(),
                            Initial::Values(values) => values[index],
                        };
                        // Away from the start, where derivatives may vanish by chance.
                        single(start + 0.1 * stream.normal())
                    })
                    .collect()
            })
            .collect();
        Drawn { length, tokens, parameters }
    }

    /// Calls `visit` with the tokens `from..to` as numbers of another kind.
    pub fn with<N: Number, R>(&self, from: usize, to: usize, visit: impl FnOnce(&Given<'_, N>) -> R) -> R {
        let convert = |numbers: &[f64]| numbers.iter().map(|&x| N::constant(x)).collect::<Vec<_>>();
        let tokens: Vec<Vec<N>> = self
            .tokens
            .iter()
            .map(|rows| {
                let width = rows.len() / self.length.max(1);
                convert(&rows[from * width..to * width])
            })
            .collect();
        let parameters: Vec<Vec<N>> = self.parameters.iter().map(|numbers| convert(numbers)).collect();
        let tokens: Vec<&[N]> = tokens.iter().map(Vec::as_slice).collect();
        let parameters: Vec<&[N]> = parameters.iter().map(Vec::as_slice).collect();
        visit(&Given { length: to - from, tokens: &tokens, parameters: &parameters })
    }

    /// The gradient of a function of this sequence, over all ports and then all parameters.
    fn slopes(&self, function: &dyn Fn(&Given<'_, Traced>) -> Traced) -> Vec<f64> {
        let flat: Vec<f64> = self.tokens.iter().chain(&self.parameters).flatten().copied().collect();
        traced::gradient(&flat, |numbers| {
            let mut rest = numbers;
            let mut cut = |parts: &[Vec<f64>]| -> Vec<&[Traced]> {
                parts
                    .iter()
                    .map(|part| {
                        let (this, after) = rest.split_at(part.len());
                        rest = after;
                        this
                    })
                    .collect()
            };
            let tokens = cut(&self.tokens);
            let parameters = cut(&self.parameters);
            function(&Given { length: self.length, tokens: &tokens, parameters: &parameters })
        })
        .1
    }
}

/// The nearest number of single precision.
fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

fn draw(meaning: Meaning, gates: Gates, stream: &mut Stream) -> f64 {
    let normal = stream.normal();
    let size = |moderate, tiny, huge| match gates {
        Gates::Moderate | Gates::Mixed => moderate,
        Gates::Tiny => tiny,
        Gates::Huge => huge,
    };
    single(match meaning {
        Meaning::Content => normal,
        Meaning::LogDecay => -size(0.1, 1e-7, 60.0) * (0.5 * normal).exp(),
        Meaning::Rate => size(0.1, 1e-6, 10.0) * (0.5 * normal).exp(),
        Meaning::Fraction => (normal + size(0.0, -15.0, 15.0)).sigmoid(),
        Meaning::Logit => size(1.0, 1e-4, 12.0) * normal,
        Meaning::Angle => size(0.3, 1e-4, 3.0) * normal,
    })
}

/// A linear function of outputs and final state with drawn coefficients: its gradient sees every entry.
struct Probe {
    /// Outputs before this one have no coefficient.
    unseen: usize,
    outputs: Vec<f64>,
    state: Vec<f64>,
}

impl Probe {
    fn apply<N: Number>(&self, outputs: &[N], state: &State<N>) -> N {
        let sum = |coefficients: &[f64], numbers: &[N]| {
            coefficients.iter().zip(numbers).fold(N::zero(), |sum, (&c, &x)| sum + N::constant(c) * x)
        };
        sum(&self.outputs[self.unseen..], &outputs[self.unseen..]) + sum(&self.state, &state.numbers)
    }

    fn reference(&self, mechanism: &dyn Mechanism, drawn: &Drawn) -> Findings {
        let evaluated = drawn.with::<f64, _>(0, drawn.length, |given| mechanism.reference(given));
        let slopes = drawn.slopes(&|given| {
            let evaluated = mechanism.reference(given);
            self.apply(&evaluated.outputs, &evaluated.state)
        });
        Findings { outputs: evaluated.outputs, state: evaluated.state.numbers, slopes }
    }
}

/// Checks all forms of a mechanism on one drawn sequence; `splits` are the places where the sequence is also cut.
///
/// # Errors
/// The first form and quantity that differ by more than [`DOUBLE`], [`SINGLE`] or [`SINGLE_HUGE`] allow.
pub fn check_agreement(
    mechanism: &dyn Mechanism,
    length: usize,
    gates: Gates,
    splits: &[usize],
    seed: u64,
) -> Result<(), Disagreement> {
    let drawn = Drawn::new(mechanism, length, gates, seed);
    let plain = drawn.with::<f64, _>(0, length, |given| mechanism.reference(given));
    // In whole order the part before the last cut has not seen the rest: only the last part's outputs are comparable.
    let unseen = match mechanism.order() {
        Order::Causal => 0,
        Order::Whole => splits.last().copied().unwrap_or(0) * mechanism.signature().output,
    };
    let mut coefficients = Stream::new(seed, length as u32, 1);
    let probe = Probe {
        unseen,
        outputs: (0..plain.outputs.len())
            .map(|index| if index < unseen { 0.0 } else { coefficients.normal() })
            .collect(),
        state: plain.state.numbers.iter().map(|_| coefficients.normal()).collect(),
    };
    let reference = probe.reference(mechanism, &drawn);
    let judge = Judge { mechanism, reference: &reference, unseen };

    let mut state = Definition::<f64>::init(mechanism);
    let outputs = drawn.with(0, length, |given| stream(mechanism, given, &mut state));
    let slopes = drawn.slopes(&|given| {
        let mut state = Definition::<Traced>::init(mechanism);
        let outputs = stream(mechanism, given, &mut state);
        probe.apply(&outputs, &state)
    });
    judge.compare("recurrent", DOUBLE, &Findings { outputs, state: state.numbers, slopes })?;
    judge.compare("chunked in f64", DOUBLE, &chunked::<f64>(mechanism, &drawn, &[], &probe))?;
    if !splits.is_empty() {
        judge.compare("chunked in f64, split", DOUBLE, &chunked::<f64>(mechanism, &drawn, splits, &probe))?;
    }
    let allowed = match gates {
        Gates::Moderate | Gates::Tiny => SINGLE,
        Gates::Huge | Gates::Mixed => SINGLE_HUGE,
    };
    judge.compare("chunked in f32", allowed, &chunked::<f32>(mechanism, &drawn, splits, &probe))
}

/// What a form computes: outputs, final state, and the derivatives of the probe in everything given.
struct Findings {
    outputs: Vec<f64>,
    state: Vec<f64>,
    slopes: Vec<f64>,
}

struct Judge<'a> {
    mechanism: &'a dyn Mechanism,
    reference: &'a Findings,
    unseen: usize,
}

impl Judge<'_> {
    fn compare(&self, form: &'static str, allowed: Allowed, found: &Findings) -> Result<(), Disagreement> {
        let signature = self.mechanism.signature();
        let length = self.reference.outputs.len() / signature.output;
        let check = |quantity: &str, part: &dyn Fn(&Findings) -> Vec<f64>, floor: f64| {
            let expected = part(self.reference);
            let (difference, allowed) = match allowed {
                Allowed::Everywhere(allowed) => {
                    (relative_difference(&part(found), &expected, floor), allowed)
                }
                Allowed::OnTheWhole(allowed) => (relative_distance(&part(found), &expected, floor), allowed),
            };
            // Not `>`: a NaN is a disagreement.
            if difference <= allowed {
                Ok(())
            } else {
                Err(Disagreement { form, quantity: quantity.to_string(), difference, allowed })
            }
        };
        check("the output", &|findings| findings.outputs[self.unseen..].to_vec(), 0.0)?;
        check("the final state", &|findings| findings.state.clone(), 0.0)?;
        let parts = signature
            .tokens
            .iter()
            .map(|port| (port.name, length * port.width))
            .chain(signature.parameters.iter().map(|parameter| (parameter.name, parameter.size)));
        // A derivative that vanishes exactly may come out as the rounding of larger ones.
        let floor = FLOOR * largest(&self.reference.slopes);
        let mut from = 0;
        for (name, size) in parts {
            let range = from..from + size;
            check(
                &format!("the gradient in {name}"),
                &|findings| findings.slopes[range.clone()].to_vec(),
                floor,
            )?;
            from += size;
        }
        Ok(())
    }
}

/// The largest difference over the largest entry expected, or over `floor` where that is larger; NaN or infinite where a
/// number is, or where sizes differ.
pub fn relative_difference(found: &[f64], expected: &[f64], floor: f64) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let differences: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
    let difference = largest(&differences);
    if difference == 0.0 { 0.0 } else { difference / largest(expected).max(floor) }
}

/// The distance over the norm expected, or over the norm that entries of `floor` would have; infinite where sizes differ.
fn relative_distance(found: &[f64], expected: &[f64], floor: f64) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    let distance = norm(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    let size = norm(&mut expected.iter().copied()).max(floor * (expected.len() as f64).sqrt());
    if distance == 0.0 { 0.0 } else { distance / size }
}

/// The largest magnitude; NaN where there is one.
fn largest(numbers: &[f64]) -> f64 {
    numbers
        .iter()
        .map(|x| x.abs())
        .fold(0.0, |largest, x| if x.is_nan() || x > largest { x } else { largest })
}

/// Outputs, final state and gradient of the chunked form on the pieces between the splits.
fn chunked<T: Real>(
    mechanism: &(impl In<T> + ?Sized),
    drawn: &Drawn,
    splits: &[usize],
    probe: &Probe,
) -> Findings {
    let width = mechanism.signature().output;
    let bounds: Vec<usize> = [0].into_iter().chain(splits.iter().copied()).chain([drawn.length]).collect();
    let mut state = Definition::<T>::init(mechanism);
    let mut forwards: Vec<(State<T>, Vec<T>, Saved<T>)> = Vec::new();
    for bound in bounds.windows(2) {
        let initial = state.clone();
        let mut outputs = vec![T::zero(); (bound[1] - bound[0]) * width];
        let saved = drawn
            .with::<T, _>(bound[0], bound[1], |given| mechanism.forward(given, &mut state, &mut outputs));
        forwards.push((initial, outputs, saved));
    }
    let mut slopes = State {
        seen: state.seen,
        numbers: probe.state.iter().map(|&coefficient| T::constant(coefficient)).collect(),
    };
    let mut tokens: Vec<Vec<f64>> = vec![Vec::new(); drawn.tokens.len()];
    let mut parameters: Vec<Vec<f64>> = drawn.parameters.iter().map(|part| vec![0.0; part.len()]).collect();
    for (bound, (initial, outputs, saved)) in bounds.windows(2).zip(&forwards).rev() {
        let output_slopes: Vec<T> =
            probe.outputs[bound[0] * width..bound[1] * width].iter().map(|&c| T::constant(c)).collect();
        drawn.with::<T, _>(bound[0], bound[1], |given| {
            let mut gradient = Gradient::zeros(given);
            let (output_slopes, state_slopes) = (&output_slopes, &slopes);
            let pass = Pass { given, initial, outputs, saved: &saved.0, output_slopes, state_slopes };
            slopes = mechanism.backward(&pass, &mut gradient);
            for (all, part) in tokens.iter_mut().zip(&gradient.tokens) {
                all.splice(0..0, part.iter().map(|x| x.value()));
            }
            for (all, part) in parameters.iter_mut().zip(&gradient.parameters) {
                all.iter_mut().zip(part).for_each(|(sum, x)| *sum += x.value());
            }
        });
    }
    let outputs = forwards.iter().flat_map(|forward| &forward.1).map(|x| x.value()).collect();
    let state = state.numbers.iter().map(|x| x.value()).collect();
    Findings { outputs, state, slopes: tokens.into_iter().chain(parameters).flatten().collect() }
}
