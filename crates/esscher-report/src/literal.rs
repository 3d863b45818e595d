//! Text of the user inside prose and labels: it means itself in every output, and nothing in it can steer one.

/// The signs that mean something in prose, in labels or in formulas. In literal text each is written as the noncharacter
/// of its place after [`FIRST`], which no text of a user can hold and every output turns back.
const MARKS: &str = "$`*_\\{}^%#&~[]";
/// The first noncharacter of Unicode's block of 32.
const FIRST: u32 = 0xfdd0;

/// Text that means itself, to be put into prose, titles, captions, cells, labels and names of series.
///
/// Names and titles that a user chose, paths, names of hosts and texts of errors go through here. What comes out is still
/// prose: it may stand between marks.
///
/// ```
/// use esscher_report::{literal, plain};
/// let name = "$5 and $7, `a` **b** x_1 [c](https://d.e)";
/// assert_eq!(plain(&format!("**Law:** {}", literal(name))), format!("Law: {name}"));
/// assert_eq!(plain(&format!("**Law:** {name}")), "Law: 5 and7, a b x_1 c");
/// ```
pub fn literal(text: impl std::fmt::Display) -> String {
    let hidden = |character: char| match MARKS.chars().position(|mark| mark == character) {
        Some(place) => char::from_u32(FIRST + place as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        // Only our own may be turned back.
        None if meant(character) != character => char::REPLACEMENT_CHARACTER,
        None => character,
    };
    text.to_string().chars().map(hidden).collect()
}

/// The sign that a character of literal text stands for; every other character is itself.
pub(crate) fn meant(character: char) -> char {
    let place = u32::from(character).checked_sub(FIRST);
    place.and_then(|place| MARKS.chars().nth(place as usize)).unwrap_or(character)
}

/// Literal text turned back.
pub(crate) fn unhidden(text: &str) -> String {
    text.chars().map(meant).collect()
}

/// Text without characters that would steer a terminal, a page or the direction of reading, or would not be seen: they are written as
/// `\u{1b}`.
/// Tabs and ends of lines stay.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

fn steers(character: char) -> bool {
    // Noncharacters: the last two of every plane, and a block of 32.
    let is_none = u32::from(character) & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&character);
    !matches!(character, '\t' | '\n' | '\r') && (esscher_core::steers(character) || is_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_text_comes_back_and_a_forged_one_does_not() {
        let text = "$`*_\\{}^%#&~[] \u{1b}[31m é 🎲";
        assert_eq!(unhidden(&literal(text)), text);
        assert!(!literal(text).contains(|sign| MARKS.contains(sign)));
        // Noncharacters in the text of a user are no marks, also if they go through twice.
        assert_eq!(unhidden(&literal("\u{fdd0}x\u{fdd0}")), "\u{fffd}x\u{fffd}");
        assert_eq!(unhidden(&literal(literal("$x$"))), "\u{fffd}x\u{fffd}");
    }

    #[test]
    fn what_steers_is_shown() {
        assert_eq!(visible("a\u{1b}[31m\u{7}\u{9b}\u{0}"), "a\\u{1b}[31m\\u{7}\\u{9b}\\u{0}");
        assert_eq!(
            visible("\u{202e}\u{2066}\u{2028}\u{fdd0}\u{ffff}"),
            "\\u{202e}\\u{2066}\\u{2028}\\u{fdd0}\\u{ffff}"
        );
        assert_eq!(visible("a\u{200b}\u{feff}"), "a\\u{200b}\\u{feff}");
        assert_eq!(visible("é\t\n שלום 👩\u{200d}🔬"), "é\t\n שלום 👩\u{200d}🔬");
    }
}
