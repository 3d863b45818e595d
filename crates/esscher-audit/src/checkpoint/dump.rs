//! Dumps: queries, keys and values of any model on one text, recorded elsewhere.
//!
//! One file per text, `.safetensors` or `.npz`, with for every layer i from 0:
//!
//! | tensor | sizes | |
//! |---|---|---|
//! | `layer.{i}.queries` | tokens, heads, d | positions applied |
//! | `layer.{i}.keys` | tokens, key-value heads, d | positions applied |
//! | `layer.{i}.values` | tokens, key-value heads, d | |
//! | `layer.{i}.residual` | tokens, width | optional: the stream that the layer's output is added to |
//! | `layer.{i}.output` | width, heads · d | optional: the output projection |
//! | `scale` | 1 | optional: what queries are multiplied by; 1/√d without it |
//!
//! and `order`, `causal` or `whole`: an entry of the metadata of safetensors, an array of one text in `.npz`.

use std::io::{Cursor, Read};

use esscher_numpy::{Archive, ArchiveError, Header};

use sha2::{Digest, Sha256};

use super::safetensors;
use super::tensors::{POSITIVE_SINGLE, Stored, Tensors, shown};
use crate::Error;
use crate::head::LARGEST_DIMENSION;
use crate::model::{LayerInput, OutputProjection, Shape};
use crate::weights::Storage;

/// What all heads of a model saw of one text.
#[derive(Debug, Clone)]
pub struct Dump {
    /// The vocabulary is 0, the context that of the text; the width is 0 if no layer says it.
    pub shape: Shape,
    /// What each layer saw, the first layer first.
    pub layers: Vec<DumpLayer>,
}

/// What the heads of a layer saw.
#[derive(Debug, Clone)]
pub struct DumpLayer {
    /// Scaled queries: tokens × heads × head dimension.
    pub tilts: Vec<f32>,
    /// Tokens × key-value heads × head dimension.
    pub keys: Vec<f32>,
    /// Tokens × key-value heads × head dimension.
    pub values: Vec<f32>,
    /// The stream that the layer's output is added to: tokens × width.
    pub residual: Option<Vec<f32>>,
    /// The output projection: width × heads · head dimension.
    pub output: Option<Vec<f32>>,
}

/// What an archive may unpack to beyond a multiple of its size: floating-point numbers hardly compress.
const FREE_EXPANSION: u64 = 1 << 20;

/// Whether the bytes begin like a zip archive.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The last bytes of a zip archive that [`ends_like_archive`] looks at: its closing record with the longest comment.
pub const LONGEST_ENDING: u64 = 22 + 65_535;

/// Refuses an archive without its closing record: a truncated one is not worth reading.
///
/// # Errors
/// Last bytes that hold no such record.
pub fn ends_like_archive(name: &str, last: &[u8]) -> Result<(), Error> {
    match last.windows(4).any(|bytes| bytes == b"PK\x05\x06") {
        true => Ok(()),
        false => Err(Error::Damaged {
            what: name.to_string(),
            problem: "not a sound .npz archive: its closing record is missing; it may be truncated"
                .to_string(),
        }),
    }
}

/// Whether safetensors are a dump and not a model.
pub(super) fn is_dump(file: &str, bytes: &[u8]) -> bool {
    let holds_layers =
        |parsed: ::safetensors::SafeTensors<'_>| parsed.names().iter().any(|name| layer_of(name).is_some());
    safetensors::parse(file, bytes).is_ok_and(holds_layers)
}

/// Whether a file that begins so is a dump: an archive, or safetensors whose header, as far as it is in these bytes, names queries, keys
/// or values of a layer. It may be damaged all the same.
pub fn begins_like_dump(beginning: &[u8]) -> bool {
    let named = |header: &[u8]| {
        let mut texts = header.split(|byte| *byte == b'"');
        texts.any(|text| str::from_utf8(text).is_ok_and(|text| layer_of(text).is_some()))
    };
    match beginning {
        [a, b, c, d, e, f, g, h, header @ ..] if header.starts_with(b"{") => {
            let length = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            named(&header[..usize::try_from(length).unwrap_or(usize::MAX).min(header.len())])
        }
        _ => is_archive(beginning),
    }
}

