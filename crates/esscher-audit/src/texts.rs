//! Texts that come with the audit, so that a first one needs nothing but a checkpoint.

/// A text and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// The name in specifications.
    pub name: &'static str,
    /// What the text is, in one line.
    pub what: &'static str,
    /// The terms on which it may be used.
    pub licence: &'static str,
    /// The text itself: paragraphs of plain prose.
    pub content: &'static str,
}

/// All of them, the simplest language first.
pub const TEXTS: [Text; 3] = [
    Text {
        name: "stories",
        what: "56 stories sampled from stories15M itself (seed 0), the language that it knows",
        licence: "MIT OR Apache-2.0",
        content: include_str!("../texts/stories.txt"),
    },
    Text {
        name: "bible",
        what: "the first 44 chapters of Genesis in the King James version, a paragraph each",
        licence: "public domain",
        content: include_str!("../texts/bible.txt"),
    },
    Text {
        name: "jargon",
        what: "the entries from `abbrev` to `bug` of the Jargon File 4.4.7, an explanation of hackers' slang",
        licence: "public domain",
        content: include_str!("../texts/jargon.txt"),
    },
];

/// The text of this name.
pub fn text(name: &str) -> Option<&'static Text> {
    TEXTS.iter().find(|text| text.name == name)
}
