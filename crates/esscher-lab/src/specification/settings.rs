//! Every key of a specification with its value on one line: to be compared with those of another.

use super::written::{Entry, Placed, Written, entries};
use toml::de::DeTable;

/// Keys with their values, those of a table in alphabetical order; the keys of tables are written as `sampled.trials`, of the second table of a list as
/// `law[2].family`. Nothing of a text that is no TOML.
///
/// ```
/// use esscher_lab::specification::settings;
/// let found = settings("seed = 3\n[[law]]\nfamily = \"gaussian\"\nmean = [0, 1.5]\n");
/// let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
/// assert_eq!(found, [("law[1].family", "gaussian"), ("law[1].mean", "[0, 1.5]"), ("seed", "3")]);
/// ```
pub fn settings(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        add(&mut found, "", &entries(table.get_ref()));
    }
    found
}

fn add(found: &mut Vec<(String, String)>, prefix: &str, entries: &[Entry]) {
    for entry in entries {
        let key = format!("{prefix}{}", entry.key);
        match &entry.value.value {
            Written::Table(inner) => add(found, &format!("{key}."), inner),
            Written::List(items) if items.iter().any(is_table) => {
                for (index, item) in items.iter().enumerate() {
                    let key = format!("{key}[{}]", index + 1);
                    match &item.value {
                        Written::Table(inner) => add(found, &format!("{key}."), inner),
                        other => found.push((key, shown(other))),
                    }
                }
            }
            other => found.push((key, shown(other))),
        }
    }
}

fn is_table(item: &Placed) -> bool {
    matches!(item.value, Written::Table(_))
}

fn shown(value: &Written) -> String {
    match value {
        Written::Text(text) => text.clone(),
        Written::Number { written, .. } => written.clone(),
        Written::Truth(truth) => truth.to_string(),
        Written::Time => "a date".to_string(),
        Written::List(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Written::Table(inner) => {
            let inner: Vec<String> =
                inner.iter().map(|entry| format!("{} = {}", entry.key, shown(&entry.value.value))).collect();
            format!("{{ {} }}", inner.join(", "))
        }
        Written::Native(native) => native.shown.clone(),
    }
}
