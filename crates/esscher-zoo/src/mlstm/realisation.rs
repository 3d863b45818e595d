//! As a dynamical system in the value: Λ_i = f'_i I, B_i = I ⊗ i'_i k_i, C_i = I ⊗ q_iᵀ / (√d_k · divisor); n and m decide the divisor.

use super::{EPSILON, FORGET_GATE, INPUT_GATE, KEY, MatrixLstm, QUERY, VALUE, capped};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;
use crate::number::Number;

impl DynamicalSystem for MatrixLstm {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let keys = self.key_width;
        let mut stabiliser = 0.0;
        let mut sum_of_keys = vec![0.0; keys];
        (0..given.length)
            .map(|t| {
                let (query, key) = (given.row(QUERY, t), given.row(KEY, t));
                let gate = capped(given.row(INPUT_GATE, t)[0]);
                let decayed = capped(given.row(FORGET_GATE, t)[0]).log_sigmoid() + stabiliser;
                stabiliser = f64::max(decayed, gate);
                let (kept, written) = ((decayed - stabiliser).exp(), (gate - stabiliser).exp());
                let mut total = 0.0;
                for a in 0..keys {
                    sum_of_keys[a] = kept * sum_of_keys[a] + written * key[a];
                    total += self.scale() * query[a] * sum_of_keys[a];
                }
                let divisor = f64::max(total.abs(), (-stabiliser).exp()) + EPSILON;
                let read = query.iter().map(|q| self.scale() * q / divisor).collect();
                SystemStep::single(vec![kept; keys], key.iter().map(|k| written * k).collect(), read)
                    .for_each_of(self.value_width)
            })
            .collect()
    }
}
