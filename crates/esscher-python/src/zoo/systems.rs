//! What one sequence of one head is in double precision: a linear dynamical system, and a matrix of weights.

use super::calls::{Call, copied};
use super::mechanism::{PyMechanism, placed};
use crate::prelude::*;
use crate::watch::left_behind;
use esscher_zoo::diagnostics::attention_matrix;
use esscher_zoo::dynamical_system::{SystemStep, Transition, diagonal, simulate};
use esscher_zoo::mechanism::Given;

export!(fn zoo_simulate);

/// A dynamical system of more numbers (two gigabytes) is refused.
const LARGEST_SYSTEM: usize = 1 << 28;

impl PyMechanism {
    /// Does something with the only sequence and head of a call.
    fn with_sequence<R>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce(&Given<'_, f64>) -> PyResult<R>,
    ) -> PyResult<R> {
        let (tokens, parameters) = (self.of.tokens(&call.tokens)?, self.of.parameters(&call.parameters, 1)?);
        let (rows, constants) = (tokens.slices(), parameters.slices());
        let given = Given::new(&self.of.signature, call.lengths[0], &rows, &constants);
        work(&placed(given, &tokens, &parameters)?)
    }
}

#[pymethods]
impl PyMechanism {
    /// The matrices of the dynamical system at every token.
    fn dynamical_system<'py>(&self, py: Python<'py>, call: Call<'py>) -> PyResult<Bound<'py, PyDict>> {
        let made = &*self.of;
        let Some(system) = made.mechanism.dynamical_system() else {
            return Err(PyValueError::new_err(format!(
                "{} has no dynamical system: it is not linear in an input with a state of constant size",
                made.entry.name
            )));
        };
        let (states, port) = (system.states(), made.signature.tokens[system.input_port()]);
        let (input, output, length) = (port.width, made.signature.output, call.lengths[0]);
        check_system(states.saturating_mul(states), 1)?;
        check_system(states.saturating_mul(input + output + 1), length)?;
        let steps = self.with_sequence(&call, |given| {
            let first: Vec<&[f64]> = (0..given.tokens.len()).map(|port| given.row(port, 0)).collect();
            let first = system.realise(&Given { length: 1, tokens: &first, parameters: given.parameters });
            if first.iter().any(is_dense) {
                check_system(states.saturating_mul(states), length)?;
            }
            // Asked for anew: the one above is bound to this thread.
            let realise = || made.mechanism.dynamical_system().map(|system| system.realise(given));
            Ok(py.detach(realise).unwrap_or_default())
        })?;
        let dense = steps.iter().any(is_dense);
        let transition = steps.iter().flat_map(|step| match &step.transition {
            Transition::Diagonal(entries) if dense => diagonal(entries),
            Transition::Diagonal(numbers) | Transition::Dense(numbers) => numbers.clone(),
        });
        let shape: &[usize] = if dense { &[length, states, states] } else { &[length, states] };
        // A matrix that is not there is zero.
        let joined = |part: fn(&SystemStep) -> &[f64], rows: usize, columns: usize| {
            let zeros = std::iter::repeat(&0.0);
            let matrices =
                steps.iter().flat_map(|step| part(step).iter().chain(zeros.clone()).take(rows * columns));
            Array::new(matrices.copied().collect(), [length, rows, columns])
        };
        Ok(dictionary!(py,
            transition: Array::new(transition.collect(), shape),
            input: joined(|step| &step.input, states, input),
            readout: joined(|step| &step.readout, output, states),
            feedthrough: joined(|step| &step.feedthrough, output, input),
            input_port: port.name))
    }

    /// What the outputs take of every value in one channel, length × length.
    fn weights(&self, py: Python<'_>, call: Call<'_>, channel: usize) -> PyResult<Array> {
        let length = call.lengths[0];
        // Only whether there is room.
        drop(room_for("the weights", &[length, length])?);
        // Checked where they are, then copied: one evaluation per token takes long, and may be left behind.
        self.with_sequence(&call, |_| Ok(()))?;
        let (tokens, parameters) = (self.of.tokens(&call.tokens)?, self.of.parameters(&call.parameters, 1)?);
        let copies = copied::<f64>(&tokens.slices()).zip(copied(&parameters.slices()));
        let no_room = || PyMemoryError::new_err("the ports: more numbers than there is memory for a copy of");
        let ((rows, constants), made) = (copies.ok_or_else(no_room)?, self.of.clone());
        let found = left_behind(py, None, move |_| {
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let constants: Vec<&[f64]> = constants.iter().map(Vec::as_slice).collect();
            let given = Given::new(&made.signature, length, &rows, &constants)?;
            attention_matrix(&*made.mechanism, &given, channel)
        })?;
        Ok(Array::new(found.or_raise()?.weights, [length, length]))
    }
}

fn is_dense(step: &SystemStep) -> bool {
    matches!(step.transition, Transition::Dense(_))
}

fn check_system(numbers: usize, length: usize) -> PyResult<()> {
    if numbers.saturating_mul(length) <= LARGEST_SYSTEM {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the dynamical system has {numbers} numbers per matrix, for {length} tokens more than {LARGEST_SYSTEM}: \
         use narrower heads or fewer tokens"
    )))
}

/// Outputs of a dynamical system, given as `dynamical_system` gives it.
#[pyfunction]
fn zoo_simulate(py: Python<'_>, asked: Asked<'_>) -> PyResult<Array> {
    let (transition, input) = (asked.reals("transition")?, asked.reals("input")?);
    let (readout, feedthrough) = (asked.reals("readout")?, asked.reals("feedthrough")?);
    let inputs = asked.reals("inputs")?;
    let (&[length, states, width], &[_, outputs, _]) = (input.shape(), readout.shape()) else {
        return Err(PyValueError::new_err("input and readout: expected three axes"));
    };
    let dense = transition.shape().len() == 3;
    let of_transition: &[usize] = if dense { &[length, states, states] } else { &[length, states] };
    transition.expect_shape(of_transition)?;
    readout.expect_shape(&[length, outputs, states])?;
    feedthrough.expect_shape(&[length, outputs, width])?;
    inputs.expect_shape(&[length, width])?;
    if length * states * width * outputs == 0 {
        return Err(PyValueError::new_err("a system without tokens, states, inputs or outputs"));
    }
    let step = |t: usize| {
        let part = |array: &Reals<'_>| {
            let size = array.entries().len() / length;
            array.entries()[t * size..(t + 1) * size].to_vec()
        };
        let kind = if dense { Transition::Dense } else { Transition::Diagonal };
        let (input, readout, feedthrough) = (part(&input), part(&readout), part(&feedthrough));
        SystemStep { transition: kind(part(&transition)), input, readout, feedthrough }
    };
    let steps: Vec<SystemStep> = (0..length).map(step).collect();
    let inputs = inputs.entries();
    Ok(Array::new(py.detach(|| simulate(&steps, states, inputs)), [length, outputs]))
}
