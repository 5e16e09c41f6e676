//! Names of a statement that stand for names in another case, and their words in its text.

use std::collections::HashMap;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use crate::error::SqlError;

/// Puts names in quotes that stand for others, in the tokens of a statement that is read again.
pub(super) fn put(state: &SessionState, sql: &str, tokens: &mut [TokenWithSpan]) {
    let Some(spellings) = state.config().get_extension::<Spellings>().filter(|it| it.text == sql) else { return };
    let meant = spellings.places.iter().filter(|place| place.is_meant);
    let meant: HashMap<Location, &Place> = meant.map(|place| (place.at, place)).collect();
    for token in tokens {
        if let (Token::Word(word), Some(place)) = (&mut token.token, meant.get(&token.span.start)) {
            *word = Word { value: place.spelling.clone(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        }
    }
}

/// The names of a statement that may stand for others.
#[derive(Debug, Clone)]
pub(super) struct Spellings {
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
    /// The same with one more name, that of a column which the planner does not find; none where that is no such name.
    /// Where the error does not tell the place, the first such name of the text is meant.
    pub(super) fn widened(&self, error: &SqlError) -> Option<Spellings> {
        let name = unknown_column(error)?.rsplit('.').next()?.trim_matches('"').to_lowercase();
        let told = error.position_in(&self.text);
        let told = told.map(|at| Location { line: at.line as u64, column: at.column as u64 });
        let mut wider = self.clone();
        let mut open = wider.places.iter_mut().filter(|it| !it.is_meant && !it.is_definition && it.name == name);
        open.find(|place| told.is_none_or(|told| place.at >= told))?.is_meant = true;
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
