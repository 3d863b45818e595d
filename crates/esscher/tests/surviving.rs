//! Runs that are killed, starved and disturbed: the same command goes on, and ends with the bytes of an undisturbed run.
//!
//! Twenty-five times two kills over six kinds of work by default, a hundred times two with ESSCHER_LONG_TESTS=1.

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

/// A kind of work that is killed: what must be there before, the command, and the files that must be the same in the end.
struct Work {
    name: &'static str,
    before: &'static [&'static [&'static str]],
    command: &'static [&'static str],
    /// Below the folder of the work.
    same: &'static [&'static str],
    /// A page, which tells times and is therefore only whole.
    page: &'static str,
    /// Kills in the long form, a quarter of it in the short one.
    kills: u32,
}

const WORKS: [Work; 6] = [
    Work {
        name: "run",
        before: &[],
        command: &["run", "paths.toml", "--quiet"],
        same: &["runs/paths/spec.toml", "runs/paths/result.parquet", "runs/paths/figures/*.svg"],
        page: "runs/paths/report.html",
        kills: 32,
    },
    Work {
        name: "shard",
        before: &[],
        command: &["shard", "paths.toml", "1/2", "--quiet"],
        same: &["runs/paths.shard-1-of-2/spec.toml", "runs/paths.shard-1-of-2/shards/*"],
        page: "",
        kills: 12,
    },
    Work {
        name: "merge",
        before: &[&["shard", "paths.toml", "0/2", "--quiet"], &["shard", "paths.toml", "1/2", "--quiet"]],
        command: &["merge", "runs/paths.shard-0-of-2", "runs/paths.shard-1-of-2"],
        same: &["runs/paths/spec.toml", "runs/paths/result.parquet", "runs/paths/shards/*"],
        page: "runs/paths/report.html",
        kills: 16,
    },
    Work {
        name: "report",
        before: &[&["run", "paths.toml", "--quiet"]],
        command: &["report", "runs/paths", "--out", "page.html"],
        same: &["runs/paths/spec.toml", "runs/paths/result.parquet"],
        page: "page.html",
        kills: 12,
    },
    Work {
        name: "reproduce",
        before: &[],
        command: &["reproduce", "--only", "gaussian-lemma", "--quiet"],
        same: &["runs/reproduce/gaussian-lemma/spec.toml", "runs/reproduce/gaussian-lemma/result.parquet"],
        page: "runs/reproduce/report.html",
        kills: 12,
    },
    Work {
        name: "audit",
        before: &[],
        command: &[
            "audit",
            "tiny-random",
            "--length",
            "128",
            "--texts",
            "3",
            "--candidates",
            "mean",
            "--quiet",
        ],
        same: &[
            "runs/*/heads/result.parquet",
            "runs/*/model/result.parquet",
            "runs/*/verdicts.json",
            "runs/*/config.json",
        ],
        page: "runs/*/report.html",
        kills: 16,
    },
];

/// Files below a folder whose paths fit a pattern with `*` in the place of names or parts of them, with their bytes.
fn fitting(folder: &Path, pattern: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = vec![folder.to_path_buf()];
    for part in pattern.split('/') {
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match part.split_once('*') {
                Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                None => name == part,
            }
        };
        found = found.iter().flat_map(|folder| files(folder)).filter(fits).collect();
    }
    let below = |path: PathBuf| (path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
    found.into_iter().map(below).collect()
}

/// All temporary files below a folder.
fn temporary(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".part-");
    folders
        .iter()
        .flat_map(|folder| temporary(folder))
        .chain(files.into_iter().filter(is_temporary))
        .collect()
}

#[test]
fn killed_at_random_moments_every_work_ends_with_the_same_bytes() {
    let mut all = (0, 0);
    for work in &WORKS {
        let place = tempfile::tempdir().unwrap();
        let prepare = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            write_experiment(&folder);
            for command in work.before {
                succeed(&folder, command);
            }
            folder
        };
        let undisturbed = prepare("undisturbed");
        let began = Instant::now();
        succeed(&undisturbed, work.command);
        let took = began.elapsed();
        let result = |folder: &Path| -> Vec<_> {
            work.same.iter().flat_map(|pattern| fitting(folder, pattern)).collect()
        };
        let expected = result(&undisturbed);
        assert!(expected.len() >= work.same.len(), "{}: what is compared is there", work.name);
        let (kills, mut interrupted) = (if long() { work.kills } else { work.kills / 4 }, 0);
        for kill in 0..kills {
            let folder = prepare(&format!("killed-{kill}"));
            // Moments are spread over the whole work by a fixed sequence (golden ratio), from the first file to the last; the second
            // kill of one life hits work that goes on.
            let fraction = (f64::from(kill + 1) * 0.618_033_988_75).fract();
            for part in [fraction, 0.5 * fraction] {
                let mut child = esscher(&folder, work.command)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                std::thread::sleep(took.mul_f64(part));
                // SIGKILL on Unix: nothing can be tidied up.
                let _ = child.kill();
                interrupted += u32::from(!child.wait().unwrap().success());
            }
            succeed(&folder, work.command);
            let name = work.name;
            assert!(result(&folder) == expected, "{name}: kill {kill} at {fraction:.3} changed the bytes");
            let pages = fitting(&folder, work.page);
            assert!(pages.len() == usize::from(!work.page.is_empty()), "{name}: the page is there");
            assert!(pages.iter().all(|(_, page)| page.ends_with(b"</html>\n")), "{name}: the page is whole");
            assert_eq!(temporary(&folder), Vec::<PathBuf>::new(), "{name}: nothing half written is left");
        }
        println!("{}: {interrupted} of {} processes were killed before they ended", work.name, 2 * kills);
        all = (all.0 + interrupted, all.1 + kills);
    }
    println!("{} kills", all.0);
    assert!(all.0 > all.1, "the moments hit the work");
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
