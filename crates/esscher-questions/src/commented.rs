//! Specifications with the documentation of their keys as comments, from where the keys are declared.

use crate::questions;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Write;

/// Comments are broken at this many characters.
const LINE: usize = 100;

/// The same specification, one that Esscher ships, with a comment above each key that says what it means; a specification of a kind that
/// there is not stays as it is.
///
/// ```
/// let text = "kind = \"attend\"\ntokens = \"gaussian:2\"\nquery = [0.5, -1]\n";
/// let commented = esscher_questions::commented(text);
/// assert!(commented.contains("# One query, or a list of queries\nquery = [0.5, -1]\n"));
/// ```
pub fn commented(specification: &str) -> String {
    let kind = specification.lines().find_map(|line| line.strip_prefix("kind = ")).unwrap_or_default();
    let Some(question) = questions().iter().find(|question| question.name == kind.trim().trim_matches('"'))
    else {
        return specification.to_string();
    };
    let schema = question.schema();
    let (mut out, mut said) = (String::new(), HashSet::new());
    let mut table: Vec<&str> = Vec::new();
    // Lists may go on over several lines.
    let mut open = 0;
    for line in specification.lines() {
        if open == 0 {
            let path = match line.strip_prefix('[') {
                Some(heading) => {
                    table = heading.trim_matches(['[', ']']).split('.').collect();
                    Some(table.clone())
                }
                None => line.split_once('=').map(|(key, _)| [table.as_slice(), &[key.trim()]].concat()),
            };
            if let Some(path) = path.filter(|path| said.insert(path.clone())) {
                comment(&mut out, &documentation(&schema, &path));
            }
        }
        open += balance(line);
        out.push_str(line);
        out.push('\n');
    }
    let others = schema["properties"].as_object().into_iter().flat_map(|keys| keys.keys());
    let others = others.map(String::as_str).filter(|key| !key.starts_with('$'));
    let others: Vec<&str> = others.filter(|key| !said.contains([*key].as_slice())).collect();
    if !others.is_empty() {
        out.push('\n');
        comment(
            &mut out,
            &format!("Other keys for the top of this file, which may be left out: {}.", others.join(", ")),
        );
    }
    out
}

/// What the schema says of the key at this path, and which words it takes.
fn documentation(schema: &Value, path: &[&str]) -> String {
    let key = path.iter().fold(schema, |at, key| {
        let at = if at["items"].is_object() { &at["items"] } else { at };
        &at["properties"][*key]
    });
    let mut told = key["description"].as_str().unwrap_or_default().to_string();
    let words = key["enum"].as_array().or_else(|| key["items"]["enum"].as_array());
    let words: Vec<&str> = words.into_iter().flatten().filter_map(Value::as_str).collect();
    // A single word is no choice.
    if words.len() > 1 {
        let begin = told.trim_end_matches('.');
        told = format!("{begin}{}{}", if begin.is_empty() { "One of " } else { ": " }, words.join(", "));
    }
    told.trim_start().to_string()
}

fn comment(out: &mut String, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() + 3 > LINE {
            let _ = writeln!(out, "#{line}");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "#{line}");
    }
}

/// Brackets that a line opens and does not close; those in texts and comments do not count.
fn balance(line: &str) -> i32 {
    let (mut is_text, mut open) = (false, 0);
    for sign in line.chars() {
        match sign {
            '"' => is_text = !is_text,
            '#' if !is_text => break,
            '[' | '{' if !is_text => open += 1,
            ']' | '}' if !is_text => open -= 1,
            _ => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_commented_and_means_the_same() {
        for question in questions() {
            let text = commented(question.example);
            // Only comments are added, and empty lines.
            let bare = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
                lines.map(str::to_string).collect()
            };
            assert_eq!(bare(&text), bare(question.example), "{text}");
            let beginning: String = question.summary.chars().take(60).collect();
            assert!(text.starts_with(&format!("# {beginning}")), "{text}");
            let comments = text.lines().filter(|line| line.starts_with("# ")).count();
            assert!(comments > 3, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
        }
    }

    #[test]
    fn what_is_no_specification_stays_as_it_is() {
        assert_eq!(commented("kind = \"nothing\"\n"), "kind = \"nothing\"\n");
        assert_eq!(balance("a = [1, \"]\", # ]"), 1);
    }
}
