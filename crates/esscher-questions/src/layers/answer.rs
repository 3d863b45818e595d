//! The answer: the law of the tokens on its way, and when it collapses or blows up.

use super::ask::Attention;
use crate::measured::Measured;
use esscher_core::Ending;
use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// An eigenvalue of the covariance, the largest first.
        Eigenvalue = "eigenvalue",
        /// An entry of the mean.
        Mean = "mean",
        /// When mean or covariance become infinite.
        BlowUpTime = "blow-up-time",
        /// When the covariance lost a direction and the flow ended.
        CollapseTime = "collapse-time",
        /// The rank of the covariance after a collapse.
        RankAfterCollapse = "rank-after-collapse",
        /// An eigenvalue of the covariance by the closed form.
        ClosedFormEigenvalue = "closed-form-eigenvalue",
        /// When the closed form becomes infinite.
        ClosedFormBlowUpTime = "closed-form-blow-up-time",
    }
}

rows! {
    /// A number about the law behind one kind of attention.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The attention of the layers.
        attention: Attention,
        /// Time of the flow, or layers times step size.
        time: f64,
        /// What the number is.
        quantity: Quantity,
        /// Of which eigenvalue or entry, from 1.
        index: Option<i64>,
        /// How the way through the layers ended.
        ending: Ending,
        /// The number.
        number: Measured,
    }
}
