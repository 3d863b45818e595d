//! Any bytes as a checkpoint, as the tests of esscher-audit feed them.
#![no_main]

#[path = "../../crates/esscher-audit/tests/audit/any_bytes.rs"]
mod any_bytes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    any_bytes::feed(bytes);
});
