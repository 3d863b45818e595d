//! Runs of a toy experiment: interruption, damage, foreign files, shards; the file system is real.

use esscher_core::{Monitor, Unwatched};
use esscher_lab::{
    Beginning, Column, Error, Experiment, Failure, Origin, Outcome, Provenance, RunFolder, Session,
    SettingNames, Share, Table, Unit, Watcher, compute_shard, merge, run,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Squares of the unit's number; counts how often it is asked.
struct Squares {
    specification: String,
    instruction_set: String,
    calls: AtomicUsize,
    fails_at: Option<usize>,
}

impl Squares {
    fn new(seed: u64) -> Self {
        Squares {
            specification: format!("kind = \"squares\"\nseed = {seed}\n"),
            instruction_set: "portable".to_string(),
            calls: AtomicUsize::new(0),
            fails_at: None,
        }
    }
}

const UNITS: usize = 12;

const NAMES: SettingNames = SettingNames {
    folder: "out",
    instruction_set: "set",
    run: "run",
    merge: "merge",
    example: "example",
    force: "force",
};

impl Experiment for Squares {
    fn specification(&self) -> &str {
        &self.specification
    }

    fn instruction_set(&self) -> String {
        self.instruction_set.clone()
    }

    fn units(&self) -> Vec<Unit> {
        (0..UNITS).map(|unit| Unit { label: format!("square of {unit}"), cost: unit as f64 }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        if monitor.should_stop() {
            return Ok(None);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.fails_at == Some(unit) {
            return Err("this unit is impossible".into());
        }
        let mut table =
            Table::new(&[("unit", Column::Integer), ("square", Column::Real), ("note", Column::Text)]);
        let note = unit.is_multiple_of(2).then_some("even");
        table.push([(unit as i64).into(), ((unit * unit) as f64 / 3.0).into(), note.into()])?;
        Ok(Some(table))
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        let mut units = units.into_iter();
        let mut all = units.next().ok_or("no units")?;
        for unit in units {
            all.append(unit)?;
        }
        Ok(all)
    }
}

/// Stops after this many units.
struct StopAfter(AtomicUsize);

impl Watcher for StopAfter {
    fn plan(&self, _: &[(usize, Unit, bool)]) {}
    fn part(&self, _: usize, _: f64) {}
    fn finished(&self, _: usize) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    }
    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn never() -> StopAfter {
    StopAfter(AtomicUsize::new(usize::MAX))
}

fn origin() -> Origin {
    Origin { program: "test".to_string(), version: "0".to_string(), commit: None }
}

fn whole(path: &Path, experiment: &Squares) -> Result<Outcome, Error> {
    let folder = RunFolder::open(path, experiment)?;
    run(experiment, &folder, Share::WHOLE, &origin(), &never())
}

fn bytes(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let read = |name: &str| fs::read(path.join(name)).unwrap();
    (read("spec.toml"), read("result.parquet"))
}

fn shards(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(path.join("shards")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn a_finished_run_is_never_computed_again() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    let Outcome::Finished { computed, kept, result, .. } = whole(place.path(), &experiment).unwrap() else {
        panic!()
    };
    assert_eq!((computed, kept, result.len()), (UNITS, 0, UNITS));
    let before = bytes(place.path());
    let Outcome::Finished { computed, kept, result: again, .. } = whole(place.path(), &experiment).unwrap()
    else {
        panic!()
    };
    assert_eq!((computed, kept), (0, UNITS));
    assert_eq!(again, result);
    assert_eq!(experiment.calls.load(Ordering::Relaxed), UNITS);
    assert_eq!(bytes(place.path()), before);
    // Not even when the shards were deleted to save space.
    fs::remove_dir_all(place.path().join("shards")).unwrap();
    assert!(matches!(whole(place.path(), &experiment).unwrap(), Outcome::Finished { computed: 0, .. }));
}

#[test]
fn a_stopped_run_goes_on_and_ends_with_the_same_bytes() {
    let (undisturbed, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(undisturbed.path(), &Squares::new(1)).unwrap();
    let experiment = Squares::new(1);
    let mut stops = 0;
    loop {
        let folder = RunFolder::open(place.path(), &experiment).unwrap();
        let watcher = StopAfter(AtomicUsize::new(3));
        match run(&experiment, &folder, Share::WHOLE, &origin(), &watcher).unwrap() {
            Outcome::Stopped { done, total } => {
                assert!(done < total && total == UNITS);
                stops += 1;
            }
            Outcome::Finished { .. } => break,
            other => panic!("{other:?}"),
        }
        assert!(stops < UNITS);
    }
    assert!(stops >= 2, "{stops}");
    assert_eq!(experiment.calls.load(Ordering::Relaxed), UNITS, "no unit is computed twice");
    assert_eq!(bytes(place.path()), bytes(undisturbed.path()));
}

#[test]
fn shards_of_three_machines_make_the_bytes_of_one_run() {
    let single = tempfile::tempdir().unwrap();
    whole(single.path(), &Squares::new(1)).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = (0..3).map(|index| place.path().join(format!("shard-{index}"))).collect();
    for (index, path) in folders.iter().enumerate().rev() {
        let experiment = Squares::new(1);
        let folder = RunFolder::open(path, &experiment).unwrap();
        let outcome = run(&experiment, &folder, Share::new(index, 3).unwrap(), &origin(), &never()).unwrap();
        assert!(matches!(outcome, Outcome::ShareDone { computed: 4, units: 4 }), "{outcome:?}");
    }
    let experiment = Squares::new(1);
    let merged = place.path().join("merged");
    let missing = merge(&experiment, &folders[..2], &merged, &origin()).unwrap_err();
    assert!(matches!(missing, Error::Incomplete { missing: 4, total: 12, first: 2 }), "{missing:?}");
    // What it keeps has its history.
    let history: Provenance =
        serde_json::from_slice(&fs::read(merged.join("provenance.json")).unwrap()).unwrap();
    assert_eq!(history.sessions.iter().map(|session| session.units).collect::<Vec<_>>(), [Some(4), Some(4)]);
    // Shards of one set merge on a machine that has another.
    let elsewhere = Squares { instruction_set: "another".to_string(), ..Squares::new(1) };
    let (_, _, provenance) = merge(&elsewhere, &folders, &merged, &origin()).unwrap();
    assert_eq!(provenance.sessions.iter().filter_map(|session| session.units).sum::<usize>(), UNITS);
    assert_eq!(provenance.instruction_set, "portable");
    assert_eq!(bytes(&merged), bytes(single.path()));
    assert_eq!(experiment.calls.load(Ordering::Relaxed), 0);
    assert!(Share::new(3, 3).is_none() && Share::new(0, 0).is_none());
}

#[test]
fn shards_of_another_specification_or_instruction_set_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let other = place.path().join("other");
    whole(&other, &Squares::new(2)).unwrap();
    let experiment = Squares::new(1);
    let merged = place.path().join("merged");
    let first = place.path().join("first");
    whole(&first, &experiment).unwrap();
    let refused = merge(&experiment, &[first, other.clone()], &merged, &origin()).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("line 2 of its spec.toml says `seed = 2`, that of the first says `seed = 1`"),
        "{text}"
    );
    assert!(refused.hint(&NAMES).is_some_and(|hint| hint.contains("one seed")));
    // The first folder is not said to differ from itself.
    let text = merge(&experiment, std::slice::from_ref(&other), &merged, &origin()).unwrap_err().to_string();
    assert!(text.contains("line 2 of its spec.toml says `seed = 2`, this run says `seed = 1`"), "{text}");

    // The same specification computed with other instructions.
    let vector = place.path().join("vector");
    whole(&vector, &Squares { instruction_set: "avx2".to_string(), ..Squares::new(1) }).unwrap();
    let portable = place.path().join("portable");
    whole(&portable, &experiment).unwrap();
    let refused = merge(&experiment, &[portable, vector], &merged, &origin()).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, Error::Foreign { .. }), "{text}");
    assert!(text.contains("its instruction set is avx2, this run's is portable"), "{text}");
    assert!(!merged.exists(), "a refused merge makes nothing");
    let folder = RunFolder::open(&merged, &experiment).unwrap();

    // A shard smuggled into the folder of another specification.
    let smuggled = &shards(&other)[0];
    fs::copy(smuggled, folder.path().join("shards").join(smuggled.file_name().unwrap())).unwrap();
    let refused = run(&experiment, &folder, Share::WHOLE, &origin(), &never()).unwrap_err();
    assert!(matches!(&refused, Error::Foreign { path, .. } if path.ends_with(smuggled.file_name().unwrap())));
}

#[test]
fn a_folder_of_another_specification_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    whole(place.path(), &Squares::new(1)).unwrap();
    let before = bytes(place.path());
    let refused = whole(place.path(), &Squares::new(2)).unwrap_err();
    assert!(matches!(refused, Error::OtherSpecification { line: 2, .. }), "{refused}");
    assert_eq!(bytes(place.path()), before);
}

