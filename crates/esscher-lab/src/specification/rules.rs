//! The rules of keys: what a value must be, what stands for it if it is not given, and how a JSON Schema says so.

use super::{Bounds, Keys, Mistake, Section};
use crate::named::Named;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::ops::RangeInclusive;

type Result<T> = std::result::Result<T, Mistake>;

/// How a key is read.
pub trait Rule {
    /// What it is read as.
    type Value;

    /// Reads the key and writes down what it means.
    ///
    /// # Errors
    /// A value that does not fit, or none where one is needed.
    fn read(&self, section: &mut Section, key: &'static str) -> Result<Self::Value>;

    /// The JSON Schema of its values.
    fn schema(&self) -> Value;

    /// Whether the key must be given.
    fn is_required(&self) -> bool;

    /// The keys that this rule reads, with their schemas and whether they are needed: one, unless it stands for several.
    fn properties(&self, key: &str, documentation: &str) -> Vec<(String, Value, bool)> {
        let mut schema = self.schema();
        schema["description"] = documentation.into();
        vec![(key.to_string(), schema, self.is_required())]
    }
}

/// A kind of value; with a default or without, it is a rule.
pub trait Kind: Sized {
    /// What it is read as.
    type Value;
    /// What a default is given as.
    type Default: Clone;

    /// Reads the key.
    ///
    /// # Errors
    /// As [`Rule::read`].
    fn read_or(
        &self,
        section: &mut Section,
        key: &'static str,
        default: Option<&Self::Default>,
    ) -> Result<Self::Value>;

    /// The JSON Schema of its values.
    fn schema(&self) -> Value;

    /// A default as JSON.
    fn shown(default: &Self::Default) -> Value;

    /// The rule with what stands for the key if it is not given.
    fn or(self, default: impl Into<Self::Default>) -> Or<Self> {
        Or { default: default.into(), kind: self }
    }

    /// The rule for a key that may be left out: nothing stands for it then.
    fn optional(self) -> Optional<Self> {
        Optional(self)
    }
}

/// A kind of value with a default.
pub struct Or<K: Kind> {
    kind: K,
    default: K::Default,
}

/// A kind of value that may be left out.
pub struct Optional<K>(K);

impl<K: Kind> Rule for K {
    type Value = K::Value;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<K::Value> {
        self.read_or(section, key, None)
    }

    fn schema(&self) -> Value {
        Kind::schema(self)
    }

    fn is_required(&self) -> bool {
        true
    }
}

impl<K: Kind> Rule for Or<K> {
    type Value = K::Value;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<K::Value> {
        self.kind.read_or(section, key, Some(&self.default))
    }

    fn schema(&self) -> Value {
        let mut schema = Kind::schema(&self.kind);
        schema["default"] = K::shown(&self.default);
        schema
    }

    fn is_required(&self) -> bool {
        false
    }
}

impl<K: Kind> Rule for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<Option<K::Value>> {
        section.form(key).map(|_| self.0.read_or(section, key, None)).transpose()
    }

    fn schema(&self) -> Value {
        Kind::schema(&self.0)
    }

    fn is_required(&self) -> bool {
        false
    }
}

/// A real number within bounds.
pub fn real(bounds: Bounds) -> Real {
    Real(bounds)
}

/// See [`real`].
pub struct Real(Bounds);

fn real_schema(bounds: Bounds) -> Value {
    match bounds {
        Bounds::Any => json!({ "type": "number" }),
        Bounds::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Bounds::NotNegative => json!({ "type": "number", "minimum": 0 }),
        Bounds::Between(low, high) => json!({ "type": "number", "minimum": low, "maximum": high }),
    }
}

impl Kind for Real {
    type Value = f64;
    type Default = f64;

    fn read_or(&self, section: &mut Section, key: &'static str, default: Option<&f64>) -> Result<f64> {
        section.real(key, self.0, default.copied())
    }

    fn schema(&self) -> Value {
        real_schema(self.0)
    }

    fn shown(default: &f64) -> Value {
        json!(default)
    }
}

/// A whole number in a range; `1e6` is one too.
pub fn integer(range: RangeInclusive<u64>) -> Integer {
    Integer(range)
}

/// See [`integer`].
pub struct Integer(RangeInclusive<u64>);

