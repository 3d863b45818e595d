//! One run split over machines: shards merge into the bytes of a single run, and nothing foreign is merged.

mod common;

use common::{EXPERIMENT, files, identity, refuse, succeed, write_experiment};
use std::fs;

#[test]
fn three_shards_merge_into_the_bytes_of_one_run() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write_experiment(folder);
    succeed(folder, &["run", "paths.toml", "--out", "single", "--quiet", "--threads", "2"]);
    for share in ["2/3", "0/3"] {
        succeed(folder, &["shard", "paths.toml", share, "--quiet", "--threads", "1"]);
    }
    let shards = ["runs/paths.shard-0-of-3", "runs/paths.shard-1-of-3", "runs/paths.shard-2-of-3"];
    let told = refuse(folder, &["merge", shards[0], shards[2], "--out", "runs/early"], 1);
    assert!(told.contains("units are missing, the first is unit 1"), "{told}");
    succeed(folder, &["shard", "paths.toml", "1/3", "--quiet"]);
    succeed(folder, &["merge", shards[0], shards[1], shards[2]]);
    assert_eq!(identity(&folder.join("runs/paths")), identity(&folder.join("single/paths")));
    assert!(folder.join("runs/paths/report.html").exists());
    // The merged folder is a run like any other.
    let printed = succeed(folder, &["run", "paths.toml", "--quiet"]);
    assert!(printed.contains("0 units computed"), "{printed}");
}

#[test]
fn a_run_computes_what_a_merge_lacks() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write_experiment(folder);
    succeed(folder, &["run", "paths.toml", "--out", "single", "--quiet"]);
    succeed(folder, &["shard", "paths.toml", "0/2", "--quiet"]);
    refuse(folder, &["merge", "runs/paths.shard-0-of-2"], 1);
    let printed = succeed(folder, &["run", "paths.toml", "--quiet"]);
    assert!(!printed.contains(" 0 kept"), "{printed}");
    assert_eq!(identity(&folder.join("runs/paths")), identity(&folder.join("single/paths")));
}

#[test]
fn shards_of_another_specification_or_instruction_set_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write_experiment(folder);
    fs::write(folder.join("other.toml"), EXPERIMENT.replace("seed = 7", "seed = 8")).unwrap();
    succeed(folder, &["shard", "paths.toml", "0/2", "--quiet", "--instruction-set", "portable"]);
    succeed(folder, &["shard", "paths.toml", "1/2", "--quiet", "--instruction-set", "portable"]);
    succeed(folder, &["shard", "other.toml", "1/2", "--quiet", "--instruction-set", "portable"]);
    let (ours, other) = ("runs/paths.shard-0-of-2", "runs/other.shard-1-of-2");
    let portable = ["--instruction-set", "portable"];
    let told = refuse(folder, &["merge", ours, other, portable[0], portable[1]], 1);
    assert!(told.contains("`seed = 8`, that of the first says `seed = 7`"), "{told}");

    // Shards of one set merge on any machine that is told so, and mixed sets never.
    succeed(folder, &["shard", "paths.toml", "1/2", "--quiet", "--out", "vector"]);
    let mixed = "vector/paths.shard-1-of-2";
    let same_set = files(&folder.join(mixed).join("shards"))
        .iter()
        .all(|path| folder.join("runs/paths.shard-1-of-2/shards").join(path.file_name().unwrap()).exists());
    if same_set {
        println!("this machine has the portable set only: there is nothing to mix");
    } else {
        let told = refuse(folder, &["merge", ours, mixed, portable[0], portable[1]], 1);
        assert!(told.contains("instruction set"), "{told}");
    }
    succeed(folder, &["merge", ours, "runs/paths.shard-1-of-2", portable[0], portable[1]]);
}

#[test]
fn shares_that_make_no_sense_are_refused() {
    let place = tempfile::tempdir().unwrap();
    write_experiment(place.path());
    for share in ["3/3", "0/0", "1", "a/b", "-1/3", "0/99999999999999999999"] {
        let told = refuse(place.path(), &["shard", "paths.toml", "--", share], 2);
        assert!(told.contains("expected i/N"), "{told}");
    }
    let told = refuse(place.path(), &["merge", "nowhere"], 1);
    assert!(told.contains("nowhere is not a run folder"), "{told}");
}
