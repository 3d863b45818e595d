//! What may be read and what may be replaced: files, links, pipes, devices and folders of a real file system.
#![cfg(unix)]

use esscher_lab::{
    Error, Replace, RunsFolder, open_file, place_file, read_file, read_specification, write_file,
};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const OURS: Replace = Replace::Marked("<ours>");

fn place() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_write_replaces_nothing_an_empty_file_or_one_of_ours() {
    let place = place();
    let file = place.path().join("new/report.html");
    for content in ["<ours> 1", "<ours> 2"] {
        write_file(&file, content.as_bytes(), OURS).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    fs::write(&file, "").unwrap();
    write_file(&file, b"<ours> 3", OURS).unwrap();
    assert_eq!(names(&place.path().join("new")), ["report.html"]);
}

#[test]
fn a_file_that_somebody_else_made_is_replaced_only_if_the_user_says_so() {
    let place = place();
    let file = place.path().join("thesis.tex");
    fs::write(&file, "mine").unwrap();
    let refused = write_file(&file, b"<ours>", OURS).unwrap_err();
    assert!(refused.to_string().contains("a file that Esscher did not write"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    // Also behind a link.
    let link = place.path().join("link");
    symlink(&file, &link).unwrap();
    assert!(write_file(&link, b"<ours>", OURS).is_err());
    write_file(&link, b"<ours>", Replace::Any).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "<ours>");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let refused = write_file(place.path(), b"<ours>", Replace::Any).unwrap_err();
    assert!(refused.to_string().contains("it is a folder"), "{refused}");
}

#[test]
fn a_link_that_leads_nowhere_yet_is_followed_and_a_circle_is_refused() {
    let place = place();
    let (link, target) = (place.path().join("link"), place.path().join("target"));
    symlink("target", &link).unwrap();
    write_file(&link, b"<ours>", OURS).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"<ours>");
    let circle = place.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(write_file(&circle, b"<ours>", OURS).is_err());
}

#[test]
fn pipes_and_devices_are_written_into() {
    let place = place();
    let fifo = place.path().join("fifo");
    pipe(&fifo);
    let refused = write_file(&fifo, b"<ours>", OURS).unwrap_err();
    assert!(refused.to_string().contains("a pipe that nobody reads"), "{refused}");
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read(fifo).unwrap())
    };
    // More than a pipe holds, so that the writer waits for the reader.
    let long = "<ours>".repeat(100_000).into_bytes();
    // The reader needs a moment to come.
    let began = Instant::now();
    while let Err(error) = write_file(&fifo, &long, OURS) {
        assert!(matches!(error, Error::NotReplaced { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60), "{error}");
        std::thread::yield_now();
    }
    assert!(reader.join().unwrap() == long);
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    // A link to a device, because the device itself is not ours to risk.
    let null = place.path().join("null");
    symlink("/dev/null", &null).unwrap();
    write_file(&null, b"<ours>", OURS).unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn files_of_a_run_are_no_target() {
    let place = place();
    let run = place.path().join("run");
    fs::create_dir_all(run.join("shards")).unwrap();
    fs::write(run.join("spec.toml"), "kind = \"path\"\n").unwrap();
    for name in ["spec.toml", "shards/00000-0.parquet", "new.html", "figures/new.html"] {
        fs::create_dir_all(run.join("figures")).unwrap();
        let refused = write_file(&run.join(name), b"<ours>", Replace::Any).unwrap_err();
        assert!(refused.to_string().contains("a file of the run in"), "{refused}");
    }
    assert_eq!(fs::read_to_string(run.join("spec.toml")).unwrap(), "kind = \"path\"\n");
    // Nor are files in folders that are not there yet, wherever the way leads.
    let before = names(&run);
    for name in
        ["run/new/page.html", "run/new/newer/page.html", "run/figures/a/b/page.html", "x/../run/page.html"]
    {
        let refused = write_file(&place.path().join(name), b"<ours>", Replace::Any).unwrap_err();
        assert!(refused.to_string().contains("a file of the run in"), "{refused}");
    }
    assert_eq!((names(&run), names(&run.join("figures"))), (before, vec![]));
    // But a page beside runs is.
    for _ in 0..2 {
        write_file(&place.path().join("comparison.html"), b"<ours>", OURS).unwrap();
    }
}

#[test]
fn the_longest_name_that_the_system_allows_can_be_written() {
    let place = place();
    let file = place.path().join("n".repeat(255));
    write_file(&file, b"<ours>", OURS).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"<ours>");
}

