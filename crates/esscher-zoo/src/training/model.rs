//! A model: named weights made from a specification and a seed, and their pass over a batch.

use super::convolution::convolve;
use super::cross_entropy::{Judged, judge};
use super::embedding::embed;
use super::gating::gate;
use super::mix::mix;
use super::normalisation::{Normalisation, normalise};
use super::projection::{Activation, project, project_onto};
use super::specification::{LayerSpecification, ModelSpecification};
use super::tape::{Tape, Tensor};
use crate::batch::Layout;
use crate::error::{Error, Result};
use crate::mechanism::{Initial, Meaning, Mechanism, Port};
use crate::tasks::Batch;
use esscher_core::numerics::Stream;
use std::sync::Arc;

/// Numbers that training changes, with their name.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its name, `layers.0.query` for example.
    pub name: String,
    /// Rows and columns, or one length.
    pub shape: Vec<usize>,
    /// Its numbers, row by row.
    pub numbers: Vec<f32>,
    /// Whether training changes it.
    pub trained: bool,
    /// Whether weight decay pulls it to zero: matrices, not norms, biases or parameters of mechanisms.
    pub decays: bool,
}

/// A model with its weights.
#[derive(Debug, Clone)]
pub struct Model {
    specification: ModelSpecification,
    weights: Vec<Weight>,
    plan: Plan,
}

/// Which weights are which: places in the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) embedding: usize,
    pub(super) positions: Option<usize>,
    pub(super) layers: Vec<LayerPlan>,
    pub(super) norm: usize,
}

#[derive(Debug, Clone)]
pub(super) struct LayerPlan {
    pub(super) norm: usize,
    pub(super) convolution: Option<usize>,
    pub(super) ports: Vec<PortPlan>,
    pub(super) parameters: Vec<usize>,
    pub(super) head_norm: Option<(Normalisation, usize)>,
    pub(super) gate: Option<usize>,
    pub(super) output: usize,
    pub(super) mlp: Option<MlpPlan>,
}

#[derive(Debug, Clone)]
pub(super) struct PortPlan {
    pub(super) weight: usize,
    pub(super) bias: Option<usize>,
    pub(super) activation: Activation,
}

#[derive(Debug, Clone)]
pub(super) struct MlpPlan {
    pub(super) norm: usize,
    pub(super) up: usize,
    pub(super) gate: usize,
    pub(super) down: usize,
}

/// The size of the first embeddings, and of positions.
const EMBEDDING_SIZE: f64 = 0.02;

/// The block of the streams that weights start from; examples of the same seed read others.
const STREAM_BLOCK: u32 = 1;

/// Rates start log-uniform between these.
const RATES: (f64, f64) = (1e-3, 1e-1);

impl Model {
    /// A model whose weights start from this seed.
    ///
    /// Matrices are normal with variance one over their rows, those onto the residual are divided by √(2 layers) besides;
    /// embeddings are normal with deviation 0.02, norms one, biases zero except those of rates and forget gates; taps of a
    /// convolution are uniform within 1/√taps.
    ///
    /// # Errors
    /// A specification that makes no model.
    pub fn new(specification: ModelSpecification, seed: u64) -> Result<Self> {
        specification.check()?;
        let mut maker = Maker { seed, weights: Vec::new() };
        let plan = maker.plan(&specification);
        Ok(Model { specification, weights: maker.weights, plan })
    }

    /// What it is made of.
    pub fn specification(&self) -> &ModelSpecification {
        &self.specification
    }

