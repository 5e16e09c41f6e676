//! Lambdas: `list_transform(l, x -> x + 1)` and `list_transform(l, lambda x: x + 1)`.
//!
//! An arrow is JSON's operator, too, and binds as closely as others of PostgreSQL's do. In an argument of a function
//! that takes lambdas, the first name of an expression with an arrow behind it is a parameter, and the rest the body.
//! All are shown with the word, so that texts of queries have lambdas wherever they stand.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens, Subscript, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::items::folded;
use super::methods::with_fields;
use super::{quotes, visits};

/// Makes lambdas of the arguments behind so many.
pub(super) fn of_arguments(function: &mut Function, behind: usize) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for argument in list.args.iter_mut().skip(behind) {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument
            && let Some(parameters) = take_parameters(expr)
        {
            let body = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = lambda(parameters, body);
        }
    }
}

/// A lambda; `e.a` of a parameter `e` is the field `e['a']`, where DataFusion 55.2 looks for a table.
fn lambda(parameters: Vec<Ident>, mut body: Expr) -> Expr {
    let own: Vec<String> = parameters.iter().map(folded).collect();
    let _ = visits::visit_mut(&mut body, &mut Fields { parameters: &own });
    let parameters = parameters.into_iter().map(|name| LambdaFunctionParameter { name, data_type: None }).collect();
    let (params, syntax) = (OneOrManyWithParens::Many(parameters), LambdaSyntax::LambdaKeyword);
    Expr::Lambda(LambdaFunction { params, body: Box::new(body), syntax })
}

/// Makes subscripts of the names behind a parameter.
struct Fields<'a> {
    parameters: &'a [String],
}

impl VisitorMut for Fields<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let field = |name: &Ident| {
            let index = Expr::value(quotes::text(folded(name)));
            AccessExpr::Subscript(Subscript::Index { index })
        };
        let is_parameter = |name: &Ident| self.parameters.contains(&folded(name));
        let is_own = |root: &Expr| matches!(root, Expr::Identifier(name) if is_parameter(name));
        match expr {
            Expr::CompoundIdentifier(names) if names.first().is_some_and(is_parameter) => {
                let (root, fields) = (names.remove(0), names.iter().map(field).collect());
                *expr = with_fields(Expr::Identifier(root), fields);
            }
            Expr::CompoundFieldAccess { root, access_chain } if is_own(root) => {
                for access in access_chain {
                    if let AccessExpr::Dot(Expr::Identifier(name)) = access {
                        *access = field(name);
                    }
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let Expr::CompoundIdentifier(names) = root.as_mut()
                    && names.first().is_some_and(is_parameter)
                {
                    let own = names.remove(0);
                    access_chain.splice(0..0, names.iter().map(field));
                    **root = Expr::Identifier(own);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Takes the parameters in front of an expression, which becomes the body.
fn take_parameters(expr: &mut Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            let Some(parameters) = names(left).filter(|_| *op == BinaryOperator::Arrow) else {
                return take_parameters(left);
            };
            *expr = std::mem::replace(right.as_mut(), Expr::value(Value::Null));
            Some(parameters)
        }
        Expr::IsNull(first)
        | Expr::IsNotNull(first)
        | Expr::Between { expr: first, .. }
        | Expr::InList { expr: first, .. }
        | Expr::InUnnest { expr: first, .. }
        | Expr::InSubquery { expr: first, .. }
        | Expr::SimilarTo { expr: first, .. }
        | Expr::IsTrue(first)
        | Expr::IsNotTrue(first)
        | Expr::IsFalse(first)
        | Expr::IsNotFalse(first)
        | Expr::IsDistinctFrom(first, _)
        | Expr::IsNotDistinctFrom(first, _)
        | Expr::AnyOp { left: first, .. }
        | Expr::AllOp { left: first, .. }
        | Expr::Like { expr: first, .. }
        | Expr::ILike { expr: first, .. }
        | Expr::Cast { expr: first, .. } => take_parameters(first),
        _ => None,
    }
}

fn names(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::Nested(expr) => names(expr),
        Expr::Tuple(exprs) => exprs.iter().map(|expr| names(expr)?.pop()).collect(),
        _ => None,
    }
}

/// Parses a lambda behind its word; none if the word is a name.
pub(super) fn behind_word(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let [word, name, behind] = parser.peek_tokens();
    let is_lambda =
        matches!(&word, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("lambda"));
    if !is_lambda || !matches!(name, Token::Word(_)) || !matches!(behind, Token::Colon | Token::Comma) {
        return None;
    }
    parser.next_token();
    let parsed = parser.parse_comma_separated(Parser::parse_identifier).and_then(|parameters| {
        parser.expect_token(&Token::Colon)?;
        Ok(lambda(parameters, parser.parse_expr()?))
    });
    Some(parsed)
}
