//! How far softmax attention on the infinite prompt is from a linear map of the query.

pub mod answer;
mod ask;
mod compute;
pub mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "linearity",
    title: "Is attention linear in the query?",
    summary: "How far attention on the infinite prompt is from the linear map of its mean and covariance, and from any affine map.",
    example: r#"kind = "linearity"
radii = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6]

[head]
score = 1.0
value = 1.0

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2
"#,
}
