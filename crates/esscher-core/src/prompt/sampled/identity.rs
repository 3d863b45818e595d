//! What a simulation is known by, so that units of different ones are never folded together.

use super::SampleOptions;
use crate::attention::Softmax;
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::prompt::PromptLength;
use std::fmt::{self, Write};

/// Which simulation a unit belongs to. Units of different ones are never folded together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleIdentity {
    /// How it is simulated.
    pub options: SampleOptions,
    /// A digest of head, token law, query law and lengths.
    ///
    /// Laws enter by their `Debug` text: within one version of the library two laws of our families agree in it
    /// only if they are the same; a custom law is known by its dimension alone.
    pub digest: u64,
}

/// Whether a unit is of the simulation expected.
pub(super) fn check_same(expected: SampleIdentity, found: SampleIdentity) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::OtherSimulation { expected: expected.digest, found: found.digest })
}

/// FNV-1a over the words and texts that are written to it.
pub(super) struct Digest(u64);

impl Digest {
    pub(super) fn of(
        head: &Softmax,
        tokens: &dyn Measure,
        queries: &dyn Measure,
        lengths: &[PromptLength],
    ) -> u64 {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        for matrix in [head.score(), head.value()] {
            digest.word(matrix.nrows() as u64);
            digest.word(matrix.ncols() as u64);
            for column in 0..matrix.ncols() {
                (0..matrix.nrows()).for_each(|row| digest.word(matrix[(row, column)].to_bits()));
            }
        }
        lengths.iter().for_each(|length| digest.word(length.get()));
        // Writing to a digest does not fail.
        let _ = write!(digest, "{tokens:?} {queries:?}");
        digest.0
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn word(&mut self, word: u64) {
        word.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.byte(byte));
        Ok(())
    }
}
