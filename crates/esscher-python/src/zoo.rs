//! The mechanisms of the zoo: the catalogue, the forms over batches, backward passes, streams and dynamical systems.
//!
//! Shapes are Python's business (`python/esscher/zoo.py`): here arrays are rows with the heads side by side, all in the
//! precision of the first one, and a state is a pair of the tokens seen and an array (heads, numbers).

use crate::arrays;
use crate::failure::OrRaise;
use crate::numbers;
use crate::threads;
use esscher_core::numerics::Stream as RandomStream;
use esscher_zoo::batch::{self, Form, Layout, Passed};
use esscher_zoo::catalogue::{self, Entry, Sizes};
use esscher_zoo::diagnostics::attention_matrix;
use esscher_zoo::dynamical_system::{SystemStep, Transition, simulate};
use esscher_zoo::mechanism::{Definition, Given, In, Meaning, Mechanism, Order, Parameter, Signature, State};
use esscher_zoo::{Error, Real};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A dynamical system of more numbers (two gigabytes) is refused.
const LARGEST_SYSTEM: usize = 1 << 28;

/// Numbers of all parameters that are drawn at most.
const MOST_PARAMETERS: usize = 1 << 30;

/// A state as Python has it: the tokens seen, and the numbers of every head.
type PyState<'py> = (usize, Bound<'py, PyAny>);

/// The catalogue, an entry per row.
#[pyfunction]
pub(crate) fn zoo_catalogue(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    catalogue::catalogue()
        .iter()
        .map(|entry| {
            let row = PyDict::new(py);
            row.set_item("name", entry.name)?;
            row.set_item("summary", entry.summary)?;
            row.set_item("year", entry.year)?;
            row.set_item("paper", entry.paper)?;
            row.set_item("causal", entry.claims.order == Order::Causal)?;
            row.set_item("normalised", entry.claims.normalised)?;
            row.set_item("state", entry.claims.state.formula)?;
            row.set_item("cost", entry.claims.cost.name())?;
            row.set_item("fate", entry.claims.fate.name())?;
            row.set_item("dynamical_system", entry.claims.dynamical_system)?;
            row.set_item("recalls", entry.claims.recalls)?;
            Ok(row)
        })
        .collect()
}

/// Any array of real numbers as a C-contiguous one of float32 or float64: itself where it is one.
#[pyfunction]
pub(crate) fn zoo_array<'py>(what: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    arrays::in_its_precision(what, value)
}

/// f32 or f64, in Rust and in NumPy.
trait Precise: Real + Element {}

impl<T: Real + Element> Precise for T {}

/// Arrays that are rows of numbers, borrowed.
struct Borrowed<'py, T: Element>(Vec<PyReadonlyArrayDyn<'py, T>>);

impl<'py, T: Element> Borrowed<'py, T> {
    fn read(arrays: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        arrays.iter().map(borrow).collect::<PyResult<_>>().map(Borrowed)
    }

    fn slices(&self) -> PyResult<Vec<&[T]>> {
        self.0.iter().map(entries).collect()
    }
}

fn borrow<'py, T: Element>(array: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let Ok(array) = array.cast::<PyArrayDyn<T>>() else {
        return Err(PyTypeError::new_err("arrays of different precisions"));
    };
    array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))
}

fn entries<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))
}

