//! The fast form: the sums of `kernels::linear_sum`, and o_t = (s/N) numerator + (1 − (s/N) total)(1/N) Σ v.

use super::{Inline, KEY, QUERY, VALUE};
use crate::kernels::chunked_sum::{Rows, Slopes};
use crate::kernels::linear_sum::{LinearSum, Sums};
use crate::mechanism::{Chunked, Given, Gradient, Order, Pass, Saved, State, ports};
use crate::number::Real;

impl Inline {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, query: &'a [T], key: &'a [T]) -> LinearSum<'a, T> {
        let (key_width, value_width) = (self.key_width, self.value_width);
        let rows = Rows { key_width, value_width, query, key, value: given.tokens[VALUE], gates: &[] };
        LinearSum { rows, order: self.order }
    }

    /// Calls `visit` with every token, the number of tokens that it sees, and their Σ v; moves `value_sums` behind the last.
    fn with_value_sums<T: Real>(
        &self,
        given: &Given<'_, T>,
        before: usize,
        value_sums: &mut [T],
        mut visit: impl FnMut(usize, T, &[T]),
    ) {
        let absorb = |token: usize, sums: &mut [T]| {
            sums.iter_mut().zip(given.row(VALUE, token)).for_each(|(sum, &v)| *sum += v);
        };
        if self.order == Order::Whole {
            (0..given.length).for_each(|token| absorb(token, value_sums));
        }
        for token in 0..given.length {
            let mut count = before + given.length;
            if self.order == Order::Causal {
                absorb(token, value_sums);
                count = before + token + 1;
            }
            visit(token, T::constant(count as f64), value_sums);
        }
    }
}

impl<T: Real> Chunked<T> for Inline {
    /// Keeps φ of queries and keys, the totals, and the sums at chunk borders.
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        let mut saved = self.map(given.tokens[QUERY]);
        let key = self.map(given.tokens[KEY]);
        let mut totals = vec![T::zero(); given.length];
        let (products, keys, value_sums) = self.parts(&mut state.numbers);
        let borders =
            self.sum(given, &saved, &key).forward(&mut Sums { products, keys }, outputs, &mut totals);
        let scale = T::constant(self.scale());
        self.with_value_sums(given, state.seen, value_sums, |t, count, value_sums| {
            let factor = scale / count;
            let rest = (T::one() - factor * totals[t]) / count;
            let output = &mut outputs[t * self.value_width..(t + 1) * self.value_width];
            output.iter_mut().zip(value_sums).for_each(|(entry, &v)| *entry = factor * *entry + rest * v);
        });
        state.seen += given.length;
        [key, totals, borders].iter().for_each(|part| saved.extend_from_slice(part));
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let values = self.value_width;
        let (query, rest) = saved.split_at(given.length * self.key_width);
        let (key, rest) = rest.split_at(given.length * self.key_width);
        let (totals, borders) = rest.split_at(given.length);
        let [to_query, to_key, to_value] = ports(&mut gradient.tokens);
        let mut numbers = state_slopes.numbers.clone();
        let (products, keys, value_sum_slopes) = self.parts(&mut numbers);

        let scale = T::constant(self.scale());
        let mut numerator_slopes = output_slopes.to_vec();
        let mut total_slopes = vec![T::zero(); given.length];
        // Of every token, the derivative in the Σ v that it read.
        let mut read_slopes = output_slopes.to_vec();
        let mut initial_state = initial.numbers.clone();
        let (_, _, value_sums) = self.parts(&mut initial_state);
        self.with_value_sums(given, initial.seen, value_sums, |t, count, value_sums| {
            let factor = scale / count;
            let rest = (T::one() - factor * totals[t]) / count;
            let row = t * values..(t + 1) * values;
            let along = output_slopes[row.clone()]
                .iter()
                .zip(value_sums)
                .fold(T::zero(), |sum, (&slope, &v)| sum + slope * v);
            total_slopes[t] = -along * factor / count;
            numerator_slopes[row.clone()].iter_mut().for_each(|slope| *slope *= factor);
            read_slopes[row].iter_mut().for_each(|slope| *slope *= rest);
        });
        // A token is in the sums of all that see it.
        let collect = |row: &[T], sums: &mut [T]| sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
        if self.order == Order::Whole {
            read_slopes.chunks_exact(values).for_each(|row| collect(row, value_sum_slopes));
        }
        for (to, row) in to_value.chunks_exact_mut(values).zip(read_slopes.chunks_exact(values)).rev() {
            if self.order == Order::Causal {
                collect(row, value_sum_slopes);
            }
            collect(value_sum_slopes, to);
        }

        let mut query_slopes = vec![T::zero(); query.len()];
        let mut key_slopes = vec![T::zero(); key.len()];
        self.sum(given, query, key).backward(
            borders,
            &numerator_slopes,
            &total_slopes,
            &mut Sums { products, keys },
            &mut Slopes { query: &mut query_slopes, key: &mut key_slopes, value: to_value, gates: &mut [] },
        );
        for (mapped, slopes, to) in [(query, &query_slopes, to_query), (key, &key_slopes, to_key)] {
            for ((to, &mapped), &slope) in to.iter_mut().zip(mapped).zip(slopes) {
                *to += self.kernel.slope(mapped) * slope;
            }
        }
        State { seen: initial.seen, numbers }
    }
}
