//! Arrays in NumPy's formats, read with care: what a file holds is known before anything is unpacked or reserved.
//!
//! [`Header`] is how every `.npy` begins; [`Archive`] is a `.npz`, which holds several of them.

mod archive;
mod header;

pub use archive::{Archive, ArchiveError, Member};
pub use header::{Header, HeaderError, NumberType};