fn is_single(arrays: &[Bound<'_, PyAny>]) -> bool {
    arrays.first().is_some_and(|array| array.cast::<PyArrayDyn<f32>>().is_ok())
}

/// Calls a function that is generic in the precision with that of the first array.
macro_rules! in_precision {
    ($single:expr, $function:ident($($argument:expr),* $(,)?)) => {
        if $single { $function::<f32>($($argument),*) } else { $function::<f64>($($argument),*) }
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
        numbers: &Bound<'_, PyAny>,
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
        tokens: &[Bound<'_, PyAny>],
        parameters: &[Bound<'_, PyAny>],
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
        let (mut rest, mut place) = (index, Vec::new());
        for size in shape.iter().rev() {
            place.push((rest % size).to_string());
            rest /= size;
        }
        place.reverse();
        let expected = if matches!(result, Err(Error::NotAllowed { .. })) {
            format!("a number {expected}")
        } else {
            expected.to_string()
        };
        let place = place.join(", ");
        Err(PyValueError::new_err(format!("{name}[{place}] is {found}: expected {expected}")))
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
            let width = numbers.len() / heads;
            let array = PyArray1::from_vec(py, numbers).reshape([heads, width])?;
            Ok((of_heads[0].seen, array.into_any()))
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

/// What the calls over batches have in common.
struct Call<'py> {
    tokens: Vec<Bound<'py, PyAny>>,
    parameters: Vec<Bound<'py, PyAny>>,
    layout: Layout,
    /// Tokens of the longest sequence, those before it included.
    last: usize,
    initial: Option<Vec<PyState<'py>>>,
}

impl<'py> Call<'py> {
    fn initial_states<T: Precise>(&self, made: &Made) -> PyResult<Option<Vec<State<T>>>>
    where
        dyn Mechanism: In<T>,
    {
        made.check_room::<T>(self.layout.sequences().saturating_mul(self.layout.heads()), self.last)?;
        let Some(states) = &self.initial else { return Ok(None) };
        let mut all = Vec::new();
        for (seen, numbers) in states {
            all.append(&mut made.read_state("initial", self.layout.heads(), *seen, numbers)?);
        }
        Ok(Some(all))
    }
}

type Answer<'py> = (Bound<'py, PyAny>, Vec<PyState<'py>>);

fn evaluate<'py, T: Precise>(
    py: Python<'py>,
    made: &Made,
    call: &Call<'py>,
    form: Form,
) -> PyResult<Answer<'py>>
where
    dyn Mechanism: In<T>,
{
    let (tokens, parameters) = (Borrowed::<T>::read(&call.tokens)?, Borrowed::<T>::read(&call.parameters)?);
    let (tokens, parameters) = (tokens.slices()?, parameters.slices()?);
    let (initial, layout) = (call.initial_states::<T>(made)?, &call.layout);
    let result = threads::detached(py, || {
        batch::check(&made.signature, layout, &tokens, &parameters)?;
        batch::evaluate(&*made.mechanism, form, layout, &tokens, &parameters, initial.as_deref())
    });
    let (outputs, states) = made.raised(result, &call.tokens, &call.parameters)?;
    Ok((PyArray1::from_vec(py, outputs).into_any(), python_states(py, states, call.layout.heads())?))
}

type KeptAnswer<'py, T> = (Bound<'py, PyAny>, Vec<PyState<'py>>, Kept<T>);

fn forward<'py, T: Precise>(py: Python<'py>, made: &Made, call: &Call<'py>) -> PyResult<KeptAnswer<'py, T>>
where
    dyn Mechanism: In<T>,
{
    let borrowed = (Borrowed::<T>::read(&call.tokens)?, Borrowed::<T>::read(&call.parameters)?);
    let (tokens, parameters) = (borrowed.0.slices()?, borrowed.1.slices()?);
    let (initial, layout) = (call.initial_states::<T>(made)?, &call.layout);
    let result = threads::detached(py, || {
        batch::check(&made.signature, layout, &tokens, &parameters)?;
        batch::forward(&*made.mechanism, layout, &tokens, &parameters, initial.as_deref())
    });
    let mut passed = made.raised(result, &call.tokens, &call.parameters)?;
    let outputs = PyArray1::from_vec(py, std::mem::take(&mut passed.outputs)).into_any();
    let states = python_states(py, passed.states.clone(), call.layout.heads())?;
    Ok((outputs, states, Kept(passed)))
}

#[pymethods]
impl PyMechanism {
    #[new]
    fn new(name: &str, key_width: &Bound<'_, PyAny>, value_width: &Bound<'_, PyAny>) -> PyResult<Self> {
        let width = |what, value| numbers::whole(what, value, 0..=u64::from(u32::MAX));
        let (key, value) = (width("key_width", key_width)?, width("value_width", value_width)?);
        Ok(PyMechanism { of: Arc::new(Made::new(name, key as usize, value as usize).or_raise()?) })
    }

    /// Name, width and meaning of every token port.
    #[getter]
    fn ports(&self) -> Vec<(&'static str, usize, &'static str)> {
        let meaning = |meaning| match meaning {
            Meaning::Content => "content",
            Meaning::LogDecay => "log decay",
            Meaning::Rate => "rate",
            Meaning::Fraction => "fraction",
            Meaning::Logit => "logit",
            Meaning::Angle => "angle",
        };
        self.of.signature.tokens.iter().map(|port| (port.name, port.width, meaning(port.meaning))).collect()
    }

    /// Name, size, whether it is shared by the heads, and whether it is trained, of every parameter.
    #[getter]
    fn parameters(&self) -> Vec<(&'static str, usize, bool, bool)> {
        let parameters = self.of.signature.parameters.iter();
        parameters.map(|each| (each.name, each.size, each.shared, each.trained)).collect()
    }

    #[getter]
    fn output_width(&self) -> usize {
        self.of.signature.output
    }

    #[getter]
    fn causal(&self) -> bool {
        self.of.mechanism.order() == Order::Causal
    }

    /// The numbers that every parameter starts with, heads one after the other.
    fn initial_parameters<'py>(
        &self,
        py: Python<'py>,
        seed: &Bound<'py, PyAny>,
        heads: usize,
    ) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let seed = numbers::seed(seed)?;
        let copies = |parameter: &Parameter| if parameter.shared { 1 } else { heads };
        let numbers = self.of.signature.parameters.iter().map(|one| one.size.checked_mul(copies(one)));
        let numbers = numbers
            .collect::<Option<Vec<_>>>()
            .map(|sizes| sizes.iter().fold(0usize, |a, b| a.saturating_add(*b)));
        if numbers
            .is_none_or(|all| Vec::<f64>::new().try_reserve_exact(all).is_err() || all > MOST_PARAMETERS)
        {
            return Err(PyMemoryError::new_err(format!(
                "parameters of {heads} heads are more than there is memory for: use fewer heads"
            )));
        }
        let parameters = self.of.signature.parameters.iter().enumerate();
        Ok(parameters
            .map(|(index, parameter)| {
                let copies = copies(parameter);
                let of_head = |head| parameter.start(&mut RandomStream::new(seed, index as u32, head as u32));
                arrays::vector(py, (0..copies).flat_map(of_head).collect())
            })
            .collect())
    }

    /// Outputs and final states by a form: sequences of these lengths, packed or in blocks of `longest` rows.
    #[pyo3(signature = (form, tokens, parameters, heads, lengths, longest, initial))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        form: &str,
        tokens: Vec<Bound<'py, PyAny>>,
        parameters: Vec<Bound<'py, PyAny>>,
        heads: usize,
        lengths: Vec<usize>,
        longest: Option<usize>,
        initial: Option<Vec<PyState<'py>>>,
    ) -> PyResult<Answer<'py>> {
        let form = crate::failure::choice(
            "form",
            form,
            &[("chunked", Form::Chunked), ("recurrent", Form::Recurrent), ("reference", Form::Reference)],
        )?;
        let call = call(tokens, parameters, heads, &lengths, longest, initial)?;
        in_precision!(is_single(&call.tokens), evaluate(py, &self.of, &call, form))
    }

    /// The chunked form with what its backward pass needs: outputs, final states, and the pass.
    #[pyo3(signature = (tokens, parameters, heads, lengths, longest, initial))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<Bound<'py, PyAny>>,
        parameters: Vec<Bound<'py, PyAny>>,
        heads: usize,
        lengths: Vec<usize>,
        longest: Option<usize>,
        initial: Option<Vec<PyState<'py>>>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<PyState<'py>>, PyPass)> {
        let call = call(tokens, parameters, heads, &lengths, longest, initial)?;
        let (outputs, states, kept) = if is_single(&call.tokens) {
            let (outputs, states, kept) = forward::<f32>(py, &self.of, &call)?;
            (outputs, states, KeptPass::Single(kept))
        } else {
            let (outputs, states, kept) = forward::<f64>(py, &self.of, &call)?;
            (outputs, states, KeptPass::Double(kept))
        };
        let unbind = |arrays: Vec<Bound<'py, PyAny>>| arrays.into_iter().map(Bound::unbind).collect();
        let pass = PyPass {
            of: self.of.clone(),
            layout: call.layout,
            tokens: unbind(call.tokens),
            parameters: unbind(call.parameters),
            kept,
        };
        Ok((outputs, states, pass))
    }

    /// The dynamical system of one sequence of one head, in double precision.
    fn dynamical_system<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<Bound<'py, PyAny>>,
        parameters: Vec<Bound<'py, PyAny>>,
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
        let answer = PyDict::new(py);
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
        let joined = |part: fn(&SystemStep) -> &[f64], size: usize| -> Vec<f64> {
            let mut all = Vec::with_capacity(steps.len() * size);
            for step in &steps {
                let part = part(step);
                if part.is_empty() {
                    all.resize(all.len() + size, 0.0);
                } else {
                    all.extend_from_slice(part);
                }
            }
            all
        };
        let shape: &[usize] = if diagonal { &[length, states] } else { &[length, states, states] };
        answer.set_item("transition", arrays::array(py, transitions, shape)?)?;
        let inputs = joined(|step| &step.input, states * input);
        answer.set_item("input", arrays::array(py, inputs, &[length, states, input])?)?;
        let readouts = joined(|step| &step.readout, output * states);
        answer.set_item("readout", arrays::array(py, readouts, &[length, output, states])?)?;
        let feedthroughs = joined(|step| &step.feedthrough, output * input);
        answer.set_item("feedthrough", arrays::array(py, feedthroughs, &[length, output, input])?)?;
        answer.set_item("input_port", made.signature.tokens[system.input_port()].name)?;
        Ok(answer)
    }

    /// What the outputs take of every value in one channel, length × length, in double precision.
    fn weights<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<Bound<'py, PyAny>>,
        parameters: Vec<Bound<'py, PyAny>>,
        length: usize,
        channel: usize,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let made = &*self.of;
        let borrowed = (Borrowed::<f64>::read(&tokens)?, Borrowed::<f64>::read(&parameters)?);
        let (numbers, constants) = (borrowed.0.slices()?, borrowed.1.slices()?);
        let given = Given::new(&made.signature, length, &numbers, &constants);
        let given = made.raised(given, &tokens, &parameters)?;
        // Only whether there is room.
        drop(crate::failure::room_for("the weights", &[length, length])?);
        let rows = threads::detached(py, || attention_matrix(&*made.mechanism, &given, channel));
        arrays::array(py, rows.or_raise()?.weights, &[length, length])
    }

    /// The state before the first token and these parameters, ready to read tokens.
    fn stream(&self, parameters: Vec<Bound<'_, PyAny>>, heads: usize, single: bool) -> PyResult<PyStream> {
        let strands = if single {
            Strands::Single(strands::<f32>(&self.of, &parameters, heads)?)
        } else {
            Strands::Double(strands::<f64>(&self.of, &parameters, heads)?)
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

fn call<'py>(
    tokens: Vec<Bound<'py, PyAny>>,
    parameters: Vec<Bound<'py, PyAny>>,
    heads: usize,
    lengths: &[usize],
    longest: Option<usize>,
    initial: Option<Vec<PyState<'py>>>,
) -> PyResult<Call<'py>> {
    let seen = initial.iter().flatten().map(|(seen, _)| *seen).max().unwrap_or(0);
    let last = seen.saturating_add(lengths.iter().copied().max().unwrap_or(0));
    Ok(Call { tokens, parameters, layout: layout(lengths, longest, heads)?, last, initial })
}

