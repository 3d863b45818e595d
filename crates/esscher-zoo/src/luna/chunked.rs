//! The fast form: that of linear attention with LUNA's feature map.

use super::Luna;
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State};
use crate::number::Real;

impl<T: Real> Chunked<T> for Luna {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        self.linear_attention().forward(given, state, outputs)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        self.linear_attention().backward(pass, gradient)
    }
}
