//! What a prompt is made of: a law of tokens x, and for every port the function of x that it reads.

use crate::error::{Error, Result};
use crate::mechanism::{
    Initial, Meaning, Mechanism, Parameter, Port, Signature, check_meaning, check_numbers,
};
use esscher_core::measure::Law;
use esscher_core::numerics::{Stream, linalg};
use faer::{Mat, MatRef};
use std::fmt;
use std::sync::Arc;

/// How a port is made of the token.
#[derive(Clone)]
pub enum Source {
    /// A x, with A of size width × d.
    Projection(Mat<f64>),
    /// The same numbers for every token.
    Constant(Vec<f64>),
    /// Any function of x, written into the slice.
    Function(Arc<dyn Fn(&[f64], &mut [f64]) + Send + Sync>),
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Projection(matrix) => write!(formatter, "Projection({matrix:?})"),
            Source::Constant(numbers) => write!(formatter, "Constant({numbers:?})"),
            Source::Function(_) => write!(formatter, "Function"),
        }
    }
}

/// The number that all gates of a meaning have where the setting names no source for their port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstantGates {
    /// ln α.
    pub log_decay: f64,
    /// Δ.
    pub rate: f64,
    /// A number in [0, 1].
    pub fraction: f64,
    /// The argument of a gate.
    pub logit: f64,
    /// Radians per token.
    pub angle: f64,
}

impl Default for ConstantGates {
    /// α = 9/10, a horizon of ten tokens; Δ = 1/10; halves; no rotation.
    fn default() -> Self {
        ConstantGates { log_decay: 0.9f64.ln(), rate: 0.1, fraction: 0.5, logit: 0.0, angle: 0.0 }
    }
}

/// A law of tokens and how ports and parameters are made: one setting serves many mechanisms.
///
/// A port is made by the source of its name. Without one, gates take the [`ConstantGates`], and the port `input` of recurrent cells that of
/// `value`, since it is what they remember; queries, keys and values need one.
/// Parameters without numbers of their own start as the signature says, random ones from a fixed seed.
///
/// ```
/// use esscher_zoo::large_prompt::Setting;
/// use esscher_core::{mat, measure::Gaussian};
/// use std::sync::Arc;
/// let setting = Setting::identity(Arc::new(Gaussian::standard(2)?), &[1.0, 0.5]);
/// assert_eq!(setting.constant("query"), Some(&[1.0, 0.5][..]));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Setting {
    /// The law of a token.
    pub tokens: Law,
    /// Gates without a source.
    pub gates: ConstantGates,
    sources: Vec<(String, Source)>,
    parameters: Vec<(String, Vec<f64>)>,
}

/// Random parameters of a setting come from this seed; the same in all of its uses.
const PARAMETER_SEED: u64 = 0x7061_7261_6d65_7465;

impl Setting {
    /// query = q, key = K x, value = V x.
    pub fn new(tokens: Law, query: &[f64], key: MatRef<'_, f64>, value: MatRef<'_, f64>) -> Self {
        Setting { tokens, gates: ConstantGates::default(), sources: Vec::new(), parameters: Vec::new() }
            .with("query", Source::Constant(query.to_vec()))
            .with("key", Source::Projection(key.to_owned()))
            .with("value", Source::Projection(value.to_owned()))
    }

    /// query = q, key = value = x.
    pub fn identity(tokens: Law, query: &[f64]) -> Self {
        let identity = linalg::identity(tokens.dimension());
        Setting::new(tokens, query, identity.as_ref(), identity.as_ref())
    }

    /// The same with another source for a port.
    pub fn with(mut self, port: &str, source: Source) -> Self {
        self.sources.retain(|(name, _)| name != port);
        self.sources.push((port.to_string(), source));
        self
    }

    /// The same with other gates where ports have no source.
    pub fn with_gates(mut self, gates: ConstantGates) -> Self {
        self.gates = gates;
        self
    }

    /// The same with numbers for a parameter.
    pub fn with_parameter(mut self, name: &str, numbers: &[f64]) -> Self {
        self.parameters.retain(|(known, _)| known != name);
        self.parameters.push((name.to_string(), numbers.to_vec()));
        self
    }

    /// The source named for a port, if any.
    pub fn source(&self, port: &str) -> Option<&Source> {
        self.sources.iter().find(|(name, _)| name == port).map(|(_, source)| source)
    }