    /// Its weights, in a fixed order.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// Its weights, to be changed. Their number and sizes must stay as they are.
    pub(super) fn weights_mut(&mut self) -> &mut [Weight] {
        &mut self.weights
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many numbers training changes.
    pub fn size(&self) -> usize {
        self.weights.iter().filter(|weight| weight.trained).map(|weight| weight.numbers.len()).sum()
    }

    /// The mechanisms of its layers.
    pub fn mechanisms(&self) -> Vec<Arc<dyn Mechanism>> {
        self.specification.layers.iter().map(|layer| Arc::clone(&layer.mechanism)).collect()
    }

    /// The weights, as leaves of a tape where there is one and training changes them.
    pub(super) fn leaves(&self, mut tape: Option<&mut Tape>) -> Vec<Tensor> {
        let leaf = |weight: &Weight| {
            let (numbers, columns) = (weight.numbers.clone(), weight.shape[weight.shape.len() - 1]);
            match &mut tape {
                Some(tape) if weight.trained => tape.leaf(numbers, columns),
                _ => Tensor::constant(numbers, columns),
            }
        };
        self.weights.iter().map(leaf).collect()
    }

    /// Refuses a batch that the model cannot read.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        let refuse = |name, expected: String, found: usize| {
            Err(Error::Option { name, expected, found: found.to_string() })
        };
        if batch.length == 0
            || batch.tokens.len() != batch.sequences() * batch.length
            || batch.tokens.is_empty()
        {
            return refuse("tokens", "at least one whole sequence".to_string(), batch.tokens.len());
        }
        if batch.labels.len() != batch.tokens.len() {
            return refuse("labels", format!("one per token, {}", batch.tokens.len()), batch.labels.len());
        }
        if let Some(longest) = self.specification.positions
            && batch.length > longest
        {
            return refuse("length", format!("at most {longest}, the learned positions"), batch.length);
        }
        let vocabulary = self.specification.vocabulary;
        let all = batch.tokens.iter().chain(batch.labels.iter().flatten());
        if let Some(&token) = all.into_iter().find(|&&token| token as usize >= vocabulary) {
            return refuse("token", format!("less than the vocabulary, {vocabulary}"), token as usize);
        }
        Ok(())
    }

    /// What comes out of the last norm, rows × width.
    fn hidden(
        &self,
        tape: &mut Tape,
        leaves: &[Tensor],
        mechanisms: &[Arc<dyn Mechanism>],
        batch: &Batch,
    ) -> Result<Tensor> {
        self.check_batch(batch)?;
        let heads = self.specification.heads;
        let layout = Layout::packed(&vec![batch.length; batch.sequences()], heads)?;
        let tokens: Arc<[u32]> = batch.tokens.clone().into();
        let plan = &self.plan;
        let positions = plan.positions.map(|place| &leaves[place]);
        let mut x = embed(tape, &leaves[plan.embedding], positions, &tokens, batch.length);
        let plain = Normalisation::RootMeanSquare;
        for (layer, mechanism) in plan.layers.iter().zip(mechanisms) {
            let mut seen = normalise(tape, "norms", plain, 1, &x, &leaves[layer.norm]);
            if let Some(taps) = layer.convolution {
                seen = convolve(tape, &seen, &leaves[taps], batch.length);
            }
            let ports: Vec<Tensor> = layer
                .ports
                .iter()
                .map(|port| {
                    let bias = port.bias.map(|bias| &leaves[bias]);
                    project(tape, "projections", &seen, &leaves[port.weight], bias, port.activation)
                })
                .collect();
            let parameters: Vec<Tensor> =
                layer.parameters.iter().map(|&place| leaves[place].clone()).collect();
            let mut mixed = mix(tape, mechanism, &layout, &ports, &parameters)?;
            if let Some((normalisation, weight)) = layer.head_norm {
                mixed = normalise(tape, "norms", normalisation, heads, &mixed, &leaves[weight]);
            }
            if let Some(weight) = layer.gate {
                let logits = project(tape, "projections", &seen, &leaves[weight], None, Activation::Plain);
                mixed = gate(tape, "output gate", &mixed, &logits);
            }
            x = project_onto(tape, "projections", &x, &mixed, &leaves[layer.output]);
            if let Some(mlp) = &layer.mlp {
                let seen = normalise(tape, "norms", plain, 1, &x, &leaves[mlp.norm]);
                let up = project(tape, "mlp", &seen, &leaves[mlp.up], None, Activation::Plain);
                let logits = project(tape, "mlp", &seen, &leaves[mlp.gate], None, Activation::Plain);
                let inside = gate(tape, "mlp", &up, &logits);
                x = project_onto(tape, "mlp", &x, &inside, &leaves[mlp.down]);
            }
        }
        Ok(normalise(tape, "norms", plain, 1, &x, &leaves[plan.norm]))
    }

    /// Loss and predictions of a batch on the tape, with these mechanisms in place of the layers' own.
    pub(super) fn judge(
        &self,
        tape: &mut Tape,
        leaves: &[Tensor],
        mechanisms: &[Arc<dyn Mechanism>],
        batch: &Batch,
    ) -> Result<Judged> {
        let labelled = batch.labelled();
        if labelled.is_empty() {
            return Err(Error::Option {
                name: "labels",
                expected: "at least one".to_string(),
                found: "none".to_string(),
            });
        }
        let hidden = self.hidden(tape, leaves, mechanisms, batch)?;
        Ok(judge(tape, &hidden, &leaves[self.plan.embedding], &labelled))
    }

    /// The mean loss of a batch and its derivatives in all weights, in their order.
    ///
    /// # Errors
    /// A batch that the model cannot read, or one without labels.
    pub fn loss_and_gradients(&self, batch: &Batch) -> Result<(f32, Vec<Vec<f32>>)> {
        let mut tape = Tape::default();
        let leaves = self.leaves(Some(&mut tape));
        let Judged { loss, .. } = self.judge(&mut tape, &leaves, &self.mechanisms(), batch)?;
        let value = loss.numbers()[0];
        Ok((value, tape.gradients(loss, &leaves)))
    }

    /// Adds numbers to one weight: how a test or another optimiser moves a model.
    ///
    /// # Errors
    /// No such weight, or another size.
    pub fn add_to_weight(&mut self, place: usize, change: &[f32]) -> Result<()> {
        let count = self.weights.len();
        let Some(weight) = self.weights.get_mut(place) else {
            return Err(Error::Option {
                name: "place of a weight",
                expected: format!("less than {count}"),
                found: place.to_string(),
            });
        };
        if weight.numbers.len() != change.len() {
            return Err(Error::Size {
                name: "change of a weight",
                expected: weight.numbers.len(),
                found: change.len(),
            });
        }
        weight.numbers.iter_mut().zip(change).for_each(|(x, change)| *x += change);
        Ok(())
    }

    /// Logits at every place of every sequence, rows × vocabulary.
    ///
    /// # Errors
    /// Tokens outside of the vocabulary, no whole number of sequences, or sequences longer than the learned positions.
    pub fn logits(&self, tokens: &[u32], length: usize) -> Result<Vec<f32>> {
        let leaves = self.leaves(None);
        let batch = Batch { length, tokens: tokens.to_vec(), labels: vec![None; tokens.len()] };
        let hidden = self.hidden(&mut Tape::default(), &leaves, &self.mechanisms(), &batch)?;
        let table = &self.weights[self.plan.embedding].numbers;
        Ok(super::cross_entropy::logits(hidden.numbers(), table, self.specification.width))
    }
}

