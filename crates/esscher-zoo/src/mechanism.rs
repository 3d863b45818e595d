//! What a mechanism is: its ports, its state, and its three forms.
//!
//! A mechanism maps one sequence of one head to outputs. It reads *token ports* (per token: query, key, value, gates) and
//! *parameters* (once). Its state summarises the tokens absorbed so far, and a token is answered by reading that state:
//! in causal order every token is absorbed and then read, in whole order all are absorbed before the first is read.
//!
//! [`Definition`] has the reference and the recurrent form, over any [`Number`]; [`Chunked`] has the fast form with its
//! hand-written backward pass. [`crate::agreement`] checks that they agree.

use crate::dynamical_system::DynamicalSystem;
use crate::error::{Error, Result};
use crate::number::{Number, Real};
use crate::traced::Traced;
use esscher_core::numerics::Stream;
use std::fmt::Debug;

/// What the numbers of a token port mean; decides how a layer makes them, how they are checked and how tests draw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Any numbers: queries, keys, values.
    Content,
    /// ln α ≤ 0. A layer makes it as ln σ(z)/16.
    LogDecay,
    /// A step size Δ > 0. A layer makes it as softplus(z + b).
    Rate,
    /// A number in [0, 1]. A layer makes it as σ(z).
    Fraction,
    /// The argument of a gate, any number; the mechanism applies the gate itself.
    Logit,
    /// An angle in radians, any number.
    Angle,
}

/// One thing that a mechanism reads of every token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Its name, a Python identifier.
    pub name: &'static str,
    /// Numbers per token and head.
    pub width: usize,
    /// What they mean.
    pub meaning: Meaning,
}

/// How a parameter starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Initial {
    /// The same number everywhere.
    Constant(f64),
    /// Independent normals of this standard deviation.
    Normal(f64),
    /// One number after the other, as listed.
    Values(Vec<f64>),
}

/// One thing that a mechanism reads once.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name, a Python identifier.
    pub name: &'static str,
    /// How many numbers it has, per head or in all.
    pub size: usize,
    /// Whether all heads read the same numbers.
    pub shared: bool,
    /// How it starts.
    pub initial: Initial,
    /// Whether training changes it.
    pub trained: bool,
}

impl Parameter {
    /// A parameter that every head has for itself and that training changes.
    pub fn trained(name: &'static str, size: usize, initial: Initial) -> Self {
        Parameter { name, size, shared: false, initial, trained: true }
    }

    /// The numbers it starts with, for one head or for all.
    pub fn start(&self, stream: &mut Stream) -> Vec<f64> {
        match &self.initial {
            Initial::Constant(value) => vec![*value; self.size],
            Initial::Normal(deviation) => (0..self.size).map(|_| deviation * stream.normal()).collect(),
            Initial::Values(values) => values.clone(),
        }
    }
}

/// All that a mechanism reads and how wide its outputs are.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Token ports, in order.
    pub tokens: Vec<Port>,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Numbers per output and head.
    pub output: usize,
}

impl Signature {
    /// Queries and keys of one width and values of another, which is also that of outputs; no parameters.
    pub fn attention(key_width: usize, value_width: usize) -> Self {
        Signature { tokens: Vec::new(), parameters: Vec::new(), output: value_width }
            .with_port("query", key_width, Meaning::Content)
            .with_port("key", key_width, Meaning::Content)
            .with_port("value", value_width, Meaning::Content)
    }

    /// The same with one more port.
    pub fn with_port(mut self, name: &'static str, width: usize, meaning: Meaning) -> Self {
        self.tokens.push(Port { name, width, meaning });
        self
    }

    /// The place of the token port of this name.
    pub fn port(&self, name: &str) -> Option<usize> {
        self.tokens.iter().position(|port| port.name == name)
    }
}

/// In which order tokens are absorbed and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Every token reads the tokens up to itself.
    Causal,
    /// Every token reads all tokens.
    Whole,
}

/// The numbers of one sequence and head: for every token port `length` rows, for every parameter its numbers.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a, N> {
    /// How many tokens.
    pub length: usize,
    /// Rows of every token port, in the order of the signature.
    pub tokens: &'a [&'a [N]],
    /// Numbers of every parameter, in the order of the signature.
    pub parameters: &'a [&'a [N]],
}

