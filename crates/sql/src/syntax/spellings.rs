//! Names without quotes that columns and tables have in another case.
//!
//! DataFusion reads a name without quotes in lower case. A statement whose names it does not find so is read again,
//! with names in quotes: a name stands for the column that is equal but for case, if no table of the statement has a
//! column of the name in lower case and those that match have one spelling. A statement that can be planned without
//! this is never read twice.
//!
//! The names are words of the text, so that the rule holds wherever a name may stand. The tree of the text tells which
//! words are names of tables, and which keywords are names. A name that the statement defines itself, as an alias, is
//! quoted in expressions over tables that have the column, where SQL looks for columns first; elsewhere only where the
//! planner does not find it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Fields};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::dialect::SessionDialect;
use super::items::folded;
use super::marks::Marks;
use super::readers::read_by;
use super::spelled::{Place, Spellings, Text, Within};
use super::{copies, statement_of};
use crate::error::{Result, SqlError};

/// Words behind which the name of a table stands, in statements in parentheses too.
const SOURCES: [&str; 7] = ["copy", "describe", "from", "join", "pivot", "summarize", "unpivot"];

/// A state that reads a statement with its names in the case that tables have them in.
pub(crate) struct Again {
    pub(crate) state: SessionState,
    spellings: Arc<Spellings>,
}

/// The state to read a statement with after an error of planning it; `before` is that of the reading that failed.
///
/// # Errors
/// The error itself, where no name is meant in another case.
pub(crate) async fn again(state: &SessionState, sql: &str, before: Option<Again>, error: SqlError) -> Result<Again> {
    let spellings = match before {
        Some(before) => before.spellings.widened(&error),
        None => Box::pin(spellings(state, sql)).await.and_then(|spellings| match spellings.are_meant() {
            true => Some(spellings),
            false => spellings.widened(&error),
        }),
    };
    let spellings = Arc::new(spellings.ok_or(error)?);
    let mut state = state.clone();
    state.config_mut().set_extension(spellings.clone());
    Ok(Again { state, spellings })
}

/// The names of a statement that has some.
async fn spellings(state: &SessionState, sql: &str) -> Option<Spellings> {
    if !state.config_options().sql_parser.enable_ident_normalization {
        return None;
    }
    let ours = super::as_ours(state, sql).ok()?;
    let text = ours.as_deref().unwrap_or(sql);
    let within = Arc::new(Within::default());
    let mut state = state.clone();
    state.config_mut().set_extension(within.clone());
    let state = &state;
    let filled = copies::filled(state, text).ok()?.map(|table| format!("SELECT * FROM {table}"));
    let parsed = super::read_whole(state, filled.as_deref().unwrap_or(text)).ok()?;
    let mut known = Known::of(state, &parsed).await?;
    let own = filled.is_none().then_some(parsed);
    let texts = std::iter::once((text.to_string(), own)).chain(within.texts().into_iter().map(|text| {
        let parsed = statement_of(state, &text).ok();
        (text, parsed)
    }));
    let texts: Vec<Text> = texts.filter_map(|(text, parsed)| known.text(text, parsed)).collect();
    texts.iter().any(|text| !text.places.is_empty()).then_some(Spellings { texts })
}

/// Where names of columns begin: behind the types that a PREPARE declares.
fn behind_types(tokens: &[&TokenWithSpan]) -> usize {
    let is = |token: &TokenWithSpan, keyword| matches!(&token.token, Token::Word(word) if word.keyword == keyword);
    match tokens.first().is_some_and(|first| is(first, Keyword::PREPARE)) {
        true => tokens.iter().position(|token| is(token, Keyword::AS)).unwrap_or_default(),
        false => 0,
    }
}

/// The names that tables of a statement have.
struct Known {
    /// The columns of each table, and their fields, by the table's own name.
    columns: HashMap<String, HashSet<String>>,
    /// By names in lower case, all columns of the statement's tables, and those that it names in quotes.
    spellings: BTreeMap<String, BTreeSet<String>>,
    /// By names that no table has, those of tables in another case.
    renamed: HashMap<String, String>,
}

impl Known {
    /// The names of a text of this tree; none where it has no tokens.
    fn text(&mut self, text: String, parsed: Option<ParsedStatement>) -> Option<Text> {
        let mut marks = Marks::new(self.columns.clone());
        let mut arguments = Vec::new();
        if let Some(mut parsed) = parsed {
            let _ = super::visit(&mut parsed, &mut marks);
            arguments = arguments_of(&parsed);
        }
        for name in &marks.quoted {
            self.spellings.entry(name.to_lowercase()).or_default().insert(name.clone());
        }
        let tokens = Tokenizer::new(&SessionDialect, &text).tokenize_with_location().ok()?;
        let tokens: Vec<_> = tokens.iter().filter(|it| !matches!(it.token, Token::Whitespace(_))).collect();
        let place = |at: usize| self.place(&tokens, at, &marks).filter(|place| !arguments.contains(&place.name));
        let places = (behind_types(&tokens)..tokens.len()).filter_map(place).collect();
        Some(Text { text, places })
    }