#[test]
fn damage_is_named_and_only_the_damaged_unit_is_done_anew() {
    let damages: [fn(&mut Vec<u8>); 4] = [
        |content| content.truncate(content.len() / 2),
        |content| content.clear(),
        |content| content[20] ^= 1,
        |content| content.push(0),
    ];
    for damage in damages {
        let place = tempfile::tempdir().unwrap();
        whole(place.path(), &Squares::new(1)).unwrap();
        let undisturbed = bytes(place.path());
        // As if killed before the result was there.
        fs::remove_file(place.path().join("result.parquet")).unwrap();
        let victim = shards(place.path())[5].clone();
        let mut content = fs::read(&victim).unwrap();
        damage(&mut content);
        fs::write(&victim, &content).unwrap();
        let experiment = Squares::new(1);
        let refused = whole(place.path(), &experiment).unwrap_err();
        assert!(matches!(&refused, Error::Damaged { path, .. } if *path == victim), "{refused}");
        assert!(refused.hint(&NAMES).is_some_and(|hint| hint.contains("delete")));
        fs::remove_file(&victim).unwrap();
        let Outcome::Finished { computed, .. } = whole(place.path(), &experiment).unwrap() else { panic!() };
        assert_eq!(computed, 1);
        assert_eq!(bytes(place.path()), undisturbed);
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_shard_or_result_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    whole(place.path(), &Squares::new(1)).unwrap();
    let result = place.path().join("result.parquet");
    let intact = fs::read(&result).unwrap();
    for index in (0..intact.len()).step_by(7) {
        let mut flipped = intact.clone();
        flipped[index] ^= 1 << (index % 8);
        fs::write(&result, &flipped).unwrap();
        let refused = whole(place.path(), &Squares::new(1)).unwrap_err();
        assert!(matches!(&refused, Error::Damaged { path, .. } if *path == result), "{refused}");
        assert!(esscher_lab::read_finished(place.path()).is_err());
    }
    fs::remove_file(&result).unwrap();
    let victim = shards(place.path())[0].clone();
    let intact = fs::read(&victim).unwrap();
    for index in 0..intact.len() {
        let mut flipped = intact.clone();
        flipped[index] ^= 1 << (index % 8);
        fs::write(&victim, &flipped).unwrap();
        let refused = whole(place.path(), &Squares::new(1)).unwrap_err();
        assert!(matches!(&refused, Error::Damaged { path, .. } if *path == victim), "{refused}");
    }
}

#[test]
fn a_result_without_its_checksum_is_merged_anew() {
    // Killed between the two writes; or the history was lost.
    let place = tempfile::tempdir().unwrap();
    whole(place.path(), &Squares::new(1)).unwrap();
    let before = bytes(place.path());
    fs::remove_file(place.path().join("provenance.json")).unwrap();
    fs::write(place.path().join("result.parquet"), b"half").unwrap();
    assert!(matches!(whole(place.path(), &Squares::new(1)).unwrap(), Outcome::Finished { computed: 0, .. }));
    assert_eq!(bytes(place.path()), before);
    // A history that is not ours is named.
    fs::write(place.path().join("provenance.json"), b"{\"half\":").unwrap();
    let refused = whole(place.path(), &Squares::new(1)).unwrap_err();
    assert!(
        matches!(&refused, Error::Damaged { path, .. } if path.ends_with("provenance.json")),
        "{refused}"
    );
}

#[test]
fn foreign_files_are_refused_by_name_and_temporary_ones_swept() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    drop(RunFolder::open(place.path(), &experiment).unwrap());
    let left = place.path().join("shards/.part-123-00001-abc.parquet");
    fs::write(&left, b"half of a shard").unwrap();
    fs::write(place.path().join("shards/.DS_Store"), b"not ours, hidden, harmless").unwrap();
    drop(RunFolder::open(place.path(), &experiment).unwrap());
    assert!(!left.exists());
    let notes = place.path().join("shards/notes.txt");
    fs::write(&notes, b"mine").unwrap();
    let refused = whole(place.path(), &experiment).unwrap_err();
    assert!(matches!(&refused, Error::Foreign { path, .. } if *path == notes), "{refused}");
    assert!(notes.exists());
}

