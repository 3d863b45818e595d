//! Many sequences and heads at once: packed or padded rows in, rows out, on all threads of the current pool.
//!
//! Token arrays have one row per token with the heads side by side, as a projection writes them: the numbers of port p,
//! token t and head h start at (t · heads + h) · width. A sequence is a range of rows; rows of no sequence are padding,
//! whose outputs and derivatives are zero. Results do not depend on the number of threads.

use crate::error::{Error, Result};
use crate::mechanism::{
    Given, Gradient, In, Pass, Saved, Signature, State, check_meaning, check_numbers, stream,
};
use crate::number::Real;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Which rows are sequences, and how many heads stand side by side in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    rows: usize,
    heads: usize,
    sequences: Vec<Range<usize>>,
}

/// Lengths whose sum is no number of rows.
fn too_long() -> Error {
    Error::Option {
        name: "lengths",
        expected: "as many tokens together as fit into memory".to_string(),
        found: format!("more than {}", usize::MAX),
    }
}

impl Layout {
    /// Sequences one behind the other, of these lengths.
    ///
    /// # Errors
    /// No heads.
    pub fn packed(lengths: &[usize], heads: usize) -> Result<Self> {
        let mut rows = 0_usize;
        let mut sequences = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let end = rows.checked_add(length).ok_or_else(too_long)?;
            sequences.push(rows..end);
            rows = end;
        }
        Self::checked(rows, heads, sequences)
    }

    /// Sequences in blocks of `longest` rows each, of which the first `lengths[i]` are tokens and the rest is padding.
    ///
    /// # Errors
    /// No heads, or a sequence that is longer than its block.
    pub fn padded(lengths: &[usize], longest: usize, heads: usize) -> Result<Self> {
        if let Some(&found) = lengths.iter().find(|&&length| length > longest) {
            return Err(Error::Option {
                name: "lengths",
                expected: format!("at most the padded length, {longest}"),
                found: found.to_string(),
            });
        }
        let rows = lengths.len().checked_mul(longest).ok_or_else(too_long)?;
        let sequences = lengths
            .iter()
            .enumerate()
            .map(|(block, length)| block * longest..block * longest + length)
            .collect();
        Self::checked(rows, heads, sequences)
    }

    fn checked(rows: usize, heads: usize, sequences: Vec<Range<usize>>) -> Result<Self> {
        if heads == 0 {
            return Err(Error::Option {
                name: "heads",
                expected: "at least 1".to_string(),
                found: heads.to_string(),
            });
        }
        Ok(Layout { rows, heads, sequences })
    }

    /// Rows of the token arrays, padding included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Heads side by side in a row.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// How many sequences.
    pub fn sequences(&self) -> usize {
        self.sequences.len()
    }

    /// All pairs of a sequence and a head, heads running fastest: the order of states.
    fn strands(&self) -> Vec<(Range<usize>, usize)> {
        self.sequences.iter().flat_map(|rows| (0..self.heads).map(move |head| (rows.clone(), head))).collect()
    }
}

/// A forward pass over a batch: what came out and what the backward pass needs.
#[derive(Debug, Clone)]
pub struct Passed<T> {
    /// Rows of outputs, heads side by side. The backward pass does not look at them: they may be taken away.
    pub outputs: Vec<T>,
    /// Final states, one per sequence and head, heads running fastest.
    pub states: Vec<State<T>>,
    strands: Vec<Strand<T>>,
}

/// What one sequence and head keeps between the passes.
#[derive(Debug, Clone)]
struct Strand<T> {
    initial: State<T>,
    outputs: Vec<T>,
    saved: Saved<T>,
}

/// Derivatives of a batch, in the layout of what they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchGradient<T> {
    /// In the token ports.
    pub tokens: Vec<Vec<T>>,
    /// In the parameters.
    pub parameters: Vec<Vec<T>>,
    /// In the initial states.
    pub states: Vec<State<T>>,
}

/// Refuses arrays whose sizes or numbers do not fit the signature and the layout; padding may be anything.
///
/// # Errors
/// The first port or parameter that does not fit.
pub fn check<T: Real>(
    signature: &Signature,
    layout: &Layout,
    tokens: &[&[T]],
    parameters: &[&[T]],
) -> Result<()> {
    let count = |expected: usize, found: usize, what| {
        if expected == found { Ok(()) } else { Err(Error::Count { what, expected, found }) }
    };
    count(signature.tokens.len(), tokens.len(), "token ports")?;
    count(signature.parameters.len(), parameters.len(), "parameters")?;
    for (port, numbers) in signature.tokens.iter().zip(tokens) {
        let row = layout.heads * port.width;
        check_size(port.name, layout.rows * row, numbers)?;
        for rows in &layout.sequences {
            let (from, numbers) = (rows.start * row, &numbers[rows.start * row..rows.end * row]);
            check_numbers(port.name, numbers.len(), numbers)
                .and_then(|()| check_meaning(port, numbers))
                .map_err(|error| error.further(from))?;
        }
    }
    for (parameter, numbers) in signature.parameters.iter().zip(parameters) {
        let copies = if parameter.shared { 1 } else { layout.heads };
        check_numbers(parameter.name, copies * parameter.size, numbers)?;
    }
    Ok(())
}