/// Makes weights, each from a stream of its own.
struct Maker {
    seed: u64,
    weights: Vec<Weight>,
}

impl Maker {
    fn plan(&mut self, specification: &ModelSpecification) -> Plan {
        let width = specification.width;
        let residual = 1.0 / (2.0 * specification.layers.len() as f64).sqrt();
        let embedding =
            self.normal("embedding".to_string(), &[specification.vocabulary, width], EMBEDDING_SIZE);
        let positions = specification
            .positions
            .map(|longest| self.normal("positions".to_string(), &[longest, width], EMBEDDING_SIZE));
        let layers = specification
            .layers
            .iter()
            .enumerate()
            .map(|(index, layer)| self.layer(index, layer, width, specification.heads, residual))
            .collect();
        Plan { embedding, positions, layers, norm: self.ones("norm".to_string(), width) }
    }

    fn layer(
        &mut self,
        index: usize,
        layer: &LayerSpecification,
        width: usize,
        heads: usize,
        residual: f64,
    ) -> LayerPlan {
        let signature = layer.mechanism.signature();
        let name = |part: &str| format!("layers.{index}.{part}");
        let norm = self.ones(name("norm"), width);
        let convolution = layer.convolution.map(|taps| {
            let bound = 1.0 / (taps as f64).sqrt();
            self.add(name("convolution"), &[taps, width], true, true, |stream, _| {
                bound * (2.0 * stream.uniform() - 1.0)
            })
        });
        let ports = signature
            .tokens
            .iter()
            .map(|port| {
                let columns = heads * port.width;
                PortPlan {
                    weight: self.matrix(name(&format!("ports.{}", port.name)), width, columns, 1.0),
                    bias: self.bias(
                        name(&format!("ports.{}.bias", port.name)),
                        port,
                        layer.mechanism.initial_biases(port),
                        heads,
                    ),
                    activation: Activation::of(port.meaning),
                }
            })
            .collect();
        let parameters = signature
            .parameters
            .iter()
            .map(|parameter| {
                let copies = if parameter.shared { 1 } else { heads };
                let shape = [copies * parameter.size];
                self.add(
                    name(&format!("parameters.{}", parameter.name)),
                    &shape,
                    parameter.trained,
                    false,
                    |stream, place| match &parameter.initial {
                        Initial::Constant(value) => *value,
                        Initial::Normal(deviation) => deviation * stream.normal(),
                        Initial::Values(values) => values[place % parameter.size],
                    },
                )
            })
            .collect();
        let columns = heads * signature.output;
        let head_norm = layer.norm.map(|norm| (norm, self.ones(name("head_norm"), columns)));
        let gate = layer.gate.then(|| self.matrix(name("gate"), width, columns, 1.0));
        let output = self.matrix(name("output"), columns, width, residual);
        let mlp = layer.mlp.map(|mlp| MlpPlan {
            norm: self.ones(name("mlp.norm"), width),
            up: self.matrix(name("mlp.up"), width, mlp.hidden, 1.0),
            gate: self.matrix(name("mlp.gate"), width, mlp.hidden, 1.0),
            down: self.matrix(name("mlp.down"), mlp.hidden, width, residual),
        });
        LayerPlan { norm, convolution, ports, parameters, head_norm, gate, output, mlp }
    }

