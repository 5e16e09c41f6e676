//! The dialect of SQL that sessions parse: sqlparser's generic one, with faults of it mended and ORDER BY ALL.
//!
//! - `a IS DISTINCT FROM b OR c` reads as `a IS DISTINCT FROM (b OR c)` in sqlparser 0.62, since the right side is
//!   parsed without a precedence. Here the right side ends where that of `IS` does.
//! - `1_000_000` reads as `1 AS _000_000` in the generic dialect. Here underscores separate digits, as in PostgreSQL
//!   16.
//! - GROUPING SETS within others is no syntax of sqlparser's.
//! - `x > ALL ((SELECT …) UNION (SELECT …))`, a set operation whose first branch is in parentheses, is no subquery for
//!   sqlparser.
//! - `'v' || i % 10` reads as `('v' || i) % 10`. Here `||` binds less than `+`, as in PostgreSQL.
//! - PIVOT, UNPIVOT, SUMMARIZE and DESCRIBE are statements ([`super::statements`]).
//! - `2 * 3 ^ 2` reads as the bits of `2 * 3` and 2. Here `^` is a power, as in PostgreSQL: above `*`, below a sign,
//!   and `2 ^ 3 ^ 3` is `(2 ^ 3) ^ 3`. `**` is the same, as in DuckDB.
//! - `~ 3 + 1` reads as `(~3) + 1`. Here `~` binds less than `+` and more than `&`, as in PostgreSQL and DuckDB.
//! - `TRIM(LEADING FROM x)` is no syntax of sqlparser's.
//! - `j -> 'a' = 'b'` reads as `j -> ('a' = 'b')`. Here arrows bind more closely than comparisons.
//! - `a = b IN (1, 2)` and `a = b LIKE c` read as `(a = b) IN (1, 2)` and `(a = b) LIKE c`. Here IN, BETWEEN and LIKE
//!   bind more closely than comparisons, as in PostgreSQL and DuckDB.
//! - `a ISNULL` reads as `a AS isnull`, and `a NOTNULL` too. Here they are `a IS NULL` and `a IS NOT NULL`, as in
//!   PostgreSQL and DuckDB.
//! - `INTERVAL (3) MONTH` reads as the type `INTERVAL(3)` with the value `month`. Here it is three months.
//! - `s GLOB 'a*'` is no syntax of sqlparser's. Here it is a call, and binds as LIKE does.
//! - `x BETWEEN SYMMETRIC a AND b` is no syntax of sqlparser's. Here it is true between the bounds in either order.
//! - `j ? 'a'`, `?|` and `?&` are parameters for sqlparser's generic dialect. Here they are calls, as is
//!   `(a, b) OVERLAPS (c, d)`.
//! - `x IN list`, without parentheses, is no syntax of sqlparser's. Here it is that of a tree that
//!   [`super::quantifiers`] makes a call of.
//!
//! The file goes once sqlparser parses the right side of `IS [NOT] DISTINCT FROM` by its precedence.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, Statement, TrimWhereField, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::{call, lambdas, quotes, rows, statements};

/// A parser of a text, whose tree may be written and read again.
pub(crate) fn parser_of(text: &str) -> Result<Parser<'static>, ParserError> {
    Ok(Parser::new(&SessionDialect).with_tokens_with_locations(tokens_of(text)?))
}

/// The tokens of a text, in quotes that keep what they hold ([`quotes`]).
pub(super) fn tokens_of(text: &str) -> Result<Vec<TokenWithSpan>, ParserError> {
    let mut tokens = Tokenizer::new(&SessionDialect, text).tokenize_with_location()?;
    quotes::keep(&mut tokens)?;
    Ok(tokens)
}

/// The generic dialect, mended.
#[derive(Debug)]
pub(crate) struct SessionDialect;

impl SessionDialect {
    /// The precedence of `^`, just above that of `*`.
    fn of_powers(&self) -> u8 {
        self.prec_value(Precedence::MulDivModOp) + 1
    }

    /// The precedence of comparisons, between those of IS and of LIKE.
    fn of_comparisons(&self) -> u8 {
        self.prec_value(Precedence::Is) + 1
    }
}

/// Methods that answer as the generic dialect does.
macro_rules! as_generic {
    ($($name:ident),+ $(,)?) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })+
    };
}

/// Whether `^` or `**` comes next.
fn is_power(parser: &Parser) -> bool {
    match parser.peek_token_ref().token {
        Token::Caret => true,
        Token::Mul => parser.peek_nth_token_ref(1).token == Token::Mul,
        _ => false,
    }
}

