//! Several heads that read the same tokens; their outputs add.

use super::{Attention, Gradient};
use crate::error::Result;
use crate::measure::Measure;
use crate::numerics::{check, linalg};
use std::sync::Arc;

/// Σₕ Tₕ: heads of any kind with equal dimensions, output projections folded into their value matrices.
///
/// Not an [`Attention`] itself: that promises one U and one V to differentiate in, and a sum has a pair per head.
/// [`Heads::gradients`] gives them all.
///
/// ```
/// use esscher_core::attention::{Attention, Heads, Softmax};
/// use esscher_core::measure::Rademacher;
/// use esscher_core::mat;
/// use std::sync::Arc;
/// let head = |score: f64, value: f64| -> esscher_core::Result<Arc<dyn Attention>> {
///     Ok(Arc::new(Softmax::new(mat![[score]].as_ref(), mat![[value]].as_ref())?))
/// };
/// // Two opposite heads: tanh(z)/2 − tanh(−z)/2.
/// let pair = Heads::new(vec![head(1.0, 0.5)?, head(-1.0, -0.5)?])?;
/// assert_eq!(pair.attend(&Rademacher::new(1)?, &[2.0])?, [2f64.tanh()]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Heads {
    heads: Vec<Arc<dyn Attention>>,
}

impl Heads {
    /// The sum of these heads; at least one, all with the same dimensions.
    pub fn new(heads: Vec<Arc<dyn Attention>>) -> Result<Self> {
        check::not_empty("the list of heads", heads.len())?;
        for head in &heads {
            check::size("a head (query dimension)", heads[0].query_dimension(), head.query_dimension())?;
            check::size("a head (token dimension)", heads[0].token_dimension(), head.token_dimension())?;
            check::size("a head (output dimension)", heads[0].output_dimension(), head.output_dimension())?;
        }
        Ok(Heads { heads })
    }

    /// The heads, in order.
    pub fn heads(&self) -> &[Arc<dyn Attention>] {
        &self.heads
    }

    /// The sum of the outputs.
    pub fn attend(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<f64>> {
        let mut output = vec![0.0; self.heads[0].output_dimension()];
        for head in &self.heads {
            linalg::add_scaled(&mut output, 1.0, &head.attend(tokens, query)?);
        }
        check::finite_result("the output of the heads", output)
    }

    /// The gradient of each head, in order: each head has its own U and V.
    pub fn gradients(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<Gradient>> {
        self.heads.iter().map(|head| head.gradient(tokens, query)).collect()
    }
}
