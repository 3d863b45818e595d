//! The mechanisms of the zoo: the catalogue, the forms over batches, backward passes, streams and dynamical systems.
//!
//! Shapes are Python's business (`python/esscher/zoo.py`): here arrays are rows with the heads side by side, all in the
//! precision of the first one, and a state is a pair of the tokens seen and an array (heads, numbers).

use crate::prelude::*;
use esscher_core::numerics::Stream as RandomStream;
use esscher_zoo::batch::{self, Form, Layout, Passed};
use esscher_zoo::catalogue::{self, Entry, Sizes};
use esscher_zoo::diagnostics::attention_matrix;
use esscher_zoo::dynamical_system::{SystemStep, Transition, simulate};
use esscher_zoo::mechanism::{Definition, Given, In, Meaning, Mechanism, Order, Parameter, Signature, State};
use esscher_zoo::{Error, Real};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use std::sync::Arc;

export!(class PyMechanism, PyPass, PyStream);
export!(fn zoo_catalogue, zoo_array, zoo_simulate);

/// A dynamical system of more numbers (two gigabytes) is refused.
const LARGEST_SYSTEM: usize = 1 << 28;

/// Numbers of all parameters that are drawn at most.
const MOST_PARAMETERS: usize = 1 << 30;

/// A state as Python has it: the tokens seen, and the numbers of every head.
type PyState<'py> = (usize, Any<'py>);

/// The catalogue, an entry per row.
#[pyfunction]
fn zoo_catalogue(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |entry: &Entry| -> PyResult<_> {
        let claims = &entry.claims;
        Ok(dictionary!(py, causal: claims.order == Order::Causal, state: claims.state.formula,
            cost: claims.cost.name(), fate: claims.fate.name(), normalised: claims.normalised,
            dynamical_system: claims.dynamical_system, recalls: claims.recalls;
            entry => name, summary, year, paper))
    };
    catalogue::catalogue().iter().map(row).collect()
}

/// Any array of real numbers as a C-contiguous one of float32 or float64: itself where it is one.
#[pyfunction]
fn zoo_array<'py>(what: &str, value: &Any<'py>) -> PyResult<Any<'py>> {
    arrays::in_its_precision(what, value)
}

/// f32 or f64, in Rust and in NumPy.
trait Precise: Real + Element {}

impl<T: Real + Element> Precise for T {}

/// Arrays that are rows of numbers, borrowed.
struct Borrowed<'py, T: Element>(Vec<PyReadonlyArrayDyn<'py, T>>);

impl<'py, T: Element> Borrowed<'py, T> {
    fn read(arrays: &[Any<'py>]) -> PyResult<Self> {
        arrays.iter().map(borrow).collect::<PyResult<Vec<_>>>().map(Borrowed)
    }

    fn slices(&self) -> PyResult<Vec<&[T]>> {
        self.0.iter().map(entries).collect()
    }
}

fn borrow<'py, T: Element>(array: &Any<'py>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let Ok(array) = array.cast::<PyArrayDyn<T>>() else {
        return Err(PyTypeError::new_err("arrays of different precisions"));
    };
    array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))
}

fn entries<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Something of single or of double precision.
#[derive(Clone)]
enum Either<S, D> {
    Single(S),
    Double(D),
}

