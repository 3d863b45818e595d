//! The fast form: that of linear attention with LUNA's feature map.

use super::Luna;
use crate::mechanism::{Chunked, Given, Gradient, Saved, State};
use crate::number::Real;

impl<T: Real> Chunked<T> for Luna {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        self.linear_attention().forward(given, state, outputs)
    }

    fn backward(
        &self,
        given: &Given<'_, T>,
        initial: &State<T>,
        outputs: &[T],
        saved: &Saved<T>,
        output_slopes: &[T],
        state_slopes: &State<T>,
        gradient: &mut Gradient<T>,
    ) -> State<T> {
        self.linear_attention().backward(
            given,
            initial,
            outputs,
            saved,
            output_slopes,
            state_slopes,
            gradient,
        )
    }
}
