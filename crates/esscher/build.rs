//! Tells the program which commit it is built from.

include!("../esscher-lab/commit.rs");
