//! The real binary, run as a user runs it.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command of the real binary in this folder.
pub fn esscher(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esscher"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    esscher(folder, arguments).output().expect("the binary starts")
}

/// Runs it and expects success; what it printed.
pub fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let (printed, told) = texts(&output);
    assert!(output.status.success(), "{arguments:?} ended with {}: {told}", output.status);
    printed
}

/// Runs it and expects this exit code; what it said on standard error, which is a line and perhaps a hint.
pub fn refuse(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(folder, arguments);
    let (printed, told) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}{told}");
    assert!(!told.contains("panicked"), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let readable = lines.first().is_some_and(|line| line.starts_with("error: "))
        && lines.len() <= 2
        && lines.get(1).is_none_or(|line| line.starts_with("hint: "));
    assert!(readable, "one line and perhaps a hint: {told}");
    told
}

pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The files that must be byte-identical, however a run came about.
pub fn identity(run: &Path) -> (Vec<u8>, Vec<u8>) {
    let read = |name: &str| {
        fs::read(run.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", run.display()))
    };
    (read("spec.toml"), read("result.parquet"))
}

/// The visible files of a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
        .unwrap_or_default();
    found.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    found.sort();
    found
}

/// Whether the long form of the tests was asked for: ESSCHER_LONG_TESTS=1.
pub fn long() -> bool {
    std::env::var_os("ESSCHER_LONG_TESTS").is_some()
}

/// An experiment of some seconds in about fifty units, exact and simulated.
pub const EXPERIMENT: &str = r#"kind = "path"
seed = 7
prompts = 12
lengths = { from = 10, to = 1e5, per_decade = 2 }
queries = [[1.0, 0.0], [0.6, -0.8]]

[[law]]
name = "normal"
family = "gaussian"
dimension = 2

[[law]]
name = "signs"
family = "rademacher"
dimension = 2

[[law]]
name = "cube"
family = "cube"
dimension = 2
scale = 2.0

[[law]]
name = "sphere"
family = "sphere"
dimension = 2
"#;

/// Writes the experiment into the folder.
pub fn write_experiment(folder: &Path) {
    fs::write(folder.join("paths.toml"), EXPERIMENT).expect("the folder can be written");
}

/// A .npy file of version 1 with this type and these bytes, as NumPy writes it.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

pub fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
