//! Any mechanism on the tape: its chunked form over a batch forth, its hand-written backward pass back, in single precision.

use super::tape::{Tape, Tensor};
use crate::batch::{self, Layout};
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use std::sync::Arc;

/// Outputs of a mechanism (rows × heads · output) from its token ports (rows × heads · width each) and its parameters.
///
/// # Errors
/// Ports or parameters that are not those of the signature.
pub fn mix(
    tape: &mut Tape,
    mechanism: &Arc<dyn Mechanism>,
    layout: &Layout,
    tokens: &[Tensor],
    parameters: &[Tensor],
) -> Result<Tensor> {
    let signature = mechanism.signature();
    let count = |expected: usize, found: usize, what| {
        if expected == found { Ok(()) } else { Err(Error::Count { what, expected, found }) }
    };
    count(signature.tokens.len(), tokens.len(), "token ports")?;
    count(signature.parameters.len(), parameters.len(), "parameters")?;
    for (port, tensor) in signature.tokens.iter().zip(tokens) {
        let (expected, found) = (layout.rows() * layout.heads() * port.width, tensor.numbers().len());
        if expected != found {
            return Err(Error::Size { name: port.name, expected, found });
        }
    }
    for (parameter, tensor) in signature.parameters.iter().zip(parameters) {
        let copies = if parameter.shared { 1 } else { layout.heads() };
        let (expected, found) = (copies * parameter.size, tensor.numbers().len());
        if expected != found {
            return Err(Error::Size { name: parameter.name, expected, found });
        }
    }
    let inputs: Vec<&Tensor> = tokens.iter().chain(parameters).collect();
    let ports = tokens.len();
    let (back, backward_layout) = (Arc::clone(mechanism), layout.clone());
    // The sizes were checked above, and sizes are all that the two passes refuse.
    Ok(tape.operation(
        "mechanism",
        &inputs,
        layout.heads() * signature.output,
        |given| {
            let (tokens, parameters) = given.split_at(ports);
            let mut passed = batch::forward::<f32>(&**mechanism, layout, tokens, parameters, None)
                .unwrap_or_else(|error| unreachable!("{error}"));
            (std::mem::take(&mut passed.outputs), passed)
        },
        move |passed, given, slopes| {
            let (tokens, parameters) = given.split_at(ports);
            let gradient =
                batch::backward::<f32>(&*back, &backward_layout, tokens, parameters, &passed, &slopes, None)
                    .unwrap_or_else(|error| unreachable!("{error}"));
            gradient.tokens.into_iter().chain(gradient.parameters).collect()
        },
    ))
}
