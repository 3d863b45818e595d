//! Tells a door which commit it is built from, where there is one: a checkout asks git, a published crate its own record.
//! The Python module uses this file as well.

use std::process::Command;

pub(crate) fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = published().or_else(checked_out).unwrap_or_default();
    println!("cargo:rustc-env=ESSCHER_COMMIT={}", &commit[..commit.len().min(12)]);
}

/// The commit in the file that cargo lays into every package: `{"git": {"sha1": "…"}, …}`.
fn published() -> Option<String> {
    let record = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let sum = record.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    sum.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| sum.to_string())
}

/// The commit of the repository that this file belongs to; sources unpacked inside another repository have none.
fn checked_out() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // The log of HEAD changes with every commit and checkout.
    println!("cargo:rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}
