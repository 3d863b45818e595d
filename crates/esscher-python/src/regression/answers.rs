//! How a layer answers at a prompt length: the words for attention, finite and infinite lengths, shared tables.

use crate::arrays::{self, Reals};
use crate::failure::{OrRaise, choice, room_for};
use crate::threads;
use esscher_core::regression::{ContextLength, Response};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// Attention whose risks are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attending {
    Softmax,
    Linear,
    OppositeHeads,
}

/// Reads the word for an attention.
pub(super) fn attending(word: &str) -> PyResult<Attending> {
    let words = [
        ("softmax", Attending::Softmax),
        ("linear", Attending::Linear),
        ("opposite-heads", Attending::OppositeHeads),
    ];
    choice("attention", word, &words)
}

/// A prompt length, or the infinite prompt: None and infinity.
pub(super) fn context_length(value: Option<&Bound<'_, PyAny>>) -> PyResult<ContextLength> {
    match value {
        None => Ok(ContextLength::Infinite),
        Some(value) if value.extract::<f64>().is_ok_and(|number| number == f64::INFINITY) => {
            Ok(ContextLength::Infinite)
        }
        Some(value) => Ok(ContextLength::Finite(arrays::length(value)?)),
    }
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

/// How attention answers Gaussian tokens of these score variances, a dictionary of columns.
#[pyfunction]
pub(crate) fn response<'py>(
    py: Python<'py>,
    score_variance: &Bound<'py, PyAny>,
    prompt_length: Option<&Bound<'py, PyAny>>,
    attention: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let variances = Reals::read("score_variance", score_variance)?;
    let response = response_of(attending(attention)?, context_length(prompt_length)?);
    let entries = variances.entries();
    let mut columns = Vec::with_capacity(NAMES.len());
    for _ in NAMES {
        columns.push(room_for("the answer", &[entries.len()])?);
    }
    threads::detached(py, || {
        threads::on_all(|| {
            entries.iter().try_for_each(|&sigma| -> esscher_core::Result<()> {
                let at = response.at(sigma)?;
                let values = [
                    sigma,
                    1.0 - at.first_deficit,
                    1.0 - at.second_deficit,
                    at.spread,
                    at.first_deficit,
                    at.second_deficit,
                    at.first_slope,
                    at.second_slope,
                    at.spread_slope,
                ];
                if values.iter().any(|value| !value.is_finite()) {
                    return Err(esscher_core::Error::Overflow { what: "the response to a score" });
                }
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                Ok(())
            })
        })
    })
    .or_raise()?;
    let answer = PyDict::new(py);
    for (name, column) in NAMES.into_iter().zip(columns) {
        answer.set_item(name, arrays::vector(py, column))?;
    }
    Ok(answer)
}

/// The columns of a response.
const NAMES: [&str; 9] = [
    "score_variance",
    "first",
    "second",
    "spread",
    "first_deficit",
    "second_deficit",
    "first_slope",
    "second_slope",
    "spread_slope",
];
