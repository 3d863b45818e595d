//! How a layer answers at a prompt length: the words for attention, shared tables, and risks with their class.

use crate::prelude::*;
use crate::watch::one_by_one;
use esscher_core::numerics::statistics::Summary;
use esscher_core::regression::{ContextLength, Response, ResponseAt};
use esscher_core::{Accuracy, Error, Estimate};
use std::sync::{Mutex, PoisonError};

export!(fn response);

/// Attention whose risks are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attending {
    Softmax,
    Linear,
    OppositeHeads,
}

/// The words for attention.
pub(super) const ATTENDING: [(&str, Attending); 3] = [
    ("softmax", Attending::Softmax),
    ("linear", Attending::Linear),
    ("opposite-heads", Attending::OppositeHeads),
];

/// What `attention` and `prompt_length` of a call say.
pub(super) struct Answering {
    pub(super) attention: Attending,
    pub(super) response: Response,
    /// Whether a flow has no drift: infinite prompts and linear attention.
    pub(super) still: bool,
}

pub(super) fn response_asked(asked: &Asked<'_>) -> PyResult<Answering> {
    let attention = asked.choice("attention", &ATTENDING)?;
    let response = response_of(attention, asked.context_length()?);
    let still = attention == Attending::Linear || response.is_infinite();
    Ok(Answering { attention, response, still })
}

/// Responses whose tables are kept between calls.
const KEPT: usize = 32;

/// The last responses that were asked for, the latest last.
static RESPONSES: Mutex<Vec<(Attending, ContextLength, Response)>> = Mutex::new(Vec::new());

/// The response of this attention at this length; its tables are those of earlier calls.
pub(super) fn response_of(attention: Attending, length: ContextLength) -> Response {
    let ContextLength::Finite(tokens) = length else {
        return Response::infinite();
    };
    let mut kept = RESPONSES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept.iter().position(|(kind, at, _)| (*kind, *at) == (attention, length));
    let entry = known.map(|index| kept.remove(index)).unwrap_or_else(|| {
        let made = match attention {
            Attending::Softmax => Response::softmax(tokens),
            Attending::Linear => Response::linear(tokens),
            Attending::OppositeHeads => Response::opposite_heads(tokens),
        };
        (attention, length, made)
    });
    let response = entry.2.clone();
    if kept.len() == KEPT {
        kept.remove(0);
    }
    kept.push(entry);
    response
}

/// A number with its class and error; in Python an `esscher.Estimate`.
pub(super) struct Estimated(pub(super) Estimate);

impl Estimated {
    /// The risk of a block, with the relative error that the library states.
    pub(super) fn exactly(risk: f64) -> Self {
        Estimated(Estimate::exact_to(risk, 1e-9))
    }

    /// An average over draws, whose error may not be known: squares can overflow.
    pub(super) fn sampled(value: f64, error: Option<f64>) -> Self {
        Estimated(Estimate { value, error: error.unwrap_or(f64::NAN), accuracy: Accuracy::Sampled })
    }

    /// The mean of a summary.
    pub(super) fn mean(what: &'static str, found: &Summary) -> PyResult<Self> {
        let mean = found.mean().ok_or(Error::Overflow { what }).or_raise()?;
        Ok(Estimated::sampled(mean, found.standard_error()))
    }
}

impl<'py> IntoPyObject<'py> for Estimated {
    type Target = PyAny;
    type Output = Any<'py>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Any<'py>> {
        let Estimate { value, error, accuracy } = self.0;
        py.import("esscher.estimate")?.call_method1("Estimate", (value, accuracy.name(), error))
    }
}

/// How attention answers Gaussian tokens of these score variances, a dictionary of columns.
#[pyfunction]
fn response<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let variances = asked.reals("score_variance")?;
    let response = response_asked(&asked)?.response;
    let entries = variances.entries();
    drop(room_for("the answer", &[9, entries.len()])?);
    let mut rows = Vec::with_capacity(entries.len());
    let work = |&sigma: &f64| response.at(sigma).map(|row| rows.push(row));
    one_by_one(py, entries.iter(), work)?.or_raise()?;
    let columns = dictionary!(py, score_variance: Array::from(entries));
    type Number = fn(&ResponseAt) -> f64;
    let numbers: [(&str, Number); 8] = [
        ("first", |at| 1.0 - at.first_deficit),
        ("second", |at| 1.0 - at.second_deficit),
        ("spread", |at| at.spread),
        ("first_deficit", |at| at.first_deficit),
        ("second_deficit", |at| at.second_deficit),
        ("first_slope", |at| at.first_slope),
        ("second_slope", |at| at.second_slope),
        ("spread_slope", |at| at.spread_slope),
    ];
    for (name, read) in numbers {
        let column: Vec<f64> = rows.iter().map(read).collect();
        if column.iter().any(|number| !number.is_finite()) {
            return Err(Error::Overflow { what: "the response to a score" }).or_raise();
        }
        columns.set_item(name, Array::from(column))?;
    }
    Ok(columns)
}