/// Whether the first of the arrays, and so all, are of single precision.
fn is_single(arrays: &[Any<'_>]) -> bool {
    arrays.first().is_some_and(|array| array.cast::<PyArrayDyn<f32>>().is_ok())
}

/// The same expression for either precision.
macro_rules! either {
    ($either:expr, $inner:ident => $value:expr) => {
        match $either {
            Either::Single($inner) => $value,
            Either::Double($inner) => $value,
        }
    };
}

/// A mechanism with its widths.
#[pyclass(name = "ZooMechanism", module = "esscher._native", frozen)]
pub(crate) struct PyMechanism {
    of: Arc<Made>,
}

/// A mechanism with what is known about it.
struct Made {
    entry: &'static Entry,
    sizes: Sizes,
    mechanism: Box<dyn Mechanism>,
    signature: Signature,
}

impl Made {
    fn new(name: &str, key_width: usize, value_width: usize) -> esscher_zoo::Result<Self> {
        let (entry, sizes) = (catalogue::find(name)?, Sizes::new(key_width, value_width)?);
        let mechanism = (entry.build)(sizes);
        let signature = mechanism.signature();
        Ok(Made { entry, sizes, mechanism, signature })
    }

    /// Refuses states of so many heads and sequences that there is no memory for them.
    fn check_room<T: Real>(&self, strands: usize, seen: usize) -> PyResult<()> {
        let numbers = (self.entry.claims.state.numbers)(self.sizes, seen);
        match numbers.checked_mul(strands).map(|all| Vec::<T>::new().try_reserve_exact(all)) {
            Some(Ok(())) => Ok(()),
            _ => Err(PyMemoryError::new_err(format!(
                "{strands} states of {numbers} numbers are more than there is memory for: use fewer heads or sequences"
            ))),
        }
    }

    /// The states of one sequence, one per head.
    fn read_state<T: Precise>(
        &self,
        what: &str,
        heads: usize,
        seen: usize,
        numbers: &Any<'_>,
    ) -> PyResult<Vec<State<T>>>
    where
        dyn Mechanism: In<T>,
    {
        let numbers = borrow::<T>(numbers)?;
        let expected = match seen {
            0 => Definition::<T>::init(&*self.mechanism).numbers.len(),
            _ => (self.entry.claims.state.numbers)(self.sizes, seen),
        };
        if numbers.shape() != [heads, expected] {
            return Err(PyValueError::new_err(format!(
                "{what}: expected shape ({heads}, {expected}) after {seen} tokens, found {}",
                arrays::shape_text(numbers.shape())
            )));
        }
        let numbers = entries(&numbers)?;
        if let Some(index) = numbers.iter().position(|number| number.value().is_nan()) {
            return Err(PyValueError::new_err(format!("{what}: entry {index} is NaN")));
        }
        Ok((0..heads)
            .map(|head| State { seen, numbers: numbers[head * expected..(head + 1) * expected].to_vec() })
            .collect())
    }

    /// An error that names an entry by its place in Python's array.
    fn raised<T>(
        &self,
        result: esscher_zoo::Result<T>,
        tokens: &[Any<'_>],
        parameters: &[Any<'_>],
    ) -> PyResult<T> {
        let ports = self.signature.tokens.iter().map(|port| port.name).zip(tokens);
        let named = ports.chain(self.signature.parameters.iter().map(|each| each.name).zip(parameters));
        let array_of = |name: &str| named.into_iter().find(|(own, _)| *own == name).map(|(_, array)| array);
        let (name, index, found, expected) = match &result {
            Err(Error::NotFinite { name, index, found }) => (*name, *index, *found, "a finite number"),
            Err(Error::NotAllowed { name, index, found, expected }) => (*name, *index, *found, *expected),
            _ => return result.or_raise(),
        };
        let shape: Vec<usize> = match array_of(name) {
            Some(array) => array.getattr("shape")?.extract()?,
            None => return result.or_raise(),
        };
        let place = arrays::place(&shape, index);
        let a_number = if matches!(result, Err(Error::NotAllowed { .. })) { "a number " } else { "" };
        Err(PyValueError::new_err(format!("{name}{place} is {found}: expected {a_number}{expected}")))
    }
}

/// The states of all sequences as Python has them.
fn python_states<'py, T: Precise>(
    py: Python<'py>,
    states: Vec<State<T>>,
    heads: usize,
) -> PyResult<Vec<PyState<'py>>> {
    states
        .chunks(heads)
        .map(|of_heads| {
            let numbers: Vec<T> = of_heads.iter().flat_map(|state| state.numbers.iter().copied()).collect();
            let shape = [heads, numbers.len() / heads];
            Ok((of_heads[0].seen, Array::new(numbers, shape).into_pyobject(py)?.into_any()))
        })
        .collect()
}

fn layout(lengths: &[usize], longest: Option<usize>, heads: usize) -> PyResult<Layout> {
    match longest {
        Some(longest) => Layout::padded(lengths, longest, heads),
        None => Layout::packed(lengths, heads),
    }
    .or_raise()
}

/// What the calls over batches have in common: tokens, parameters, heads, lengths of the sequences, rows of each block
/// where they are padded, and the states to start from.
type Arguments<'py> =
    (Vec<Any<'py>>, Vec<Any<'py>>, usize, Vec<usize>, Option<usize>, Option<Vec<PyState<'py>>>);

/// Those, read.
struct Call<'py> {
    tokens: Vec<Any<'py>>,
    parameters: Vec<Any<'py>>,
    layout: Layout,
    /// Tokens of the longest sequence, those before it included.
    last: usize,
    initial: Option<Vec<PyState<'py>>>,
}

impl<'py> Call<'py> {
    fn read((tokens, parameters, heads, lengths, longest, initial): Arguments<'py>) -> PyResult<Self> {
        let seen = initial.iter().flatten().map(|(seen, _)| *seen).max().unwrap_or(0);
        let last = seen.saturating_add(lengths.iter().copied().max().unwrap_or(0));
        Ok(Call { tokens, parameters, layout: layout(&lengths, longest, heads)?, last, initial })
    }

    /// Does the work on checked slices: the layout, tokens, parameters and initial states.
    fn run<T: Precise, R: Send>(
        &self,
        py: Python<'py>,
        made: &Made,
        work: impl FnOnce(&Layout, &[&[T]], &[&[T]], Option<&[State<T>]>) -> esscher_zoo::Result<R> + Send,
    ) -> PyResult<R>
    where
        dyn Mechanism: In<T>,
    {
        let (tokens, parameters) =
            (Borrowed::<T>::read(&self.tokens)?, Borrowed::<T>::read(&self.parameters)?);
        let (tokens, parameters) = (tokens.slices()?, parameters.slices()?);
        let layout = &self.layout;
        made.check_room::<T>(layout.sequences().saturating_mul(layout.heads()), self.last)?;
        let mut initial = self.initial.as_ref().map(|_| Vec::new());
        for (seen, numbers) in self.initial.iter().flatten() {
            let states = made.read_state("initial", layout.heads(), *seen, numbers)?;
            initial.get_or_insert_default().extend(states);
        }
        let result = threads::detached(py, || {
            batch::check(&made.signature, layout, &tokens, &parameters)?;
            work(layout, &tokens, &parameters, initial.as_deref())
        });
        made.raised(result, &self.tokens, &self.parameters)
    }
}

/// Outputs and final states.
type Answer<'py> = (Any<'py>, Vec<PyState<'py>>);

fn evaluate<'py, T: Precise>(
    py: Python<'py>,
    made: &Made,
    call: &Call<'py>,
    form: Form,
) -> PyResult<Answer<'py>>
where
    dyn Mechanism: In<T>,
{
    let (outputs, states) = call.run::<T, _>(py, made, |layout, tokens, parameters, initial| {
        batch::evaluate(&*made.mechanism, form, layout, tokens, parameters, initial)
    })?;
    let outputs = Array::from(outputs).into_pyobject(py)?.into_any();
    Ok((outputs, python_states(py, states, call.layout.heads())?))
}