/// The layer whose queries, keys or values have this name.
fn layer_of(name: &str) -> Option<usize> {
    let (layer, part) = name.strip_prefix("layer.")?.split_once('.')?;
    layer.parse().ok().filter(|_| ["queries", "keys", "values"].contains(&part))
}

impl Dump {
    /// What the heads of a layer are given on the whole text, as a model would give it; nothing if there is no such layer.
    /// Without a recorded stream the residual is empty.
    pub fn layer_input(&self, layer: usize) -> Option<LayerInput<'_>> {
        let seen = self.layers.get(layer)?;
        Some(LayerInput {
            layer,
            start: 0,
            count: self.shape.context,
            tilts: &seen.tilts,
            keys: &seen.keys,
            values: &seen.values,
            residual: seen.residual.as_deref().unwrap_or_default(),
        })
    }

    /// A checksum of what the heads saw: equal for one text in two files, however these are written.
    pub fn sum_of_arrays(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for DumpLayer { tilts, keys, values, .. } in &self.layers {
            for numbers in [tilts, keys, values].into_iter().flat_map(|table| table.chunks(1 << 12)) {
                // Minus zero is zero.
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| (number + 0.0).to_le_bytes()).collect();
                hasher.update(&bytes);
            }
        }
        hasher.finalize().into()
    }

    /// The output projection of a layer, if it was recorded.
    pub fn output_projection(&self, layer: usize) -> Option<OutputProjection> {
        let output = self.layers.get(layer)?.output.as_ref()?;
        let columns = self.shape.heads * self.shape.head_dimension;
        Some(OutputProjection::of_rows(output, columns, self.shape.heads))
    }

    /// The first layer without residual stream or without output projection, where no error relative to the stream can be told.
    pub fn first_layer_without_stream(&self) -> Option<usize> {
        self.layers.iter().position(|layer| layer.residual.is_none() || layer.output.is_none())
    }

    /// Reads a dump from the bytes of a `.safetensors` or `.npz` file; `name` is for messages.
    ///
    /// # Errors
    /// A damaged file, layers that are missing or not alike, numbers that are not finite, no order.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        if is_archive(bytes) {
            let (arrays, order) = read_arrays(name, bytes)?;
            let mut tensors = Tensors::new(name);
            for Array { name, storage, shape, bytes } in &arrays {
                tensors.insert(name, Stored { storage: *storage, shape: shape.clone(), bytes })?;
            }
            return Self::assemble(name, tensors, order.as_deref());
        }
        let parsed = safetensors::parse(name, bytes)?;
        let metadata = ::safetensors::SafeTensors::read_metadata(bytes).ok();
        let metadata = metadata.and_then(|(_, metadata)| metadata.metadata().clone());
        let order = metadata.as_ref().and_then(|metadata| metadata.get("order"));
        let tensors = safetensors::tensors(name, &parsed, |_| false)?;
        Self::assemble(name, tensors, order.map(String::as_str))
    }

    fn assemble(file: &str, mut tensors: Tensors<'_>, order: Option<&str>) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        tensors.remedy = "record the text again";
        let order = order.and_then(|word| word.parse().ok()).ok_or_else(|| {
            let found = order.map_or("nothing".to_string(), |word| format!("`{}`", shown(word)));
            damaged(format!("`order` must be `causal` or `whole`, found {found}"))
        })?;
        let sizes = |name: &str, tensors: &Tensors<'_>| match *tensors.shape(name)? {
            [tokens, heads, dimension] if tokens > 0 && heads > 0 && dimension > 0 => {
                Ok([tokens, heads, dimension])
            }
            ref found => Err(damaged(format!(
                "tensor `{name}` has shape {found:?}, expected three positive sizes: tokens, heads, head dimension"
            ))),
        };
        let [tokens, heads, head_dimension] = sizes("layer.0.queries", &tensors)?;
        let [_, key_value_heads, _] = sizes("layer.0.keys", &tensors)?;
        if head_dimension > LARGEST_DIMENSION {
            return Err(damaged(format!(
                "heads have {head_dimension} numbers, expected at most {LARGEST_DIMENSION}"
            )));
        }
        if heads % key_value_heads != 0 {
            return Err(damaged(format!(
                "{heads} heads cannot share {key_value_heads} key-value heads evenly"
            )));
        }
        let scale = match tensors.contains("scale") {
            false => 1.0 / (head_dimension as f32).sqrt(),
            true => {
                let shape = tensors.shape("scale")?.to_vec();
                match numbers(file, &mut tensors, "scale", &shape)?.as_slice() {
                    [scale] if *scale > 0.0 => *scale,
                    found => {
                        let found = match found {
                            [one] => format!("{one} in single precision"),
                            several => format!("{} numbers", several.len()),
                        };
                        return Err(damaged(format!("`scale` must be {POSITIVE_SINGLE}, found {found}")));
                    }
                }
            }
        };
        let mut width = 0;
        let mut layers = Vec::new();
        let last = tensors.names().filter_map(layer_of).max();
        while last.is_some_and(|last| layers.len() <= last) {
            let name = |part: &str| format!("layer.{}.{part}", layers.len());
            let mut tilts = numbers(file, &mut tensors, &name("queries"), &[tokens, heads, head_dimension])?;
            for tilt in &mut tilts {
                *tilt *= scale;
            }
            if tilts.iter().any(|tilt| !tilt.is_finite()) {
                let name = name("queries");
                return Err(damaged(format!(
                    "tensor `{name}` times `scale` is too large for single precision; check the scale"
                )));
            }
            let shape = [tokens, key_value_heads, head_dimension];
            let keys = numbers(file, &mut tensors, &name("keys"), &shape)?;
            let values = numbers(file, &mut tensors, &name("values"), &shape)?;
            for (part, axis) in [("residual", 1), ("output", 0)] {
                if width == 0 && tensors.contains(&name(part)) {
                    width = tensors.shape(&name(part))?.get(axis).copied().unwrap_or(0);
                }
            }
            let mut optional = |part: &str, shape: [usize; 2]| match tensors.contains(&name(part)) {
                true => numbers(file, &mut tensors, &name(part), &shape).map(Some),
                false => Ok(None),
            };
            let residual = optional("residual", [tokens, width])?;
            let output = optional("output", [width, heads.saturating_mul(head_dimension)])?;
            if residual.is_some() != output.is_some() {
                let (there, missing) = match residual {
                    Some(_) => ("residual", "output"),
                    None => ("output", "residual"),
                };
                return Err(damaged(format!(
                    "tensor `{}` comes without `{}`: record both or none",
                    name(there),
                    name(missing)
                )));
            }
            layers.push(DumpLayer { tilts, keys, values, residual, output });
        }
        tensors.finish("a dump")?;
        let shape = Shape {
            layers: layers.len(),
            heads,
            key_value_heads,
            head_dimension,
            width,
            vocabulary: 0,
            context: tokens,
            order,
        };
        Ok(Dump { shape, layers })
    }
}