#[test]
fn two_runs_in_one_folder_are_refused_until_the_first_ends() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    let first = RunFolder::open(place.path(), &experiment).unwrap();
    let refused = RunFolder::open(place.path(), &experiment).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(first);
    RunFolder::open(place.path(), &experiment).unwrap();
}

#[test]
fn a_unit_that_fails_is_named_and_the_others_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let failing = Squares { fails_at: Some(0), ..Squares::new(1) };
    let refused = whole(place.path(), &failing).unwrap_err();
    assert_eq!(refused.to_string(), "square of 0: this unit is impossible");
    // Unit 0 is the cheapest, so all others were handed out before it; those in other hands may have been given up.
    assert!(shards(place.path()).len() + rayon::current_num_threads() >= UNITS);
    assert!(matches!(whole(place.path(), &Squares::new(1)).unwrap(), Outcome::Finished { .. }));
}

#[test]
fn tables_refuse_what_does_not_fit() {
    let mut table = Table::new(&[("a", Column::Real), ("b", Column::Text)]);
    assert!(table.push([1.0.into()]).is_err());
    assert!(table.push([f64::NAN.into(), "x".into()]).is_err());
    assert!(table.push([1_i64.into(), "x".into()]).is_err());
    table.push([None::<f64>.into(), "x".into()]).unwrap();
    let row = table.rows().next().unwrap();
    assert!(row.real("a").is_err() && row.optional_real("a").unwrap().is_none() && row.text("c").is_err());
    let refused = table.push([f64::INFINITY.into(), "the widest law".into()]).unwrap_err().to_string();
    assert_eq!(refused, "the a (the widest law) is ∞, which is no finite number");
    let refused = table.push([f64::NAN.into(), "x".into()]).unwrap_err().to_string();
    assert_eq!(refused, "the a (x) is undefined, which is no finite number");
    assert!(Table::from_parquet(b"PAR1").is_err());
    let other = Table::new(&[("a", Column::Real)]);
    assert!(table.append(other).is_err());
}

