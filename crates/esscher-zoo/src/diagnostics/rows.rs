//! Rows of attention of any mechanism that is linear in its values: A_tr = what output t takes of value r, found with unit values.
//!
//! For a linear dynamical system this is the operator C_t Λ_t ⋯ Λ_{r+1} B_r, the "hidden attention" (key `sieber2024`); for
//! softmax it is the matrix of weights. Rows belong to one channel: what input channel c gives to output channel c. A mechanism that
//! is affine has its output at zero values taken away; one that is neither is refused.

use crate::error::{Error, Result};
use crate::mechanism::{Definition, Given, Mechanism, Order};
use esscher_core::numerics::Stream;
use std::ops::Range;

/// Weights, row by row: `rows` of one number per token.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Numbers of a row.
    pub tokens: usize,
    /// The weights.
    pub weights: Vec<f64>,
    /// Which tokens a row may see.
    pub order: Order,
}

impl Rows {
    /// How many rows.
    pub fn count(&self) -> usize {
        self.weights.len() / self.tokens.max(1)
    }

    /// The weights that one token gives to all.
    pub fn row(&self, index: usize) -> &[f64] {
        &self.weights[index * self.tokens..(index + 1) * self.tokens]
    }

    /// Which tokens row t of an [`attention_matrix`] may see.
    pub fn visible(&self, row: usize) -> Range<usize> {
        match self.order {
            Order::Causal => 0..(row + 1).min(self.tokens),
            Order::Whole => 0..self.tokens,
        }
    }
}

/// What is taken for rounding when linearity in the values is checked, relative to the largest output.
const LINEAR: f64 = 1e-9;

/// The matrix of weights of a sequence, length × length, in one channel; the numbers of the value port do not matter.
///
/// One run of the chunked form per token.
///
/// # Errors
/// A mechanism without a value port, a channel that it does not have, one that is not linear in its values, or numbers so
/// large that an output overflows.
pub fn attention_matrix(mechanism: &dyn Mechanism, given: &Given<'_, f64>, channel: usize) -> Result<Rows> {
    let probe = Probe::new(mechanism, given, channel)?;
    let output = mechanism.signature().output;
    probe.rows(|given| {
        let mut state = Definition::<f64>::init(mechanism);
        let mut outputs = vec![0.0; given.length * output];
        mechanism.forward(given, &mut state, &mut outputs);
        outputs.iter().skip(channel).step_by(output).copied().collect()
    })
}

/// The weights that given queries put on all tokens after these are absorbed, a row per query, in one channel.
///
/// The numbers of the query and value ports of the sequence do not matter; other ports of a reading are the last token's.
///
/// # Errors
/// As [`attention_matrix`]; a mechanism without a query port; queries of another width.
pub fn query_rows(
    mechanism: &dyn Mechanism,
    given: &Given<'_, f64>,
    queries: &[f64],
    channel: usize,
) -> Result<Rows> {
    let signature = mechanism.signature();
    let missing = |what, reason| Error::Missing { mechanism: format!("{mechanism:?}"), what, reason };
    let port =
        signature.port("query").ok_or_else(|| missing("query", "it reads its state by other means"))?;
    let width = signature.tokens[port].width;
    if queries.is_empty() || !queries.len().is_multiple_of(width) {
        return Err(Error::Size { name: "queries", expected: width, found: queries.len() });
    }
    let probe = Probe::new(mechanism, given, channel)?;
    let rows = probe.rows(|given| {
        let mut state = Definition::<f64>::init(mechanism);
        let mut token: Vec<&[f64]> = Vec::new();
        for t in 0..given.length {
            token = (0..given.tokens.len()).map(|port| given.row(port, t)).collect();
            mechanism.absorb(&Given { length: 1, tokens: &token, parameters: given.parameters }, &mut state);
        }
        let mut output = vec![0.0; signature.output];
        queries
            .chunks_exact(width)
            .map(|query| {
                token[port] = query;
                let reading = Given { length: 1, tokens: &token, parameters: given.parameters };
                mechanism.read(&reading, state.view(), &mut output);
                output[channel]
            })
            .collect()
    })?;
    // All tokens were absorbed before the first reading.
    Ok(Rows { order: Order::Whole, ..rows })
}

/// A sequence whose values are replaced by unit ones.
struct Probe<'a> {
    mechanism: &'a dyn Mechanism,
    given: &'a Given<'a, f64>,
    channel: usize,
    port: usize,
    width: usize,
}

impl<'a> Probe<'a> {
    fn new(mechanism: &'a dyn Mechanism, given: &'a Given<'a, f64>, channel: usize) -> Result<Self> {
        let signature = mechanism.signature();
        let port = mechanism
            .dynamical_system()
            .map(|system| system.input_port())
            .or_else(|| signature.port("value"))
            .or_else(|| signature.port("input"))
            .ok_or_else(|| Error::Missing {
                mechanism: format!("{mechanism:?}"),
                what: "rows of attention",
                reason: "no port is called value or input",
            })?;
        let width = signature.tokens[port].width;
        if channel >= width.min(signature.output) || given.length == 0 {
            return Err(Error::Option {
                name: "channel",
                expected: format!("below {} and at least one token", width.min(signature.output)),
                found: format!("{channel} of {} tokens", given.length),
            });
        }
        Ok(Probe { mechanism, given, channel, port, width })
    }

    /// What `run` answers with these values in the channel.
    fn answer(&self, values: &[f64], run: impl Fn(&Given<'_, f64>) -> Vec<f64>) -> Vec<f64> {
        let mut rows = vec![0.0; self.given.length * self.width];
        for (row, &value) in rows.chunks_exact_mut(self.width).zip(values) {
            row[self.channel] = value;
        }
        let mut tokens = self.given.tokens.to_vec();
        tokens[self.port] = &rows;
        run(&Given { length: self.given.length, tokens: &tokens, parameters: self.given.parameters })
    }

    fn rows(&self, run: impl Fn(&Given<'_, f64>) -> Vec<f64>) -> Result<Rows> {
        let tokens = self.given.length;
        let baseline = self.answer(&vec![0.0; tokens], &run);
        let mut weights = vec![0.0; baseline.len() * tokens];
        for token in 0..tokens {
            let unit: Vec<f64> = (0..tokens).map(|other| f64::from(u8::from(other == token))).collect();
            for (row, (output, zero)) in self.answer(&unit, &run).iter().zip(&baseline).enumerate() {
                weights[row * tokens + token] = output - zero;
            }
        }
        // The sum of the rows must answer any values.
        let mut stream = Stream::new(tokens as u64, 0, 0);
        let values: Vec<f64> = (0..tokens).map(|_| 3.0 * stream.normal()).collect();
        let found = self.answer(&values, &run);
        if baseline.iter().chain(&weights).chain(&found).any(|output| !output.is_finite()) {
            return Err(Error::Core(esscher_core::Error::Overflow { what: "an output of the mechanism" }));
        }
        let size = found.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        for ((row, output), zero) in weights.chunks_exact(tokens).zip(&found).zip(&baseline) {
            let expected = zero + row.iter().zip(&values).map(|(w, v)| w * v).sum::<f64>();
            // A NaN is no weight.
            let linear = (output - expected).abs() <= LINEAR * size.max(expected.abs());
            if !linear {
                return Err(Error::Missing {
                    mechanism: format!("{:?}", self.mechanism),
                    what: "rows of attention",
                    reason: "it is not linear in its values",
                });
            }
        }
        Ok(Rows { tokens, weights, order: self.mechanism.order() })
    }
}