/// The numbers of a tensor, all finite.
fn numbers(file: &str, tensors: &mut Tensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
    let tensor = format!("tensor `{name}`");
    tensors.numbers(name, shape).map_err(|error| match error {
        // What concerns the tensor and not the file is about its numbers, and speaks of weights; one of several dumps is meant.
        Error::Damaged { what, .. } if what == tensor => Error::Damaged {
            what: format!("{file}: {tensor}"),
            problem: "it has numbers that are not finite; record the text again".to_string(),
        },
        other => other,
    })
}

/// An array of an archive.
struct Array {
    name: String,
    storage: Storage,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The arrays of an archive, and the text of `order`.
fn read_arrays(file: &str, bytes: &[u8]) -> Result<(Vec<Array>, Option<String>), Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let length = bytes.len() as u64;
    let mut archive =
        Archive::open(Cursor::new(bytes), length, FREE_EXPANSION).map_err(|error| match error {
            ArchiveError::NotSound(_) => {
                damaged("not a sound .npz archive: it is truncated or damaged; write it again".to_string())
            }
            other => damaged(format!("not a sound .npz archive: {other}")),
        })?;
    let mut names = archive.names();
    names.sort();
    let (mut arrays, mut order) = (Vec::new(), None);
    for name in names {
        let damaged =
            |problem: String| Error::Damaged { what: format!("{file}: array `{}`", shown(&name)), problem };
        let mut member = archive.array(&name).map_err(|error| match error {
            ArchiveError::TooLarge { .. } => {
                damaged(format!("{error} and a mebibyte; write it with `numpy.savez`, uncompressed"))
            }
            other => damaged(other.to_string()),
        })?;
        let header =
            Header::read(&mut member.stream, member.bytes).map_err(|error| damaged(error.to_string()))?;
        if header.is_fortran && header.shape.len() > 1 {
            return Err(damaged(
                "it is in Fortran order; pass it through `numpy.ascontiguousarray`".to_string(),
            ));
        }
        let mut data = Vec::new();
        let unpacked = member.stream.read_to_end(&mut data);
        unpacked.map_err(|error| damaged(format!("it does not unpack: {error}")))?;
        let kind = header.number.to_string();
        if name == "order" {
            order = Some(text(&kind, &data).map_err(damaged)?);
        } else {
            let sides = header.shape.iter().map(|side| usize::try_from(*side));
            let shape = sides.collect::<Result<_, _>>().map_err(|error| damaged(error.to_string()))?;
            arrays.push(array(name.clone(), &kind, shape, &data).map_err(damaged)?);
        }
    }
    Ok((arrays, order))
}

