//! A model as safetensors bytes: its weights by name, and its specification in the metadata.

use super::model::{Model, Weight};
use super::specification::ModelSpecification;
use crate::error::{Error, Result};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// The name of the specification in the metadata.
const SPECIFICATION: &str = "specification";

impl Model {
    /// The model as safetensors bytes; equal models, equal bytes.
    ///
    /// # Errors
    /// More weights than the format can name.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes: Vec<Vec<u8>> = self
            .weights()
            .iter()
            .map(|weight| weight.numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
            .collect();
        let views = self
            .weights()
            .iter()
            .zip(&bytes)
            .map(|(weight, bytes)| {
                Ok((weight.name.clone(), TensorView::new(Dtype::F32, weight.shape.clone(), bytes)?))
            })
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(damaged)?;
        // One entry only: the order of several is not fixed.
        let metadata = [(SPECIFICATION.to_string(), self.specification().describe())].into();
        safetensors::serialize(views, Some(metadata)).map_err(damaged)
    }

    /// The model of this specification with the weights that [`Model::to_bytes`] wrote.
    ///
    /// # Errors
    /// Bytes that are not a whole safetensors file, another specification, or weights that are missing, superfluous, of other
    /// sizes or not finite.
    pub fn from_bytes(specification: ModelSpecification, bytes: &[u8]) -> Result<Self> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let stored = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let described = metadata.metadata().as_ref().and_then(|entries| entries.get(SPECIFICATION));
        compare(&specification.describe(), described.map_or("", String::as_str))?;
        let mut model = Model::new(specification, 0)?;
        if let Some(name) =
            stored.names().into_iter().find(|&name| !model.weights().iter().any(|weight| weight.name == name))
        {
            return Err(Error::Stored {
                what: format!("the weight {name:?}"),
                expected: "none".to_string(),
                found: "one".to_string(),
            });
        }
        for weight in model.weights_mut() {
            weight.numbers = read(weight, &stored)?;
        }
        Ok(model)
    }
}

fn damaged(error: safetensors::SafeTensorError) -> Error {
    Error::Stored {
        what: "the bytes".to_string(),
        expected: "a whole safetensors file".to_string(),
        found: error.to_string(),
    }
}

/// Names the first line in which two specifications differ.
fn compare(expected: &str, found: &str) -> Result<()> {
    let mut found = found.lines();
    for expected in expected.lines() {
        let found = found.next().unwrap_or("nothing");
        if expected != found {
            return Err(Error::Stored {
                what: "the specification".to_string(),
                expected: format!("{expected:?}"),
                found: format!("{found:?}"),
            });
        }
    }
    Ok(())
}

fn read(weight: &Weight, stored: &SafeTensors<'_>) -> Result<Vec<f32>> {
    let refuse = |expected: String, found: String| {
        Err(Error::Stored { what: format!("the weight {:?}", weight.name), expected, found })
    };
    let Ok(view) = stored.tensor(&weight.name) else {
        return refuse("one".to_string(), "none".to_string());
    };
    if view.dtype() != Dtype::F32 || view.shape() != weight.shape {
        return refuse(
            format!("{:?} of {:?}", Dtype::F32, weight.shape),
            format!("{:?} of {:?}", view.dtype(), view.shape()),
        );
    }
    let (words, _) = view.data().as_chunks::<4>();
    let numbers: Vec<f32> = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => refuse("finite numbers".to_string(), format!("{} at place {place}", numbers[place])),
        None => Ok(numbers),
    }
}