fn integer_schema(range: &RangeInclusive<u64>) -> Value {
    json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
}

impl Kind for Integer {
    type Value = u64;
    type Default = u64;

    fn read_or(&self, section: &mut Section, key: &'static str, default: Option<&u64>) -> Result<u64> {
        section.integer(key, self.0.clone(), default.copied())
    }

    fn schema(&self) -> Value {
        integer_schema(&self.0)
    }

    fn shown(default: &u64) -> Value {
        json!(default)
    }
}

/// True or false.
pub fn truth() -> Truth {
    Truth
}

/// See [`truth`].
pub struct Truth;

impl Kind for Truth {
    type Value = bool;
    type Default = bool;

    fn read_or(&self, section: &mut Section, key: &'static str, default: Option<&bool>) -> Result<bool> {
        section.truth(key, default.copied())
    }

    fn schema(&self) -> Value {
        json!({ "type": "boolean" })
    }

    fn shown(default: &bool) -> Value {
        json!(default)
    }
}

/// Text on one line.
pub fn text() -> Text {
    Text
}

/// See [`text`].
pub struct Text;

impl Kind for Text {
    type Value = String;
    type Default = String;

    fn read_or(&self, section: &mut Section, key: &'static str, default: Option<&String>) -> Result<String> {
        section.text(key, default.map(String::as_str))
    }

    fn schema(&self) -> Value {
        json!({ "type": "string" })
    }

    fn shown(default: &String) -> Value {
        json!(default)
    }
}

fn list_schema(items: Value, count: &RangeInclusive<usize>) -> Value {
    json!({ "type": "array", "items": items, "minItems": count.start(), "maxItems": count.end() })
}

/// A list of texts, each on one line.
pub fn texts(count: RangeInclusive<usize>) -> Texts {
    Texts(count)
}

/// See [`texts`].
pub struct Texts(RangeInclusive<usize>);

impl Kind for Texts {
    type Value = Vec<String>;
    type Default = Vec<&'static str>;

    fn read_or(
        &self,
        section: &mut Section,
        key: &'static str,
        default: Option<&Vec<&'static str>>,
    ) -> Result<Vec<String>> {
        section.texts(key, self.0.clone(), default.map(Vec::as_slice))
    }

    fn schema(&self) -> Value {
        list_schema(json!({ "type": "string" }), &self.0)
    }

    fn shown(default: &Vec<&'static str>) -> Value {
        json!(default)
    }
}

/// One of the names of an enum, [`Named`].
pub fn choice<T: Named>() -> Choice<T> {
    Choice(T::ALL.iter().map(|value| (value.name(), *value)).collect())
}

