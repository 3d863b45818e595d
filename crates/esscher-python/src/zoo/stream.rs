//! A mechanism that reads tokens one by one.

use super::mechanism::{Made, PyMechanism, placed};
use super::precision::{Either, Precise, PyState, python_array, python_states, states_from};
use crate::alone::Alone;
use crate::prelude::*;
use esscher_zoo::batch::{self, Act, Layout};
use esscher_zoo::mechanism::{In, Mechanism, Signature, State};
use std::sync::Arc;

export!(class PyStream);

#[pyclass(name = "ZooStream", module = "esscher._native", frozen)]
pub(crate) struct PyStream {
    of: Arc<Made>,
    strands: Alone<Strands>,
}

type Strands = Either<Heads<f32>, Heads<f64>>;

/// The states of all heads and the parameters that they read, all heads of each.
#[derive(Clone)]
struct Heads<T> {
    states: Vec<State<T>>,
    parameters: Vec<Vec<T>>,
}

impl<T: Precise> Heads<T>
where
    dyn Mechanism: In<T>,
{
    fn new(made: &Made, parameters: &[Any<'_>], heads: usize) -> PyResult<Self> {
        made.check_room::<T>(heads, 1)?;
        let (none, parameters) = (made.tokens::<T>(&[])?, made.parameters::<T>(parameters, heads)?);
        // Of no token: only the parameters are looked at.
        let signature = Signature { tokens: Vec::new(), ..made.signature.clone() };
        let checked = Layout::packed(&[], heads)
            .and_then(|layout| batch::check(&signature, &layout, &[], &parameters.slices()));
        placed(checked, &none, &parameters)?;
        Ok(Heads {
            states: vec![made.mechanism.init(); heads],
            parameters: parameters.slices().into_iter().map(<[T]>::to_vec).collect(),
        })
    }

    /// Does something with one token of every head; the outputs, row by row.
    fn act(&mut self, py: Python<'_>, made: &Made, tokens: &[Any<'_>], act: Act) -> PyResult<Vec<T>> {
        let (tokens, none) = (made.tokens(tokens)?, made.parameters(&[], 1)?);
        let rows = tokens.slices();
        let parameters: Vec<&[T]> = self.parameters.iter().map(Vec::as_slice).collect();
        let checked = Layout::packed(&[1], self.states.len())
            .and_then(|layout| batch::check(&made.signature, &layout, &rows, &parameters));
        placed(checked, &tokens, &none)?;
        let states = &mut self.states;
        Ok(py.detach(|| batch::act(&*made.mechanism, act, &rows, &parameters, states)))
    }

    fn set(&mut self, made: &Made, seen: usize, numbers: &Any<'_>) -> PyResult<()> {
        let width = made.state_width::<T>(seen);
        self.states = states_from("state", self.states.len(), width, seen, numbers)?;
        Ok(())
    }
}

#[pymethods]
impl PyMechanism {
    /// The state before the first token and these parameters, ready to read tokens.
    fn stream(&self, parameters: Vec<Any<'_>>, heads: usize, single: bool) -> PyResult<PyStream> {
        let strands = in_precision!(single, T => Heads::<T>::new(&self.of, &parameters, heads)?);
        Ok(PyStream::new(&self.of, strands))
    }
}

impl PyStream {
    fn new(of: &Arc<Made>, strands: Strands) -> Self {
        PyStream { of: of.clone(), strands: Alone::new("stream", strands) }
    }
}

#[pymethods]
impl PyStream {
    /// Absorbs, reads, or both ("step"): one row per head and port.
    fn act<'py>(&self, py: Python<'py>, what: &str, tokens: Vec<Any<'py>>) -> PyResult<Any<'py>> {
        let act = choice("what", what, &[("step", Act::Step), ("absorb", Act::Absorb), ("read", Act::Read)])?;
        either!(&mut *self.strands.used()?, heads => python_array(py, heads.act(py, &self.of, &tokens, act)?))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<PyState<'py>> {
        let mut states =
            either!(&*self.strands.used()?, heads => python_states(py, &heads.states, heads.states.len())?);
        states.pop().ok_or_else(|| PyValueError::new_err("a stream has at least one head"))
    }

    fn set_state(&self, seen: usize, numbers: &Any<'_>) -> PyResult<()> {
        either!(&mut *self.strands.used()?, heads => heads.set(&self.of, seen, numbers))
    }

    fn copy(&self) -> PyResult<Self> {
        Ok(PyStream::new(&self.of, self.strands.used()?.clone()))
    }
}

getters! { PyStream, own:
    seen: usize = either!(&*own.strands.used()?, of => of.states.first().map_or(0, |state| state.seen));
    bytes: usize = either!(&*own.strands.used()?, of => of.states.iter().map(State::bytes).sum());
}
