//! A mechanism with its widths: what it reads, its initial parameters, and arrays that are read for it.

use super::precision::Precise;
use crate::arrays::Numbers;
use crate::prelude::*;
use esscher_core::numerics::Stream;
use esscher_zoo::catalogue::{self, Entry, Sizes};
use esscher_zoo::mechanism::{Definition, In, Meaning, Mechanism, Order, Parameter, Signature};
use esscher_zoo::{Error, Real};
use std::sync::Arc;

export!(class PyMechanism);

/// Numbers of all parameters that are drawn at most.
const MOST_PARAMETERS: usize = 1 << 30;

/// A mechanism with its widths.
#[pyclass(name = "ZooMechanism", module = "esscher._native", frozen)]
pub(crate) struct PyMechanism {
    pub(super) of: Arc<Made>,
}

/// A mechanism with what is known about it.
pub(super) struct Made {
    pub(super) entry: &'static Entry,
    sizes: Sizes,
    pub(super) mechanism: Box<dyn Mechanism>,
    pub(super) signature: Signature,
}

#[pymethods]
impl PyMechanism {
    #[new]
    fn new(name: &Any<'_>, key_width: &Any<'_>, value_width: &Any<'_>) -> PyResult<Self> {
        let name = numbers::text("name", name)?;
        let width = |what, value| numbers::whole(what, value, 0..=u64::from(u32::MAX));
        let (key, value) = (width("key_width", key_width)?, width("value_width", value_width)?);
        let entry = catalogue::find(&name).or_raise()?;
        let sizes = Sizes::new(key as usize, value as usize).or_raise()?;
        let mechanism = (entry.build)(sizes);
        let signature = mechanism.signature();
        Ok(PyMechanism { of: Arc::new(Made { entry, sizes, mechanism, signature }) })
    }

    /// The numbers that every parameter starts with, heads one after the other.
    fn initial_parameters(&self, seed: &Any<'_>, heads: usize) -> PyResult<Vec<Array>> {
        let seed = numbers::seed(seed)?;
        let parameters = &self.of.signature.parameters;
        let copies = |parameter: &Parameter| if parameter.shared { 1 } else { heads };
        let sizes = parameters.iter().map(|parameter| parameter.size.saturating_mul(copies(parameter)));
        let numbers = sizes.fold(0, usize::saturating_add);
        if numbers > MOST_PARAMETERS || Vec::<f64>::new().try_reserve_exact(numbers).is_err() {
            return Err(PyMemoryError::new_err(format!(
                "parameters of {heads} heads are more than there is memory for: use fewer heads"
            )));
        }
        let start = |(index, parameter): (usize, &Parameter)| {
            let of_head = |head| parameter.start(&mut Stream::new(seed, index as u32, head as u32));
            (0..copies(parameter)).flat_map(of_head).collect::<Array>()
        };
        Ok(parameters.iter().enumerate().map(start).collect())
    }
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

impl Made {
    /// Numbers of the state of a head.
    pub(super) fn state_width<T: Real>(&self, seen: usize) -> usize
    where
        dyn Mechanism: In<T>,
    {
        match seen {
            0 => Definition::<T>::init(&*self.mechanism).numbers.len(),
            _ => (self.entry.claims.state.numbers)(self.sizes, seen),
        }
    }

    /// Refuses states of so many heads and sequences that there is no memory for them.
    pub(super) fn check_room<T: Real>(&self, strands: usize, seen: usize) -> PyResult<()> {
        let numbers = (self.entry.claims.state.numbers)(self.sizes, seen);
        match numbers.checked_mul(strands).map(|all| Vec::<T>::new().try_reserve_exact(all)) {
            Some(Ok(())) => Ok(()),
            _ => Err(PyMemoryError::new_err(format!(
                "{strands} states of {numbers} numbers are more than there is memory for: use fewer heads or sequences"
            ))),
        }
    }

    /// The arrays of the ports, whose shapes Python has checked.
    pub(super) fn tokens<'py, T: Precise>(&self, given: &[Any<'py>]) -> PyResult<Arrays<'py, T>> {
        let ports = self.signature.tokens.iter().zip(given);
        ports
            .map(|(port, value)| Ok((port.name, Numbers::read(port.name, value)?)))
            .collect::<PyResult<_>>()
            .map(Arrays)
    }

    /// The arrays of the parameters, (heads, size) each, or (size,) where that says the same.
    pub(super) fn parameters<'py, T: Precise>(
        &self,
        given: &[Any<'py>],
        heads: usize,
    ) -> PyResult<Arrays<'py, T>> {
        let read = |(parameter, value): (&Parameter, &Any<'py>)| {
            let numbers = Numbers::read(parameter.name, value)?;
            let alone = numbers.shape() == [parameter.size] && (parameter.shared || heads == 1);
            if !alone {
                let all = [heads, parameter.size];
                numbers.expect_shape(if parameter.shared { &all[1..] } else { &all })?;
            }
            Ok((parameter.name, numbers))
        };
        self.signature.parameters.iter().zip(given).map(read).collect::<PyResult<_>>().map(Arrays)
    }
}

/// Arrays of ports or of parameters, by name and in the order of the signature.
pub(super) struct Arrays<'py, T: Precise>(Vec<(&'static str, Numbers<'py, T>)>);

impl<T: Precise> Arrays<'_, T> {
    pub(super) fn slices(&self) -> Vec<&[T]> {
        self.0.iter().map(|(_, numbers)| numbers.entries()).collect()
    }

    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, numbers)| numbers.shape())
    }
}

/// A result, or an exception that names an entry by its place in Python's array.
pub(super) fn placed<R, T: Precise>(
    result: esscher_zoo::Result<R>,
    tokens: &Arrays<'_, T>,
    parameters: &Arrays<'_, T>,
) -> PyResult<R> {
    let (name, index, found, expected) = match &result {
        Err(Error::NotFinite { name, index, found }) => (name, index, found, "a finite number".to_string()),
        Err(Error::NotAllowed { name, index, found, expected }) => {
            (name, index, found, format!("a number {expected}"))
        }
        _ => return result.or_raise(),
    };
    let Some(shape) = tokens.shape(name).or_else(|| parameters.shape(name)) else { return result.or_raise() };
    let place = arrays::place(shape, *index);
    Err(PyValueError::new_err(format!("{name}{place} is {found}: expected {expected}")))
}