/// Outputs of a dynamical system, given as `dynamical_system` gives it.
#[pyfunction]
pub(crate) fn zoo_simulate<'py>(
    py: Python<'py>,
    transition: &Bound<'py, PyAny>,
    input: &Bound<'py, PyAny>,
    readout: &Bound<'py, PyAny>,
    feedthrough: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let read = |name, array| -> PyResult<(arrays::Reals<'py>, Vec<usize>)> {
        let array = arrays::Reals::read(name, array)?;
        let shape = array.shape().to_vec();
        Ok((array, shape))
    };
    let (transition, shape) = read("transition", transition)?;
    let ((input, of_input), (readout, of_readout)) = (read("input", input)?, read("readout", readout)?);
    let (feedthrough, of_feedthrough) = read("feedthrough", feedthrough)?;
    let (inputs, of_inputs) = read("inputs", inputs)?;
    let (&[length, states, width], &[_, outputs, _]) = (&of_input[..], &of_readout[..]) else {
        return Err(PyValueError::new_err("input and readout: expected three axes"));
    };
    let dense = shape.len() == 3;
    let expected = [
        ("transition", &shape, if dense { vec![length, states, states] } else { vec![length, states] }),
        ("readout", &of_readout, vec![length, outputs, states]),
        ("feedthrough", &of_feedthrough, vec![length, outputs, width]),
        ("inputs", &of_inputs, vec![length, width]),
    ];
    for (name, found, expected) in expected {
        if *found != expected {
            let (expected, found) = (arrays::shape_text(&expected), arrays::shape_text(found));
            return Err(PyValueError::new_err(format!("{name}: expected shape {expected}, found {found}")));
        }
    }
    if length * states * width * outputs == 0 {
        return Err(PyValueError::new_err("a system without tokens, states, inputs or outputs"));
    }
    let part = |array: &arrays::Reals<'py>, t: usize| {
        let size = array.entries().len() / length;
        array.entries()[t * size..(t + 1) * size].to_vec()
    };
    let steps: Vec<SystemStep> = (0..length)
        .map(|t| {
            let transition = part(&transition, t);
            SystemStep {
                transition: if dense {
                    Transition::Dense(transition)
                } else {
                    Transition::Diagonal(transition)
                },
                input: part(&input, t),
                readout: part(&readout, t),
                feedthrough: part(&feedthrough, t),
            }
        })
        .collect();
    let inputs = inputs.entries();
    arrays::array(py, py.detach(|| simulate(&steps, states, inputs)), &[length, outputs])
}