/// Whether `INTERVAL (n) DAY` comes next, of which sqlparser makes the precision of a type. `INTERVAL (3) '1 day'` is
/// one.
fn is_interval_of_expression(parser: &Parser) -> bool {
    let [first, open, _, close, behind] = parser.peek_tokens();
    let is_precision = close == Token::RParen && matches!(behind, Token::SingleQuotedString(_));
    matches!(first, Token::Word(word) if word.keyword == Keyword::INTERVAL) && open == Token::LParen && !is_precision
}

/// Whether ISNULL or NOTNULL comes next, and which; no word of sqlparser's generic dialect.
fn null_test(parser: &Parser) -> Option<fn(Box<Expr>) -> Expr> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    let is = |name: &str| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name);
    match (is("isnull"), is("notnull")) {
        (true, _) => Some(Expr::IsNull),
        (_, true) => Some(Expr::IsNotNull),
        _ => None,
    }
}

/// Whether GLOB comes next.
fn is_glob(parser: &Parser) -> bool {
    let is_word = |token: &Token| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("glob"));
    let behind = &parser.peek_nth_token_ref(1).token;
    // An alias has nothing that a pattern could begin with behind it.
    let has_pattern = matches!(
        behind,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::LParen | Token::Placeholder(_)
    ) || matches!(behind, Token::Word(word) if word.keyword == Keyword::NoKeyword);
    is_word(&parser.peek_token_ref().token) && has_pattern
}

/// Whether `?` comes next, where no parameter can stand.
fn is_key_test(parser: &Parser) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Placeholder(name) if name == "?")
}

/// Takes an operator that is a call, and gives the function.
fn operator_call(parser: &mut Parser) -> &'static str {
    match parser.next_token().token {
        Token::Placeholder(_) if parser.consume_token(&Token::Pipe) => "jsonb_exists_any",
        Token::Placeholder(_) if parser.consume_token(&Token::Ampersand) => "jsonb_exists_all",
        Token::Placeholder(_) => "jsonb_exists",
        _ => "matches_glob",
    }
}

/// `(a, b) OVERLAPS (c, d)`, whose ends may be lengths behind the begin.
fn overlaps(left: &Expr, right: &Expr) -> Result<Expr, ParserError> {
    let pair = |expr: &Expr| match rows::components(expr)?.as_slice() {
        [begin, end] => Some([begin.clone(), end_of(begin, end)]),
        _ => None,
    };
    let (Some(one), Some(other)) = (pair(left), pair(right)) else {
        return Err(ParserError::ParserError("OVERLAPS compares two pairs of times, (a, b) OVERLAPS (c, d)".into()));
    };
    let arguments = one.into_iter().chain(other).map(|time| FunctionArg::Unnamed(FunctionArgExpr::Expr(time)));
    Ok(call("overlaps", arguments.collect()))
}

/// The end of a time that begins: a time, or an interval that is a constant or a cast.
fn end_of(begin: &Expr, end: &Expr) -> Expr {
    let is_length = match end {
        Expr::Interval(_) => true,
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
        _ => false,
    };
    let [left, right] = [begin, end].map(|side| Box::new(Expr::Nested(Box::new(side.clone()))));
    if is_length { Expr::BinaryOp { left, op: BinaryOperator::Plus, right } } else { end.clone() }
}

/// `TRIM(LEADING FROM x)` and `TRIM(FROM x)`, which trim blanks; none if something else comes next.
fn trimmed(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let is = |place: usize, keyword: Keyword| match &parser.peek_nth_token_ref(place).token {
        Token::Word(word) => word.keyword == keyword,
        _ => false,
    };
    if !is(0, Keyword::TRIM) || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let sides = [
        (Keyword::BOTH, TrimWhereField::Both),
        (Keyword::LEADING, TrimWhereField::Leading),
        (Keyword::TRAILING, TrimWhereField::Trailing),
    ];
    let side = sides.into_iter().find(|(keyword, _)| is(2, *keyword)).map(|(_, side)| side);
    let tokens = 3 + usize::from(side.is_some());
    if !is(tokens - 1, Keyword::FROM) {
        return None;
    }
    (0..tokens).for_each(|_| _ = parser.next_token());
    let expr = parser.parse_expr().and_then(|expr| parser.expect_token(&Token::RParen).map(|_| Box::new(expr)));
    Some(expr.map(|expr| Expr::Trim { trim_where: side, trim_what: None, expr, trim_characters: None }))
}

