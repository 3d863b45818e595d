//! An excerpt of a text: all of it, or disjoint parts of one, so that what calibrates is never what tests.

use super::files;
use super::subject::Subject;
use esscher_audit::texts;
use esscher_lab::named;
use esscher_lab::specification::{Mistake, Section};
use esscher_models::TextChoice;
use esscher_report::literal;

named! {
    /// Which part of a text.
    pub enum Excerpt {
        /// All of it.
        Whole = "whole",
        /// What calibrates if the rest tests.
        FirstTwoThirds = "first-two-thirds",
        /// The rest.
        LastThird = "last-third",
    }
}

impl Excerpt {
    /// The part of a text; it is cut before a word.
    pub(crate) fn of(self, text: &str) -> &str {
        let two_thirds = text.len() / 3 * 2;
        let cut = text
            .char_indices()
            .find(|(place, character)| *place >= two_thirds && character.is_whitespace())
            .map_or(text.len(), |(place, _)| place);
        match self {
            Excerpt::Whole => text,
            Excerpt::FirstTwoThirds => &text[..cut],
            Excerpt::LastThird => &text[cut..],
        }
    }

    /// Whether two excerpts of one text share a word.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self == other || self == Excerpt::Whole || other == Excerpt::Whole
    }
}

/// The text of the audit that a model wrote, and that model.
const SAMPLED: [&str; 2] = ["stories", "stories15M"];

/// A text and which part of it is taken.
#[derive(Debug, Clone)]
pub(crate) struct ChosenText {
    pub(crate) text: TextChoice,
    pub(crate) excerpt: Excerpt,
}

impl ChosenText {
    /// Reads a text under `key`, with its SHA-256 under `sum_key`.
    pub(crate) fn read(
        section: &mut Section,
        key: &'static str,
        sum_key: &'static str,
        default: &str,
        excerpt: Excerpt,
    ) -> Result<Self, Mistake> {
        Ok(ChosenText { text: files::text(section, key, sum_key, default)?, excerpt })
    }

    /// What is taken.
    pub(crate) fn content(&self) -> &str {
        self.excerpt.of(&self.text.content)
    }

    /// What the text is, if it comes with the audit.
    pub(crate) fn what(&self) -> Option<&'static str> {
        texts::TEXTS.iter().find(|text| *text.content == *self.text.content).map(|text| text.what)
    }

    /// What flatters this model on this text, if something does.
    pub(crate) fn caution(&self, subject: &Subject) -> Option<String> {
        let [text, model] = SAMPLED;
        let sampled = texts::text(text).is_some_and(|sampled| *sampled.content == *self.text.content)
            && subject.is(model);
        sampled.then(|| {
            format!(
                "the text `{}` was sampled from this model itself, so that its perplexity there is flattering: test on text that \
                 others wrote as well",
                self.text.name
            )
        })
    }

    /// In words, prose.
    pub(crate) fn in_words(&self) -> String {
        let part = match self.excerpt {
            Excerpt::Whole => "",
            Excerpt::FirstTwoThirds => "the first two thirds of ",
            Excerpt::LastThird => "the last third of ",
        };
        let what = self.what().map_or(String::new(), |what| format!(", {what}"));
        format!("{part}`{}` ({}){what}", literal(&self.text.name), files::short(&self.text.sha256))
    }
}

#[cfg(test)]
mod tests {
    use super::Excerpt;

    #[test]
    fn the_parts_make_the_whole_and_no_character_is_cut() {
        for text in ["", "é", "one two three four five six", "αβγ δεζ ηθι κλμ"] {
            let parts = [Excerpt::FirstTwoThirds, Excerpt::LastThird].map(|excerpt| excerpt.of(text));
            assert_eq!(parts.concat(), text);
            assert_eq!(Excerpt::Whole.of(text), text);
        }
        assert!(!Excerpt::FirstTwoThirds.overlaps(Excerpt::LastThird));
        assert!(Excerpt::LastThird.overlaps(Excerpt::Whole));
    }
}
