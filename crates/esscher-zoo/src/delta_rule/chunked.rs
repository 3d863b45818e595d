//! The fast form: the sum of `kernels::corrected_sum` over queries and keys of unit length.

use super::recurrent::normalise;
use super::{BETA, DeltaRule, KEY, QUERY, VALUE};
use crate::kernels::chunked_sum::{Rows, Slopes};
use crate::kernels::corrected_sum::CorrectedSum;
use crate::kernels::slices::{add_scaled, dot};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

/// Rows of unit length and what they were multiplied by.
struct Units<T> {
    width: usize,
    rows: Vec<T>,
    inverse_lengths: Vec<T>,
}

impl<T: Real> Units<T> {
    fn new(rows: &[T], width: usize) -> Self {
        let mut units = vec![T::zero(); rows.len()];
        let pairs = units.chunks_exact_mut(width).zip(rows.chunks_exact(width));
        let inverse_lengths = pairs.map(|(unit, row)| normalise(unit, row)).collect();
        Units { width, rows: units, inverse_lengths }
    }

    /// Adds dx = (dx̂ − x̂ (x̂·dx̂))/√(|x|² + ε).
    fn backward(&self, unit_slopes: &[T], slopes: &mut [T]) {
        let rows = self.rows.chunks_exact(self.width).zip(unit_slopes.chunks_exact(self.width));
        let rows = rows.zip(slopes.chunks_exact_mut(self.width));
        for (((unit, unit_slope), slope), &inverse) in rows.zip(&self.inverse_lengths) {
            add_scaled(slope, inverse, unit_slope);
            add_scaled(slope, -(inverse * dot(unit, unit_slope)), unit);
        }
    }
}

impl DeltaRule {
    fn sum<'a, T: Real>(
        &self,
        given: &Given<'a, T>,
        query: &'a Units<T>,
        key: &'a Units<T>,
    ) -> CorrectedSum<'a, T> {
        CorrectedSum(Rows {
            key_width: self.key_width,
            value_width: self.value_width,
            query: &query.rows,
            key: &key.rows,
            value: given.tokens[VALUE],
            gates: given.tokens[BETA],
        })
    }
}

impl<T: Real> Chunked<T> for DeltaRule {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let query = Units::new(given.tokens[QUERY], self.key_width);
        let key = Units::new(given.tokens[KEY], self.key_width);
        Saved(self.sum(given, &query, &key).forward(&mut state.numbers, outputs))
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let mut numbers = state_slopes.numbers.clone();
        let [query_slopes, key_slopes, value, beta] = ports(&mut gradient.tokens);
        let query = Units::new(given.tokens[QUERY], self.key_width);
        let key = Units::new(given.tokens[KEY], self.key_width);
        let mut of_query = vec![T::zero(); query_slopes.len()];
        let mut of_key = vec![T::zero(); key_slopes.len()];
        self.sum(given, &query, &key).backward(
            saved,
            output_slopes,
            &mut numbers,
            &mut Slopes { query: &mut of_query, key: &mut of_key, value, gates: beta },
        );
        query.backward(&of_query, query_slopes);
        key.backward(&of_key, key_slopes);
        State { seen: initial.seen, numbers }
    }
}