#[test]
fn a_finished_result_of_another_instruction_set_or_specification_is_not_passed_off() {
    let place = tempfile::tempdir().unwrap();
    whole(place.path(), &Squares::new(1)).unwrap();
    let vector = Squares { instruction_set: "avx2".to_string(), ..Squares::new(1) };
    let refused = whole(place.path(), &vector).unwrap_err();
    assert!(matches!(&refused, Error::Foreign { path, .. } if path.ends_with("result.parquet")), "{refused}");
    // Without its specification the folder is not taken over, even by the experiment that it was.
    fs::remove_file(place.path().join("spec.toml")).unwrap();
    for seed in [1, 2] {
        let refused = whole(place.path(), &Squares::new(seed)).unwrap_err();
        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    }
    // Nor with another one put in its place.
    fs::write(place.path().join("spec.toml"), &Squares::new(2).specification).unwrap();
    let refused = whole(place.path(), &Squares::new(2)).unwrap_err();
    assert!(
        matches!(&refused, Error::Foreign { path, .. } if path.ends_with("provenance.json")),
        "{refused}"
    );
}

#[test]
fn a_folder_with_files_of_somebody_else_is_not_taken() {
    let place = tempfile::tempdir().unwrap();
    let precious = place.path().join("report.html");
    fs::write(&precious, b"precious").unwrap();
    let refused = whole(place.path(), &Squares::new(1)).unwrap_err();
    assert!(matches!(&refused, Error::Foreign { path, .. } if *path == precious), "{refused}");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
}