/// The sets behind GROUPING SETS.
fn grouping_sets(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let sets = parser.parse_comma_separated(|parser| {
        if parser.consume_tokens(&[Token::LParen, Token::RParen]) {
            return Ok(Vec::new());
        }
        Ok(match parser.parse_expr()? {
            Expr::Tuple(exprs) => exprs,
            Expr::Nested(expr) => vec![*expr],
            expr => vec![expr],
        })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::GroupingSets(sets))
}

/// `IN list` or `NOT IN list` behind an operand; none if something else comes next, parentheses of IN too.
fn in_list(parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let is_in = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::IN);
    let is_not = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::NOT);
    let [first, second, third] = parser.peek_tokens();
    let (negated, behind) = match is_not(&first) && is_in(&second) {
        true => (true, third),
        false if is_in(&first) => (false, second),
        false => return None,
    };
    if behind == Token::LParen {
        return None;
    }
    (0..1 + usize::from(negated)).for_each(|_| _ = parser.next_token());
    // Statements that are written anew have the list as UNNEST's argument.
    let is_written = matches!(&behind, Token::Word(word) if word.keyword == Keyword::UNNEST);
    let list = match is_written {
        true => {
            let _ = parser.next_token();
            parser.expect_token(&Token::LParen).and_then(|_| {
                let list = parser.parse_expr()?;
                parser.expect_token(&Token::RParen).map(|_| list)
            })
        }
        false => parser.parse_subexpr(precedence),
    };
    Some(list.map(|list| Expr::InUnnest { expr: Box::new(left.clone()), array_expr: Box::new(list), negated }))
}

/// `BETWEEN SYMMETRIC a AND b` behind an operand, as PostgreSQL reads it; none if something else comes next.
fn between_symmetric(parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let is = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let [first, second, third] = parser.peek_tokens();
    let negated = is(&first, Keyword::NOT);
    let (between, behind) = if negated { (&second, &third) } else { (&first, &second) };
    if !is(between, Keyword::BETWEEN) || !is(behind, Keyword::SYMMETRIC) {
        return None;
    }
    (0..2 + usize::from(negated)).for_each(|_| _ = parser.next_token());
    let bounds = parser.parse_subexpr(precedence).and_then(|low| {
        parser.expect_keyword_is(Keyword::AND)?;
        Ok((low, parser.parse_subexpr(precedence)?))
    });
    let between = |low: &Expr, high: &Expr| {
        let [expr, low, high] = [left, low, high].map(|operand| Box::new(operand.clone()));
        Box::new(Expr::Between { expr, negated: false, low, high })
    };
    Some(bounds.map(|(one, other)| {
        let (left, right) = (between(&one, &other), between(&other, &one));
        let either = Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Or, right }));
        match negated {
            true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) },
            false => either,
        }
    }))
}

/// Whether a set operation in parentheses comes next, whose first branch is a SELECT in parentheses of its own.
fn is_set_operation(parser: &Parser) -> bool {
    let [next, behind] = parser.peek_tokens();
    let is_select = parser.get_current_token().token == Token::LParen
        && next == Token::LParen
        && matches!(behind, Token::Word(word) if word.keyword == Keyword::SELECT);
    if !is_select {
        return false;
    }
    let mut depth = 0_usize;
    let mut tokens = (0..).map(|at| parser.peek_nth_token_no_skip(at).token);
    let is_last = |token: &Token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && *token == Token::RParen || *token == Token::EOF
    };
    let _ = tokens.by_ref().find(is_last);
    let follows = tokens.find(|token| !matches!(token, Token::Whitespace(_)));
    matches!(follows, Some(Token::Word(word))
        if matches!(word.keyword, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT))
}

