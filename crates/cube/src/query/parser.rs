//! Recursive descent over the tokens of a query; the grammar stands at the head of the module.

use super::lexer::{Token, tokens};
use super::{
    Axis, Comparison, CrossTab, Direction, ElementName, Extreme, Filter, Literal, Place, Point, Query, QueryError,
    Selection, Set, Span, Term,
};

/// Depth to which sums may be nested.
const DEPTH_MAX: u32 = 64;

/// The query of a text.
///
/// # Errors
/// Text that does not follow the grammar, with what was expected and the place.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let mut parser = Parser::new(text)?;
    let query = parser.query()?;
    match parser.peek() {
        Token::End => Ok(query),
        _ => Err(parser.expected("the end of the query")),
    }
}

/// A text that is read token by token.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    tokens: Vec<(Token, Span)>,
    /// The next token.
    at: usize,
    /// Sums around the next token.
    depth: u32,
}

impl<'t> Parser<'t> {
    /// A parser at the first token of a text.
    pub(super) fn new(text: &'t str) -> Result<Parser<'t>, QueryError> {
        Ok(Parser { text, tokens: tokens(text)?, at: 0, depth: 0 })
    }
}

impl Parser<'_> {
    fn query(&mut self) -> Result<Query, QueryError> {
        if self.takes_word("facts") {
            return Ok(Query::Facts(self.point_at()?));
        }
        if self.takes_word("source") {
            return Ok(Query::Source(self.point_at()?));
        }
        if self.takes_word("explain") {
            return Ok(Query::Explain(self.point_at()?));
        }
        if self.takes_word("nearest") {
            let count = self.number("how many cells are wanted")?;
            self.word("to")?;
            return Ok(Query::Nearest { count, to: self.point()? });
        }
        self.cross_tab().map(Query::CrossTab)
    }

    fn cross_tab(&mut self) -> Result<CrossTab, QueryError> {
        let mut table = CrossTab::default();
        let mut seen: Vec<String> = Vec::new();
        loop {
            let (word, span) = match self.peek() {
                Token::End if !seen.is_empty() => return Ok(table),
                Token::Word(word) => (word.to_lowercase(), self.span()),
                _ => return Err(self.expected("rows, cols, pages, where, top, bottom or empty")),
            };
            let clause = match word.as_str() {
                "rows" | "cols" | "pages" | "where" | "empty" => word.clone(),
                "columns" => "cols".to_string(),
                "top" | "bottom" => "top or bottom".to_string(),
                _ => return Err(self.expected("rows, cols, pages, where, top, bottom or empty")),
            };
            if seen.contains(&clause) {
                return Err(QueryError::new(self.text, span, format!("{clause} stands here a second time")));
            }
            self.at += 1;
            match word.as_str() {
                "rows" => table.rows = self.axis()?,
                "cols" | "columns" => table.columns = self.axis()?,
                "pages" => table.pages = self.axis()?,
                "where" => table.point = self.point()?,
                "empty" => table.shows_empty = true,
                end => {
                    let direction = if end == "top" { Direction::Top } else { Direction::Bottom };
                    let count = self.number("how many rows are wanted")?;
                    let by = if self.takes_word("by") { self.point()? } else { Point::new() };
                    table.extreme = Some(Extreme { direction, count, by, span: self.span_from(span.start) });
                }
            }
            seen.push(clause);
        }
    }

    fn axis(&mut self) -> Result<Axis, QueryError> {
        let mut axis = vec![self.set()?];
        while self.takes_sign("*") {
            axis.push(self.set()?);
        }
        Ok(axis)
    }

    fn set(&mut self) -> Result<Set, QueryError> {
        let mut set = vec![self.term()?];
        while self.takes_sign(",") {
            set.push(self.term()?);
        }
        Ok(set)
    }

    fn term(&mut self) -> Result<Term, QueryError> {
        let start = self.span().start;
        let selection = self.selection()?;
        let filter = if self.takes_word("with") { Some(self.filter()?) } else { None };
        Ok(Term { selection, filter, span: Span { start, end: self.tokens[self.at - 1].1.end } })
    }

    fn selection(&mut self) -> Result<Selection, QueryError> {
        if let Some(function) = self.function() {
            return self.call(&function);
        }
        let first = self.element()?;
        if self.takes_sign("..") {
            return Ok(Selection::Range(first, self.element()?));
        }
        Ok(Selection::Name(first))
    }

    /// The function that the next tokens call: a word and an open parenthesis, both of which are taken.
    fn function(&mut self) -> Option<String> {
        let Token::Word(word) = self.peek() else { return None };
        let function = word.to_lowercase();
        if self.tokens[self.at + 1].0 != Token::Sign("(") {
            return None;
        }
        self.at += 2;
        Some(function)
    }

    fn call(&mut self, function: &str) -> Result<Selection, QueryError> {
        let selection = match function {
            "children" => {
                let element = self.element()?;
                Selection::Children(element, self.depth_argument()?.unwrap_or(1))
            }
            "descendants" => {
                let element = self.element()?;
                Selection::Descendants(element, self.depth_argument()?)
            }
            "leaves" => Selection::Leaves(self.element()?),
            "level" => {
                let dimension = self.element()?;
                self.sign(",")?;
                Selection::Level(dimension, self.small_number("a level")?)
            }
            "sum" => return self.sum().map(Selection::Sum),
            "top" | "bottom" => {
                let span = self.tokens[self.at - 2].1;
                let message = format!("{function} is an option of the whole query: rows … {function} 3 by a column");
                return Err(QueryError::new(self.text, span, message));
            }
            _ => {
                let span = self.tokens[self.at - 2].1;
                let message = format!("no function {function}: there are children, descendants, leaves, level and sum");
                return Err(QueryError::new(self.text, span, message));
            }
        };
        self.sign(")")?;
        Ok(selection)
    }