fn check_size<T>(name: &'static str, expected: usize, numbers: &[T]) -> Result<()> {
    if numbers.len() == expected { Ok(()) } else { Err(Error::Size { name, expected, found: numbers.len() }) }
}

/// Which of a mechanism's forms does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The definition, without an eye to speed; from the empty state only.
    Reference,
    /// Token by token.
    Recurrent,
    /// The fast form.
    Chunked,
}

/// Outputs and final states of a batch whose arrays have been [checked](check), by any form; [`forward`] keeps more.
///
/// # Errors
/// A wrong number of initial states, or any for the reference.
pub fn evaluate<T: Real>(
    mechanism: &(impl In<T> + ?Sized),
    form: Form,
    layout: &Layout,
    tokens: &[&[T]],
    parameters: &[&[T]],
    initial: Option<&[State<T>]>,
) -> Result<(Vec<T>, Vec<State<T>>)> {
    let signature = mechanism.signature();
    let strands = layout.strands();
    check_initial(&strands, initial)?;
    if form == Form::Reference && initial.is_some() {
        return Err(Error::Option {
            name: "initial",
            expected: "none, since the reference starts from the empty state".to_string(),
            found: "states".to_string(),
        });
    }
    let done: Vec<(Vec<T>, State<T>)> = strands
        .par_iter()
        .enumerate()
        .map(|(index, (rows, head))| {
            with_strand(&signature, layout, tokens, parameters, rows, *head, |given| {
                let mut state = initial.map_or_else(|| mechanism.init(), |states| states[index].clone());
                match form {
                    Form::Reference => {
                        let evaluated = mechanism.reference(given);
                        (evaluated.outputs, evaluated.state)
                    }
                    Form::Recurrent => (stream(mechanism, given, &mut state), state),
                    Form::Chunked => {
                        let mut outputs = vec![T::zero(); rows.len() * signature.output];
                        mechanism.forward(given, &mut state, &mut outputs);
                        (outputs, state)
                    }
                }
            })
        })
        .collect();
    let mut outputs = vec![T::zero(); layout.rows * layout.heads * signature.output];
    for ((rows, head), (part, _)) in strands.iter().zip(&done) {
        scatter(part, &mut outputs, rows, *head, layout.heads, signature.output);
    }
    Ok((outputs, done.into_iter().map(|(_, state)| state).collect()))
}

fn check_initial<T>(strands: &[(Range<usize>, usize)], initial: Option<&[State<T>]>) -> Result<()> {
    match initial {
        Some(states) if states.len() != strands.len() => {
            Err(Error::Count { what: "initial states", expected: strands.len(), found: states.len() })
        }
        _ => Ok(()),
    }
}

/// What is done with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is taken into the state.
    Absorb,
    /// It is answered from the state, which does not change.
    Read,
    /// It is taken into the state and then answered.
    Step,
}

/// Does something with one token of every head, in arrays that have been [checked](check): the outputs, heads side by side.
pub fn act<T: Real>(
    mechanism: &(impl In<T> + ?Sized),
    act: Act,
    tokens: &[&[T]],
    parameters: &[&[T]],
    states: &mut [State<T>],
) -> Vec<T> {
    let (signature, token) = (mechanism.signature(), 0..1);
    let layout = Layout { rows: 1, heads: states.len(), sequences: vec![token.clone()] };
    let width = if act == Act::Absorb { 0 } else { signature.output };
    let mut outputs = vec![T::zero(); states.len() * width];
    for (head, state) in states.iter_mut().enumerate() {
        with_strand(&signature, &layout, tokens, parameters, &token, head, |given| {
            if act != Act::Read {
                mechanism.absorb(given, state);
            }
            if act != Act::Absorb {
                mechanism.read(given, state.view(), &mut outputs[head * width..(head + 1) * width]);
            }
        });
    }
    outputs
}

/// Runs the chunked form over a batch whose arrays have been [checked](check); `initial` are the states to start from.
///
/// # Errors
/// A wrong number of initial states.
pub fn forward<T: Real>(
    mechanism: &(impl In<T> + ?Sized),
    layout: &Layout,
    tokens: &[&[T]],
    parameters: &[&[T]],
    initial: Option<&[State<T>]>,
) -> Result<Passed<T>> {
    let signature = mechanism.signature();
    let strands = layout.strands();
    check_initial(&strands, initial)?;
    let done: Vec<(Strand<T>, State<T>)> = strands
        .par_iter()
        .enumerate()
        .map(|(index, (rows, head))| {
            with_strand(&signature, layout, tokens, parameters, rows, *head, |given| {
                let initial = initial.map_or_else(|| mechanism.init(), |states| states[index].clone());
                let mut state = initial.clone();
                let mut outputs = vec![T::zero(); rows.len() * signature.output];
                let saved = mechanism.forward(given, &mut state, &mut outputs);
                (Strand { initial, outputs, saved }, state)
            })
        })
        .collect();
    let mut outputs = vec![T::zero(); layout.rows * layout.heads * signature.output];
    for ((rows, head), (strand, _)) in strands.iter().zip(&done) {
        scatter(&strand.outputs, &mut outputs, rows, *head, layout.heads, signature.output);
    }
    let (strands, states) = done.into_iter().unzip();
    Ok(Passed { outputs, states, strands })
}

