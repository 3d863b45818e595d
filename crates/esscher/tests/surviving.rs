//! Runs that are killed, starved and disturbed: the same command goes on, and ends with the bytes of an undisturbed run.
//!
//! Twelve kills by default, fifty with ESSCHER_LONG_TESTS=1.

mod common;

use common::{esscher, files, identity, long, refuse, succeed, texts, write_experiment};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder with the experiment, and an undisturbed run of it.
fn undisturbed() -> (tempfile::TempDir, (Vec<u8>, Vec<u8>), Duration) {
    let place = tempfile::tempdir().unwrap();
    write_experiment(place.path());
    let began = Instant::now();
    succeed(place.path(), &["run", "paths.toml", "--out", "undisturbed", "--quiet"]);
    let took = began.elapsed();
    let identity = identity(&place.path().join("undisturbed/paths"));
    (place, identity, took)
}

#[test]
fn killed_at_random_moments_it_ends_with_the_same_bytes() {
    let (place, expected, took) = undisturbed();
    let kills = if long() { 50 } else { 12 };
    // Moments are spread over the whole run by a fixed sequence (golden ratio), from the first file to the report.
    let mut interrupted = 0;
    for kill in 0..kills {
        let fraction = (f64::from(kill) * 0.618_033_988_75).fract();
        let out = format!("killed-{kill}");
        let arguments = ["run", "paths.toml", "--out", &out, "--quiet"];
        // Two kills in one life: the second hits a resumed run.
        for part in [fraction, 0.5 * fraction] {
            let mut child = esscher(place.path(), &arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(took.mul_f64(part));
            // SIGKILL on Unix: nothing can be tidied up.
            let _ = child.kill();
            let status = child.wait().unwrap();
            interrupted += i32::from(!status.success());
        }
        succeed(place.path(), &arguments);
        let run = place.path().join(&out).join("paths");
        assert!(identity(&run) == expected, "kill {kill} at {fraction:.3} of the run changed the bytes");
        assert!(run.join("report.html").exists());
        let left = fs::read_dir(run.join("shards")).unwrap().count();
        assert_eq!(left, files(&run.join("shards")).len(), "temporary files are swept");
    }
    println!("{interrupted} of {} processes were killed before they ended", 2 * kills);
    assert!(interrupted > kills, "the moments hit the run");
}

#[test]
fn a_second_process_is_told_that_the_folder_is_in_use() {
    let (place, expected, _) = undisturbed();
    let arguments = ["run", "paths.toml", "--out", "shared", "--quiet"];
    let mut first = esscher(place.path(), &arguments).stdout(Stdio::null()).spawn().unwrap();
    let lock = place.path().join("shared/paths/spec.toml");
    let began = Instant::now();
    while !lock.exists() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let told = refuse(place.path(), &arguments, 1);
    assert!(told.contains("shared/paths is in use by another process"), "{told}");
    assert!(first.wait().unwrap().success());
    assert_eq!(identity(&place.path().join("shared/paths")), expected);
}

#[test]
fn an_interrupt_leaves_a_run_that_goes_on() {
    let (place, expected, took) = undisturbed();
    let arguments = ["run", "paths.toml", "--out", "stopped", "--threads", "1"];
    let child =
        esscher(place.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(took.mul_f64(0.3));
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let output = child.wait_with_output().unwrap();
    let (printed, told) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{printed}{told}");
    assert!(printed.contains("the same command goes on from here"), "{printed}");
    succeed(place.path(), &arguments);
    assert_eq!(identity(&place.path().join("stopped/paths")), expected);
}

#[test]
fn damaged_shards_are_named_and_nothing_else_is_lost() {
    let (place, expected, _) = undisturbed();
    let run = place.path().join("undisturbed/paths");
    fs::remove_file(run.join("result.parquet")).unwrap();
    let victims = files(&run.join("shards"));
    let arguments = ["run", "paths.toml", "--out", "undisturbed", "--quiet"];
    for (index, is_truncated) in [(3, true), (8, false)] {
        let victim = &victims[index];
        let intact = fs::read(victim).unwrap();
        let mut damaged = intact.clone();
        if is_truncated {
            damaged.truncate(intact.len() / 2);
        } else {
            damaged[100] ^= 4;
        }
        fs::write(victim, damaged).unwrap();
        let told = refuse(place.path(), &arguments, 1);
        let name = victim.file_name().unwrap().to_string_lossy();
        assert!(told.contains(name.as_ref()) && told.contains("damaged"), "{told}");
        fs::remove_file(victim).unwrap();
        let printed = succeed(place.path(), &arguments);
        assert!(printed.contains(&format!("1 units computed, {} kept", victims.len() - 1)), "{printed}");
        assert_eq!(fs::read(victim).unwrap(), intact);
        assert_eq!(identity(&run), expected);
        fs::remove_file(run.join("result.parquet")).unwrap();
    }
}

/// A file system of this size mounted on a folder, unmounted at the end; none where mounting is not allowed.
struct Mounted(PathBuf);

impl Mounted {
    fn new(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Mounted(path.to_path_buf()))
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap();
        assert!(status.success(), "remount {options}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Elsewhere than in CI, where it must run.
fn cannot_mount() {
    assert!(std::env::var_os("CI").is_none(), "mounting a file system needs root");
    println!("not run: mounting a file system needs root");
}

#[test]
fn a_full_disk_is_told_and_costs_nothing_that_was_done() {
    let (place, expected, _) = undisturbed();
    let small = place.path().join("small");
    let Some(mounted) = Mounted::new(&small, "80k") else {
        cannot_mount();
        return;
    };
    let arguments = ["run", "paths.toml", "--out", "small", "--quiet"];
    let told = refuse(place.path(), &arguments, 1);
    assert!(told.contains("cannot write") && told.contains("no space left"), "{told}");
    assert!(told.contains("finished units are kept"), "{told}");
    let kept = files(&small.join("paths/shards")).len();
    assert!(kept > 0, "some units fit");
    mounted.remount("size=64m");
    let printed = succeed(place.path(), &arguments);
    assert!(printed.contains(&format!("{kept} kept")), "{printed}");
    assert_eq!(identity(&small.join("paths")), expected);
}

#[test]
fn a_read_only_folder_is_told() {
    let (place, _, _) = undisturbed();
    let folder = place.path().join("sealed");
    let Some(mounted) = Mounted::new(&folder, "1m") else {
        cannot_mount();
        return;
    };
    mounted.remount("ro");
    let told = refuse(place.path(), &["run", "paths.toml", "--out", "sealed", "--quiet"], 1);
    assert!(told.contains("sealed/paths") && told.contains("read-only file system"), "{told}");
    assert!(told.contains("--out"), "{told}");
}
