//! Any text: read as a specification it gives a mistake or a plan, never a panic, and its normal form is stable.
#![no_main]

use esscher_questions::{Planned, Settings};
use esscher_lab::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let settings = Settings::default();
    if let Ok(planned) = Planned::read("fuzzed.toml", text, settings) {
        assert!(!planned.units().is_empty(), "a plan without work");
        let again = Planned::read("normalised.toml", planned.specification(), settings);
        let again = again.unwrap_or_else(|mistake| panic!("the normal form is refused: {mistake}"));
        assert_eq!(again.specification(), planned.specification());
    }
});
