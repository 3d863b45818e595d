//! Memories that decay, are normalised or are corrected: all forms agree, and what their definitions promise holds.

mod common;

use common::check_all;
use esscher_zoo::ssd::StateSpaceDuality;

#[test]
fn state_space_duality_agrees() {
    check_all(&StateSpaceDuality { key_width: 3, value_width: 5 });
    check_all(&StateSpaceDuality { key_width: 9, value_width: 1 });
}