    /// The set of a sum and its closing parenthesis.
    fn sum(&mut self) -> Result<Set, QueryError> {
        if self.depth == DEPTH_MAX {
            let message = format!("sums are nested deeper than {DEPTH_MAX}");
            return Err(QueryError::new(self.text, self.span(), message));
        }
        self.depth += 1;
        let set = self.set()?;
        self.depth -= 1;
        self.sign(")")?;
        Ok(set)
    }

    fn depth_argument(&mut self) -> Result<Option<u32>, QueryError> {
        if self.takes_sign(",") { self.small_number("a depth").map(Some) } else { Ok(None) }
    }

    fn filter(&mut self) -> Result<Filter, QueryError> {
        let attribute = self.name("an attribute")?;
        let comparison = match self.peek() {
            Token::Sign("=") => Comparison::Equal,
            Token::Sign("<>") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            _ => return Err(self.expected("=, <>, <, <=, > or >=")),
        };
        self.at += 1;
        Ok(Filter { attribute, comparison, literal: self.literal()? })
    }

    /// A number without quotes, a name or a text between quotes.
    pub(super) fn literal(&mut self) -> Result<Literal, QueryError> {
        let literal = match self.peek() {
            Token::Word(word) => match word.parse::<f64>().ok().filter(|number| number.is_finite()) {
                Some(number) => Literal::Number(number, word.clone()),
                None => Literal::Text(word.clone()),
            },
            Token::Quoted(text) => Literal::Text(text.clone()),
            _ => return Err(self.expected("a number or a text")),
        };
        self.at += 1;
        Ok(literal)
    }

    /// The bytes from `start` to the end of the last token.
    pub(super) fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.tokens[self.at - 1].1.end }
    }

    /// A point after `at`; the default element of every dimension without one.
    fn point_at(&mut self) -> Result<Point, QueryError> {
        if *self.peek() == Token::End {
            return Ok(Point::new());
        }
        self.word("at")?;
        self.point()
    }

    fn point(&mut self) -> Result<Point, QueryError> {
        let mut point = vec![self.place()?];
        while self.takes_sign(",") {
            point.push(self.place()?);
        }
        Ok(point)
    }

    fn place(&mut self) -> Result<Place, QueryError> {
        let start = self.span().start;
        match self.function().as_deref() {
            None => self.element().map(Place::Element),
            Some("sum") => {
                let set = self.sum()?;
                Ok(Place::Sum(set, Span { start, end: self.tokens[self.at - 1].1.end }))
            }
            Some(function) => {
                let message =
                    format!("{function}(…) is a set, and a point has one element a dimension: sum({function}(…))");
                Err(QueryError::new(self.text, self.tokens[self.at - 2].1, message))
            }
        }
    }

    pub(super) fn element(&mut self) -> Result<ElementName, QueryError> {
        let start = self.span().start;
        let first = self.name("an element")?;
        let (dimension, name) = match self.takes_sign(":") {
            true => (Some(first), self.name("an element")?),
            false => (None, first),
        };
        Ok(ElementName { dimension, name, span: Span { start, end: self.tokens[self.at - 1].1.end } })
    }

    pub(super) fn name(&mut self, what: &str) -> Result<String, QueryError> {
        match self.peek() {
            Token::Word(name) | Token::Quoted(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn number(&mut self, what: &str) -> Result<u64, QueryError> {
        let number = match self.peek() {
            Token::Word(word) => word.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.expected(&format!("{what}, a whole number")))?;
        self.at += 1;
        Ok(number)
    }

    /// A number with or without a fraction. NaN and infinities are accepted here; callers refuse them.
    pub(super) fn decimal(&mut self, what: &str) -> Result<f64, QueryError> {
        let number = match self.peek() {
            Token::Word(word) => word.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.expected(&format!("{what}, a number")))?;
        self.at += 1;
        Ok(number)
    }

    fn small_number(&mut self, what: &str) -> Result<u32, QueryError> {
        let span = self.span();
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| QueryError::new(self.text, span, format!("{number} is too large for {what}")))
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn is_at_end(&self) -> bool {
        *self.peek() == Token::End
    }

    pub(super) fn is_at_sign(&self, wanted: &str) -> bool {
        matches!(self.peek(), Token::Sign(sign) if *sign == wanted)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    pub(super) fn takes_word(&mut self, wanted: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn word(&mut self, wanted: &str) -> Result<(), QueryError> {
        if self.takes_word(wanted) { Ok(()) } else { Err(self.expected(wanted)) }
    }

    pub(super) fn takes_sign(&mut self, wanted: &str) -> bool {
        let is_next = self.is_at_sign(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, wanted: &str) -> Result<(), QueryError> {
        if self.takes_sign(wanted) { Ok(()) } else { Err(self.expected(wanted)) }
    }

    /// The error of a next token that is not what was expected.
    pub(super) fn expected(&self, what: &str) -> QueryError {
        let found = match self.peek() {
            Token::Word(word) => word.clone(),
            Token::Quoted(name) => format!("\"{name}\""),
            Token::Sign(sign) => (*sign).to_string(),
            Token::End => "the end".to_string(),
        };
        QueryError::new(self.text, self.span(), format!("expected {what}, found {found}"))
    }
}
