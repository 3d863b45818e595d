//! A model token by token: every layer keeps the state of its recurrent form, and a token costs the same wherever it stands.

use super::cross_entropy;
use super::model::{LayerPlan, Model};
use super::normalisation::{self, Normalisation};
use super::projection::{self, Activation};
use super::{convolution, gating};
use crate::error::{Error, Result};
use crate::mechanism::{Definition, Given, Mechanism, Order, State};
use std::sync::Arc;

/// A model in the middle of a sequence: the states of all layers.
#[derive(Debug, Clone)]
pub struct Streaming<'a> {
    model: &'a Model,
    seen: usize,
    layers: Vec<LayerState>,
}

#[derive(Debug, Clone)]
struct LayerState {
    mechanism: Arc<dyn Mechanism>,
    /// The latest rows that the convolution reads, the oldest first.
    window: Vec<f32>,
    /// One state per head.
    heads: Vec<State<f32>>,
}

impl<'a> Streaming<'a> {
    /// A model before its first token.
    ///
    /// # Errors
    /// A mechanism whose tokens read later ones.
    pub fn new(model: &'a Model) -> Result<Self> {
        let specification = model.specification();
        if let Some(layer) =
            specification.layers.iter().find(|layer| layer.mechanism.order() != Order::Causal)
        {
            return Err(Error::Missing {
                mechanism: format!("{:?}", layer.mechanism),
                what: "stream",
                reason: "its tokens read later ones, so that no answer is final before the last token",
            });
        }
        let layers = specification
            .layers
            .iter()
            .map(|layer| LayerState {
                mechanism: Arc::clone(&layer.mechanism),
                window: vec![0.0; layer.convolution.unwrap_or(0) * specification.width],
                heads: (0..specification.heads).map(|_| Definition::<f32>::init(&*layer.mechanism)).collect(),
            })
            .collect();
        Ok(Streaming { model, seen: 0, layers })
    }

    /// Tokens seen so far.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Bytes of all states: what has to be kept between two tokens.
    pub fn bytes(&self) -> usize {
        self.layers
            .iter()
            .map(|layer| {
                layer.window.len() * size_of::<f32>() + layer.heads.iter().map(State::bytes).sum::<usize>()
            })
            .sum()
    }

    /// Takes in one token and returns the logits at its place.
    ///
    /// # Errors
    /// A token outside of the vocabulary, or one behind the last learned position.
    pub fn step(&mut self, token: u32) -> Result<Vec<f32>> {
        let specification = self.model.specification();
        let width = specification.width;
        if token as usize >= specification.vocabulary {
            return Err(Error::Option {
                name: "token",
                expected: format!("less than the vocabulary, {}", specification.vocabulary),
                found: token.to_string(),
            });
        }
        if let Some(longest) = specification.positions
            && self.seen >= longest
        {
            return Err(Error::Option {
                name: "position",
                expected: format!("less than {longest}, the learned positions"),
                found: self.seen.to_string(),
            });
        }
        let (model, plan) = (self.model, self.model.plan());
        let weight = |place: usize| model.weights()[place].numbers.as_slice();
        let table = weight(plan.embedding);
        let mut x = table[token as usize * width..(token as usize + 1) * width].to_vec();
        if let Some(positions) = plan.positions {
            let position = &weight(positions)[self.seen * width..(self.seen + 1) * width];
            x.iter_mut().zip(position).for_each(|(x, p)| *x += p);
        }
        for (layer, state) in plan.layers.iter().zip(&mut self.layers) {
            x = state.step(layer, &weight, x, specification.heads);
        }
        self.seen += 1;
        let (hidden, _) = normalisation::evaluate(Normalisation::RootMeanSquare, 1, &x, weight(plan.norm));
        Ok(cross_entropy::logits(&hidden, table, width))
    }
}

impl LayerState {
    fn step<'w>(
        &mut self,
        layer: &LayerPlan,
        weight: &dyn Fn(usize) -> &'w [f32],
        x: Vec<f32>,
        heads: usize,
    ) -> Vec<f32> {
        let width = x.len();
        let plain = Normalisation::RootMeanSquare;
        let (mut seen, _) = normalisation::evaluate(plain, 1, &x, weight(layer.norm));
        if let Some(taps) = layer.convolution {
            self.window.rotate_left(width);
            let from = self.window.len() - width;
            self.window[from..].copy_from_slice(&seen);
            seen = convolution::latest(&self.window, weight(taps), width);
        }
        let ports: Vec<Vec<f32>> = layer
            .ports
            .iter()
            .map(|port| {
                projection::evaluate(
                    &seen,
                    weight(port.weight),
                    port.bias.map(weight),
                    width,
                    port.activation,
                )
                .0
            })
            .collect();
        let mut mixed = self.mix(layer, weight, &ports, heads);
        if let Some((normalisation, place)) = layer.head_norm {
            mixed = normalisation::evaluate(normalisation, heads, &mixed, weight(place)).0;
        }
        if let Some(place) = layer.gate {
            let (logits, _) = projection::evaluate(&seen, weight(place), None, width, Activation::Plain);
            mixed = gating::evaluate(&mixed, &logits);
        }
        let x = projection::evaluate_onto(&x, &mixed, weight(layer.output), mixed.len());
        let Some(mlp) = &layer.mlp else { return x };
        let (seen, _) = normalisation::evaluate(plain, 1, &x, weight(mlp.norm));
        let (up, _) = projection::evaluate(&seen, weight(mlp.up), None, width, Activation::Plain);
        let (logits, _) = projection::evaluate(&seen, weight(mlp.gate), None, width, Activation::Plain);
        projection::evaluate_onto(&x, &gating::evaluate(&up, &logits), weight(mlp.down), up.len())
    }

    /// Every head absorbs its part of the ports and answers.
    fn mix<'w>(
        &mut self,
        layer: &LayerPlan,
        weight: &dyn Fn(usize) -> &'w [f32],
        ports: &[Vec<f32>],
        heads: usize,
    ) -> Vec<f32> {
        let signature = self.mechanism.signature();
        let mut mixed = vec![0.0; heads * signature.output];
        for ((head, state), output) in
            self.heads.iter_mut().enumerate().zip(mixed.chunks_exact_mut(signature.output))
        {
            let tokens: Vec<&[f32]> = signature
                .tokens
                .iter()
                .zip(ports)
                .map(|(port, numbers)| &numbers[head * port.width..(head + 1) * port.width])
                .collect();
            let parameters: Vec<&[f32]> = signature
                .parameters
                .iter()
                .zip(&layer.parameters)
                .map(|(parameter, &place)| {
                    let from = if parameter.shared { 0 } else { head * parameter.size };
                    &weight(place)[from..from + parameter.size]
                })
                .collect();
            let token = Given { length: 1, tokens: &tokens, parameters: &parameters };
            self.mechanism.absorb(&token, state);
            self.mechanism.read(&token, state, output);
        }
        mixed
    }
}