    /// Gates have a bias, contents have none.
    fn bias(&mut self, name: String, port: &Port, biases: Option<(f64, f64)>, heads: usize) -> Option<usize> {
        let columns = heads * port.width;
        let value = |stream: &mut Stream, place: usize| match port.meaning {
            Meaning::Rate => {
                let (low, high) = (RATES.0.ln(), RATES.1.ln());
                let rate = (low + (high - low) * stream.uniform()).exp();
                // softplus⁻¹(rate).
                rate.exp_m1().ln()
            }
            _ => match biases {
                Some((low, high)) => low + (high - low) * place as f64 / (columns.max(2) - 1) as f64,
                None => 0.0,
            },
        };
        match port.meaning {
            Meaning::Content | Meaning::Angle => None,
            _ => Some(self.add(name, &[columns], true, false, value)),
        }
    }

    fn ones(&mut self, name: String, width: usize) -> usize {
        self.add(name, &[width], true, false, |_, _| 1.0)
    }

    fn matrix(&mut self, name: String, rows: usize, columns: usize, factor: f64) -> usize {
        self.normal(name, &[rows, columns], factor / (rows as f64).sqrt())
    }

    fn normal(&mut self, name: String, shape: &[usize], deviation: f64) -> usize {
        self.add(name, shape, true, true, |stream, _| deviation * stream.normal())
    }

    fn add(
        &mut self,
        name: String,
        shape: &[usize],
        trained: bool,
        decays: bool,
        value: impl Fn(&mut Stream, usize) -> f64,
    ) -> usize {
        let place = self.weights.len();
        let mut stream = Stream::new(self.seed, place as u32, STREAM_BLOCK);
        let size: usize = shape.iter().product();
        let numbers = (0..size).map(|index| value(&mut stream, index) as f32).collect();
        self.weights.push(Weight { name, shape: shape.to_vec(), numbers, trained, decays });
        place
    }
}