fn forward<'py, T: Precise>(
    py: Python<'py>,
    made: &Made,
    call: &Call<'py>,
) -> PyResult<(Answer<'py>, Passed<T>)>
where
    dyn Mechanism: In<T>,
{
    let mut passed = call.run::<T, _>(py, made, |layout, tokens, parameters, initial| {
        batch::forward(&*made.mechanism, layout, tokens, parameters, initial)
    })?;
    let outputs = Array::from(std::mem::take(&mut passed.outputs)).into_pyobject(py)?.into_any();
    let states = python_states(py, passed.states.clone(), call.layout.heads())?;
    Ok(((outputs, states), passed))
}

getters! { PyMechanism, own:
    /// Name, width and meaning of every token port.
    ports: Vec<(&'static str, usize, &'static str)> = {
        let meaning = |meaning| match meaning {
            Meaning::Content => "content",
            Meaning::LogDecay => "log decay",
            Meaning::Rate => "rate",
            Meaning::Fraction => "fraction",
            Meaning::Logit => "logit",
            Meaning::Angle => "angle",
        };
        own.of.signature.tokens.iter().map(|port| (port.name, port.width, meaning(port.meaning))).collect()
    };
    /// Name, size, whether it is shared by the heads, and whether it is trained, of every parameter.
    parameters: Vec<(&'static str, usize, bool, bool)> = {
        let parameters = own.of.signature.parameters.iter();
        parameters.map(|each| (each.name, each.size, each.shared, each.trained)).collect()
    };
    output_width: usize = own.of.signature.output;
    causal: bool = own.of.mechanism.order() == Order::Causal;
}

#[pymethods]
impl PyMechanism {
    #[new]
    fn new(name: &str, key_width: &Any<'_>, value_width: &Any<'_>) -> PyResult<Self> {
        let width = |what, value| numbers::whole(what, value, 0..=u64::from(u32::MAX));
        let (key, value) = (width("key_width", key_width)?, width("value_width", value_width)?);
        Ok(PyMechanism { of: Arc::new(Made::new(name, key as usize, value as usize).or_raise()?) })
    }

    /// The numbers that every parameter starts with, heads one after the other.
    fn initial_parameters(&self, seed: &Any<'_>, heads: usize) -> PyResult<Vec<Array>> {
        let seed = numbers::seed(seed)?;
        let parameters = &self.of.signature.parameters;
        let copies = |parameter: &Parameter| if parameter.shared { 1 } else { heads };
        let numbers = parameters
            .iter()
            .fold(0usize, |sum, one| sum.saturating_add(one.size.saturating_mul(copies(one))));
        if numbers > MOST_PARAMETERS || Vec::<f64>::new().try_reserve_exact(numbers).is_err() {
            return Err(PyMemoryError::new_err(format!(
                "parameters of {heads} heads are more than there is memory for: use fewer heads"
            )));
        }
        let start = |(index, parameter): (usize, &Parameter)| {
            let of_head = |head| parameter.start(&mut RandomStream::new(seed, index as u32, head as u32));
            (0..copies(parameter)).flat_map(of_head).collect::<Array>()
        };
        Ok(parameters.iter().enumerate().map(start).collect())
    }

    /// Outputs and final states by a form.
    fn evaluate<'py>(&self, py: Python<'py>, form: &str, call: Arguments<'py>) -> PyResult<Answer<'py>> {
        let forms =
            [("chunked", Form::Chunked), ("recurrent", Form::Recurrent), ("reference", Form::Reference)];
        let (form, call) = (choice("form", form, &forms)?, Call::read(call)?);
        if is_single(&call.tokens) {
            evaluate::<f32>(py, &self.of, &call, form)
        } else {
            evaluate::<f64>(py, &self.of, &call, form)
        }
    }

    /// The chunked form with what its backward pass needs: outputs, final states, and the pass.
    fn forward<'py>(&self, py: Python<'py>, call: Arguments<'py>) -> PyResult<(Answer<'py>, PyPass)> {
        let call = Call::read(call)?;
        let (answer, passed) = if is_single(&call.tokens) {
            let (answer, passed) = forward(py, &self.of, &call)?;
            (answer, Either::Single(passed))
        } else {
            let (answer, passed) = forward(py, &self.of, &call)?;
            (answer, Either::Double(passed))
        };
        let unbind = |arrays: Vec<Any<'py>>| arrays.into_iter().map(Bound::unbind).collect();
        let (tokens, parameters) = (unbind(call.tokens), unbind(call.parameters));
        Ok((answer, PyPass { of: self.of.clone(), layout: call.layout, tokens, parameters, passed }))
    }

    /// The dynamical system of one sequence of one head, in double precision.
    fn dynamical_system<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<Any<'py>>,
        parameters: Vec<Any<'py>>,
        length: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let made = &*self.of;
        let Some(system) = made.mechanism.dynamical_system() else {
            return Err(PyValueError::new_err(format!(
                "{} has no dynamical system: it is not linear in an input with a state of constant size",
                made.entry.name
            )));
        };
        let borrowed = (Borrowed::<f64>::read(&tokens)?, Borrowed::<f64>::read(&parameters)?);
        let (numbers, constants) = (borrowed.0.slices()?, borrowed.1.slices()?);
        let given = Given::new(&made.signature, length, &numbers, &constants);
        let given = made.raised(given, &tokens, &parameters)?;
        let states = system.states();
        let (input, output) = (made.signature.tokens[system.input_port()].width, made.signature.output);
        let first: Vec<&[f64]> = (0..numbers.len()).map(|port| given.row(port, 0)).collect();
        let first = Given { length: 1, tokens: &first, parameters: &constants };
        check_system(states.saturating_mul(states), 1)?;
        check_system(states.saturating_mul(input + output + 1), length)?;
        if let Some(Transition::Dense(_)) = system.realise(&first).first().map(|step| &step.transition) {
            check_system(states.saturating_mul(states), length)?;
        }
        // Asked for anew: the one above is bound to this thread.
        let realise = || made.mechanism.dynamical_system().map(|system| system.realise(&given));
        let steps = py.detach(realise).unwrap_or_default();
        let diagonal = steps.iter().all(|step| matches!(step.transition, Transition::Diagonal(_)));
        let mut transitions = Vec::new();
        for step in &steps {
            match &step.transition {
                Transition::Dense(matrix) => transitions.extend_from_slice(matrix),
                Transition::Diagonal(entries) if diagonal => transitions.extend_from_slice(entries),
                Transition::Diagonal(entries) => {
                    let from = transitions.len();
                    transitions.resize(from + states * states, 0.0);
                    for (index, entry) in entries.iter().enumerate() {
                        transitions[from + index * (states + 1)] = *entry;
                    }
                }
            }
        }
        // A matrix that is not there is zero.
        let joined = |part: fn(&SystemStep) -> &[f64], rows: usize, columns: usize| {
            let mut all = Vec::with_capacity(length * rows * columns);
            for (index, step) in steps.iter().enumerate() {
                all.extend_from_slice(part(step));
                all.resize((index + 1) * rows * columns, 0.0);
            }
            Array::new(all, [length, rows, columns])
        };
        let shape: &[usize] = if diagonal { &[length, states] } else { &[length, states, states] };
        Ok(dictionary!(py,
            transition: Array::new(transitions, shape),
            input: joined(|step| &step.input, states, input),
            readout: joined(|step| &step.readout, output, states),
            feedthrough: joined(|step| &step.feedthrough, output, input),
            input_port: made.signature.tokens[system.input_port()].name))
    }

    /// What the outputs take of every value in one channel, length × length, in double precision.
    fn weights(
        &self,
        py: Python<'_>,
        tokens: Vec<Any<'_>>,
        parameters: Vec<Any<'_>>,
        length: usize,
        channel: usize,
    ) -> PyResult<Array> {
        let made = &*self.of;
        let borrowed = (Borrowed::<f64>::read(&tokens)?, Borrowed::<f64>::read(&parameters)?);
        let (numbers, constants) = (borrowed.0.slices()?, borrowed.1.slices()?);
        let given = Given::new(&made.signature, length, &numbers, &constants);
        let given = made.raised(given, &tokens, &parameters)?;
        // Only whether there is room.
        drop(room_for("the weights", &[length, length])?);
        let rows = threads::detached(py, || attention_matrix(&*made.mechanism, &given, channel));
        Ok(Array::new(rows.or_raise()?.weights, [length, length]))
    }

    /// The state before the first token and these parameters, ready to read tokens.
    fn stream(&self, parameters: Vec<Any<'_>>, heads: usize, single: bool) -> PyResult<PyStream> {
        let strands = if single {
            Either::Single(strands(&self.of, &parameters, heads)?)
        } else {
            Either::Double(strands(&self.of, &parameters, heads)?)
        };
        Ok(PyStream { of: self.of.clone(), heads, strands })
    }
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
fn zoo_simulate(
    py: Python<'_>,
    transition: &Any<'_>,
    input: &Any<'_>,
    readout: &Any<'_>,
    feedthrough: &Any<'_>,
    inputs: &Any<'_>,
) -> PyResult<Array> {
    let (transition, input) = (Reals::read("transition", transition)?, Reals::read("input", input)?);
    let (readout, inputs) = (Reals::read("readout", readout)?, Reals::read("inputs", inputs)?);
    let feedthrough = Reals::read("feedthrough", feedthrough)?;
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
    let part = |array: &Reals<'_>, t: usize| {
        let size = array.entries().len() / length;
        array.entries()[t * size..(t + 1) * size].to_vec()
    };
    let steps: Vec<SystemStep> = (0..length)
        .map(|t| {
            let transition = part(&transition, t);
            SystemStep {
                transition: (if dense { Transition::Dense } else { Transition::Diagonal })(transition),
                input: part(&input, t),
                readout: part(&readout, t),
                feedthrough: part(&feedthrough, t),
            }
        })
        .collect();
    let inputs = inputs.entries();
    Ok(Array::new(py.detach(|| simulate(&steps, states, inputs)), [length, outputs]))
}