impl<'a, N: Number> Given<'a, N> {
    /// Numbers whose sizes and values are those that the signature asks for.
    ///
    /// # Errors
    /// A missing port, a wrong size, a number that is not finite or not allowed by its meaning.
    pub fn new(
        signature: &Signature,
        length: usize,
        tokens: &'a [&'a [N]],
        parameters: &'a [&'a [N]],
    ) -> Result<Self> {
        let count = |expected: usize, found: usize, what| {
            if expected == found { Ok(()) } else { Err(Error::Count { what, expected, found }) }
        };
        count(signature.tokens.len(), tokens.len(), "token ports")?;
        count(signature.parameters.len(), parameters.len(), "parameters")?;
        for (port, numbers) in signature.tokens.iter().zip(tokens) {
            check_numbers(port.name, length * port.width, numbers)?;
            check_meaning(port, numbers)?;
        }
        for (parameter, numbers) in signature.parameters.iter().zip(parameters) {
            check_numbers(parameter.name, parameter.size, numbers)?;
        }
        Ok(Given { length, tokens, parameters })
    }

    /// The row of a token port.
    pub fn row(&self, port: usize, token: usize) -> &'a [N] {
        let width = self.tokens[port].len() / self.length.max(1);
        &self.tokens[port][token * width..(token + 1) * width]
    }
}

/// Refuses a wrong number of numbers, and numbers that are not finite.
pub(crate) fn check_numbers<N: Number>(name: &'static str, expected: usize, numbers: &[N]) -> Result<()> {
    if numbers.len() != expected {
        return Err(Error::Size { name, expected, found: numbers.len() });
    }
    match numbers.iter().position(|number| !number.value().is_finite()) {
        Some(index) => Err(Error::NotFinite { name, index, found: numbers[index].value() }),
        None => Ok(()),
    }
}

/// Refuses numbers that a port's meaning does not allow.
pub(crate) fn check_meaning<N: Number>(port: &Port, numbers: &[N]) -> Result<()> {
    let (allowed, expected): (fn(f64) -> bool, _) = match port.meaning {
        Meaning::Content | Meaning::Logit | Meaning::Angle => return Ok(()),
        Meaning::LogDecay => (|x| x <= 0.0, "at most 0, since it is the logarithm of a decay"),
        Meaning::Rate => (|x| x > 0.0, "more than 0"),
        Meaning::Fraction => (|x| (0.0..=1.0).contains(&x), "between 0 and 1"),
    };
    match numbers.iter().position(|number| !allowed(number.value())) {
        Some(index) => {
            Err(Error::NotAllowed { name: port.name, index, found: numbers[index].value(), expected })
        }
        None => Ok(()),
    }
}

/// What a mechanism remembers of the tokens it has absorbed.
#[derive(Debug, Clone, PartialEq)]
pub struct State<N> {
    /// How many tokens were absorbed.
    pub seen: usize,
    /// Everything else, in a layout of the mechanism's own.
    pub numbers: Vec<N>,
}

/// A state that is only read.
#[derive(Debug, Clone, Copy)]
pub struct StateView<'a, N> {
    /// How many tokens were absorbed.
    pub seen: usize,
    /// Everything else, in a layout of the mechanism's own.
    pub numbers: &'a [N],
}

impl<N> State<N> {
    /// The state for reading.
    pub fn view(&self) -> StateView<'_, N> {
        StateView { seen: self.seen, numbers: &self.numbers }
    }

    /// Bytes of its numbers.
    pub fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<N>()
    }
}

/// Outputs of a sequence, row by row, and the state after it.
#[derive(Debug, Clone)]
pub struct Evaluated<N> {
    /// Rows of outputs.
    pub outputs: Vec<N>,
    /// The state after the last token.
    pub state: State<N>,
}

/// The two forms that define a mechanism, over any number.
///
/// `reference` transcribes the definition, in the order of its formulas and without an eye to speed. `absorb` and `read`
/// are the recurrent form; a token is a [`Given`] of length one.
pub trait Definition<N: Number> {
    /// Outputs and final state of a whole sequence from the empty state, as the definition says.
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N>;
    /// The state before the first token.
    fn init(&self) -> State<N>;
    /// Takes one token into the state.
    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>);
    /// Answers one token from the state, which in causal order has absorbed it.
    fn read(&self, token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]);
}

