//! One operation on burn's tape: slices in, numbers out, and a hand-written gradient for the way back.
//!
//! All arithmetic of training is in functions over slices. burn keeps the order of the operations, their gradients and the
//! memory they hold; this file is the only one that knows it.

use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};
use burn_autodiff::Autodiff;
use burn_backend::tensor::FloatTensor;
use burn_backend::{TensorData, TensorMetadata};
use burn_flex::{Flex, FlexTensor};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A tensor of burn's flex backend whose gradient can be asked for.
pub type Tensor = FloatTensor<Autodiff<Flex>>;

/// Seconds spent in an operation on the way forth and on the way back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// On the way forth.
    pub forward: Duration,
    /// On the way back.
    pub backward: Duration,
}

/// Where time goes, by name of operation.
pub type Profile = Arc<Mutex<BTreeMap<&'static str, Spent>>>;

/// What one operation says about the derivative in one of its inputs.
#[derive(Debug)]
pub enum Slope {
    /// These numbers.
    Numbers(Vec<f32>),
    /// The derivative in the output, unchanged.
    Same,
    /// None: the input is not asked for its gradient.
    Unasked,
}

/// Records operations; with a profile it also notes how long they take.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    /// Where times are added, if they are wanted.
    pub profile: Option<Profile>,
}

/// Most inputs that one operation may have: burn fixes their number at compile time.
pub const MOST_INPUTS: usize = 16;

impl Tape {
    /// Numbers as a tensor that no gradient is asked of.
    pub fn constant(&self, numbers: Vec<f32>, shape: &[usize]) -> Tensor {
        Tensor::new(stored(numbers, shape))
    }

    /// Numbers as a tensor that gradients are asked of.
    pub fn leaf(&self, numbers: Vec<f32>, shape: &[usize]) -> Tensor {
        self.constant(numbers, shape).require_grad()
    }

    /// Runs `forward` on the numbers of the inputs, and puts `backward` on the tape if an input asks for its gradient.
    ///
    /// `forward` returns the output and what `backward` needs besides the inputs; `backward` gets that, the inputs and the
    /// derivative in the output, and returns the derivative in each input.
    ///
    /// # Panics
    /// With no inputs or more than [`MOST_INPUTS`], or an output that does not fill its shape: mistakes of the caller.
    pub fn operation<K: Send + 'static>(
        &self,
        name: &'static str,
        inputs: &[&Tensor],
        shape: &[usize],
        forward: impl FnOnce(&[&[f32]]) -> (Vec<f32>, K),
        backward: impl FnOnce(K, &[&[f32]], &[f32]) -> Vec<Slope> + Send + 'static,
    ) -> Tensor {
        let slices: Vec<&[f32]> = inputs.iter().map(|tensor| numbers(tensor)).collect();
        let (output, kept) = self.timed(name, |spent| &mut spent.forward, || forward(&slices));
        let output = stored(output, shape);
        if !inputs.iter().any(|tensor| tensor.is_tracked()) {
            return Tensor::new(output);
        }
        let tape = self.clone();
        let backward: Step = Box::new(move |inputs, slopes| {
            tape.timed(name, |spent| &mut spent.backward, || backward(kept, inputs, slopes))
        });
        macro_rules! record_by_count {
            ($($count:literal)*) => {
                match inputs.len() {
                    $($count => record::<$count>(backward, inputs, output),)*
                    count => panic!("{name}: expected 1 to {MOST_INPUTS} inputs, found {count}"),
                }
            };
        }
        record_by_count!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    }

    /// Derivatives of a scalar tensor in these leaves, each with the size of its leaf.
    pub fn gradients(&self, of: Tensor, leaves: &[Tensor]) -> Vec<Vec<f32>> {
        let mut gradients = of.backward();
        leaves
            .iter()
            .map(|leaf| match leaf.grad_remove(&mut gradients) {
                Some(slope) => slope
                    .into_data()
                    .try_into_vec::<f32>()
                    .unwrap_or_else(|_| unreachable!("all tensors here are f32")),
                None => vec![0.0; numbers(leaf).len()],
            })
            .collect()
    }

    /// Runs something and notes how long it took.
    pub fn timed<R>(
        &self,
        name: &'static str,
        part: impl FnOnce(&mut Spent) -> &mut Duration,
        run: impl FnOnce() -> R,
    ) -> R {
        let Some(profile) = &self.profile else { return run() };
        let start = Instant::now();
        let result = run();
        let elapsed = start.elapsed();
        *part(profile.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default()) += elapsed;
        result
    }
}

/// The numbers of a tensor, row by row.
pub fn numbers(tensor: &Tensor) -> &[f32] {
    plain(tensor.primitive())
}

/// The sizes of a tensor.
pub fn shape(tensor: &Tensor) -> Vec<usize> {
    tensor.shape().as_slice().to_vec()
}

fn plain(tensor: &FlexTensor) -> &[f32] {
    // Every tensor here was made by `stored`, or by burn as the sum of two of those: contiguous from its first byte.
    tensor.as_slice().unwrap_or_else(|| unreachable!("all tensors here are contiguous f32"))
}

fn stored(numbers: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(numbers, shape.to_vec()))
}

type Step = Box<dyn FnOnce(&[&[f32]], &[f32]) -> Vec<Slope> + Send>;

/// A hand-written gradient, as burn wants it.
struct HandWritten {
    step: Step,
    inputs: Vec<Tensor>,
}

impl fmt::Debug for HandWritten {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HandWritten").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl<const N: usize> Backward<Flex, N> for HandWritten {
    type State = ();

    fn backward(self, ops: Ops<(), N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let slopes = gradients.consume::<Flex>(&ops.node);
        let slices: Vec<&[f32]> = self.inputs.iter().map(numbers).collect();
        let found = (self.step)(&slices, plain(&slopes));
        for ((parent, slope), input) in ops.parents.into_iter().zip(found).zip(&self.inputs) {
            let Some(parent) = parent else { continue };
            // A second derivative is added here and not by burn, which would make a new tensor for the sum.
            let before = gradients.remove::<Flex>(input);
            let sum = match (slope, before) {
                (Slope::Unasked, None) => continue,
                (Slope::Unasked, Some(before)) => before,
                (Slope::Same, None) => slopes.clone(),
                (Slope::Same, Some(before)) => stored(sum(plain(&slopes).to_vec(), plain(&before)), &shape(input)),
                (Slope::Numbers(numbers), None) => stored(numbers, &shape(input)),
                (Slope::Numbers(numbers), Some(before)) => stored(sum(numbers, plain(&before)), &shape(input)),
            };
            gradients.register::<Flex>(parent.id, sum);
        }
    }
}

fn sum(mut left: Vec<f32>, right: &[f32]) -> Vec<f32> {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    left
}

fn record<const N: usize>(step: Step, inputs: &[&Tensor], output: FlexTensor) -> Tensor {
    let nodes = std::array::from_fn(|index| inputs[index].node());
    let inputs = inputs.iter().map(|&tensor| tensor.clone()).collect();
    Backward::<Flex, N>::prepare::<NoCheckpointing>(HandWritten { step, inputs }, nodes)
        .compute_bound()
        .stateless(output)
}
