//! The fast form: the sum of `kernels::chunked_sum` with one decay per channel and keys 1 − α, plus the self-augmentation token by token.

use super::{AUGMENTATION, Augmentation, LOG_DECAY, MetaLinearAttention, QUERY, VALUE};
use crate::kernels::chunked_sum::{ChunkedSum, Rows, Slopes};
use crate::kernels::decay_per_channel::PerChannel;
use crate::kernels::slices::{add_scaled, dot, multiply_into};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

impl MetaLinearAttention {
    /// 1 − α.
    fn keys<T: Real>(given: &Given<'_, T>) -> Vec<T> {
        given.tokens[LOG_DECAY].iter().map(|log_decay| -log_decay.exp_m1()).collect()
    }

    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, key: &'a [T]) -> ChunkedSum<'a, T> {
        let rows = Rows {
            key_width: self.key_width,
            value_width: self.value_width,
            query: given.tokens[QUERY],
            key,
            value: given.tokens[VALUE],
            gates: given.tokens[LOG_DECAY],
        };
        ChunkedSum { rows, scale: T::constant(self.scale()) }
    }
}

/// e^{−|own v|} for every value: σ is 1/(1 + e) or e/(1 + e), and its derivative e/(1 + e)² on both sides.
fn exponentials_of_magnitudes<T: Real>(to: &mut [T], own: T, values: &[T]) {
    to.iter_mut().zip(values).for_each(|(e, &v)| *e = -(own * v).magnitude());
    T::exponentials(to);
}

/// Keeps the keys, then what the sum itself keeps.
impl<T: Real> Chunked<T> for MetaLinearAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let mut key = Self::keys(given);
        let mut saved = self.sum(given, &key).forward::<PerChannel<T>>(&mut state.numbers, outputs);
        if self.augmentation == Augmentation::SelfAttending {
            let mut augmented = vec![T::zero(); self.key_width];
            let mut exponentials = vec![T::zero(); self.value_width];
            let rows = outputs.chunks_exact_mut(self.value_width).zip(key.chunks_exact(self.key_width));
            for (t, (output, key)) in rows.enumerate() {
                multiply_into(&mut augmented, key, given.parameters[AUGMENTATION]);
                let own = dot(given.row(QUERY, t), &augmented);
                exponentials_of_magnitudes(&mut exponentials, own, given.row(VALUE, t));
                for ((entry, &v), &e) in output.iter_mut().zip(given.row(VALUE, t)).zip(&exponentials) {
                    let upper = if own * v >= T::zero() { T::one() } else { e };
                    *entry += upper / (T::one() + e);
                }
            }
        }
        key.append(&mut saved);
        Saved(key)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let mut numbers = state_slopes.numbers.clone();
        let [query, value, log_decay] = ports(&mut gradient.tokens);
        let (keys, values) = (self.key_width, self.value_width);
        let (key, saved) = saved.split_at(query.len());
        let mut key_slopes = vec![T::zero(); key.len()];
        self.sum(given, key).backward::<PerChannel<T>>(
            saved,
            output_slopes,
            &mut numbers,
            &mut Slopes { query, key: &mut key_slopes, value, gates: log_decay },
        );
        if self.augmentation == Augmentation::SelfAttending {
            let parameter = given.parameters[AUGMENTATION];
            let mut product = vec![T::zero(); keys];
            let mut exponentials = vec![T::zero(); values];
            for t in 0..given.length {
                let (of_keys, of_values) = (t * keys..(t + 1) * keys, t * values..(t + 1) * values);
                let key = &key[of_keys.clone()];
                multiply_into(&mut product, key, parameter);
                let own = dot(given.row(QUERY, t), &product);
                let mut own_slope = T::zero();
                exponentials_of_magnitudes(&mut exponentials, own, given.row(VALUE, t));
                let parts = output_slopes[of_values.clone()].iter().zip(given.row(VALUE, t));
                let parts = parts.zip(&exponentials);
                for (slope, ((&output_slope, &v), &e)) in value[of_values].iter_mut().zip(parts) {
                    let through = output_slope * e / ((T::one() + e) * (T::one() + e));
                    own_slope += through * v;
                    *slope += through * own;
                }
                add_scaled(&mut query[of_keys.clone()], own_slope, &product);
                multiply_into(&mut product, given.row(QUERY, t), parameter);
                add_scaled(&mut key_slopes[of_keys], own_slope, &product);
                multiply_into(&mut product, given.row(QUERY, t), key);
                add_scaled(&mut gradient.parameters[AUGMENTATION], own_slope, &product);
            }
        }
        // The derivative of 1 − e^g is −e^g.
        let mut decays = given.tokens[LOG_DECAY].to_vec();
        T::exponentials(&mut decays);
        for ((slope, &key_slope), &decay) in log_decay.iter_mut().zip(&key_slopes).zip(&decays) {
            *slope -= key_slope * decay;
        }
        State { seen: initial.seen, numbers }
    }
}