#[test]
fn several_threads_that_write_one_file_leave_one_whole_file() {
    let place = place();
    let file = place.path().join("report.html");
    let contents: Vec<String> =
        (0..8).map(|number| format!("<ours>{}", number.to_string().repeat(100_000))).collect();
    std::thread::scope(|scope| {
        for content in &contents {
            scope.spawn(|| (0..20).for_each(|_| write_file(&file, content.as_bytes(), OURS).unwrap()));
        }
    });
    assert!(contents.contains(&fs::read_to_string(&file).unwrap()));
    assert_eq!(names(place.path()), ["report.html"]);
}

#[test]
fn what_a_killed_process_left_is_used_up_by_the_next_write() {
    let place = place();
    let file = place.path().join("report.html");
    // A process that aborts while the stream is read, before the file is whole.
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            bytes.fill(b'x');
            Ok(bytes.len())
        }
    }
    assert!(matches!(place_file(&file, &mut Broken, 1000, "another sum"), Err(Error::WrongSum { .. })));
    assert!(names(place.path()).is_empty(), "what is not whole goes");
    let sum = esscher_lab::sha256(b"report.html");
    fs::write(place.path().join(format!(".part-{}", &sum[..16])), "half of a longer report").unwrap();
    write_file(&file, b"<ours>", OURS).unwrap();
    assert_eq!(
        (names(place.path()), fs::read(&file).unwrap()),
        (vec!["report.html".to_string()], b"<ours>".to_vec())
    );
}

#[test]
fn only_files_are_read_and_nothing_waits_for_a_pipe() {
    let place = place();
    let fifo = place.path().join("fifo.toml");
    pipe(&fifo);
    for (path, found) in
        [(fifo.as_path(), "a pipe"), (Path::new("/dev/zero"), "a device"), (place.path(), "a folder")]
    {
        for told in [
            open_file(path).unwrap_err().to_string(),
            read_file(path, 10).unwrap_err().to_string(),
            read_specification(path).unwrap_err().to_string(),
        ] {
            assert!(told.contains(&format!("it is {found}, expected a file")), "{told}");
        }
    }
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_length() {
    let place = place();
    let file = place.path().join("large.toml");
    // So large that reading it would not end within the test.
    fs::File::create(&file).unwrap().set_len(1 << 43).unwrap();
    assert!(matches!(read_file(&file, 1 << 30), Err(Error::TooLarge { .. })));
    assert!(matches!(read_specification(&file), Err(Error::LargeSpecification { .. })));
}

#[test]
fn a_folder_of_several_runs_is_not_taken_from_somebody_else() {
    let place = place();
    let (folder, runs) = (place.path().join("reproduce"), ["one", "two"]);
    // New, and left by a process that was killed at once.
    RunsFolder::open(&folder, &runs).unwrap();
    fs::create_dir_all(folder.join("one")).unwrap();
    RunsFolder::open(&folder, &runs).unwrap();
    fs::write(folder.join("report.html"), "mine").unwrap();
    let refused = RunsFolder::open(&folder, &runs).unwrap_err();
    assert!(refused.to_string().contains("report.html does not belong to this run"), "{refused}");
    // With one of the runs it is ours.
    fs::write(folder.join("one/spec.toml"), "").unwrap();
    let ours = RunsFolder::open(&folder, &runs).unwrap();
    for _ in 0..2 {
        ours.write("report.html", b"all").unwrap();
    }
    assert_eq!(fs::read_to_string(folder.join("report.html")).unwrap(), "all");
    // Its files are no target for anything else.
    for name in ["report.html", "verdicts.json", "notes/new.html"] {
        let refused = write_file(&folder.join(name), b"<ours>", Replace::Any).unwrap_err();
        assert!(refused.to_string().contains("a file of the run in"), "{refused}");
    }
    assert_eq!(names(&folder), [".runs", "one", "report.html"]);
    // Also when its last run was deleted.
    fs::remove_file(folder.join("one/spec.toml")).unwrap();
    RunsFolder::open(&folder, &runs).unwrap();
    fs::write(folder.join("one/spec.toml"), "").unwrap();
    // And that of a single run is none of several.
    let refused = RunsFolder::open(&folder.join("one"), &runs).unwrap_err();
    assert!(refused.to_string().contains("that of a single run"), "{refused}");
}
