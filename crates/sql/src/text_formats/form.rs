//! How records stand in a file of text.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TextForm {
    Csv,
    JsonLines,
    JsonArray,
}
