//! How a layer answers at a prompt length: the words for attention, shared tables, and risks with their class.

use crate::prelude::*;
use esscher_core::Estimate;
use esscher_core::regression::{ContextLength, Response};
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

/// `attention` and `prompt_length` of a call, with the response of this attention at this length.
pub(super) fn response_asked(asked: &Asked<'_>) -> PyResult<(Attending, Response)> {
    let attention = asked.choice("attention", &ATTENDING)?;
    Ok((attention, response_of(attention, asked.context_length()?)))
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

/// A number, its class and its error, as Python's `Estimate` takes them.
pub(super) type Estimated = (f64, &'static str, f64);

pub(super) fn estimated(estimate: Estimate) -> Estimated {
    (estimate.value, estimate.accuracy.name(), estimate.error)
}

/// The risk of a block, with the relative error that the library states.
pub(super) fn exactly(value: f64) -> Estimated {
    estimated(Estimate::exact_to(value, 1e-9))
}

/// How attention answers Gaussian tokens of these score variances, a dictionary of columns.
#[pyfunction]
fn response<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let variances = asked.reals("score_variance")?;
    let (_, response) = response_asked(&asked)?;
    let entries = variances.entries();
    let mut rows = Vec::new();
    drop(room_for("the answer", &[9, entries.len()])?);
    threads::detached(py, || {
        entries.iter().try_for_each(|&sigma| {
            let at = response.at(sigma)?;
            let numbers = [at.first_deficit, at.second_deficit, at.spread, at.first_slope, at.second_slope];
            if !(at.spread_slope.is_finite() && numbers.iter().all(|number| number.is_finite())) {
                return Err(esscher_core::Error::Overflow { what: "the response to a score" });
            }
            rows.push(at);
            Ok(())
        })
    })
    .or_raise()?;
    macro_rules! column {
        ($row:ident => $number:expr) => {
            rows.iter().map(|$row| $number).collect::<Array>()
        };
    }
    Ok(dictionary!(py,
        score_variance: Array::from(entries),
        first: column!(at => 1.0 - at.first_deficit),
        second: column!(at => 1.0 - at.second_deficit),
        spread: column!(at => at.spread),
        first_deficit: column!(at => at.first_deficit),
        second_deficit: column!(at => at.second_deficit),
        first_slope: column!(at => at.first_slope),
        second_slope: column!(at => at.second_slope),
        spread_slope: column!(at => at.spread_slope)))
}
