//! What lies where a file is expected, and clients that are abandoned or speak of a full disk.
#![cfg(unix)]

use esscher_models::{
    ModelError, ModelStore, NamedModel, Package, PackedFile, Parts, Registry, TextChoice, abandon_fetch,
};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const SAFETENSORS: &[u8] = b"\x02\0\0\0\0\0\0\0{}";

fn store(folder: &Path) -> ModelStore {
    let file = PackedFile { path: "package/weights.bin", bytes: 3, sha256: "00" };
    let package = Package { registry: Registry::Npm, name: "some-package", version: "1.2.3", bytes: 3 };
    let model = NamedModel {
        name: "tiny",
        aliases: &[],
        what: "for tests",
        licence: "MIT",
        package,
        files: Parts::alone(file),
    };
    ModelStore {
        cache: Some(folder.join("cache")),
        models: Box::leak(Box::new([model])),
        search_path: Some(folder.join("bin").into()),
    }
}

fn client(folder: &Path, script: &str) {
    fs::create_dir_all(folder.join("bin")).unwrap();
    let path = folder.join("bin/npm");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// One client at a time: to abandon is to abandon all, and a script that another thread's child still holds open cannot be started.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parts_in(folder: &Path) -> usize {
    let names = fs::read_dir(folder.join("cache/tiny")).into_iter().flatten();
    names.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".part-")).count()
}

#[test]
fn what_is_no_file_beside_a_checkpoint_is_not_taken_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().join("model.safetensors");
    fs::write(&weights, SAFETENSORS).unwrap();
    let store = store(folder.path());
    let found = || store.find(weights.to_str().unwrap(), &|_| {});
    assert!(found().unwrap().configuration.is_none(), "nothing is there");
    for name in ["config.json", "tokenizer.json"] {
        let path = folder.path().join(name);
        let refused = || found().unwrap_err().to_string();
        fs::create_dir(&path).unwrap();
        assert!(refused().ends_with(&format!("{name}: it is a folder, expected a file")), "{}", refused());
        fs::remove_dir(&path).unwrap();
        for (target, kind) in
            [("/dev/zero", "a device, expected a file"), ("nowhere", "a link that leads nowhere")]
        {
            symlink(target, &path).unwrap();
            assert!(refused().ends_with(&format!("{name}: it is {kind}")), "{}", refused());
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn what_is_no_file_in_the_cache_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache/tiny/weights.bin");
    fs::create_dir_all(&path).unwrap();
    let refused = store(folder.path()).find("tiny", &|_| {}).unwrap_err().to_string();
    assert_eq!(refused, format!("cannot read {}: it is a folder, expected a file", path.display()));
}

#[test]
fn an_abandoned_fetch_ends_its_client_and_leaves_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (told, store) = (folder.path().join("pid"), store(folder.path()));
    client(folder.path(), &format!("echo $$ > {}\nexec /bin/sleep 600", told.display()));
    let began = Instant::now();
    let refused = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| store.find("tiny", &|_| {}).unwrap_err());
        let pid = || fs::read_to_string(&told).unwrap_or_default().trim().to_string();
        while pid().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "the client does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(parts_in(folder.path()), 1);
        abandon_fetch();
        assert!(!Path::new("/proc").join(pid()).exists(), "the client goes on");
        assert_eq!(parts_in(folder.path()), 0);
        fetching.join().unwrap()
    });
    assert!(
        matches!(&refused, ModelError::ClientFailed { said, .. } if said == "it was stopped"),
        "{refused}"
    );
}

/// On a full disk a client could not even say so.
#[test]
fn the_words_of_a_client_do_not_go_where_its_package_goes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    client(folder.path(), "for file in *; do echo \"error: there is $file\"; done\nexit 1");
    let refused = store(folder.path()).find("tiny", &|_| {}).unwrap_err().to_string();
    assert!(refused.ends_with("failed: error: there is *"), "{refused}");
}

#[test]
fn a_text_in_utf_16_is_told_how_to_be_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.txt");
    for (bytes, likely) in
        [(&b"\xff\xfea\0b\0"[..], "utf-16"), (b"\xfe\xff\0a\0b", "utf-16"), (b"caf\xe9", "latin1")]
    {
        fs::write(&path, bytes).unwrap();
        let hint = TextChoice::find(path.to_str().unwrap()).unwrap_err().hint().unwrap();
        assert_eq!(hint, format!("convert it, for example with `iconv -f {likely} -t utf-8`"));
    }
}