/// A forward pass that was made, for its backward pass.
#[pyclass(name = "ZooPass", module = "esscher._native", frozen)]
pub(crate) struct PyPass {
    of: Arc<Made>,
    layout: Layout,
    tokens: Vec<Py<PyAny>>,
    parameters: Vec<Py<PyAny>>,
    passed: Either<Passed<f32>, Passed<f64>>,
}

/// Derivatives in the token ports, in the parameters and in the initial states.
type PyGradients<'py> = (Vec<Any<'py>>, Vec<Any<'py>>, Vec<PyState<'py>>);

fn backward<'py, T: Precise>(
    py: Python<'py>,
    pass: &PyPass,
    passed: &Passed<T>,
    output_slopes: &Any<'py>,
    state_slopes: Option<Vec<Any<'py>>>,
) -> PyResult<PyGradients<'py>>
where
    dyn Mechanism: In<T>,
{
    let bind = |arrays: &[Py<PyAny>]| arrays.iter().map(|array| array.bind(py).clone()).collect::<Vec<_>>();
    let borrowed = (Borrowed::<T>::read(&bind(&pass.tokens))?, Borrowed::<T>::read(&bind(&pass.parameters))?);
    let (tokens, parameters) = (borrowed.0.slices()?, borrowed.1.slices()?);
    let slopes = borrow::<T>(output_slopes)?;
    let slopes = entries(&slopes)?;
    let heads = pass.layout.heads();
    let state_slopes = match state_slopes {
        None => None,
        Some(given) => {
            let finals = passed.states.chunks(heads);
            if given.len() != finals.len() {
                let (expected, found) = (finals.len(), given.len());
                return Err(Error::Count { what: "state slopes", expected, found }).or_raise();
            }
            let mut all = Vec::with_capacity(passed.states.len());
            for (last, numbers) in finals.zip(&given) {
                let (numbers, width) = (borrow::<T>(numbers)?, last[0].numbers.len());
                if numbers.shape() != [heads, width] {
                    return Err(PyValueError::new_err(format!(
                        "state_slopes: expected shape ({heads}, {width}), found {}",
                        arrays::shape_text(numbers.shape())
                    )));
                }
                let numbers = entries(&numbers)?;
                all.extend(last.iter().enumerate().map(|(head, last)| State {
                    seen: last.seen,
                    numbers: numbers[head * width..(head + 1) * width].to_vec(),
                }));
            }
            Some(all)
        }
    };
    let gradient = threads::detached(py, || {
        let mechanism = &*pass.of.mechanism;
        let layout = &pass.layout;
        batch::backward(mechanism, layout, &tokens, &parameters, passed, slopes, state_slopes.as_deref())
    })
    .or_raise()?;
    let arrays = |parts: Vec<Vec<T>>| {
        parts
            .into_iter()
            .map(|part| Ok(Array::from(part).into_pyobject(py)?.into_any()))
            .collect::<PyResult<Vec<_>>>()
    };
    let states = python_states(py, gradient.states, heads)?;
    Ok((arrays(gradient.tokens)?, arrays(gradient.parameters)?, states))
}

