//! Calls over batches: any form, the forward pass, and the backward pass with what that kept.

use super::mechanism::{Made, PyMechanism, placed};
use super::precision::{Either, Precise, PyState, python_array, python_states, states_from};
use crate::arrays::Numbers;
use crate::prelude::*;
use crate::watch::left_behind;
use esscher_zoo::batch::{self, Form, Layout, Passed};
use esscher_zoo::mechanism::{In, Mechanism, State};
use numpy::PyArrayDyn;
use std::sync::Arc;

export!(class PyPass);

/// What the calls have in common, as `_Call` of `python/esscher/zoo.py` holds it.
#[derive(FromPyObject)]
pub(super) struct Call<'py> {
    pub(super) tokens: Vec<Any<'py>>,
    pub(super) parameters: Vec<Any<'py>>,
    heads: usize,
    /// Tokens of the sequences.
    pub(super) lengths: Vec<usize>,
    /// Rows of the block of each sequence, where they are padded.
    block: Option<usize>,
    /// The states to start from.
    initial: Option<Vec<PyState<'py>>>,
}

impl<'py> Call<'py> {
    /// Whether the first array, and so all, are of single precision.
    fn is_single(&self) -> bool {
        self.tokens.first().is_some_and(|array| array.cast::<PyArrayDyn<f32>>().is_ok())
    }

    /// Does the work on checked slices: the mechanism, the layout, tokens, parameters and initial states.
    ///
    /// What may take long gets copies of the arrays, if there is room, and is left behind on Ctrl-C.
    fn run<T: Precise, R: Send + 'static>(
        &self,
        py: Python<'py>,
        made: &Arc<Made>,
        work: impl FnOnce(&Made, &Layout, &[&[T]], &[&[T]], Option<&[State<T>]>) -> esscher_zoo::Result<R>
        + Send
        + 'static,
    ) -> PyResult<R>
    where
        dyn Mechanism: In<T>,
    {
        let layout = match self.block {
            Some(rows) => Layout::padded(&self.lengths, rows, self.heads),
            None => Layout::packed(&self.lengths, self.heads),
        };
        let layout = layout.or_raise()?;
        let seen = self.initial.iter().flatten().map(|(seen, _)| *seen).max().unwrap_or(0);
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        made.check_room::<T>(self.lengths.len().saturating_mul(self.heads), seen.saturating_add(longest))?;
        let (tokens, parameters) =
            (made.tokens(&self.tokens)?, made.parameters(&self.parameters, self.heads)?);
        let states = |(seen, numbers): &PyState<'py>| {
            states_from("initial", self.heads, made.state_width::<T>(*seen), *seen, numbers)
        };
        let initial = self.initial.as_ref().map(|all| all.iter().map(states).collect::<PyResult<Vec<_>>>());
        let initial = initial.transpose()?.map(|states| states.concat());
        let (rows, constants) = (tokens.slices(), parameters.slices());
        let checked = move |of: &Made, layout: &Layout, rows: &[&[T]], constants: &[&[T]]| {
            batch::check(&of.signature, layout, rows, constants)?;
            work(of, layout, rows, constants, initial.as_deref())
        };
        let is_long = rows.iter().map(|row| row.len()).sum::<usize>() > LONG_CALL;
        let result = match is_long.then(|| copied(&rows).zip(copied(&constants))).flatten() {
            None => threads::detached(py, || checked(made, &layout, &rows, &constants)),
            Some((rows, constants)) => {
                let made = made.clone();
                left_behind(py, None, move |_| {
                    let rows: Vec<&[T]> = rows.iter().map(Vec::as_slice).collect();
                    let constants: Vec<&[T]> = constants.iter().map(Vec::as_slice).collect();
                    checked(&made, &layout, &rows, &constants)
                })?
            }
        };
        placed(result, &tokens, &parameters)
    }
}

/// Calls on more numbers than this may take longer than a blink.
const LONG_CALL: usize = 1 << 18;

/// The same arrays in memory of their own; nothing if there is no room for them.
pub(super) fn copied<T: Precise>(all: &[&[T]]) -> Option<Vec<Vec<T>>> {
    all.iter().map(|array| arrays::copied(array)).collect()
}