/// One of several words, each with what it stands for.
pub fn one_of<T: Copy>(options: &[(&'static str, T)]) -> Choice<T> {
    Choice(options.to_vec())
}

/// See [`choice`].
pub struct Choice<T>(Vec<(&'static str, T)>);

impl<T> Choice<T> {
    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

impl<T: Copy> Kind for Choice<T> {
    type Value = T;
    type Default = &'static str;

    fn read_or(&self, section: &mut Section, key: &'static str, default: Option<&&'static str>) -> Result<T> {
        section.choice(key, &self.0, default.copied())
    }

    fn schema(&self) -> Value {
        json!({ "enum": self.words() })
    }

    fn shown(default: &&'static str) -> Value {
        json!(default)
    }
}

/// A list of names of an enum, [`Named`].
pub fn choices<T: Named>() -> Choices<T> {
    Choices(choice())
}

/// A list of words, each with what it stands for.
pub fn some_of<T: Copy>(options: &[(&'static str, T)]) -> Choices<T> {
    Choices(one_of(options))
}

/// See [`choices`].
pub struct Choices<T>(Choice<T>);

impl<T: Copy> Kind for Choices<T> {
    type Value = Vec<T>;
    type Default = Vec<&'static str>;

    fn read_or(
        &self,
        section: &mut Section,
        key: &'static str,
        default: Option<&Vec<&'static str>>,
    ) -> Result<Vec<T>> {
        section.choices(key, &self.0.0, default.map(Vec::as_slice))
    }

    fn schema(&self) -> Value {
        list_schema(Kind::schema(&self.0), &(1..=self.0.0.len()))
    }

    fn shown(default: &Vec<&'static str>) -> Value {
        json!(default)
    }
}

/// A list of real numbers.
pub fn reals(bounds: Bounds, count: RangeInclusive<usize>) -> Reals {
    Reals(bounds, count)
}

/// See [`reals`].
pub struct Reals(Bounds, RangeInclusive<usize>);

impl Kind for Reals {
    type Value = Vec<f64>;
    type Default = Vec<f64>;

    fn read_or(
        &self,
        section: &mut Section,
        key: &'static str,
        default: Option<&Vec<f64>>,
    ) -> Result<Vec<f64>> {
        section.reals(key, self.0, self.1.clone(), default.map(Vec::as_slice))
    }

    fn schema(&self) -> Value {
        list_schema(real_schema(self.0), &self.1)
    }

    fn shown(default: &Vec<f64>) -> Value {
        json!(default)
    }
}

/// A list of whole numbers.
pub fn integers(range: RangeInclusive<u64>, count: RangeInclusive<usize>) -> Integers {
    Integers(range, count)
}

/// See [`integers`].
pub struct Integers(RangeInclusive<u64>, RangeInclusive<usize>);

impl Kind for Integers {
    type Value = Vec<u64>;
    type Default = Vec<u64>;

    fn read_or(
        &self,
        section: &mut Section,
        key: &'static str,
        default: Option<&Vec<u64>>,
    ) -> Result<Vec<u64>> {
        section.integers(key, self.0.clone(), self.1.clone(), default.map(Vec::as_slice))
    }

    fn schema(&self) -> Value {
        list_schema(integer_schema(&self.0), &self.1)
    }

    fn shown(default: &Vec<u64>) -> Value {
        json!(default)
    }
}

/// A table with keys of its own; one that is not given is read as an empty one.
pub fn table<T: Keys>() -> Table<T> {
    Table(PhantomData)
}

/// See [`table`].
pub struct Table<T>(PhantomData<T>);

impl<T: Keys> Rule for Table<T> {
    type Value = T;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<T> {
        section.table(key, T::read)
    }

    fn schema(&self) -> Value {
        T::schema()
    }

    fn is_required(&self) -> bool {
        T::properties().iter().any(|(_, _, required)| *required)
    }
}

/// A list of tables, `[[key]]`.
pub fn tables<T: Keys>(count: RangeInclusive<usize>) -> Tables<T> {
    Tables(count, PhantomData)
}

/// See [`tables`].
pub struct Tables<T>(RangeInclusive<usize>, PhantomData<T>);

impl<T: Keys> Rule for Tables<T> {
    type Value = Vec<T>;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<Vec<T>> {
        section.tables(key, self.0.clone(), T::read)
    }

    fn schema(&self) -> Value {
        list_schema(T::schema(), &self.0)
    }

    fn is_required(&self) -> bool {
        true
    }
}

/// Keys that several questions share, read in the same table.
pub fn shared<T: Keys>() -> Shared<T> {
    Shared(PhantomData)
}

/// See [`shared`].
pub struct Shared<T>(PhantomData<T>);

impl<T: Keys> Rule for Shared<T> {
    type Value = T;

    fn read(&self, section: &mut Section, _key: &'static str) -> Result<T> {
        T::read(section)
    }

    fn schema(&self) -> Value {
        T::schema()
    }

    fn is_required(&self) -> bool {
        false
    }

    fn properties(&self, _key: &str, _documentation: &str) -> Vec<(String, Value, bool)> {
        T::properties()
    }
}

/// A rule of one's own: a function that reads the key, and the schema of what it takes.
pub fn own<T, F: Fn(&mut Section, &'static str) -> Result<T>>(read: F, schema: Value) -> Own<F> {
    Own { read, schema, required: true }
}

/// See [`own`].
pub struct Own<F> {
    read: F,
    schema: Value,
    required: bool,
}

impl<F> Own<F> {
    /// The same for a key that may be left out.
    pub fn optional(self) -> Self {
        Own { required: false, ..self }
    }
}

impl<T, F: Fn(&mut Section, &'static str) -> Result<T>> Rule for Own<F> {
    type Value = T;

    fn read(&self, section: &mut Section, key: &'static str) -> Result<T> {
        (self.read)(section, key)
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn is_required(&self) -> bool {
        self.required
    }
}
