//! What a tokenizer.json must hold before the library reads it: its reader trusts files in places where a hostile one makes it panic
//! or ask for gigabytes.

use crate::Error;
use crate::checkpoint::{json, shown};
use serde_json::{Map, Value};

/// What a tokenizer.json holds.
const KEYS: [&str; 9] = [
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
];

/// So many times as long a text, or that of a token, may become: far more than with any tokeniser of the field (12 with Llama's), and
/// little enough for memory and time.
const MOST_GROWTH: usize = 64;

/// Refuses keys that are none or occur twice, templates with tokens that are not there, merges of what are no tokens, compiled
/// normalisers, steps on which the library panics, and steps under which texts explode.
pub(super) fn check(file: &str, bytes: &[u8]) -> Result<(), Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let json = json::parse(bytes).map_err(damaged)?;
    // The library stumbles over any other.
    let unknown =
        |values: &Map<String, Value>| values.keys().find(|key| !KEYS.contains(&key.as_str())).cloned();
    if let Some(key) = json.as_object().and_then(unknown) {
        let (key, keys) = (shown(&key), KEYS.join(", "));
        return Err(damaged(format!("unknown key `{key}`; a tokenizer.json has {keys}")));
    }
    if holds_type(&json["normalizer"], "Precompiled") {
        return Err(Error::Unsupported {
            what: format!("{file}: a normaliser of type `Precompiled`"),
            problem:
                "only those that the file spells out are supported; record queries, keys and values as a dump"
                    .to_string(),
        });
    }
    for (what, steps) in [
        ("normaliser and pre-tokeniser", [&json["normalizer"], &json["pre_tokenizer"]].as_slice()),
        ("decoder", &[&json["decoder"]]),
    ] {
        let mut most: usize = 1;
        for step in steps {
            most = most.saturating_mul(growth(step).map_err(damaged)?);
        }
        if most > MOST_GROWTH {
            return Err(Error::Unsupported {
                what: format!("{file}: a text that its {what} may make {most} times as long"),
                problem: format!(
                    "at most {MOST_GROWTH} times is supported; record queries, keys and values as a dump"
                ),
            });
        }
    }
    template(&json["post_processor"]).map_err(damaged)?;
    merges(&json["model"]).map_err(damaged)
}

/// Whether a value, or anything inside it, says that it is of this type.
fn holds_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(entries) => {
            entries.get("type").and_then(Value::as_str) == Some(name)
                || entries.values().any(|value| holds_type(value, name))
        }
        Value::Array(values) => values.iter().any(|value| holds_type(value, name)),
        _ => false,
    }
}

/// A bound on how many times as long a text becomes in these steps, one after the other. Steps are known by their keys, for the library
/// takes them without a type, and passes over keys that a step does not have: of several kinds the one that grows most counts. Those that change nothing a second time, such as NFKD, count as 1.
fn growth(value: &Value) -> Result<usize, String> {
    let (own, inside) = match value {
        Value::Object(step) => (growth_of_step(step)?, step.values().collect()),
        Value::Array(steps) => (1, steps.iter().collect()),
        _ => (1, Vec::new()),
    };
    inside.into_iter().try_fold(own, |most, step| Ok(most.saturating_mul(growth(step)?)))
}

fn growth_of_step(step: &Map<String, Value>) -> Result<usize, String> {
    let text = |key: &str| step.get(key).and_then(Value::as_str);
    if step.get("length").and_then(Value::as_u64) == Some(0) {
        return Err("its pre-tokeniser `FixedLength` has length 0, expected at least 1".to_string());
    }
    let mut most = 1_usize;
    let mut at_most = |times: usize| most = most.max(times);
    if let Some((pattern, content)) = step.get("pattern").zip(text("content")) {
        // Of a regular expression the shortest match is not known.
        let shortest = pattern["String"].as_str().map_or(1, str::len);
        if shortest == 0 {
            return Err("its step `Replace` has an empty pattern, expected one letter or more".to_string());
        }
        at_most(content.len().div_ceil(shortest));
    }
    // What is put before a text may be put before every letter, where other steps cut it.
    match text("prepend") {
        Some("") => {
            return Err("its normaliser `Prepend` has an empty text, expected one letter or more".to_string());
        }
        Some(prepended) => at_most(1 + prepended.len()),
        None => {}
    }
    // Blanks become the replacement, and one is put before the text.
    if let Some(replacement) = text("replacement") {
        at_most(2 * replacement.len());
    }
    // Bytes become letters of two bytes, and a blank is put before the text.
    if text("type") == Some("ByteLevel") || step.contains_key("trim_offsets") {
        at_most(4);
    }
    // Blanks around a letter of three bytes; a blank for an empty suffix; a blank for what stands between words, which may be nothing.
    if ["handle_chinese_chars", "suffix", "word_delimiter_token"].iter().any(|key| step.contains_key(*key)) {
        at_most(2);
    }
    Ok(most)
}

/// Every template around a single text: the text is `A`, and the other pieces are among its special tokens.
fn template(processor: &Value) -> Result<(), String> {
    for inner in processor["processors"].as_array().into_iter().flatten() {
        template(inner)?;
    }
    if processor["type"].as_str() != Some("TemplateProcessing") {
        return Ok(());
    }
    for piece in processor["single"].as_array().into_iter().flatten() {
        let special = piece["SpecialToken"]["id"].as_str();
        let known = special.is_some_and(|id| processor["special_tokens"].get(id).is_some());
        if !known && piece["Sequence"]["id"].as_str() != Some("A") {
            return Err(format!(
                "its template has the piece `{}`, expected the text `A` or one of its special tokens",
                shown(&piece.to_string())
            ));
        }
    }
    Ok(())
}

/// Every merge: both parts and what they make are tokens.
fn merges(model: &Value) -> Result<(), String> {
    let prefix = model["continuing_subword_prefix"].as_str().unwrap_or_default();
    for merge in model["merges"].as_array().into_iter().flatten() {
        let pair = match merge {
            Value::String(text) => text.split_once(' '),
            Value::Array(parts) => match parts.as_slice() {
                [Value::String(left), Value::String(right)] => Some((left.as_str(), right.as_str())),
                _ => None,
            },
            _ => None,
        };
        let refused = |why: &str| format!("merge `{}` {why}", shown(&merge.to_string()));
        let (left, right) = pair.ok_or_else(|| refused("is not two tokens"))?;
        let continued =
            right.strip_prefix(prefix).ok_or_else(|| refused("lacks the prefix of its second part"))?;
        for token in [left, right, format!("{left}{continued}").as_str()] {
            if model["vocab"].get(token).is_none() {
                return Err(refused(&format!("needs `{}`, which is not a token", shown(token))));
            }
        }
    }
    Ok(())
}
