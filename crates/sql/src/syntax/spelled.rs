//! Names of a statement that stand for names in another case, and their words in its text.

use std::collections::HashMap;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use parking_lot::Mutex;

use crate::error::SqlError;

/// Texts within a statement that are read as SQL: those of macros, and of `query` and `query_table`.
#[derive(Debug, Default)]
pub(super) struct Within(Mutex<Vec<String>>);

impl Within {
    /// Notes a text where the state has a list of them.
    pub(super) fn note(state: &SessionState, text: &str) {
        if let Some(within) = state.config().get_extension::<Within>() {
            within.0.lock().push(text.into());
        }
    }

    /// The texts that were noted, each once.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts = std::mem::take(&mut *self.0.lock());
        texts.sort_unstable();
        texts.dedup();
        texts
    }
}

/// Puts names in quotes that stand for others, in the tokens of a statement that is read again.
pub(super) fn put(state: &SessionState, sql: &str, tokens: &mut [TokenWithSpan]) {
    let Some(spellings) = state.config().get_extension::<Spellings>() else { return };
    let Some(text) = spellings.texts.iter().find(|it| it.text == sql) else { return };
    let meant = text.places.iter().filter(|place| place.is_meant);
    let meant: HashMap<Location, &Place> = meant.map(|place| (place.at, place)).collect();
    for token in tokens {
        if let (Token::Word(word), Some(place)) = (&mut token.token, meant.get(&token.span.start)) {
            *word = Word { value: place.spelling.clone(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        }
    }
}

/// The names of a statement that may stand for others: those of its own text, and those of texts within.
#[derive(Debug, Clone)]
pub(super) struct Spellings {
    pub(super) texts: Vec<Text>,
}

/// The names of a text that may stand for others.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) text: String,
    /// In the order of the text.
    pub(super) places: Vec<Place>,
}

/// A name in the text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) at: Location,
    /// The name in lower case.
    pub(super) name: String,
    /// The name of the column or the table.
    pub(super) spelling: String,
    /// Whether the statement names something of its own here.
    pub(super) is_definition: bool,
    /// Whether the name stands for the spelling.
    pub(super) is_meant: bool,
}

impl Spellings {
    /// Whether a name stands for another.
    pub(super) fn are_meant(&self) -> bool {
        self.texts.iter().flat_map(|text| &text.places).any(|place| place.is_meant)
    }

    /// The same with one more name, that of a column which the planner does not find; none where that is no such name.
    /// Where the error does not tell the place, the first such name of the text is meant.
    pub(super) fn widened(&self, error: &SqlError) -> Option<Spellings> {
        let name = unknown_column(error)?.rsplit('.').next()?.trim_matches('"').to_lowercase();
        let mut wider = self.clone();
        let open = wider.texts.iter_mut().enumerate().find_map(|(number, Text { text, places })| {
            // The error's place is one of the statement's own text.
            let told = error.position_in(text).filter(|_| number == 0);
            let told = told.map(|at| Location { line: at.line as u64, column: at.column as u64 });
            let mut open = places.iter_mut().filter(|it| !it.is_meant && !it.is_definition && it.name == name);
            open.find(|place| told.is_none_or(|told| place.at >= told))
        });
        open?.is_meant = true;
        Some(wider)
    }
}

fn unknown_column(error: &SqlError) -> Option<&str> {
    match error {
        SqlError::At { error, .. } => unknown_column(error),
        SqlError::UnknownColumn { name, .. } => Some(name),
        _ => None,
    }
}