/// What a forward pass keeps for the backward pass; only the mechanism that made it knows the layout.
#[derive(Debug, Clone, Default)]
pub struct Saved<T>(pub Vec<T>);

/// Derivatives of a loss in everything that was given, each of the size of what it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient<T> {
    /// In the token ports.
    pub tokens: Vec<Vec<T>>,
    /// In the parameters.
    pub parameters: Vec<Vec<T>>,
}

impl<T: Number> Gradient<T> {
    /// Zeros in the sizes of what was given.
    pub fn zeros(given: &Given<'_, T>) -> Self {
        let zeros = |numbers: &[&[T]]| numbers.iter().map(|part| vec![T::zero(); part.len()]).collect();
        Gradient { tokens: zeros(given.tokens), parameters: zeros(given.parameters) }
    }
}

/// The slopes of every token port, in the order of the signature.
pub(crate) fn ports<T, const N: usize>(slopes: &mut [Vec<T>]) -> &mut [Vec<T>; N] {
    slopes.try_into().unwrap_or_else(|_| unreachable!("a gradient has the ports of the signature"))
}

/// A forward pass as its backward pass sees it: what went in, what came out, and how a loss depends on what came out.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a, T> {
    /// The tokens and parameters.
    pub given: &'a Given<'a, T>,
    /// The state before the first token.
    pub initial: &'a State<T>,
    /// The outputs, row by row.
    pub outputs: &'a [T],
    /// What the forward pass kept.
    pub saved: &'a [T],
    /// Derivatives of the loss in the outputs.
    pub output_slopes: &'a [T],
    /// Derivatives of the loss in the final state, in the layout of the state.
    pub state_slopes: &'a State<T>,
}

/// The fast form: the whole sequence at once, in pieces, from any state.
pub trait Chunked<T: Real> {
    /// Writes the outputs, moves the state behind the last token, and keeps what `backward` needs.
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T>;

    /// Adds the derivatives to `gradient` (zeros when it comes from [`Gradient::zeros`]) and returns those in the initial state.
    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T>;
}

/// A mechanism with all of its forms.
pub trait Mechanism:
    Definition<f32> + Definition<f64> + Definition<Traced> + Chunked<f32> + Chunked<f64> + Debug + Send + Sync
{
    /// What it reads and how wide its outputs are.
    fn signature(&self) -> Signature;

    /// The order in which it absorbs and reads.
    fn order(&self) -> Order {
        Order::Causal
    }

    /// Between which numbers the bias of a port starts, evenly over its channels, where a layer makes the port; none: as its
    /// meaning says. Forget gates start open.
    fn initial_biases(&self, _port: &Port) -> Option<(f64, f64)> {
        None
    }

    /// The mechanism as a linear dynamical system, where it is one.
    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        None
    }
}

/// A mechanism in one precision: what generic code over f32 and f64 asks for.
pub trait In<T: Real>: Mechanism + Definition<T> + Chunked<T> {}

impl<T: Real, M: Mechanism + Definition<T> + Chunked<T> + ?Sized> In<T> for M {}

/// The recurrent form over a whole sequence: absorbs and reads in the mechanism's order, from any state.
pub fn stream<N: Number>(
    mechanism: &(impl Definition<N> + Mechanism + ?Sized),
    given: &Given<'_, N>,
    state: &mut State<N>,
) -> Vec<N> {
    let width = mechanism.signature().output;
    let mut outputs = vec![N::zero(); given.length * width];
    let token_at = |token: usize, visit: &mut dyn FnMut(&Given<'_, N>)| {
        let rows: Vec<&[N]> = (0..given.tokens.len()).map(|port| given.row(port, token)).collect();
        visit(&Given { length: 1, tokens: &rows, parameters: given.parameters });
    };
    match mechanism.order() {
        Order::Causal => {
            for (token, output) in outputs.chunks_exact_mut(width).enumerate() {
                token_at(token, &mut |one| {
                    mechanism.absorb(one, state);
                    mechanism.read(one, state.view(), output);
                });
            }
        }
        Order::Whole => {
            for token in 0..given.length {
                token_at(token, &mut |one| mechanism.absorb(one, state));
            }
            for (token, output) in outputs.chunks_exact_mut(width).enumerate() {
                token_at(token, &mut |one| mechanism.read(one, state.view(), output));
            }
        }
    }
    outputs
}
