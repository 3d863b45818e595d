//! The recurrence: add φ(k) vᵀ to S and φ(k) to z; answer with Sᵀ φ(q) / η.

use super::{GUARD, KEY, LinearAttention, Normaliser, QUERY, VALUE, reference};
use crate::feature_maps::FeatureMap;
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number, M: FeatureMap> Definition<N> for LinearAttention<M> {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        let size = self.map.feature_width() * self.value_width + self.key_sums();
        State { seen: 0, numbers: vec![N::zero(); size] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let key = self.map.apply_rows(token.tokens[KEY], token.parameters);
        let (products, key_sums) = state.numbers.split_at_mut(key.len() * self.value_width);
        for (&k, row) in key.iter().zip(products.chunks_exact_mut(self.value_width)) {
            row.iter_mut().zip(token.tokens[VALUE]).for_each(|(entry, &v)| *entry += k * v);
        }
        key_sums.iter_mut().zip(&key).for_each(|(sum, &k)| *sum += k);
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        let query = self.map.apply_rows(token.tokens[QUERY], token.parameters);
        let (products, key_sums) = state.numbers.split_at(query.len() * self.value_width);
        let divisor = match self.normaliser {
            Normaliser::Sum => query
                .iter()
                .zip(key_sums)
                .fold(N::zero(), |sum, (&q, &z)| sum + q * z)
                .larger(N::constant(GUARD)),
            Normaliser::Count => N::constant(state.seen as f64),
            Normaliser::None => N::one(),
        };
        output.fill(N::zero());
        for (&q, row) in query.iter().zip(products.chunks_exact(self.value_width)) {
            output.iter_mut().zip(row).for_each(|(entry, &s)| *entry += q * s);
        }
        output.iter_mut().for_each(|entry| *entry = *entry / divisor);
    }
}