#[test]
fn a_run_killed_before_its_first_unit_may_go_on_with_other_instructions() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    let folder = RunFolder::open(place.path(), &experiment).unwrap();
    let stopped = StopAfter(AtomicUsize::new(0));
    run(&experiment, &folder, Share::WHOLE, &origin(), &stopped).unwrap();
    drop(folder);
    let vector = Squares { instruction_set: "avx2".to_string(), ..Squares::new(1) };
    let Outcome::Finished { provenance, .. } = whole(place.path(), &vector).unwrap() else { panic!() };
    assert_eq!(provenance.instruction_set, "avx2");
}

#[test]
fn a_specification_that_its_history_does_not_know_is_damaged_and_never_the_users_mistake() {
    let place = tempfile::tempdir().unwrap();
    let (experiment, path) = (Squares::new(1), place.path().join("run"));
    whole(&path, &experiment).unwrap();
    let specification = &experiment.specification;
    let damaged = |error: Error| match &error {
        Error::Damaged { path, .. } => assert!(path.ends_with("spec.toml"), "{error}"),
        other => panic!("{other}"),
    };
    for damage in [
        specification.replace("kind", "kinf").into_bytes(),
        specification.replace('\n', "\r\n").into_bytes(),
        specification.trim_end().into(),
        b"\xff\xfe\x00".to_vec(),
        Vec::new(),
    ] {
        fs::write(path.join("spec.toml"), damage).unwrap();
        damaged(whole(&path, &experiment).unwrap_err());
        damaged(esscher_lab::specification_of(&path).unwrap_err());
        damaged(merge(&experiment, std::slice::from_ref(&path), Path::new("no"), &origin()).unwrap_err());
    }
}

#[test]
fn the_history_of_another_run_is_told_apart_from_a_damaged_specification() {
    let place = tempfile::tempdir().unwrap();
    let [one, two] = [1, 2].map(|seed| {
        let path = place.path().join(seed.to_string());
        whole(&path, &Squares::new(seed)).unwrap();
        path
    });
    fs::copy(two.join("provenance.json"), one.join("provenance.json")).unwrap();
    for refused in [whole(&one, &Squares::new(1)).unwrap_err(), esscher_lab::read_finished(&one).unwrap_err()]
    {
        assert!(
            matches!(&refused, Error::Foreign { path, .. } if path.ends_with("provenance.json")),
            "{refused}"
        );
    }
}

#[test]
fn the_difference_of_two_specifications_is_told_in_words() {
    let place = tempfile::tempdir().unwrap();
    let (experiment, file) = (Squares::new(1), place.path().join("spec.toml"));
    let long = format!("kind = \"squares\"\nseed = 1{}\n", "0".repeat(200));
    for (found, said) in [
        (
            "kind = \"squares\"\nseed = 1",
            "line 2 of its spec.toml says `seed = 1` without the end of the line, this run says `seed = 1`",
        ),
        (
            "kind = \"squares\"\nseed = 1\n\n",
            "says nothing, because the line is empty, this run says nothing, because it ends there",
        ),
        ("\u{feff}kind = \"squares\"\nseed = 1\n", "says `\\u{feff}kind = \"squares\"`, this run says `kind"),
        ("kind = \"squares\"\r\nseed = 1\n", "line 1 of its spec.toml says `kind = \"squares\"\\r`"),
    ] {
        fs::write(&file, found).unwrap();
        let refused = whole(place.path(), &experiment).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    // What differs late in a long line is shown.
    fs::write(&file, &long).unwrap();
    let other = Squares { specification: long.replace("0\n", "1\n"), ..Squares::new(1) };
    let refused = whole(place.path(), &other).unwrap_err().to_string();
    assert!(refused.contains("000`, this run says `…000") && refused.contains("001`"), "{refused}");
}

#[test]
fn an_unfinished_run_is_told_as_such() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    drop(RunFolder::open(place.path(), &experiment).unwrap());
    assert!(matches!(esscher_lab::read_finished(place.path()).unwrap_err(), Error::Unfinished { .. }));
    // Neither nothing nor a file is a folder of a run.
    for name in ["no", "spec.toml"] {
        let refused = esscher_lab::read_finished(&place.path().join(name)).unwrap_err();
        assert!(matches!(refused, Error::NotARun { .. }), "{refused}");
    }
    let share = place.path().join("run.shard-0-of-2");
    drop(RunFolder::open(&share, &experiment).unwrap());
    let hint = esscher_lab::read_finished(&share).unwrap_err().hint(&NAMES).unwrap();
    assert!(hint.ends_with("compute all shares, then `merge` makes the run"), "{hint}");
}