    /// The numbers of a port that is constant by name.
    pub fn constant(&self, port: &str) -> Option<&[f64]> {
        match self.source(port)? {
            Source::Constant(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The numbers of a mechanism's port where they are the same for every token, named or by the constant gates.
    pub(super) fn constant_port(&self, mechanism: &dyn Mechanism, port: &str) -> Option<Vec<f64>> {
        let signature = mechanism.signature();
        match self.source_of(&signature.tokens[signature.port(port)?]).ok()? {
            Source::Constant(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The matrix of a port that is a projection of the token.
    pub fn projection(&self, port: &str) -> Option<MatRef<'_, f64>> {
        match self.source(port)? {
            Source::Projection(matrix) => Some(matrix.as_ref()),
            _ => None,
        }
    }

    /// How a port of a mechanism is made, checked against its width and meaning.
    ///
    /// # Errors
    /// A content port without a source, a wrong width, or constants that the meaning does not allow.
    pub fn source_of(&self, port: &Port) -> Result<Source> {
        let gates = &self.gates;
        let constant = |number: f64| Ok(Source::Constant(vec![number; port.width]));
        let named = self.source(port.name).or_else(|| self.source("value").filter(|_| port.name == "input"));
        let source = match (named, port.meaning) {
            (Some(source), _) => Ok(source.clone()),
            (None, Meaning::LogDecay) => constant(gates.log_decay),
            (None, Meaning::Rate) => constant(gates.rate),
            (None, Meaning::Fraction) => constant(gates.fraction),
            (None, Meaning::Logit) => constant(gates.logit),
            (None, Meaning::Angle) => constant(gates.angle),
            (None, Meaning::Content) => Err(Error::Unknown {
                what: "source of a port",
                name: port.name.to_string(),
                known: self.sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
            }),
        }?;
        match &source {
            Source::Constant(numbers) => {
                check_numbers(port.name, port.width, numbers)?;
                check_meaning(port, numbers)?;
            }
            Source::Projection(matrix) => {
                let size = |expected, found| Error::Size { name: port.name, expected, found };
                if matrix.nrows() != port.width {
                    return Err(size(port.width, matrix.nrows()));
                }
                if matrix.ncols() != self.tokens.dimension() {
                    return Err(size(self.tokens.dimension(), matrix.ncols()));
                }
            }
            Source::Function(_) => {}
        }
        Ok(source)
    }

    /// The numbers of a parameter, those given or those it starts with.
    fn parameter(&self, index: usize, parameter: &Parameter) -> Result<Vec<f64>> {
        let numbers = match self.parameters.iter().find(|(name, _)| name == parameter.name) {
            Some((_, numbers)) => numbers.clone(),
            None => match &parameter.initial {
                Initial::Constant(number) => vec![*number; parameter.size],
                Initial::Values(numbers) => numbers.clone(),
                Initial::Normal(deviation) => {
                    let mut stream = Stream::new(PARAMETER_SEED, index as u32, 0);
                    (0..parameter.size).map(|_| deviation * stream.normal()).collect()
                }
            },
        };
        check_numbers(parameter.name, parameter.size, &numbers)?;
        Ok(numbers)
    }

    /// Everything a mechanism reads, checked once.
    pub(super) fn feed(&self, signature: &Signature) -> Result<Feed> {
        let ports =
            signature.tokens.iter().map(|port| Ok((*port, self.source_of(port)?))).collect::<Result<_>>()?;
        let parameters = signature
            .parameters
            .iter()
            .enumerate()
            .map(|(index, parameter)| self.parameter(index, parameter))
            .collect::<Result<_>>()?;
        Ok(Feed { tokens: self.tokens.clone(), ports, parameters })
    }

    /// The parameters of a mechanism under this setting, in the order of its signature.
    ///
    /// # Errors
    /// Numbers of the wrong size.
    pub fn parameters(&self, signature: &Signature) -> Result<Vec<Vec<f64>>> {
        signature.parameters.iter().enumerate().map(|(index, one)| self.parameter(index, one)).collect()
    }
}

/// The sources of all ports of one mechanism and its parameters.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    pub(super) tokens: Law,
    pub(super) ports: Vec<(Port, Source)>,
    pub(super) parameters: Vec<Vec<f64>>,
}

impl Feed {
    /// Draws `count` tokens and makes the rows of every port.
    pub(super) fn draw(&self, count: usize, stream: &mut Stream) -> Result<Vec<Vec<f64>>> {
        let mut tokens = vec![0.0; count * self.tokens.dimension()];
        self.tokens.sample(stream, &mut tokens)?;
        self.rows(&tokens)
    }

    /// The rows of every port for given tokens, one after the other.
    pub(super) fn rows(&self, tokens: &[f64]) -> Result<Vec<Vec<f64>>> {
        let dimension = self.tokens.dimension();
        let count = tokens.len() / dimension;
        self.ports
            .iter()
            .map(|(port, source)| {
                let rows: Vec<f64> = match source {
                    Source::Constant(numbers) => numbers.repeat(count),
                    Source::Projection(matrix) => tokens
                        .chunks_exact(dimension)
                        .flat_map(|token| linalg::apply(matrix.as_ref(), token))
                        .collect(),
                    Source::Function(function) => {
                        let mut rows = vec![0.0; count * port.width];
                        for (row, token) in
                            rows.chunks_exact_mut(port.width).zip(tokens.chunks_exact(dimension))
                        {
                            function(token, row);
                        }
                        check_numbers(port.name, rows.len(), &rows)?;
                        check_meaning(port, &rows)?;
                        rows
                    }
                };
                Ok(rows)
            })
            .collect()
    }
}
