//! A linear map of rows with what its output means: y = act(x W + b), or residual + x W.

use super::slices::{
    add_to_product, column_sums, in_blocks, ln_1p, product, sigmoid, transposed_product, with_exponentials,
};
use super::tape::{Tape, Tensor};
use crate::kernels::matrix::Matrix;
use crate::mechanism::Meaning;

/// What is done to every number of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// z, as it was projected.
    Plain,
    /// ln σ(z) / 16.
    LogDecay,
    /// softplus(z).
    Rate,
    /// σ(z).
    Fraction,
}

impl Activation {
    /// How a layer makes a port of this meaning.
    pub(super) fn of(meaning: Meaning) -> Self {
        match meaning {
            Meaning::Content | Meaning::Logit | Meaning::Angle => Activation::Plain,
            Meaning::LogDecay => Activation::LogDecay,
            Meaning::Rate => Activation::Rate,
            Meaning::Fraction => Activation::Fraction,
        }
    }

    fn apply(self, to: &mut [f32], z: &[f32]) {
        let visit = match self {
            Activation::Plain => return to.copy_from_slice(z),
            Activation::LogDecay => |to: &mut f32, z: f32, e: f32| *to = (z.min(0.0) - ln_1p(e)) / 16.0,
            // Never zero, as a rate must not be.
            Activation::Rate => {
                |to: &mut f32, z: f32, e: f32| *to = (z.max(0.0) + ln_1p(e)).max(f32::MIN_POSITIVE)
            }
            Activation::Fraction => |to: &mut f32, z: f32, e: f32| *to = sigmoid(z, e),
        };
        with_exponentials(to, z, visit);
    }

    /// Multiplies derivatives in the output by the derivative at z.
    fn pull_back(self, slopes: &mut [f32], z: &[f32]) {
        let visit = match self {
            Activation::Plain => return,
            Activation::LogDecay => |to: &mut f32, z: f32, e: f32| *to *= sigmoid(-z, e) / 16.0,
            Activation::Rate => |to: &mut f32, z: f32, e: f32| *to *= sigmoid(z, e),
            Activation::Fraction => |to: &mut f32, z: f32, e: f32| *to *= sigmoid(z, e) * sigmoid(-z, e),
        };
        with_exponentials(slopes, z, visit);
    }
}

/// act(x W + b) over slices; W is `width` × columns. Returns also x W + b where the activation is not plain.
pub(super) fn evaluate(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    width: usize,
    activation: Activation,
) -> (Vec<f32>, Vec<f32>) {
    let columns = weight.len() / width;
    let mut z = product(x, Matrix::new(weight, width, columns), width, columns);
    if let Some(bias) = bias {
        for row in z.chunks_exact_mut(columns) {
            row.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
        }
    }
    if activation == Activation::Plain {
        return (z, Vec::new());
    }
    let mut y = vec![0.0; z.len()];
    in_blocks(&mut y, &z, |y, z| activation.apply(y, z));
    (y, z)
}

/// residual + x W over slices.
pub(super) fn evaluate_onto(residual: &[f32], x: &[f32], weight: &[f32], width: usize) -> Vec<f32> {
    let columns = weight.len() / width;
    add_to_product(residual, x, Matrix::new(weight, width, columns), width, columns)
}

/// act(x W + b) on the tape.
pub(super) fn project(
    tape: &mut Tape,
    name: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    activation: Activation,
) -> Tensor {
    let (width, columns) = (x.columns(), weight.columns());
    let inputs: Vec<&Tensor> = [x, weight].into_iter().chain(bias).collect();
    tape.operation(
        name,
        &inputs,
        columns,
        |given| evaluate(given[0], given[1], given.get(2).copied(), width, activation),
        move |z, given, mut slopes| {
            if activation != Activation::Plain {
                in_blocks(&mut slopes, &z, |slopes, z| activation.pull_back(slopes, z));
            }
            let (of_x, of_weight) = pull_back(given[0], given[1], &slopes, width);
            let mut found = vec![of_x, of_weight];
            if given.len() == 3 {
                found.push(column_sums(&slopes, columns));
            }
            found
        },
    )
}

/// residual + x W on the tape.
pub(super) fn project_onto(
    tape: &mut Tape,
    name: &'static str,
    residual: &Tensor,
    x: &Tensor,
    weight: &Tensor,
) -> Tensor {
    let width = x.columns();
    tape.operation(
        name,
        &[residual, x, weight],
        residual.columns(),
        |given| (evaluate_onto(given[0], given[1], given[2], width), ()),
        move |(), given, slopes| {
            let (of_x, of_weight) = pull_back(given[1], given[2], &slopes, width);
            vec![slopes, of_x, of_weight]
        },
    )
}

/// Derivatives in x and in W.
fn pull_back(x: &[f32], weight: &[f32], slopes: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    let columns = weight.len() / width;
    let of_x = product(slopes, Matrix::new(weight, width, columns).transposed(), columns, width);
    let of_weight = transposed_product(x, slopes, width, columns);
    (of_x, of_weight)
}
