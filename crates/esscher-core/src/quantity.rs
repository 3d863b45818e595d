//! What of a finite prompt is compared with its limit: the output and its two gradients, always in this order.

use std::ops::{Index, IndexMut};

/// Whose error is measured: that of the output or of one of its two gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// E |T_L − T|².
    Output,
    /// E ‖∂T_L/∂U − ∂T/∂U‖²_F.
    ScoreGradient,
    /// E ‖∂T_L/∂V − ∂T/∂V‖²_F: the error of the attended token, once per row of V.
    ValueGradient,
}

impl Quantity {
    /// All quantities, in the order of tables.
    pub const ALL: [Quantity; 3] = [Quantity::Output, Quantity::ScoreGradient, Quantity::ValueGradient];

    /// The word under which tables, documents and every door know the quantity.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Output => "output",
            Quantity::ScoreGradient => "score-gradient",
            Quantity::ValueGradient => "value-gradient",
        }
    }

    /// The quantity of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Quantity::ALL.into_iter().find(|quantity| quantity.name() == name)
    }
}

/// One value for each [`Quantity`].
///
/// ```
/// use esscher_core::{PerQuantity, Quantity};
/// let errors = PerQuantity { output: 1.0, score_gradient: 4.0, value_gradient: 9.0 };
/// assert_eq!(errors.map(f64::sqrt)[Quantity::ScoreGradient], 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerQuantity<T> {
    /// For the output.
    pub output: T,
    /// For the gradient in the score matrix U.
    pub score_gradient: T,
    /// For the gradient in the value matrix V.
    pub value_gradient: T,
}

impl<T> PerQuantity<T> {
    /// What `value` says of each quantity.
    pub fn from_fn(mut value: impl FnMut(Quantity) -> T) -> Self {
        PerQuantity {
            output: value(Quantity::Output),
            score_gradient: value(Quantity::ScoreGradient),
            value_gradient: value(Quantity::ValueGradient),
        }
    }

    /// The same where saying it may fail.
    pub fn try_from_fn<E>(mut value: impl FnMut(Quantity) -> Result<T, E>) -> Result<Self, E> {
        Ok(PerQuantity {
            output: value(Quantity::Output)?,
            score_gradient: value(Quantity::ScoreGradient)?,
            value_gradient: value(Quantity::ValueGradient)?,
        })
    }

    /// Each value, changed.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> PerQuantity<U> {
        PerQuantity {
            output: change(self.output),
            score_gradient: change(self.score_gradient),
            value_gradient: change(self.value_gradient),
        }
    }
}

impl<T> Index<Quantity> for PerQuantity<T> {
    type Output = T;

    fn index(&self, quantity: Quantity) -> &T {
        match quantity {
            Quantity::Output => &self.output,
            Quantity::ScoreGradient => &self.score_gradient,
            Quantity::ValueGradient => &self.value_gradient,
        }
    }
}

impl<T> IndexMut<Quantity> for PerQuantity<T> {
    fn index_mut(&mut self, quantity: Quantity) -> &mut T {
        match quantity {
            Quantity::Output => &mut self.output,
            Quantity::ScoreGradient => &mut self.score_gradient,
            Quantity::ValueGradient => &mut self.value_gradient,
        }
    }
}