impl Dialect for SessionDialect {
    /// The parser asks for the generic dialect by its type in some places.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GenericDialect.is_identifier_part(character)
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            // As other operators of PostgreSQL's: above comparisons, below sums.
            Token::Arrow | Token::LongArrow => Some(Ok(self.prec_value(Precedence::Caret))),
            Token::StringConcat => Some(Ok(self.prec_value(Precedence::Pipe))),
            Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
            | Token::Spaceship => Some(Ok(self.of_comparisons())),
            Token::Word(_) if null_test(parser).is_some() => Some(Ok(self.prec_value(Precedence::Is))),
            Token::Placeholder(_) if is_key_test(parser) => Some(Ok(self.prec_value(Precedence::Pipe))),
            _ if is_glob(parser) => Some(Ok(self.prec_value(Precedence::Like))),
            _ => is_power(parser).then(|| Ok(self.of_powers())),
        }
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        statements::statement(parser)
    }

    /// `SELECT 1 ON CONFLICT DO NOTHING` has no column named `on`.
    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        explicit || *keyword != Keyword::ON && self.is_column_alias(keyword, parser)
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    /// A sign binds its operand before a power does. Grouping sets stand within others, queries in parentheses.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if parser.parse_keywords(&[Keyword::GROUPING, Keyword::SETS]) {
            return Some(grouping_sets(parser));
        }
        if let Some(parsed) = lambdas::behind_word(parser).or_else(|| trimmed(parser)) {
            return Some(parsed);
        }
        if is_interval_of_expression(parser) {
            parser.next_token();
            return Some(parser.parse_interval());
        }
        if is_set_operation(parser) {
            return Some(parser.parse_query().map(Expr::Subquery));
        }
        let (op, precedence) = match parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, self.of_powers()),
            Token::Plus => (UnaryOperator::Plus, self.of_powers()),
            Token::Tilde => (UnaryOperator::BitwiseNot, self.prec_value(Precedence::Ampersand)),
            _ => return None,
        };
        parser.next_token();
        let operand = parser.parse_subexpr(precedence);
        Some(operand.map(|operand| {
            // Two signs would be a comment in a text that is read again.
            let expr =
                match op == UnaryOperator::Minus && matches!(operand, Expr::UnaryOp { op: UnaryOperator::Minus, .. }) {
                    true => Expr::Nested(Box::new(operand)),
                    false => operand,
                };
            Expr::UnaryOp { op, expr: Box::new(expr) }
        }))
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if parser.consume_token(&Token::Caret) || parser.consume_tokens(&[Token::Mul, Token::Mul]) {
            let right = parser.parse_subexpr(precedence);
            return Some(right.map(|right| Expr::BinaryOp {
                left: Box::new(left.clone()),
                op: BinaryOperator::PGExp,
                right: Box::new(right),
            }));
        }
        if let Some(test) = null_test(parser) {
            parser.next_token();
            return Some(Ok(test(Box::new(left.clone()))));
        }
        if is_glob(parser) || is_key_test(parser) {
            let function = operator_call(parser);
            let arguments = |other| [left.clone(), other].map(FunctionArgExpr::Expr).map(FunctionArg::Unnamed);
            let other = parser.parse_subexpr(precedence);
            return Some(other.map(|other| call(function, arguments(other).into())));
        }
        if parser.parse_keyword(Keyword::OVERLAPS) {
            return Some(parser.parse_subexpr(precedence).and_then(|right| overlaps(left, &right)));
        }
        if let Some(parsed) = between_symmetric(parser, left, precedence) {
            return Some(parsed);
        }
        if let Some(parsed) = in_list(parser, left, precedence) {
            return Some(parsed);
        }
        let distinct = [Keyword::IS, Keyword::DISTINCT, Keyword::FROM];
        let not_distinct = [Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM];
        let negated = match (parser.parse_keywords(&distinct), parser.parse_keywords(&not_distinct)) {
            (true, _) => false,
            (_, true) => true,
            _ => return None,
        };
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| match negated {
            true => Expr::IsNotDistinctFrom(Box::new(left.clone()), Box::new(right)),
            false => Expr::IsDistinctFrom(Box::new(left.clone()), Box::new(right)),
        }))
    }

    as_generic! {
            supports_unicode_string_literal, supports_partition_by_after_order_by, supports_array_join_syntax,
            supports_group_by_expr, supports_group_by_with_modifier, supports_left_associative_joins_without_parens,
            supports_connect_by, supports_match_recognize, supports_pipe_operator,
            supports_start_transaction_modifier, supports_window_function_null_treatment_arg,
            supports_dictionary_syntax, supports_window_clause_named_window_reference,
            supports_parenthesized_set_variables, supports_select_wildcard_except, support_map_literal_syntax,
            allow_extract_custom, allow_extract_single_quotes, supports_extract_comma_syntax,
            supports_create_view_comment_syntax, supports_parens_around_table_factor,
            supports_values_as_table_factor, supports_create_index_with_clause,
            supports_explain_with_utility_options, supports_limit_comma, supports_update_order_by,
            supports_from_first_select, supports_projection_trailing_commas, supports_asc_desc_in_column_definition,
            supports_try_convert, supports_bitwise_shift_operators, supports_comment_on, supports_load_extension,
            supports_named_fn_args_with_assignment_operator, supports_struct_literal, supports_empty_projections,
            supports_nested_comments, supports_multiline_comment_hints, supports_user_host_grantee,
            supports_string_escape_constant, supports_array_typedef_with_brackets, supports_match_against,
            supports_set_names, supports_comma_separated_set_assignments, supports_filter_during_aggregation,
            supports_select_wildcard_exclude, supports_data_type_signed_suffix, supports_interval_options,
            supports_quote_delimited_string, supports_select_wildcard_replace, supports_select_wildcard_ilike,
            supports_select_wildcard_rename, supports_optimize_table, supports_install, supports_detach,
            supports_prewhere, supports_with_fill, supports_limit_by, supports_interpolate, supports_settings,
            supports_select_format, supports_comment_optimizer_hint, supports_constraint_keyword_without_name,
            supports_key_column_option, supports_comma_separated_trim, supports_cte_without_as,
            supports_select_item_multi_column_alias, supports_xml_expressions,
    }
}