#[pymethods]
impl PyPass {
    /// Derivatives from those in outputs and final states; None is zero.
    fn backward<'py>(
        &self,
        py: Python<'py>,
        output_slopes: &Any<'py>,
        state_slopes: Option<Vec<Any<'py>>>,
    ) -> PyResult<PyGradients<'py>> {
        either!(&self.passed, passed => backward(py, self, passed, output_slopes, state_slopes))
    }
}

/// A mechanism that reads tokens one by one or in pieces.
#[pyclass(name = "ZooStream", module = "esscher._native")]
#[derive(Clone)]
pub(crate) struct PyStream {
    of: Arc<Made>,
    heads: usize,
    strands: Either<Heads<f32>, Heads<f64>>,
}

/// The states of all heads and the parameters that they read, all heads of each.
#[derive(Clone)]
struct Heads<T> {
    states: Vec<State<T>>,
    parameters: Vec<Vec<T>>,
}

fn strands<T: Precise>(made: &Made, parameters: &[Any<'_>], heads: usize) -> PyResult<Heads<T>>
where
    dyn Mechanism: In<T>,
{
    made.check_room::<T>(heads, 1)?;
    let borrowed = Borrowed::<T>::read(parameters)?;
    let numbers = borrowed.slices()?;
    // Of no token: only the parameters are looked at.
    let signature = Signature { tokens: Vec::new(), ..made.signature.clone() };
    let checked =
        layout(&[], None, heads).map(|layout| batch::check::<T>(&signature, &layout, &[], &numbers))?;
    made.raised(checked, &[], parameters)?;
    Ok(Heads {
        states: vec![made.mechanism.init(); heads],
        parameters: numbers.iter().map(|numbers| numbers.to_vec()).collect(),
    })
}

/// What is done with a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Absorb,
    Read,
    Step,
}

/// Does something with one token of every head; the outputs, row by row.
fn act<T: Precise>(
    py: Python<'_>,
    made: &Made,
    heads: &mut Heads<T>,
    tokens: &[Any<'_>],
    act: Act,
) -> PyResult<Vec<T>>
where
    dyn Mechanism: In<T>,
{
    let borrowed = Borrowed::<T>::read(tokens)?;
    let numbers = borrowed.slices()?;
    let parameters: Vec<&[T]> = heads.parameters.iter().map(Vec::as_slice).collect();
    let states = &mut heads.states;
    let signature = &made.signature;
    let checked = Layout::packed(&[1], states.len())
        .and_then(|layout| batch::check(signature, &layout, &numbers, &parameters));
    made.raised(checked, tokens, &[])?;
    let mut outputs = vec![T::zero(); if act == Act::Absorb { 0 } else { states.len() * signature.output }];
    py.detach(|| {
        let mut rows: Vec<&[T]> = Vec::with_capacity(numbers.len());
        let mut constants: Vec<&[T]> = Vec::with_capacity(parameters.len());
        for (head, state) in states.iter_mut().enumerate() {
            rows.clear();
            rows.extend(
                signature
                    .tokens
                    .iter()
                    .zip(&numbers)
                    .map(|(port, numbers)| &numbers[head * port.width..(head + 1) * port.width]),
            );
            constants.clear();
            constants.extend(signature.parameters.iter().zip(&parameters).map(|(parameter, numbers)| {
                let from = if parameter.shared { 0 } else { head * parameter.size };
                &numbers[from..from + parameter.size]
            }));
            let token = Given { length: 1, tokens: &rows, parameters: &constants };
            if act != Act::Read {
                made.mechanism.absorb(&token, state);
            }
            if act != Act::Absorb {
                let from = head * signature.output;
                made.mechanism.read(&token, state.view(), &mut outputs[from..from + signature.output]);
            }
        }
    });
    Ok(outputs)
}

fn extend<T: Precise>(
    py: Python<'_>,
    made: &Made,
    heads: &mut Heads<T>,
    tokens: &[Any<'_>],
    length: usize,
) -> PyResult<Vec<T>>
where
    dyn Mechanism: In<T>,
{
    let borrowed = Borrowed::<T>::read(tokens)?;
    let numbers = borrowed.slices()?;
    let parameters: Vec<&[T]> = heads.parameters.iter().map(Vec::as_slice).collect();
    let layout = layout(&[length], None, heads.states.len())?;
    let states = &heads.states;
    let result = threads::detached(py, || {
        batch::check(&made.signature, &layout, &numbers, &parameters)?;
        batch::evaluate(&*made.mechanism, Form::Chunked, &layout, &numbers, &parameters, Some(states))
    });
    let (outputs, states) = made.raised(result, tokens, &[])?;
    heads.states = states;
    Ok(outputs)
}

#[pymethods]
impl PyStream {
    /// Absorbs, reads, or both ("step"): one row per head and port.
    fn act<'py>(&mut self, py: Python<'py>, what: &str, tokens: Vec<Any<'py>>) -> PyResult<Any<'py>> {
        let acts = [("step", Act::Step), ("absorb", Act::Absorb), ("read", Act::Read)];
        let what = choice("what", what, &acts)?;
        either!(&mut self.strands, heads => {
            Ok(Array::from(act(py, &self.of, heads, &tokens, what)?).into_pyobject(py)?.into_any())
        })
    }

    /// Reads a piece of a sequence by the chunked form.
    fn extend<'py>(&mut self, py: Python<'py>, tokens: Vec<Any<'py>>, length: usize) -> PyResult<Any<'py>> {
        either!(&mut self.strands, heads => {
            Ok(Array::from(extend(py, &self.of, heads, &tokens, length)?).into_pyobject(py)?.into_any())
        })
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<PyState<'py>> {
        let mut states = either!(&self.strands, of => python_states(py, of.states.clone(), self.heads)?);
        states.pop().ok_or_else(|| PyValueError::new_err("a stream has at least one head"))
    }

    fn set_state(&mut self, seen: usize, numbers: &Any<'_>) -> PyResult<()> {
        either!(&mut self.strands, of => of.states = self.of.read_state("state", self.heads, seen, numbers)?);
        Ok(())
    }

    fn copy(&self) -> Self {
        self.clone()
    }
}

getters! { PyStream, own:
    seen: usize = either!(&own.strands, of => of.states.first().map_or(0, |state| state.seen));
    bytes: usize = either!(&own.strands, of => of.states.iter().map(State::bytes).sum());
}