/// A forward pass that was made, for its backward pass.
#[pyclass(name = "ZooPass", module = "esscher._native", frozen)]
pub(crate) struct PyPass {
    of: Arc<Made>,
    layout: Layout,
    tokens: Vec<Py<PyAny>>,
    parameters: Vec<Py<PyAny>>,
    kept: KeptPass,
}

struct Kept<T>(Passed<T>);

enum KeptPass {
    Single(Kept<f32>),
    Double(Kept<f64>),
}

/// Derivatives in the token ports, in the parameters and in the initial states.
type PyGradients<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Vec<PyState<'py>>);

fn backward<'py, T: Precise>(
    py: Python<'py>,
    pass: &PyPass,
    kept: &Kept<T>,
    output_slopes: &Bound<'py, PyAny>,
    state_slopes: Option<Vec<Bound<'py, PyAny>>>,
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
            let finals = kept.0.states.chunks(heads);
            if given.len() != finals.len() {
                let (expected, found) = (finals.len(), given.len());
                return Err(Error::Count { what: "state slopes", expected, found }).or_raise();
            }
            let mut all = Vec::with_capacity(kept.0.states.len());
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
        let (layout, passed) = (&pass.layout, &kept.0);
        batch::backward(mechanism, layout, &tokens, &parameters, passed, slopes, state_slopes.as_deref())
    })
    .or_raise()?;
    let arrays = |parts: Vec<Vec<T>>| {
        parts.into_iter().map(|part| PyArray1::from_vec(py, part).into_any()).collect::<Vec<_>>()
    };
    let states = python_states(py, gradient.states, heads)?;
    Ok((arrays(gradient.tokens), arrays(gradient.parameters), states))
}

