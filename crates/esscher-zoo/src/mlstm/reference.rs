//! The parallel definition: W_ts = (q_t·k_s/√d_k) exp(ln D_ts − m_t), h_t = Σ_s W_ts v_s / (max(|Σ_s W_ts|, e^{−m_t}) + ε).

use super::{CAP, EPSILON, FORGET_GATE, INPUT_GATE, KEY, MatrixLstm, QUERY, VALUE};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &MatrixLstm, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let cap = N::constant(CAP);
    let gates = |port: usize| given.tokens[port].iter().map(move |&logit| cap * (logit / cap).tanh());
    let input: Vec<N> = gates(INPUT_GATE).collect();
    let log_forget: Vec<N> = gates(FORGET_GATE).map(Number::log_sigmoid).collect();
    let kept = |from: usize, t: usize| (from..=t).fold(N::zero(), |sum, j| sum + log_forget[j]);
    // ln D_ts for s ≤ t, and their maximum with m_0 = 0, which decays with the rest.
    let log_gates = |t: usize| -> Vec<N> { (0..=t).map(|s| kept(s + 1, t) + input[s]).collect() };
    let largest =
        |t: usize, log_gates: &[N]| log_gates.iter().fold(kept(0, t), |largest, &one| largest.larger(one));

    let mut outputs = vec![N::zero(); given.length * values];
    for t in 0..given.length {
        let log_gates = log_gates(t);
        let stabiliser = largest(t, &log_gates);
        let weights: Vec<N> = (0..=t)
            .map(|s| {
                let score =
                    (0..keys).fold(N::zero(), |sum, a| sum + given.row(QUERY, t)[a] * given.row(KEY, s)[a]);
                score * N::constant(mechanism.scale()) * (log_gates[s] - stabiliser).exp()
            })
            .collect();
        let total = weights.iter().fold(N::zero(), |sum, &weight| sum + weight);
        let divisor = total.magnitude().larger((-stabiliser).exp()) + N::constant(EPSILON);
        for c in 0..values {
            let sum = (0..=t).fold(N::zero(), |sum, s| sum + weights[s] * given.row(VALUE, s)[c]);
            outputs[t * values + c] = sum / divisor;
        }
    }

    let last = given.length - 1;
    let log_gates = log_gates(last);
    let stabiliser = largest(last, &log_gates);
    let mut state = vec![N::zero(); keys * (values + 1) + 1];
    for (s, &log_gate) in log_gates.iter().enumerate() {
        let written = (log_gate - stabiliser).exp();
        for a in 0..keys {
            let key = written * given.row(KEY, s)[a];
            for c in 0..values {
                state[a * (values + 1) + c] += key * given.row(VALUE, s)[c];
            }
            state[a * (values + 1) + values] += key;
        }
    }
    state[keys * (values + 1)] = stabiliser;
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
