//! Numbers that say what to expect of a length: regimes, exponents, and the paper's bounds. Arguments come by position.

use crate::arrays::length;
use crate::numbers::real;
use crate::prelude::*;
use esscher_core::concentration::{self, Regime};
use esscher_core::prompt::{self, BoundConstants};

export!(fn regime, typical_error_exponent, critical_score_deviation, rate_exponent, output_bound, score_gradient_bound,
    value_gradient_bound, trajectory_bound);

/// A function of single numbers, each read by its kind: `real` or `length`.
macro_rules! scale {
    ($name:ident($($argument:ident: $kind:ident),+) -> $type:ty = $value:expr) => {
        #[pyfunction]
        pub(crate) fn $name($($argument: &Any<'_>),+) -> PyResult<$type> {
            $(let $argument = scale!($kind $argument)?;)+
            $value.or_raise()
        }
    };
    (real $argument:ident) => { real(stringify!($argument), $argument) };
    (length $argument:ident) => { length($argument) };
}

scale!(regime(score_deviation: real, length: length) -> &'static str =
concentration::regime(score_deviation, length).map(|regime| match regime {
    Regime::Diluted => "diluted",
    Regime::Intermediate => "intermediate",
    Regime::Frozen => "frozen",
}));
scale!(typical_error_exponent(score_deviation: real, length: length) -> f64 =
    concentration::typical_error_exponent(score_deviation, length));
scale!(critical_score_deviation(length: length) -> f64 =
    esscher_core::Result::Ok(prompt::critical_score_deviation(length)));
scale!(rate_exponent(operator_norm: real) -> f64 = prompt::rate_exponent(operator_norm));
scale!(output_bound(length: length, sub_gaussian: real, factor: real, exponent: real) -> f64 =
    prompt::output_bound(length, sub_gaussian, BoundConstants { factor, exponent }));
scale!(score_gradient_bound(length: length, sub_gaussian: real, factor: real, exponent: real) -> f64 =
    prompt::score_gradient_bound(length, sub_gaussian, BoundConstants { factor, exponent }));
scale!(value_gradient_bound(length: length, sub_gaussian: real, factor: real, exponent: real) -> f64 =
    prompt::value_gradient_bound(length, sub_gaussian, BoundConstants { factor, exponent }));
scale!(trajectory_bound(gradient_gap: real, growth: real, time: real) -> f64 =
    prompt::trajectory_bound(gradient_gap, growth, time));
