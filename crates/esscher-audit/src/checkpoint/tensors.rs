//! The tensors of a file by name: taken once each, with the shape that the architecture asks for.

use std::collections::BTreeMap;

use crate::Error;
use crate::weights::{Matrix, Storage};

/// A tensor as it lies in its file.
pub(super) struct Stored<'a> {
    /// The format of its numbers.
    pub(super) storage: Storage,
    /// Sizes, the slowest first.
    pub(super) shape: Vec<usize>,
    /// As many as shape and storage ask for.
    pub(super) bytes: &'a [u8],
}

/// The tensors that nobody has taken yet.
pub(super) struct Tensors<'a> {
    file: &'a str,
    tensors: BTreeMap<&'a str, Stored<'a>>,
    /// What to do where one is missing.
    pub(super) remedy: &'static str,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        let remedy = "if the file is one of several shards, join them";
        Tensors { file, tensors: BTreeMap::new(), remedy }
    }

    pub(super) fn insert(&mut self, name: &'a str, tensor: Stored<'a>) -> Result<(), Error> {
        match self.tensors.insert(name, tensor) {
            None => Ok(()),
            Some(_) => Err(self.damaged(format!("tensor `{}` occurs twice", shown(name)))),
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.tensors.keys().copied()
    }

    /// The sizes of a tensor.
    pub(super) fn shape(&self, name: &str) -> Result<&[usize], Error> {
        self.tensors.get(name).map(|tensor| tensor.shape.as_slice()).ok_or_else(|| self.missing(name))
    }

    pub(super) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, Error> {
        let tensor = self.take(name, &[rows, columns])?;
        Matrix::from_bytes(name, tensor.storage, rows, columns, tensor.bytes.to_vec())
    }

    pub(super) fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, Error> {
        let tensor = self.take(name, &[length])?;
        vector(name, tensor.storage, tensor.bytes)
    }

    /// All numbers of a tensor of the given shape, in its order.
    pub(super) fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let tensor = self.take(name, shape)?;
        vector(name, tensor.storage, tensor.bytes)
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Stored<'a>, Error> {
        let tensor = self.tensors.remove(name).ok_or_else(|| self.missing(name))?;
        // Without numbers there is nothing to run, and a product of sizes would say nothing about each of them.
        let found = &tensor.shape;
        if found.contains(&0) {
            return Err(
                self.damaged(format!("tensor `{name}` has shape {found:?}, expected sizes of at least 1"))
            );
        }
        if found != shape {
            return Err(self.damaged(format!("tensor `{name}` has shape {found:?}, expected {shape:?}")));
        }
        Ok(tensor)
    }

    /// Refuses what is left: a bias that nobody adds would make every number quietly wrong.
    pub(super) fn finish(self, layout: &str) -> Result<(), Error> {
        match self.tensors.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::Unsupported {
                what: format!("{}: tensor `{}`", self.file, shown(name)),
                problem: format!(
                    "{layout} here has no such tensor, and leaving it out could change the result; remove it if it is \
                     not needed, otherwise record queries, keys and values as a dump"
                ),
            }),
        }
    }

    fn missing(&self, name: &str) -> Error {
        self.damaged(format!("tensor `{name}` is missing; {}", self.remedy))
    }

    fn damaged(&self, problem: String) -> Error {
        Error::Damaged { what: self.file.to_string(), problem }
    }
}

/// A name from a file, short enough for a message.
pub(crate) fn shown(name: &str) -> String {
    let short = esscher_core::visible(&name.chars().take(60).collect::<String>());
    if name.chars().nth(60).is_some() { format!("{short}…") } else { short }
}

/// JSON as editors of other systems write it: with a mark of its byte order before it.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// A number that is positive and finite in single precision, in which models compute.
pub(super) fn positive_single(number: f64) -> Option<f32> {
    Some(number as f32).filter(|single| *single > 0.0 && single.is_finite())
}

/// What [`positive_single`] takes.
pub(super) const POSITIVE_SINGLE: &str =
    "a number from 1e-45 to 3.4e38, the positive ones of single precision";

/// Bytes of a tensor -> single precision, all finite. The bytes are a whole number of blocks.
pub(super) fn vector(name: &str, storage: Storage, bytes: &[u8]) -> Result<Vec<f32>, Error> {
    let (numbers, size) = storage.block();
    let length = bytes.len() / size * numbers;
    // A matrix of one row checks and decodes like any other.
    let matrix = Matrix::from_bytes(name, storage, 1, length, bytes.to_vec())?;
    let mut vector = vec![0.0; length];
    matrix.write_row(0, &mut vector);
    Ok(vector)
}
