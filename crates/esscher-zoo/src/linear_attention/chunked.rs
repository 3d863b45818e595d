//! The fast form: features of all tokens, the sums of `kernels::linear_sum`, and the division by η.

use super::{GUARD, KEY, LinearAttention, Normaliser, QUERY, VALUE};
use crate::feature_maps::FeatureMap;
use crate::kernels::chunked_sum::{Rows, Slopes};
use crate::kernels::linear_sum::{LinearSum, Sums};
use crate::mechanism::{Chunked, Given, Gradient, Order, Pass, Saved, State, ports};
use crate::number::Real;

impl<M: FeatureMap> LinearAttention<M> {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, query: &'a [T], key: &'a [T]) -> LinearSum<'a, T> {
        let (key_width, value_width) = (self.map.feature_width(), self.value_width);
        let rows = Rows { key_width, value_width, query, key, value: given.tokens[VALUE], gates: &[] };
        LinearSum { rows, order: self.order }
    }

    /// η of every token, given the totals φ(q)·z and the number of tokens before the sequence.
    fn divisor<T: Real>(&self, total: T, before: usize, token: usize, length: usize) -> T {
        match (self.normaliser, self.order) {
            (Normaliser::Sum, _) => total.larger(T::constant(GUARD)),
            (Normaliser::Count, Order::Causal) => T::constant((before + token + 1) as f64),
            (Normaliser::Count, Order::Whole) => T::constant((before + length) as f64),
            (Normaliser::None, _) => T::one(),
        }
    }
}

impl<T: Real, M: FeatureMap> Chunked<T> for LinearAttention<M> {
    /// Keeps the features of queries and keys, the totals, and the sums at chunk borders.
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        let mut saved = self.map.apply_rows(given.tokens[QUERY], given.parameters);
        let key = self.map.apply_rows(given.tokens[KEY], given.parameters);
        let mut totals = vec![T::zero(); given.length];
        // Where η needs no z it is not in the state, and its sums from here on go nowhere.
        let mut nowhere = vec![T::zero(); self.map.feature_width() - self.key_sums()];
        let (products, key_sums) = state.numbers.split_at_mut(self.map.feature_width() * self.value_width);
        let keys = if nowhere.is_empty() { key_sums } else { &mut nowhere[..] };
        let borders =
            self.sum(given, &saved, &key).forward(&mut Sums { products, keys }, outputs, &mut totals);
        for (t, output) in outputs.chunks_exact_mut(self.value_width).enumerate() {
            let share = T::one() / self.divisor(totals[t], state.seen, t, given.length);
            output.iter_mut().for_each(|entry| *entry *= share);
        }
        state.seen += given.length;
        [key, totals, borders].iter().for_each(|part| saved.extend_from_slice(part));
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, outputs, saved, output_slopes, state_slopes } = *pass;
        let features = self.map.feature_width();
        let (query, rest) = saved.split_at(given.length * features);
        let (key, rest) = rest.split_at(given.length * features);
        let (totals, borders) = rest.split_at(given.length);

        let mut numerator_slopes = output_slopes.to_vec();
        let mut total_slopes = vec![T::zero(); given.length];
        for (t, slopes) in numerator_slopes.chunks_exact_mut(self.value_width).enumerate() {
            let share = T::one() / self.divisor(totals[t], initial.seen, t, given.length);
            if self.normaliser == Normaliser::Sum && totals[t] >= T::constant(GUARD) {
                let output = &outputs[t * self.value_width..(t + 1) * self.value_width];
                let along = slopes.iter().zip(output).fold(T::zero(), |sum, (&slope, &o)| sum + slope * o);
                total_slopes[t] = -along * share;
            }
            slopes.iter_mut().for_each(|slope| *slope *= share);
        }

        let mut numbers = state_slopes.numbers.clone();
        let mut nowhere = vec![T::zero(); features - self.key_sums()];
        let (products, key_sums) = numbers.split_at_mut(features * self.value_width);
        let keys = if nowhere.is_empty() { key_sums } else { &mut nowhere[..] };
        let mut query_slopes = vec![T::zero(); query.len()];
        let mut key_slopes = vec![T::zero(); key.len()];
        let [to_query, to_key, to_value] = ports(&mut gradient.tokens);
        self.sum(given, query, key).backward(
            borders,
            &numerator_slopes,
            &total_slopes,
            &mut Sums { products, keys },
            &mut Slopes { query: &mut query_slopes, key: &mut key_slopes, value: to_value, gates: &mut [] },
        );
        for (port, mapped, slopes, to) in
            [(QUERY, query, &query_slopes, to_query), (KEY, key, &key_slopes, to_key)]
        {
            self.map.backward_rows(
                given.tokens[port],
                given.parameters,
                mapped,
                slopes,
                to,
                &mut gradient.parameters,
            );
        }
        State { seen: initial.seen, numbers }
    }
}
