//! Text of users and files inside messages: what would steer a terminal is written out, all else stays as it is.

/// The text with control characters, marks that turn the direction of writing and signs without any width as escapes, `\u{1b}` for
/// an escape. The two signs without width that emoji and scripts are joined with stay.
///
/// Quotes and backslashes stay as they are: a message shows what the user wrote, not how a programmer would write it.
///
/// ```
/// assert_eq!(esscher_core::visible("a \"b\"\n\u{1b}[31m"), "a \"b\"\\n\\u{1b}[31m");
/// assert_eq!(esscher_core::visible("\u{feff}lemma\u{200b} 👩\u{200d}🔬"), "\\u{feff}lemma\\u{200b} 👩\u{200d}🔬");
/// ```
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) { out.extend(character.escape_default()) } else { out.push(character) }
    }
    out
}

/// Whether a terminal would do something else than show the character, or show nothing.
pub fn steers(character: char) -> bool {
    let turns = matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_unseen =
        matches!(character, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    character.is_control() || turns || is_unseen
}
