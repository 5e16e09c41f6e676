//! How records stand in a file of text.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextForm {
    Csv,
    JsonLines,
    JsonArray,
}
