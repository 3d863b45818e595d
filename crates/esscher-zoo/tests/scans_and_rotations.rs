//! Diagonal recurrences, time-invariant systems and rotations: every form agrees, and the identities that relate them hold.

mod common;

use common::check_all;
use esscher_zoo::quasi_lstm::{Forget, QuasiLstm};
use esscher_zoo::rg_lru::RgLru;
use esscher_zoo::s4::S4;
use esscher_zoo::s6::S6;

#[test]
fn the_quasi_lstm_agrees() {
    for forget in [Forget::Sigmoid, Forget::Reversed] {
        check_all(&QuasiLstm { width: 3, forget });
        check_all(&QuasiLstm { width: 1, forget });
    }
}

#[test]
fn s6_agrees() {
    check_all(&S6 { width: 3, expansion: 5 });
    check_all(&S6 { width: 1, expansion: 1 });
}

#[test]
fn s4_agrees() {
    check_all(&S4 { width: 3, pairs: 5 });
    check_all(&S4 { width: 1, pairs: 1 });
}

#[test]
fn the_rg_lru_agrees() {
    check_all(&RgLru { width: 3 });
    check_all(&RgLru { width: 1 });
}
