//! Every form of every mechanism agrees with its reference, in outputs, final states and gradients.

mod common;

use common::check_all;
use esscher_zoo::gated_linear_attention::GatedLinearAttention;

#[test]
fn gated_linear_attention_agrees() {
    check_all(&GatedLinearAttention { key_width: 3, value_width: 5 });
    check_all(&GatedLinearAttention { key_width: 9, value_width: 1 });
}