fn array(name: String, kind: &str, shape: Vec<usize>, data: &[u8]) -> Result<Array, String> {
    let numbers = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    let expect = |size: usize| match numbers.and_then(|numbers| numbers.checked_mul(size)) {
        Some(bytes) if bytes == data.len() => Ok(()),
        _ => Err(format!("{shape:?} numbers of {size} bytes do not take {} bytes", data.len())),
    };
    let (storage, bytes) = match kind {
        "<f4" => {
            expect(4)?;
            (Storage::F32, data.to_vec())
        }
        "<f2" => {
            expect(2)?;
            (Storage::F16, data.to_vec())
        }
        "<f8" => {
            expect(8)?;
            let mut singles = Vec::with_capacity(data.len() / 2);
            for bytes in data.chunks_exact(8) {
                let mut double = [0; 8];
                double.copy_from_slice(bytes);
                let double = f64::from_le_bytes(double);
                let single = double as f32;
                if double.is_finite() && !single.is_finite() {
                    return Err(format!("{double:e} is too large for single precision; check the numbers"));
                }
                singles.extend(single.to_le_bytes());
            }
            (Storage::F32, singles)
        }
        _ => return Err(format!("its numbers are `{kind}`; `<f4`, `<f2` and `<f8` are supported")),
    };
    Ok(Array { name, storage, shape, bytes })
}

/// A NumPy text: four bytes per character, padded with zeros.
fn text(kind: &str, data: &[u8]) -> Result<String, String> {
    if !kind.starts_with("<U") {
        return Err(format!(
            "it is `{kind}`, expected `<U6` or `<U5`: write it as `numpy.array(\"causal\")` or `numpy.array(\"whole\")`"
        ));
    }
    let characters =
        data.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let characters = characters.take_while(|character| *character != 0).take(64);
    characters.map(|character| char::from_u32(character).ok_or("it is not text".to_string())).collect()
}
