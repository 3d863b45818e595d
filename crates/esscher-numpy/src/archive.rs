//! Archives of arrays (`.npz`), which may unpack to a bounded multiple of their own size.

use std::io::{Read, Seek, Take};
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

/// What an archive may unpack to, in times of its own size: random numbers in single precision hardly shrink, so that more is a
/// few numbers over and over, or an attack on the memory.
const LARGEST_EXPANSION: u64 = 16;

/// A `.npz` archive.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    /// Of the archive itself.
    bytes: u64,
    /// What may still be unpacked.
    room: u64,
}

/// The stream of an array inside an archive, with its header.
pub struct Member<'a, R: Read + Seek> {
    /// Ends at the announced size, or one byte later if the archive told a lie.
    pub stream: Take<ZipFile<'a, R>>,
    /// The announced size.
    pub bytes: u64,
}

/// Why an array of an archive is not there.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are no archive.
    #[error("{0}")]
    NotSound(ZipError),
    /// Two arrays of one name: programs differ in which of the two they take.
    #[error("two of its arrays have the same name")]
    SameName,
    /// The array does not unpack.
    #[error("it does not unpack: {0}")]
    NotUnpacked(ZipError),
    /// It would take too much memory.
    #[error("the archive unpacks to more than {LARGEST_EXPANSION} times its {bytes} bytes")]
    TooLarge {
        /// Of the archive.
        bytes: u64,
    },
}

impl<R: Read + Seek> Archive<R> {
    /// The archive in a stream of so many bytes. Beyond a multiple of these, it may unpack to `free` more: identities and masks shrink
    /// to nearly nothing.
    ///
    /// # Errors
    /// Bytes that are no archive, or one with two arrays of the same name.
    pub fn open(stream: R, bytes: u64, free: u64) -> Result<Self, ArchiveError> {
        let zip = ZipArchive::new(stream).map_err(ArchiveError::NotSound)?;
        if zip.has_duplicate_names() {
            return Err(ArchiveError::SameName);
        }
        Ok(Archive { zip, bytes, room: bytes.saturating_mul(LARGEST_EXPANSION).saturating_add(free) })
    }

    /// The names of its arrays, in the order of the archive.
    pub fn names(&self) -> Vec<String> {
        let names =
            self.zip.file_names().filter_map(|name| name.ok()?.strip_suffix(".npy").map(str::to_string));
        names.collect()
    }

    /// The array of this name.
    ///
    /// # Errors
    /// No such array, one that is packed in an unknown way, or more than may be unpacked, the arrays before it included.
    pub fn array(&mut self, name: &str) -> Result<Member<'_, R>, ArchiveError> {
        let member = self.zip.by_name(&format!("{name}.npy")).map_err(ArchiveError::NotUnpacked)?;
        let bytes = member.size();
        self.room = self.room.checked_sub(bytes).ok_or(ArchiveError::TooLarge { bytes: self.bytes })?;
        // What the archive declares may be a lie: the stream is cut as well.
        Ok(Member { stream: member.take(bytes.saturating_add(1)), bytes })
    }
}
