//! Control characters of names made visible: a terminal would obey them, and a line break would end a line of a report.

use std::borrow::Cow;

/// Whether a terminal does something other with a character than show it.
fn is_control(character: char) -> bool {
    let directions =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // Separators of lines and paragraphs, anchors of annotations, and tags, which nothing shows.
    let others = matches!(character, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    character.is_control() || directions || others
}

/// The text with its control characters escaped as strings of SQL write them (`\x1b`, `\u202e`), but for those in
/// `kept`.
pub fn escaped<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_shown = |character: char| !is_control(character) || kept.contains(&character);
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            character if is_shown(character) => shown.push(character),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // JSON has escaped these itself, so that the other form is one that it knows.
            character if character < ' ' => shown.push_str(&format!("\\x{:02x}", u32::from(character))),
            character if character <= '\u{ffff}' => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => shown.push_str(&format!("\\U{:08x}", u32::from(character))),
        }
    }
    Cow::Owned(shown)
}

/// A name on one line.
pub(crate) fn visible(name: &str) -> Cow<'_, str> {
    escaped(name, &[])
}
