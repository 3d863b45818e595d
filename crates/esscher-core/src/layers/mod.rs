//! Gaussian measures flowing through residual attention layers (Castin, Ablin, Carrillo and Peyré 2025).
//!
//! A residual layer moves every token by the attention of its own law, dx/dt = T\[μ\](x). At a Gaussian
//! μ = N(m, S) each of the four attentions is affine in x, T\[μ\](x) = b + Bx, so Gaussians stay
//! Gaussian and the whole flow of measures is a flow of means and covariances,
//!
//! dm/dt = b + Bm,  dS/dt = BS + SBᵀ.
//!
//! [`Layer`] holds the matrices and gives (b, B) as an [`AffineForm`], from which all the rest follows:
//! [`Layer::velocity`], the discrete [`Layer::step`] and [`depth`], and the continuous [`flow()`].
//! [`exact_softmax_flow`] is the closed form for V = I, against which the flow is tested.
//!
//! # Laws
//! - b + Bx is the mean of V y under the attention weights of the query x; at an atom S = 0 it is Vm
//!   for softmax, L2 and Sinkhorn attention;
//! - softmax and linear attention agree at m = 0;
//! - the rank of S never changes in finite time: S(t) = X(t) S(0) X(t)ᵀ with X invertible. A covariance
//!   collapses to lower rank only in the limit, so the collapse that [`flow()`] reports is the passing of
//!   a stated threshold.

mod depth;
mod exact;
mod flow;
mod layer;

pub use depth::depth;
pub use exact::{ExactFlow, exact_softmax_flow};
pub use flow::{AtCollapse, Collapse, Flow, FlowOptions, flow};
pub use layer::{AffineForm, Layer, LayerKind, Velocity};
