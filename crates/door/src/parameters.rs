//! Parameters of statements: `?`, `$1` and `$name` are replaced by constants.
//!
//! A statement with constants is planned by its shape, so that one text with other values is not planned anew.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use warpcube_sql::{Kind, Position, Token, names_column, tokens};

/// The values of parameters, as SQL.
#[derive(Debug, Clone)]
pub enum Parameters {
    /// Of `?` in their order, and of `$1`.
    Ordered(Vec<String>),
    /// Of `$name`.
    Named(BTreeMap<String, String>),
}

/// The largest number of a parameter, as PostgreSQL has it.
const PLACES_MAX: usize = 65_535;

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq)]
enum Parameter {
    /// By its place, from 0.
    Place(usize),
    Name(String),
}

/// A statement with constants in place of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Its text.
    pub text: String,
    /// The bytes of each constant in it, and those of its parameter in the text before.
    constants: Vec<(Range<usize>, Range<usize>)>,
}

impl Bound {
    /// A position in the text as one of the text before, `sql`; one within a constant is that of its parameter.
    pub fn position_in(&self, sql: &str, position: Position) -> Position {
        let line = self.text.split_inclusive('\n').take(position.line - 1).map(str::len).sum::<usize>();
        let rest = self.text.get(line..).unwrap_or_default();
        let column = rest.char_indices().nth(position.column - 1).map_or(rest.len(), |(at, _)| at);
        let (at, mut before) = (line + column, line + column);
        for (constant, parameter) in self.constants.iter().take_while(|(constant, _)| constant.start <= at) {
            before = if at < constant.end { parameter.start } else { at - constant.end + parameter.end };
        }
        let front = sql.get(..before).unwrap_or(sql);
        let line = front.rsplit('\n').next().unwrap_or_default();
        Position { line: front.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }
}

/// The statement with constants in place of its parameters.
///
/// # Errors
/// A parameter without a value, or a value without a parameter; the text says which.
pub fn bind(sql: &str, values: &Parameters) -> Result<Bound, String> {
    let found = parameters(sql);
    let mut used = BTreeSet::new();
    let (mut text, mut constants) = (String::with_capacity(sql.len()), Vec::new());
    let mut at = 0;
    for (start, end, parameter) in &found {
        let value = match (parameter, values) {
            (Parameter::Place(place), Parameters::Ordered(values)) => {
                used.insert(place.to_string());
                values.get(*place).ok_or_else(|| {
                    format!("the statement has a parameter {}, and there are {} values", place + 1, values.len())
                })?
            }
            (Parameter::Name(name), Parameters::Named(values)) => {
                used.insert(name.clone());
                values.get(name).ok_or_else(|| format!("no value for the parameter ${name}"))?
            }
            (Parameter::Name(name), Parameters::Ordered(_)) => {
                return Err(format!("the parameter ${name} has a name; give the values as a dict"));
            }
            (Parameter::Place(_), Parameters::Named(_)) => {
                return Err("the statement has ? or $1 for parameters; give the values as a list".into());
            }
        };
        text.push_str(&sql[at..*start]);
        constants.push((text.len()..text.len() + value.len(), *start..*end));
        text.push_str(value);
        at = *end;
    }
    text.push_str(&sql[at..]);
    let left = match values {
        Parameters::Ordered(values) => {
            (0..values.len()).map(|place| place.to_string()).find(|name| !used.contains(name))
        }
        Parameters::Named(values) => values.keys().find(|name| !used.contains(*name)).cloned(),
    };
    match (left, values) {
        (None, _) => Ok(Bound { text, constants }),
        (Some(_), Parameters::Ordered(values)) => {
            Err(format!("there are {} values, and the statement has {} parameters", values.len(), used.len()))
        }
        (Some(name), Parameters::Named(_)) => Err(format!("the statement has no parameter ${name}")),
    }
}

/// How many values a statement takes by their places.
pub fn parameter_count(sql: &str) -> usize {
    let places = parameters(sql).into_iter().map(|(.., parameter)| match parameter {
        Parameter::Place(place) => place.saturating_add(1),
        Parameter::Name(_) => 0,
    });
    places.max().unwrap_or(0)
}

/// The names of a statement's parameters, each once, in their order.
pub fn parameter_names(sql: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (.., parameter) in parameters(sql) {
        if let Parameter::Name(name) = parameter
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The parameters of a statement, with the bytes where each begins and ends.
fn parameters(sql: &str) -> Vec<(usize, usize, Parameter)> {
    let (tokens, _) = tokens(sql);
    let mut found = Vec::new();
    let (mut marks, mut is_behind_operand) = (0, false);
    let mut rest = tokens.iter().peekable();
    while let Some(Token { kind, range, .. }) = rest.next() {
        let was_behind_operand = std::mem::replace(&mut is_behind_operand, ends_operand(kind, &sql[range.clone()]));
        match kind {
            // Behind an operand and before a text it is the operator of JSON.
            Kind::Symbol('?') if was_behind_operand || rest.peek().is_some_and(|next| next.kind == Kind::Text) => {
                is_behind_operand = false;
            }
            Kind::Symbol('?') => {
                found.push((range.start, range.end, Parameter::Place(marks)));
                marks += 1;
            }
            Kind::Symbol('$') => {
                let Some(word) = rest.next_if(|next| next.kind == Kind::Word && next.range.start == range.end) else {
                    continue;
                };
                let name = &sql[word.range.clone()];
                let parameter = match name.parse::<usize>() {
                    Ok(number @ 1..=PLACES_MAX) => Parameter::Place(number - 1),
                    _ => Parameter::Name(name.to_string()),
                };
                found.push((range.start, word.range.end, parameter));
            }
            _ => {}
        }
    }
    found
}

/// Whether an operand ends with a token.
fn ends_operand(kind: &Kind, text: &str) -> bool {
    match kind {
        Kind::Word => names_column(text),
        Kind::QuotedName | Kind::Text => true,
        Kind::Symbol(symbol) => matches!(symbol, ')' | ']' | '?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_parameter_has_are_names() {
        assert_eq!(parameter_count("SELECT ?, $3, $name"), 3);
        assert_eq!(parameter_count("SELECT j ? 'a', data ?| ['a'], (j) ? k, ? + 1 FROM t WHERE s GLOB ? AND k = ?"), 3);
        for text in ["SELECT $0", "SELECT $65536", "SELECT $3000000000", "SELECT $99999999999999999999"] {
            assert_eq!(parameter_count(text), 0, "{text}");
            assert!(bind(text, &Parameters::Ordered(vec!["1".into()])).is_err(), "{text}");
        }
        assert_eq!(bind("SELECT $1", &Parameters::Ordered(vec!["1".into()])).unwrap().text, "SELECT 1");
    }

    #[test]
    fn positions_are_those_of_the_text_before() {
        let sql = "SELECT ?, é,\n  ? + nope";
        let bound = bind(sql, &Parameters::Ordered(vec!["'a\nlong one'".into(), "1".into()])).unwrap();
        for name in ["SELECT", "é", "nope", "+"] {
            let at = |text: &str| {
                let front = &text[..text.find(name).unwrap()];
                let line = front.matches('\n').count() + 1;
                Position { line, column: front.rsplit('\n').next().unwrap().chars().count() + 1 }
            };
            assert_eq!(bound.position_in(sql, at(&bound.text)), at(sql), "{name}");
        }
        let within = Position { line: 2, column: 3 };
        assert_eq!(bound.position_in(sql, within), Position { line: 1, column: 8 });
        assert_eq!(bound.position_in(sql, Position { line: 9, column: 9 }), Position { line: 2, column: 11 });
    }
}