/// The derivatives of a loss from those in outputs (rows) and final states (none: zero).
///
/// # Errors
/// Slopes of the wrong size or number.
pub fn backward<T: Real>(
    mechanism: &(impl In<T> + ?Sized),
    layout: &Layout,
    tokens: &[&[T]],
    parameters: &[&[T]],
    passed: &Passed<T>,
    output_slopes: &[T],
    state_slopes: Option<&[State<T>]>,
) -> Result<BatchGradient<T>> {
    let signature = mechanism.signature();
    let strands = layout.strands();
    let expected = layout.rows * layout.heads * signature.output;
    if output_slopes.len() != expected {
        return Err(Error::Size { name: "output slopes", expected, found: output_slopes.len() });
    }
    if let Some(states) = state_slopes
        && states.len() != strands.len()
    {
        return Err(Error::Count { what: "state slopes", expected: strands.len(), found: states.len() });
    }
    let done: Vec<(Gradient<T>, State<T>)> = strands
        .par_iter()
        .enumerate()
        .map(|(index, (rows, head))| {
            with_strand(&signature, layout, tokens, parameters, rows, *head, |given| {
                let Strand { initial, outputs, saved } = &passed.strands[index];
                let output_slopes = &gather(output_slopes, rows, *head, layout.heads, signature.output);
                let zeros;
                let state_slopes = match state_slopes {
                    Some(states) => &states[index],
                    None => {
                        let last = &passed.states[index];
                        zeros = State { seen: last.seen, numbers: vec![T::zero(); last.numbers.len()] };
                        &zeros
                    }
                };
                let mut gradient = Gradient::zeros(given);
                let pass = Pass { given, initial, outputs, saved: &saved.0, output_slopes, state_slopes };
                let state = mechanism.backward(&pass, &mut gradient);
                (gradient, state)
            })
        })
        .collect();
    let mut gradient = BatchGradient {
        tokens: tokens.iter().map(|numbers| vec![T::zero(); numbers.len()]).collect(),
        parameters: parameters.iter().map(|numbers| vec![T::zero(); numbers.len()]).collect(),
        states: Vec::with_capacity(strands.len()),
    };
    for ((rows, head), (part, state)) in strands.iter().zip(done) {
        for ((port, all), one) in signature.tokens.iter().zip(&mut gradient.tokens).zip(&part.tokens) {
            scatter(one, all, rows, *head, layout.heads, port.width);
        }
        for ((parameter, all), one) in
            signature.parameters.iter().zip(&mut gradient.parameters).zip(&part.parameters)
        {
            let from = if parameter.shared { 0 } else { head * parameter.size };
            all[from..from + parameter.size].iter_mut().zip(one).for_each(|(sum, &x)| *sum += x);
        }
        gradient.states.push(state);
    }
    Ok(gradient)
}

/// Hands one sequence and head to `visit`: its rows gathered, or as they are where there is one head.
fn with_strand<T: Real, R>(
    signature: &Signature,
    layout: &Layout,
    tokens: &[&[T]],
    parameters: &[&[T]],
    rows: &Range<usize>,
    head: usize,
    visit: impl FnOnce(&Given<'_, T>) -> R,
) -> R {
    let tokens: Vec<Cow<'_, [T]>> = signature
        .tokens
        .iter()
        .zip(tokens)
        .map(|(port, numbers)| match layout.heads {
            1 => Cow::Borrowed(&numbers[rows.start * port.width..rows.end * port.width]),
            heads => Cow::Owned(gather(numbers, rows, head, heads, port.width)),
        })
        .collect();
    let tokens: Vec<&[T]> = tokens.iter().map(AsRef::as_ref).collect();
    let parameters: Vec<&[T]> = signature
        .parameters
        .iter()
        .zip(parameters)
        .map(|(parameter, numbers)| {
            let from = if parameter.shared { 0 } else { head * parameter.size };
            &numbers[from..from + parameter.size]
        })
        .collect();
    visit(&Given { length: rows.len(), tokens: &tokens, parameters: &parameters })
}

fn gather<T: Real>(numbers: &[T], rows: &Range<usize>, head: usize, heads: usize, width: usize) -> Vec<T> {
    let mut gathered = Vec::with_capacity(rows.len() * width);
    for row in rows.clone() {
        let from = (row * heads + head) * width;
        gathered.extend_from_slice(&numbers[from..from + width]);
    }
    gathered
}

fn scatter<T: Real>(part: &[T], all: &mut [T], rows: &Range<usize>, head: usize, heads: usize, width: usize) {
    if width > 0 {
        for (row, numbers) in rows.clone().zip(part.chunks_exact(width)) {
            let from = (row * heads + head) * width;
            all[from..from + width].copy_from_slice(numbers);
        }
    }
}