fn shard_of(experiment: &Squares, unit: usize) -> Vec<u8> {
    compute_shard(experiment, unit, &Unwatched).unwrap().unwrap()
}

fn session<'a>(experiment: &'a Squares, folder: &'a RunFolder) -> Session<'a> {
    match Session::begin(experiment, folder, Share::WHOLE, &origin(), 3).unwrap() {
        Beginning::Pending(session) => session,
        Beginning::Finished(outcome) => panic!("{outcome:?}"),
    }
}

#[test]
fn units_computed_elsewhere_make_the_bytes_of_one_run() {
    let (single, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    whole(single.path(), &Squares::new(1)).unwrap();
    let experiment = Squares::new(1);
    {
        let folder = RunFolder::open(place.path(), &experiment).unwrap();
        let session = session(&experiment, &folder);
        let pending = session.pending();
        assert_eq!(pending, (0..UNITS).rev().collect::<Vec<_>>(), "the costliest first");
        for unit in &pending[..5] {
            assert_eq!(session.accept(Path::new("elsewhere"), &shard_of(&experiment, *unit)).unwrap(), *unit);
        }
        // A unit that was computed twice, because its first machine was thought to be lost.
        assert_eq!(session.accept(Path::new("elsewhere"), &shard_of(&experiment, 11)).unwrap(), 11);
        assert!(matches!(session.conclude().unwrap(), Outcome::Stopped { done: 5, total: UNITS }));
    }
    let folder = RunFolder::open(place.path(), &experiment).unwrap();
    let session = session(&experiment, &folder);
    for unit in session.pending() {
        session.accept(Path::new("elsewhere"), &shard_of(&experiment, unit)).unwrap();
    }
    let Outcome::Finished { computed, kept, provenance, .. } = session.conclude().unwrap() else { panic!() };
    assert_eq!((computed, kept), (UNITS - 5, 5));
    assert_eq!(provenance.sessions.iter().map(|session| session.threads).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(bytes(place.path()), bytes(single.path()));
    assert_eq!(shards(place.path()).len(), UNITS);
    let again = Session::begin(&experiment, &folder, Share::WHOLE, &origin(), 3).unwrap();
    assert!(matches!(again, Beginning::Finished(Outcome::Finished { computed: 0, kept: UNITS, .. })));
}

#[test]
fn foreign_or_damaged_units_from_elsewhere_are_refused_and_not_written() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    let folder = RunFolder::open(place.path(), &experiment).unwrap();
    let session = session(&experiment, &folder);
    let refused = |bytes: &[u8]| session.accept(Path::new("unit 0 of node 7"), bytes).unwrap_err();
    let vector = Squares { instruction_set: "avx2".to_string(), ..Squares::new(1) };
    let text = refused(&shard_of(&vector, 0)).to_string();
    assert_eq!(
        text,
        "unit 0 of node 7 does not belong to this run: its instruction set is avx2, this run's is portable"
    );
    let text = refused(&shard_of(&Squares::new(2), 0)).to_string();
    assert!(text.starts_with("unit 0 of node 7 does not belong to this run: its specification is"), "{text}");
    let whole = shard_of(&experiment, 0);
    assert!(matches!(refused(&whole[..whole.len() / 2]), Error::Damaged { .. }));
    assert!(matches!(refused(b""), Error::Damaged { .. }));
    assert!(shards(place.path()).is_empty());
    assert_eq!(session.pending().len(), UNITS);
    // Another result of the same unit.
    session.accept(Path::new("unit 0 of node 7"), &whole).unwrap();
    let mut other =
        Table::new(&[("unit", Column::Integer), ("square", Column::Real), ("note", Column::Text)]);
    other.push([0_i64.into(), 1.0.into(), None::<&str>.into()]).unwrap();
    session.store(1, other.clone()).unwrap();
    let conflict = session.accept(Path::new("unit 1 of node 7"), &shard_of(&experiment, 1)).unwrap_err();
    assert!(
        matches!(&conflict, Error::Conflict { first, .. } if first == &shards(place.path())[1]),
        "{conflict}"
    );
}

#[test]
fn a_unit_that_fails_elsewhere_is_named_as_it_is_here() {
    let experiment = Squares { fails_at: Some(7), ..Squares::new(1) };
    let there = compute_shard(&experiment, 7, &Unwatched).unwrap_err().to_string();
    let place = tempfile::tempdir().unwrap();
    assert_eq!(there, whole(place.path(), &experiment).unwrap_err().to_string());
    let none = compute_shard(&experiment, UNITS, &Unwatched).unwrap_err().to_string();
    assert!(none.contains("the plan has 12 units, there is no unit 12"), "{none}");
}

/// Does something to the folder as soon as a unit is finished.
struct Meddle<F: Fn() + Sync>(F, AtomicUsize);

impl<F: Fn() + Sync> Watcher for Meddle<F> {
    fn plan(&self, _: &[(usize, Unit, bool)]) {}
    fn part(&self, _: usize, _: f64) {}
    fn finished(&self, _: usize) {
        if self.1.fetch_add(1, Ordering::Relaxed) == 2 {
            (self.0)();
        }
    }
    fn should_stop(&self) -> bool {
        false
    }
}

#[test]
fn a_run_whose_folder_goes_says_so_and_makes_no_other() {
    let place = tempfile::tempdir().unwrap();
    let (path, moved) = (place.path().join("run"), place.path().join("moved"));
    let meddle: [(&str, &(dyn Fn() + Sync)); 3] = [
        ("moved", &|| fs::rename(&path, &moved).unwrap()),
        // Another thread may write meanwhile.
        ("removed", &|| {
            while path.exists() {
                let _ = fs::remove_dir_all(&path);
            }
        }),
        ("replaced", &|| {
            fs::rename(&path, place.path().join("old")).unwrap();
            fs::create_dir(&path).unwrap();
        }),
    ];
    for (what, meddle) in meddle {
        let experiment = Squares::new(1);
        let folder = RunFolder::open(&path, &experiment).unwrap();
        let watcher = Meddle(meddle, AtomicUsize::new(0));
        let error = run(&experiment, &folder, Share::WHOLE, &origin(), &watcher).unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{what}: {error}");
        let left = fs::read_dir(&path).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{what}: nothing is written into another folder");
        let _ = fs::remove_dir_all(&path);
    }
    // Moved back, it goes on from where it was.
    fs::rename(&moved, &path).unwrap();
    let Outcome::Finished { kept, .. } = whole(&path, &Squares::new(1)).unwrap() else { panic!() };
    assert!(kept >= 3, "{kept}");
}

#[test]
fn a_refused_folder_stays_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis.tex"), "mine").unwrap();
    assert!(matches!(RunFolder::open(place.path(), &Squares::new(1)), Err(Error::Foreign { .. })));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn links_in_the_place_of_files_of_a_run_are_refused_and_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (path, target) = (place.path().join("run"), place.path().join("target"));
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::symlink(&target, path.join(".lock")).unwrap();
    assert!(matches!(whole(&path, &Squares::new(1)), Err(Error::Foreign { .. })));
    fs::remove_file(path.join(".lock")).unwrap();
    std::os::unix::fs::symlink(&target, path.join("result.parquet")).unwrap();
    fs::write(path.join("spec.toml"), &Squares::new(1).specification).unwrap();
    let error = whole(&path, &Squares::new(1)).unwrap_err();
    assert!(error.to_string().contains("it is a link, expected a file that this run wrote"), "{error}");
    assert!(!target.exists());
    // Nor are links in the place of its folders, whatever is behind them.
    fs::create_dir(&target).unwrap();
    let mine = [target.join("rates.svg"), target.join(".part-of-my-thesis")];
    mine.iter().for_each(|file| fs::write(file, "mine").unwrap());
    for name in ["figures", "shards"] {
        let path = place.path().join(format!("run-with-{name}"));
        whole(&path, &Squares::new(1)).unwrap();
        let open = RunFolder::open_existing(&path).unwrap();
        let _ = fs::remove_dir_all(path.join(name));
        std::os::unix::fs::symlink(&target, path.join(name)).unwrap();
        let told = "it is a link, expected a folder that this run made";
        let refused = open.write(&format!("{name}/rates.svg"), b"ours").unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
        drop(open);
        for refused in [whole(&path, &Squares::new(1)).err(), RunFolder::open_existing(&path).err()] {
            let refused = refused.unwrap();
            assert!(
                matches!(refused, Error::Foreign { .. }) && refused.to_string().contains(told),
                "{refused}"
            );
        }
    }
    assert!(mine.iter().all(|file| fs::read(file).unwrap() == b"mine"));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 2);
}

