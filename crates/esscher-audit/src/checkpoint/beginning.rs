//! What the beginning of a file tells before the rest is read: its format, and whether the file is as long as its header says.

use super::{Format, gguf, llama2c, safetensors};
use crate::Error;

/// What is known from the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// A file of this format whose length is what its header announces; an archive has no header to compare with.
    Of(Format),
    /// More of the file decides: so many of its first bytes, which it has.
    Needs(u64),
}

/// The bytes to begin with: headers are seldom longer.
pub const FIRST_BYTES: u64 = 1 << 20;

impl Beginning {
    /// What the first bytes tell of a file of `length` bytes; `name` is for messages.
    ///
    /// ```
    /// use esscher_audit::checkpoint::Beginning;
    /// let refused = Beginning::read("z.gguf", &[0; 64], 20 << 30).unwrap_err();
    /// assert!(refused.to_string().starts_with("z.gguf: a file of 21474836480 bytes of unknown format"));
    /// ```
    ///
    /// # Errors
    /// A format that is not known, a damaged header, a file that is shorter or longer than its header says.
    pub fn read(name: &str, first: &[u8], length: u64) -> Result<Self, Error> {
        let most = usize::try_from(length).map_or(first.len(), |length| length.min(first.len()));
        let first = first.get(..most).unwrap_or_default();
        let format = Format::of_beginning(name, first, length)?;
        let enough = match format {
            Format::Gguf => gguf::announces(name, first, length)?,
            Format::Safetensors => safetensors::announces(name, first, length)?,
            Format::Llama2c => llama2c::announces(name, first, length)?,
            Format::Npz => true,
        };
        if enough {
            return Ok(Beginning::Of(format));
        }
        let more = (first.len() as u64).saturating_mul(4).max(FIRST_BYTES).min(length);
        Ok(Beginning::Needs(more))
    }
}
