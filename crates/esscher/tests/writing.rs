//! What the binary may write over: reports and nothing else, and no run shares its folder with another.
#![cfg(unix)]

mod common;

use common::{esscher, refuse, run, succeed, texts};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A run of milliseconds.
const LINEARITY: &str = "kind = \"linearity\"\nradii = [1]\ndirections = 4\ntokens = \"gaussian:2\"\n";

fn finished() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for name in ["ok", "other"] {
        fs::write(place.path().join(format!("{name}.toml")), LINEARITY).unwrap();
        succeed(place.path(), &["run", &format!("{name}.toml"), "--quiet"]);
    }
    place
}

/// Every visible file below a folder with its bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in common::files(&folder) {
            match path.is_dir() {
                true => folders.push(path),
                false => all.push((path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn a_report_is_written_into_pipes_and_devices_and_behind_links() {
    let place = finished();
    let folder = place.path();
    assert!(Command::new("mkfifo").arg(folder.join("fifo")).status().unwrap().success());
    let told = refuse(folder, &["report", "runs/ok", "--out", "fifo"], 1);
    assert!(told.contains("a pipe that nobody reads"), "{told}");
    // Into a file: nobody would empty a pipe while the test waits.
    let read = fs::File::create(folder.join("read.html")).unwrap();
    let mut reader = Command::new("cat").arg("fifo").current_dir(folder).stdout(read).spawn().unwrap();
    // The reader needs a moment to come.
    let began = Instant::now();
    loop {
        let tried = run(folder, &["report", "runs/ok", "--out", "fifo"]);
        if tried.status.success() {
            break;
        }
        let told = String::from_utf8_lossy(&tried.stderr);
        assert!(began.elapsed() < Duration::from_secs(60), "{told}");
    }
    assert!(reader.wait().unwrap().success());
    assert!(fs::read(folder.join("read.html")).unwrap().starts_with(b"<!DOCTYPE html>"));
    assert!(fs::metadata(folder.join("fifo")).unwrap().file_type().is_fifo());

    // On standard output nothing stands behind it.
    for json in [&[][..], &["--json"]] {
        let page = succeed(folder, &[&["report", "runs/ok", "--out", "/dev/stdout"], json].concat());
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    }

    symlink("/dev/null", folder.join("null")).unwrap();
    succeed(folder, &["report", "runs/ok", "--out", "null"]);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    symlink("page.html", folder.join("link.html")).unwrap();
    for _ in 0..2 {
        succeed(folder, &["report", "runs/ok", "--out", "link.html"]);
    }
    assert!(fs::symlink_metadata(folder.join("link.html")).unwrap().is_symlink());
    assert!(fs::read(folder.join("page.html")).unwrap().starts_with(b"<!DOCTYPE html>"));
}

#[test]
fn a_report_replaces_no_file_of_a_run() {
    let place = finished();
    let folder = place.path();
    let before = contents(folder);
    let shard = common::files(&folder.join("runs/ok/shards")).remove(0);
    let shard = format!("runs/ok/shards/{}", shard.file_name().unwrap().to_str().unwrap());
    for target in
        ["runs/ok/result.parquet", "runs/ok/spec.toml", &shard, "runs/other/report.html", "runs/ok/new.html"]
    {
        for force in [&[][..], &["--force"]] {
            let told = refuse(folder, &[&["report", "runs/ok", "--out", target], force].concat(), 1);
            assert!(told.contains("it would be a file of the run in"), "{told}");
        }
    }
    assert_eq!(contents(folder), before);
    succeed(folder, &["report", "runs/ok", "--out", "runs/ok/report.html"]);
}

#[test]
fn a_report_replaces_a_file_of_somebody_else_only_by_force() {
    let place = finished();
    let folder = place.path();
    for name in ["mine.toml", "comparison.html"] {
        fs::write(folder.join(name), "mine").unwrap();
    }
    for arguments in [&["report", "runs/ok", "--out", "mine.toml"][..], &["report", "runs/ok", "runs/other"]]
    {
        let told = refuse(folder, arguments, 1);
        assert!(told.contains("a file that Esscher did not write") && told.contains("hint: "), "{told}");
    }
    assert_eq!(fs::read(folder.join("comparison.html")).unwrap(), b"mine");
    succeed(folder, &["report", "runs/ok", "runs/other", "--force"]);
    // Now it is ours.
    succeed(folder, &["report", "runs/ok", "runs/other"]);
    assert_eq!(fs::read(folder.join("mine.toml")).unwrap(), b"mine");
}

#[test]
fn a_reproduction_and_a_run_never_share_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("reproduce.toml"), LINEARITY).unwrap();
    let told = refuse(folder, &["run", "reproduce.toml"], 2);
    assert!(told.contains("no run can be named after this file"), "{told}");
    fs::create_dir_all(folder.join("r9/reproduce")).unwrap();
    fs::write(folder.join("r9/reproduce/report.html"), "mine").unwrap();
    let told = refuse(folder, &["reproduce", "--only", "gaussian-lemma", "--out", "r9"], 1);
    assert!(told.contains("r9/reproduce/report.html"), "{told}");
    assert_eq!(fs::read(folder.join("r9/reproduce/report.html")).unwrap(), b"mine");
}

#[test]
fn a_reproduction_says_which_folders_hold_something_else() {
    let place = finished();
    let folder = place.path();
    fs::create_dir_all(folder.join("runs/reproduce")).unwrap();
    fs::rename(folder.join("runs/ok"), folder.join("runs/reproduce/almost-sure")).unwrap();
    let told = succeed(folder, &["reproduce", "--only", "gaussian-lemma", "--json"]);
    assert!(told.contains("\"left_out\":[\"almost-sure\"]"), "{told}");
    let page = fs::read_to_string(folder.join("runs/reproduce/report.html")).unwrap();
    assert!(page.contains("Left out, because their folders hold runs of another specification"));
    let told = succeed(folder, &["reproduce", "--only", "gaussian-lemma"]);
    assert!(told.contains("question): almost-sure."), "{told}");
}

#[test]
fn files_whose_names_look_alike_do_not_share_a_run() {
    let place = tempfile::tempdir().unwrap();
    for byte in [b"bad\xfe.toml", b"bad\xff.toml"] {
        let name = OsStr::from_bytes(byte);
        fs::write(place.path().join(name), LINEARITY).unwrap();
        let output = esscher(place.path(), &["run"]).arg(name).output().unwrap();
        let told = texts(&output).1;
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("no run can be named after this file"), "{told}");
    }
    assert!(!place.path().join("runs").exists());
}

#[test]
fn a_missing_shard_is_told_with_a_command_that_helps() {
    let place = tempfile::tempdir().unwrap();
    common::write_experiment(place.path());
    succeed(place.path(), &["shard", "paths.toml", "0/2", "--quiet"]);
    let told = refuse(place.path(), &["merge", "runs/paths.shard-0-of-2"], 1);
    assert!(told.contains("run the shards that are missing, and merge all of them again"), "{told}");
    // Which it does.
    succeed(place.path(), &["shard", "paths.toml", "1/2", "--quiet"]);
    succeed(place.path(), &["merge", "runs/paths.shard-0-of-2", "runs/paths.shard-1-of-2"]);
}

#[test]
fn a_pipe_is_no_specification() {
    let place = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(place.path().join("ff")).status().unwrap().success());
    for command in ["run", "ask"] {
        let told = refuse(place.path(), &[command, "ff"], 2);
        assert!(told.contains("it is a pipe, expected a file"), "{told}");
    }
}