#[test]
fn files_of_a_run_that_were_blown_up_are_refused_without_being_read() {
    let place = tempfile::tempdir().unwrap();
    for name in ["spec.toml", "provenance.json", "result.parquet"] {
        let path = place.path().join(name);
        whole(&path, &Squares::new(1)).unwrap();
        // So large that reading it would not end within the test.
        fs::OpenOptions::new().write(true).open(path.join(name)).unwrap().set_len(1 << 43).unwrap();
        let error = whole(&path, &Squares::new(1)).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(name) && (told.contains("too large") || told.contains("damaged")), "{told}");
    }
}

#[test]
fn a_specification_is_longer_in_its_normal_form_than_as_it_was_given() {
    let place = tempfile::tempdir().unwrap();
    let long =
        |bytes: usize| Squares { specification: format!("#{}\n", "x".repeat(bytes)), ..Squares::new(1) };
    // More than is read of what a user gives.
    let path = place.path().join("long");
    for computed in [UNITS, 0] {
        let outcome = whole(&path, &long(5 << 20)).unwrap();
        assert!(matches!(outcome, Outcome::Finished { computed: found, .. } if found == computed));
    }
    esscher_lab::read_finished(&path).unwrap();
    // What could not be read again is refused before anything is computed or made.
    let (experiment, path) = (long(64 << 20), place.path().join("too long"));
    let refused = whole(&path, &experiment).unwrap_err();
    assert!(matches!(refused, Error::LongSpecification { .. }) && refused.is_request(), "{refused}");
    assert!(experiment.calls.load(Ordering::Relaxed) == 0 && !path.exists());
}

#[test]
fn a_run_whose_lock_alone_goes_says_so() {
    let place = tempfile::tempdir().unwrap();
    let experiment = Squares::new(1);
    let folder = RunFolder::open(place.path(), &experiment).unwrap();
    let watcher = Meddle(|| fs::remove_file(place.path().join(".lock")).unwrap(), AtomicUsize::new(0));
    let error = run(&experiment, &folder, Share::WHOLE, &origin(), &watcher).unwrap_err();
    assert!(error.to_string().contains("or the file .lock in it was moved, removed or replaced"), "{error}");
    drop(folder);
    assert!(matches!(whole(place.path(), &experiment).unwrap(), Outcome::Finished { .. }));
}

#[test]
fn a_specification_that_is_removed_meanwhile_is_written_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let experiment = Squares::new(1);
    let folder = RunFolder::open(&path, &experiment).unwrap();
    let watcher = Meddle(|| fs::remove_file(path.join("spec.toml")).unwrap(), AtomicUsize::new(0));
    run(&experiment, &folder, Share::WHOLE, &origin(), &watcher).unwrap();
    assert_eq!(fs::read_to_string(path.join("spec.toml")).unwrap(), experiment.specification);
}
