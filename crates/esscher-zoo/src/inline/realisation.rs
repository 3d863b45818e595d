//! As a dynamical system in the value: per value channel the running means of φ(k) v and of v, Λ_i = ((i−1)/i) I, C_i = (s φ(q_i), 1 − s φ(q_i)·k̄_i).
//!
//! InLine needs one state per channel more than linear attention: the mean of the values, which the part of a row that does
//! not depend on the key multiplies. Tokens are counted from 1.

use super::{Inline, KEY, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;

impl DynamicalSystem for Inline {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        (self.key_width + 1) * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let keys = self.key_width;
        let mut key_sums = vec![0.0; keys];
        (0..given.length)
            .map(|t| {
                let (query, mut key) = (self.map(given.row(QUERY, t)), self.map(given.row(KEY, t)));
                key_sums.iter_mut().zip(&key).for_each(|(sum, k)| *sum += k);
                let count = (t + 1) as f64;
                let total: f64 = query.iter().zip(&key_sums).map(|(q, z)| q * z).sum();
                // The last of a channel's states is fed by a key of one and read by what is left of the row.
                key.push(1.0);
                let mut read: Vec<f64> = query.iter().map(|q| self.scale() * q).collect();
                read.push(1.0 - self.scale() * total / count);
                let written = key.iter().map(|k| k / count).collect();
                SystemStep::single(vec![t as f64 / count; keys + 1], written, read)
                    .for_each_of(self.value_width)
            })
            .collect()
    }
}