/// Outputs and final states.
type Answer<'py> = (Any<'py>, Vec<PyState<'py>>);

#[pymethods]
impl PyMechanism {
    /// Outputs and final states by a form.
    fn evaluate<'py>(&self, py: Python<'py>, form: &Any<'py>, call: Call<'py>) -> PyResult<Answer<'py>> {
        let forms =
            [("chunked", Form::Chunked), ("recurrent", Form::Recurrent), ("reference", Form::Reference)];
        let form = choice("form", &numbers::text("form", form)?, &forms)?;
        let found = in_precision!(call.is_single(), T => {
            call.run::<T, _>(py, &self.of, move |made, layout, tokens, parameters, initial| {
                batch::evaluate(&*made.mechanism, form, layout, tokens, parameters, initial)
            })?
        });
        either!(found, (outputs, states) => {
            Ok((python_array(py, outputs)?, python_states(py, &states, call.heads)?))
        })
    }

    /// The chunked form with what its backward pass needs: outputs, final states, and the pass.
    fn forward<'py>(&self, py: Python<'py>, call: Call<'py>) -> PyResult<(Answer<'py>, PyPass)> {
        let mut passed = in_precision!(call.is_single(), T => {
            call.run::<T, _>(py, &self.of, |made, layout, tokens, parameters, initial| {
                batch::forward(&*made.mechanism, layout, tokens, parameters, initial)
            })?
        });
        let answer = either!(&mut passed, passed => {
            let outputs = python_array(py, std::mem::take(&mut passed.outputs))?;
            (outputs, python_states(py, &passed.states, call.heads)?)
        });
        let passed = match passed {
            Either::Single(passed) => Either::Single(Arc::new(passed)),
            Either::Double(passed) => Either::Double(Arc::new(passed)),
        };
        Ok((answer, PyPass { of: self.of.clone(), passed }))
    }
}

/// A forward pass that was made, for its backward pass.
#[pyclass(name = "ZooPass", module = "esscher._native", frozen)]
pub(crate) struct PyPass {
    of: Arc<Made>,
    passed: Either<Arc<Passed<f32>>, Arc<Passed<f64>>>,
}

/// Derivatives in the token ports and in the parameters, one after the other.
type Gradients<'py> = Vec<Any<'py>>;

#[pymethods]
impl PyPass {
    /// Derivatives of the same call from those in outputs and final states; None is zero.
    fn backward<'py>(
        &self,
        py: Python<'py>,
        call: Call<'py>,
        output_slopes: &Any<'py>,
        state_slopes: Option<Vec<PyState<'py>>>,
    ) -> PyResult<Gradients<'py>> {
        either!(&self.passed, passed => backward(py, &self.of, passed, &call, output_slopes, state_slopes))
    }
}

fn backward<'py, T: Precise>(
    py: Python<'py>,
    made: &Arc<Made>,
    passed: &Arc<Passed<T>>,
    call: &Call<'py>,
    output_slopes: &Any<'py>,
    state_slopes: Option<Vec<PyState<'py>>>,
) -> PyResult<Gradients<'py>>
where
    dyn Mechanism: In<T>,
{
    let slopes = Numbers::<T>::read("output_slopes", output_slopes)?.entries().to_vec();
    let of_sequence = |((_, numbers), last): (PyState<'py>, &[State<T>])| {
        states_from("state_slopes", call.heads, last[0].numbers.len(), last[0].seen, &numbers)
    };
    let state_slopes = state_slopes.map(|given| {
        given.into_iter().zip(passed.states.chunks(call.heads)).map(of_sequence).collect::<PyResult<Vec<_>>>()
    });
    let state_slopes = state_slopes.transpose()?.map(|states| states.concat());
    let passed = passed.clone();
    let gradient = call.run::<T, _>(py, made, move |made, layout, tokens, parameters, _| {
        let mechanism = &*made.mechanism;
        batch::backward(mechanism, layout, tokens, parameters, &passed, &slopes, state_slopes.as_deref())
    })?;
    gradient.tokens.into_iter().chain(gradient.parameters).map(|part| python_array(py, part)).collect()
}
