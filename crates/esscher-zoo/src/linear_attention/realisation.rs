//! As a dynamical system in the value: state h = S/η by value channel and feature, Λ_i = (η_{i−1}/η_i) I, Λ_0 = 0 (key `sieber2024`).
//!
//! η_i is that of the mechanism with its guard, which depends on queries and keys alone and is never zero: the system is exact.

use super::{GUARD, KEY, LinearAttention, Normaliser, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::feature_maps::FeatureMap;
use crate::mechanism::Given;

impl<M: FeatureMap> DynamicalSystem for LinearAttention<M> {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.map.feature_width() * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let features = self.map.feature_width();
        let mut key_sums = vec![0.0; features];
        let mut last_divisor = 0.0;
        (0..given.length)
            .map(|t| {
                let query = self.map.apply_rows(given.row(QUERY, t), given.parameters);
                let key = self.map.apply_rows(given.row(KEY, t), given.parameters);
                key_sums.iter_mut().zip(&key).for_each(|(sum, k)| *sum += k);
                let divisor = match self.normaliser {
                    Normaliser::Sum => {
                        query.iter().zip(&key_sums).map(|(q, z)| q * z).sum::<f64>().max(GUARD)
                    }
                    Normaliser::Count => (t + 1) as f64,
                    Normaliser::None => 1.0,
                };
                let kept = vec![last_divisor / divisor; features];
                last_divisor = divisor;
                let written = key.iter().map(|k| k / divisor).collect();
                SystemStep::single(kept, written, query).for_each_of(self.value_width)
            })
            .collect()
    }
}
