//! `keys!`: a request as a plain struct whose keys, rules, defaults and documentation are said once.

use super::{Mistake, Section};
use serde_json::{Value, json};

/// A struct that is read from the keys of a table; written with [`keys!`](crate::keys).
pub trait Keys: Sized {
    /// Reads every key, in the order of the fields.
    ///
    /// # Errors
    /// The first key that does not fit.
    fn read(section: &mut Section) -> Result<Self, Mistake>;

    /// Every key with its schema and whether it must be given.
    fn properties() -> Vec<(String, Value, bool)>;

    /// The JSON Schema of the table.
    fn schema() -> Value {
        schema_of(Self::properties())
    }
}

/// The JSON Schema of a table with these keys and no others.
pub fn schema_of(properties: Vec<(String, Value, bool)>) -> Value {
    let required: Vec<&String> =
        properties.iter().filter(|(_, _, required)| *required).map(|(key, _, _)| key).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = properties.into_iter().map(|(key, schema, _)| (key, schema)).collect();
    schema
}

/// Makes a struct whose fields are the keys of a table.
///
/// A field is `key: Type = rule`, a [`Rule`](crate::specification::Rule). Where a rule depends on keys that stand before
/// it, what is generally true comes first and what is true then after `=>`, in terms of the fields read so far. A key
/// that is one only where something holds ends with `; if condition`, and `; else "why not"` tells those who give it
/// elsewhere; its field is an `Option`.
///
/// ```
/// use esscher_lab::keys;
/// use esscher_lab::specification::{self, Bounds, Keys, Kind, integer, real};
/// keys! {
///     /// A normal law.
///     #[derive(Debug, PartialEq)]
///     pub struct Normal {
///         /// Number of coordinates.
///         dimension: u64 = integer(1..=1024),
///         /// The standard deviation of each.
///         scale: f64 = real(Bounds::Positive).or(1.0),
///         /// Directions to look at.
///         directions: u64 = integer(1..=4096) => integer(dimension..=4096).or(2 * dimension),
///         /// How far the first coordinate is turned towards the second.
///         angle: Option<f64> = real(Bounds::Any).or(0.5); if dimension > 1; else "a line has nothing to turn to",
///     }
/// }
/// let (read, normal_form) = specification::read("mine.toml", "dimension = 2", Normal::read)?;
/// assert_eq!(read, Normal { dimension: 2, scale: 1.0, directions: 4, angle: Some(0.5) });
/// assert_eq!(normal_form, "dimension = 2\nscale = 1.0\ndirections = 4\nangle = 0.5\n");
/// let refused = specification::read("mine.toml", "dimension = 1\nangle = 1", Normal::read).unwrap_err();
/// assert!(refused.to_string().contains("a line has nothing to turn to"));
/// assert_eq!(Normal::schema()["properties"]["scale"]["description"], "The standard deviation of each.");
/// # Ok::<(), specification::Mistake>(())
/// ```
#[macro_export]
macro_rules! keys {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])* $key:ident: $type:ty = $rule:expr $(=> $then:expr)?
            $(; if $holds:expr $(; else $why:expr)?)?),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $doc])* pub $key: $type,)*
        }

        impl $crate::specification::Keys for $name {
            fn read(
                section: &mut $crate::specification::Section,
            ) -> Result<Self, $crate::specification::Mistake> {
                use $crate::specification::Rule as _;
                $(let $key: $type = $crate::keys!(
                    @read section, $key, ($crate::keys!(@rule $rule $(=> $then)?)) $(, $holds $(, $why)?)?
                );)*
                Ok($name { $($key),* })
            }

            fn properties() -> Vec<(String, $crate::serde_json::Value, bool)> {
                use $crate::specification::Rule as _;
                let mut all = Vec::new();
                $(all.extend($crate::keys!(@schema $($then)? $($holds)?)(
                    $rule.properties(stringify!($key), concat!($($doc),*).trim()),
                ));)*
                all
            }
        }
    };
    (@rule $rule:expr) => { $rule };
    (@rule $rule:expr => $then:expr) => { $then };
    (@read $section:ident, $key:ident, ($rule:expr)) => { $rule.read($section, stringify!($key))? };
    (@read $section:ident, $key:ident, ($rule:expr), $holds:expr) => {
        if $holds { Some($rule.read($section, stringify!($key))?) } else { None }
    };
    (@read $section:ident, $key:ident, ($rule:expr), $holds:expr, $why:expr) => {
        if $holds {
            Some($rule.read($section, stringify!($key))?)
        } else if $section.form(stringify!($key)).is_some() {
            return Err($section.mistake(stringify!($key), $why));
        } else {
            None
        }
    };
    (@schema) => { |properties| properties };
    // A rule that depends on other keys may have a default, or no part in this table: not required.
    (@schema $($on:tt)+) => {
        |properties: Vec<(String, $crate::serde_json::Value, bool)>| {
            properties.into_iter().map(|(key, schema, _)| (key, schema, false)).collect::<Vec<_>>()
        }
    };
}
