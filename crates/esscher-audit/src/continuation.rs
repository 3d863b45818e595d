//! How a model goes on with a prompt: the likeliest token after token, whatever its cache is.

use crate::Error;
use crate::decoding::MixedCache;
use crate::model::Model;
use esscher_core::Monitor;

/// So many tokens after a prompt, each the likeliest after those before it; the cache is empty. None in the place of a token after which
/// nothing is a number, and of all that would follow. Nothing if the monitor asked to stop.
///
/// # Errors
/// An empty prompt, one that is longer with its continuation than the model's context, a cache that is not empty or of another model.
pub fn continued(
    model: &Model,
    prompt: &[u32],
    count: usize,
    mut cache: MixedCache,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<Option<u32>>>, Error> {
    let width = model.shape().width;
    let mut written: Vec<Option<u32>> = Vec::with_capacity(count);
    let (mut tokens, mut start) = (prompt.to_vec(), 0);
    while written.len() < count {
        let Some(hidden) = model.forward(&tokens, start, &mut cache, monitor)? else { return Ok(None) };
        start += tokens.len();
        let logits = model.logits(hidden.get(hidden.len() - width..).unwrap_or_default())?;
        let Some(next) = likeliest(&logits) else {
            written.resize(count, None);
            break;
        };
        written.push(Some(next));
        tokens = vec![next];
        monitor.progress(written.len(), count);
    }
    Ok(Some(written))
}

/// Nothing if something is not a number. Of equal ones the first.
fn likeliest(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (token, &logit) in logits.iter().enumerate() {
        if logit.is_nan() {
            return None;
        }
        if best.is_none_or(|(_, highest)| logit > highest) {
            best = Some((token, logit));
        }
    }
    best.and_then(|(token, _)| u32::try_from(token).ok())
}

#[cfg(test)]
mod tests {
    use super::likeliest;

    #[test]
    fn of_equal_tokens_the_first_is_taken_and_of_no_numbers_none() {
        assert_eq!(likeliest(&[0.5, 2.0, 2.0, f32::NEG_INFINITY]), Some(1));
        assert_eq!(likeliest(&[0.5, f32::NAN, 2.0]), None);
        assert_eq!(likeliest(&[]), None);
    }
}
