//! A Gaussian measure through residual attention layers: continuous flow or a stack of layers.

pub mod answer;
mod ask;
mod compute;
mod describe;

pub use ask::{Ask, Attention};

crate::question::question! {
    name: "layers",
    title: "A Gaussian through residual layers",
    summary: "Mean and covariance of Gaussian tokens through residual softmax, linear, L2 or Sinkhorn attention.",
    example: r#"kind = "layers"
attentions = ["softmax", "linear", "l2", "sinkhorn"]
dimension = 2
score = [[0.3, 0.0], [0.0, -0.5]]
value = 1.0
end_time = 1.5
rows = 60

[start]
mean = [0.5, 0.0]
covariance = [[1.0, 0.3], [0.3, 0.5]]
"#,
}
