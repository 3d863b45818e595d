//! The list of a step's operations, walked backwards for gradients: slices in, numbers out, every gradient written by hand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows of numbers, and their place on the tape if a gradient is asked of them.
#[derive(Debug, Clone)]
pub struct Tensor {
    numbers: Arc<Vec<f32>>,
    columns: usize,
    place: Option<usize>,
}

impl Tensor {
    /// Rows of `columns` numbers that no gradient is asked of.
    pub fn constant(numbers: Vec<f32>, columns: usize) -> Self {
        Tensor { numbers: Arc::new(numbers), columns, place: None }
    }

    /// The numbers, row by row.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether a gradient is asked of it.
    pub fn is_tracked(&self) -> bool {
        self.place.is_some()
    }
}

/// Seconds spent in an operation on the way forth and on the way back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Seconds of forward passes.
    pub forward: Duration,
    /// Seconds of backward passes.
    pub backward: Duration,
}

/// Where time goes, by name of operation.
pub type Profile = Arc<Mutex<BTreeMap<&'static str, Spent>>>;

/// Runs something and, with a profile, notes how long it took.
pub fn timed<R>(
    profile: Option<&Profile>,
    name: &'static str,
    part: impl FnOnce(&mut Spent) -> &mut Duration,
    run: impl FnOnce() -> R,
) -> R {
    let Some(profile) = profile else { return run() };
    let start = Instant::now();
    let result = run();
    let elapsed = start.elapsed();
    *part(profile.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default()) += elapsed;
    result
}

/// The operations of one step, in order; with a profile it also notes how long they take.
#[derive(Debug, Default)]
pub struct Tape {
    profile: Option<Profile>,
    /// What made the tensor of each place; nothing did where it is a leaf.
    made_by: Vec<Option<Operation>>,
}

/// From inputs and the derivative in the output to the derivative in each input.
type Backward = Box<dyn FnOnce(&[&[f32]], Vec<f32>) -> Vec<Vec<f32>>>;

struct Operation {
    name: &'static str,
    inputs: Vec<Tensor>,
    backward: Backward,
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Operation").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tape {
    /// An empty tape that adds times to this profile, if there is one.
    pub fn new(profile: Option<Profile>) -> Self {
        Tape { profile, made_by: Vec::new() }
    }

    /// Rows of `columns` numbers that gradients are asked of.
    pub fn leaf(&mut self, numbers: Vec<f32>, columns: usize) -> Tensor {
        self.made_by.push(None);
        Tensor { place: Some(self.made_by.len() - 1), ..Tensor::constant(numbers, columns) }
    }

    /// Runs `forward` on the numbers of the inputs, and keeps `backward` if an input asks for its gradient.
    ///
    /// `forward` returns rows of `columns` numbers and what `backward` needs besides the inputs; `backward` gets that, the
    /// inputs and the derivative in the output, and returns the derivative in each input, in their order.
    pub fn operation<K: 'static>(
        &mut self,
        name: &'static str,
        inputs: &[&Tensor],
        columns: usize,
        forward: impl FnOnce(&[&[f32]]) -> (Vec<f32>, K),
        backward: impl FnOnce(K, &[&[f32]], Vec<f32>) -> Vec<Vec<f32>> + 'static,
    ) -> Tensor {
        let slices: Vec<&[f32]> = inputs.iter().map(|input| input.numbers()).collect();
        let (numbers, kept) =
            timed(self.profile.as_ref(), name, |spent| &mut spent.forward, || forward(&slices));
        let mut output = Tensor::constant(numbers, columns);
        if inputs.iter().any(|input| input.is_tracked()) {
            output.place = Some(self.made_by.len());
            self.made_by.push(Some(Operation {
                name,
                inputs: inputs.iter().map(|&input| input.clone()).collect(),
                backward: Box::new(move |inputs, slopes| backward(kept, inputs, slopes)),
            }));
        }
        output
    }

    /// Derivatives of the sum of a tensor's numbers in these leaves, each with the size of its leaf; all are of this tape.
    pub fn gradients(mut self, of: Tensor, leaves: &[Tensor]) -> Vec<Vec<f32>> {
        let mut slopes: Vec<Option<Vec<f32>>> = vec![None; self.made_by.len()];
        if let Some(place) = of.place {
            slopes[place] = Some(vec![1.0; of.numbers.len()]);
        }
        // What an operation kept is freed as soon as it has been called.
        while let Some(made_by) = self.made_by.pop() {
            let Some(Operation { name, inputs, backward }) = made_by else { continue };
            let Some(slope) = slopes[self.made_by.len()].take() else { continue };
            let slices: Vec<&[f32]> = inputs.iter().map(Tensor::numbers).collect();
            let found =
                timed(self.profile.as_ref(), name, |spent| &mut spent.backward, || backward(&slices, slope));
            for (input, mut found) in inputs.iter().zip(found) {
                let Some(place) = input.place else { continue };
                if let Some(before) = &slopes[place] {
                    found.iter_mut().zip(before).for_each(|(sum, before)| *sum += before);
                }
                slopes[place] = Some(found);
            }
        }
        leaves
            .iter()
            .map(|leaf| {
                let slope = leaf.place.and_then(|place| slopes[place].take());
                slope.unwrap_or_else(|| vec![0.0; leaf.numbers.len()])
            })
            .collect()
    }
}