#[pymethods]
impl PyPass {
    /// Derivatives from those in outputs and final states; None is zero.
    fn backward<'py>(
        &self,
        py: Python<'py>,
        output_slopes: &Bound<'py, PyAny>,
        state_slopes: Option<Vec<Bound<'py, PyAny>>>,
    ) -> PyResult<PyGradients<'py>> {
        match &self.kept {
            KeptPass::Single(kept) => backward(py, self, kept, output_slopes, state_slopes),
            KeptPass::Double(kept) => backward(py, self, kept, output_slopes, state_slopes),
        }
    }
}

/// A mechanism that reads tokens one by one or in pieces.
#[pyclass(name = "ZooStream", module = "esscher._native")]
pub(crate) struct PyStream {
    of: Arc<Made>,
    heads: usize,
    strands: Strands,
}

/// The states of all heads and the parameters that they read, all heads of each.
#[derive(Clone)]
struct Heads<T> {
    states: Vec<State<T>>,
    parameters: Vec<Vec<T>>,
}

#[derive(Clone)]
enum Strands {
    Single(Heads<f32>),
    Double(Heads<f64>),
}

fn strands<T: Precise>(made: &Made, parameters: &[Bound<'_, PyAny>], heads: usize) -> PyResult<Heads<T>>
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
    tokens: &[Bound<'_, PyAny>],
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
    tokens: &[Bound<'_, PyAny>],
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
    fn act<'py>(
        &mut self,
        py: Python<'py>,
        what: &str,
        tokens: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let what = crate::failure::choice(
            "what",
            what,
            &[("step", Act::Step), ("absorb", Act::Absorb), ("read", Act::Read)],
        )?;
        Ok(match &mut self.strands {
            Strands::Single(heads) => {
                PyArray1::from_vec(py, act(py, &self.of, heads, &tokens, what)?).into_any()
            }
            Strands::Double(heads) => {
                PyArray1::from_vec(py, act(py, &self.of, heads, &tokens, what)?).into_any()
            }
        })
    }

    /// Reads a piece of a sequence by the chunked form.
    fn extend<'py>(
        &mut self,
        py: Python<'py>,
        tokens: Vec<Bound<'py, PyAny>>,
        length: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &mut self.strands {
            Strands::Single(heads) => {
                PyArray1::from_vec(py, extend(py, &self.of, heads, &tokens, length)?).into_any()
            }
            Strands::Double(heads) => {
                PyArray1::from_vec(py, extend(py, &self.of, heads, &tokens, length)?).into_any()
            }
        })
    }

    #[getter]
    fn seen(&self) -> usize {
        match &self.strands {
            Strands::Single(heads) => heads.states.first().map_or(0, |state| state.seen),
            Strands::Double(heads) => heads.states.first().map_or(0, |state| state.seen),
        }
    }

    #[getter]
    fn bytes(&self) -> usize {
        match &self.strands {
            Strands::Single(heads) => heads.states.iter().map(State::bytes).sum(),
            Strands::Double(heads) => heads.states.iter().map(State::bytes).sum(),
        }
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<PyState<'py>> {
        let mut states = match &self.strands {
            Strands::Single(heads) => python_states(py, heads.states.clone(), self.heads)?,
            Strands::Double(heads) => python_states(py, heads.states.clone(), self.heads)?,
        };
        states.pop().ok_or_else(|| PyValueError::new_err("a stream has at least one head"))
    }

    fn set_state(&mut self, seen: usize, numbers: &Bound<'_, PyAny>) -> PyResult<()> {
        match &mut self.strands {
            Strands::Single(heads) => {
                heads.states = self.of.read_state("state", self.heads, seen, numbers)?
            }
            Strands::Double(heads) => {
                heads.states = self.of.read_state("state", self.heads, seen, numbers)?
            }
        }
        Ok(())
    }

    fn copy(&self) -> Self {
        PyStream { of: self.of.clone(), heads: self.heads, strands: self.strands.clone() }
    }
}