    /// Those of the tables of a statement.
    async fn of(state: &SessionState, parsed: &ParsedStatement) -> Option<Known> {
        let mut known = Known { columns: HashMap::new(), spellings: BTreeMap::new(), renamed: HashMap::new() };
        for reference in state.resolve_table_references(parsed).ok()? {
            let Ok(schema) = state.schema_for_ref(reference.clone()) else { continue };
            let name = reference.table();
            let mut found = schema.table(name).await.ok().flatten();
            if found.is_none() {
                let mut others = schema.table_names().into_iter().filter(|other| other.to_lowercase() == name);
                if let (Some(other), None) = (others.next(), others.next()) {
                    found = schema.table(&other).await.ok().flatten();
                    known.renamed.insert(name.to_string(), other);
                }
            }
            if let Some(table) = found {
                let mut names = HashSet::new();
                add_names(table.schema().fields(), &mut names);
                for name in &names {
                    known.spellings.entry(name.to_lowercase()).or_default().insert(name.clone());
                }
                known.columns.entry(name.to_string()).or_default().extend(names);
            }
        }
        Some(known)
    }

    /// The only spelling of a name other than in lower case, and whether a column has that one too.
    fn spelling(&self, name: &str) -> Option<(&String, bool)> {
        let all = self.spellings.get(name)?;
        let mut others = all.iter().filter(|other| *other != name);
        let other = others.next()?;
        others.next().is_none().then(|| (other, all.contains(name)))
    }

    /// The place of a token, if it may stand for another name.
    fn place(&self, tokens: &[&TokenWithSpan], at: usize, marks: &Marks) -> Option<Place> {
        let Token::Word(word @ Word { quote_style: None, .. }) = &tokens[at].token else { return None };
        let (name, start) = (word.value.to_lowercase(), tokens[at].span.start);
        let token = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token| &token.token);
        let (before, after) = (token(at.checked_sub(1)), token(Some(at + 1)));
        let is_qualifier = after == Some(&Token::Period);
        // Words of a statement in parentheses have no places in the tree.
        let is_source =
            matches!(before, Some(Token::Word(word)) if SOURCES.contains(&word.value.to_lowercase().as_str()));
        if let Some(other) = self.renamed.get(&name)
            && (marks.relations.contains(&start) || is_qualifier || is_source)
        {
            return Some(Place { at: start, name, spelling: other.clone(), is_definition: false, is_meant: true });
        }
        let (spelling, is_there) = self.spelling(&name)?;
        let is_table = marks.relations.contains(&start) || is_qualifier && marks.table_names.contains(&name);
        // A call, an argument by its name, a type.
        let is_other = matches!(after, Some(Token::LParen | Token::RArrow | Token::Assignment))
            || matches!(before, Some(Token::DoubleColon))
            || after == Some(&Token::Eq) && is_of_reader(&tokens[..at]);
        let is_definition = marks.definitions.contains(&start);
        if is_table || is_other || word.keyword != Keyword::NoKeyword && !is_name(tokens, at, &name, marks) {
            return None;
        }
        let is_own = is_there || marks.defined.contains(&name);
        let is_meant = !is_definition && (!is_own || marks.meant.contains(&start));
        Some(Place { at: start, name, spelling: spelling.clone(), is_definition, is_meant })
    }
}

/// The arguments of the macro that a statement makes.
fn arguments_of(parsed: &ParsedStatement) -> Vec<String> {
    let ParsedStatement::Statement(statement) = parsed else { return Vec::new() };
    match statement.as_ref() {
        SqlStatement::CreateMacro { args, .. } => {
            args.iter().flatten().map(|argument| folded(&argument.name)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a keyword is a name: of a column in an expression, behind a point, in a list of names, before `=`, or
/// behind COLUMN.
fn is_name(tokens: &[&TokenWithSpan], at: usize, name: &str, marks: &Marks) -> bool {
    let (before, after) = (at.checked_sub(1).map(|at| &tokens[at].token), tokens.get(at + 1).map(|it| &it.token));
    let start = tokens[at].span.start;
    let is_in_list =
        matches!(before, Some(Token::LParen | Token::Comma)) && matches!(after, Some(Token::RParen | Token::Comma));
    let is_behind = |keyword| matches!(before, Some(Token::Word(word)) if word.keyword == keyword);
    marks.columns.contains(&(start, name.to_string()))
        || marks.definitions.contains(&start)
        || before == Some(&Token::Period)
        || after == Some(&Token::Eq)
        || is_in_list
        || is_behind(Keyword::COLUMN)
        // The keyword of a type stands behind AS, or before a text.
        || !is_behind(Keyword::AS)
            && !matches!(after, Some(Token::SingleQuotedString(_)))
            && is_in_nested(&tokens[..at], name, marks)
}

/// Whether a statement in parentheses that begins among these tokens has a column of a name.
fn is_in_nested(before: &[&TokenWithSpan], name: &str, marks: &Marks) -> bool {
    before.iter().any(|token| {
        let is_own = matches!(&token.token, Token::Word(word) if word.value.to_lowercase() == name);
        !is_own && marks.columns.contains(&(token.span.start, name.to_string()))
    })
}

/// Whether what stands behind these tokens is an argument of a function that reads files.
fn is_of_reader(before: &[&TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for (at, token) in before.iter().enumerate().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => {
                let function = at.checked_sub(1).map(|at| before[at].token.to_string().to_lowercase());
                return function.is_some_and(|function| read_by(&function).is_some());
            }
            Token::LParen => depth -= 1,
            _ => {}
        }
    }
    false
}

/// The names of columns, and of fields of structs within.
fn add_names(fields: &Fields, names: &mut HashSet<String>) {
    for field in fields {
        names.insert(field.name().clone());
        let mut data_type = field.data_type();
        while let DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) = data_type {
            data_type = item.data_type();
        }
        if let DataType::Struct(fields) = data_type {
            add_names(fields, names);
        }
    }
}
