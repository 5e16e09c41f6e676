//! Branches of UNION ALL that aggregate into one table of groups, or leave their rows in one list.
//!
//! What the sinks of the branches read becomes columns that all branches have. The facts of a column hold for the
//! values of every branch: bounds and NULLs are those of all together, strings are codes of one dictionary. The table
//! of groups, or the list, is laid out once, with these columns as registers.
//!
//! ```text
//! scan t0: group by #0, #2: sum(#1) where #3    columns of branch 0: #0, #2, #3, #1 (if #3)
//! scan t1: group by #4, 'b': sum(#0 + 1)        columns of branch 1: #4, 'b', true, #0 + 1 (if true)
//!                                               union: group by #0, #1: sum(#3) where #2
//! ```

use std::sync::Arc;

use arrow::datatypes::DataType;

use crate::error::{EngineError, Result};
use crate::facts::{Facts, Validity, analyse, case, validity};
use crate::ir::{AggregateCall, AggregateKind, Expr, Literal, Overflow, Sink, Ty, UnaryOp};
use crate::plan::cells::{CellOp, Output, Read, United};
use crate::plan::group_values::GroupValue;
use crate::plan::view::ColumnView;

/// A branch, before the union is known.
pub(crate) struct Member<'a> {
    /// Its sink, which aggregates.
    pub(crate) sink: &'a Sink,
    /// What is known of its registers.
    pub(crate) registers: &'a [Option<Facts>],
    /// The columns of its scan.
    pub(crate) columns: &'a [ColumnView<'a>],
    /// Where groups are scanned, what their columns stand for.
    pub(crate) values: &'a [GroupValue],
    /// Rows of its scan.
    pub(crate) rows: u64,
    /// Most rows that come to its sink.
    pub(crate) rows_out: u64,
    /// Most of them that are none of a join with several matches; none if it has no such join.
    pub(crate) unmatched_rows: Option<u64>,
}

/// A column of one branch.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The expression over the registers of the branch.
    pub(crate) expr: Expr,
    /// The column that is the filter of its aggregate: where that is not true, the expression raises nothing.
    pub(crate) guard: Option<usize>,
    /// For which rows of the branch it is valid.
    pub(crate) validity: Validity,
}

/// The sink of several pipelines.
#[derive(Debug)]
pub(crate) struct Union {
    /// What is known of the columns: the registers of groups and aggregates.
    pub(crate) columns: Vec<Option<Facts>>,
    /// The columns of each branch.
    pub(crate) branches: Vec<Vec<Column>>,
    /// Number of distinct values of each column, where it is known: at most the sum of those of the branches.
    pub(crate) distinct_counts: Vec<Option<u64>>,
    /// Group expressions over the columns; of rows all columns.
    pub(crate) groups: Vec<(Expr, DataType)>,
    /// Aggregates over the columns, and what each of them unites.
    pub(crate) aggregates: Vec<AggregateCall>,
    pub(crate) united: Vec<Option<United>>,
    /// Rows of all scans.
    pub(crate) rows: u64,
    /// Most rows that come to the sink.
    pub(crate) rows_out: u64,
    /// Most of them that are none of a join with several matches; none if no branch has such a join.
    pub(crate) unmatched_rows: Option<u64>,
}

impl Union {
    /// The sink that branches share.
    ///
    /// # Errors
    /// Malformed if their sinks differ; what [`analyse`] refuses.
    pub(crate) fn of(members: &[Member], overflow: Overflow) -> Result<Union> {
        let sinks = members.iter().map(|member| match member.sink {
            Sink::Aggregate { groups, aggregates } => Ok((groups.as_slice(), aggregates.as_slice())),
            Sink::Rows { columns, limit: None } => Ok((columns.as_slice(), &[][..])),
            _ => Err(malformed("a branch that neither aggregates nor gives all rows")),
        });
        let sinks = sinks.collect::<Result<Vec<_>>>()?;
        let Some((first, others)) = sinks.split_first() else { return Err(malformed("no branches")) };
        let is_like = |one: &AggregateCall, other: &AggregateCall| {
            (one.kind, &one.data_type, one.unites) == (other.kind, &other.data_type, other.unites)
        };
        let same = |(groups, calls): &(&[(Expr, DataType)], &[AggregateCall])| {
            groups.len() == first.0.len()
                && calls.len() == first.1.len()
                && groups.iter().zip(first.0).all(|(one, other)| one.1 == other.1)
                && calls.iter().zip(first.1).all(|(one, other)| is_like(one, other))
        };
        let are_rows = |member: &Member| matches!(member.sink, Sink::Rows { .. });
        if !others.iter().all(same) || members.iter().any(|member| are_rows(member) != are_rows(&members[0])) {
            return Err(malformed("branches that end differently"));
        }
        let mut columns = Columns { members, overflow, asked: Vec::new(), facts: Vec::new() };
        let groups = first.0.iter().enumerate().map(|(position, (_, data_type))| {
            let exprs = sinks.iter().map(|(groups, _)| groups[position].0.clone()).collect();
            Ok((columns.ask(exprs, None)?, data_type.clone()))
        });
        let groups = groups.collect::<Result<_>>()?;
        let aggregates = (0..first.1.len()).map(|position| {
            let calls: Vec<&AggregateCall> = sinks.iter().map(|(_, calls)| &calls[position]).collect();
            match calls[0].unites {
                true => Ok((AggregateCall { argument: None, ..calls[0].clone() }, Some(columns.united(&calls)?))),
                false => Ok((columns.call(&calls)?, None)),
            }
        });
        let (aggregates, united) = aggregates.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let Columns { asked, facts, .. } = columns;
        let branch = |(number, member): (usize, &Member)| {
            let column = |(exprs, guard): &(Vec<Expr>, Option<usize>)| {
                let validity = validity(&exprs[number], member.registers, overflow)?;
                Ok(Column { expr: exprs[number].clone(), guard: *guard, validity })
            };
            asked.iter().map(column).collect::<Result<_>>()
        };
        let distinct = |exprs: &Vec<Expr>| {
            let of_branch = |(expr, member): (&Expr, &Member)| match expr {
                Expr::Reg(register) => member.columns.get(*register)?.distinct_count,
                _ => None,
            };
            exprs.iter().zip(members).map(of_branch).try_fold(0u64, |sum, count| sum.checked_add(count?))
        };
        let is_matched = members.iter().any(|member| member.unmatched_rows.is_some());
        let unmatched = |member: &Member| member.unmatched_rows.unwrap_or(member.rows_out);
        Ok(Union {
            branches: members.iter().enumerate().map(branch).collect::<Result<_>>()?,
            distinct_counts: asked.iter().map(|(exprs, _)| distinct(exprs)).collect(),
            columns: facts.into_iter().map(Some).collect(),
            groups,
            aggregates,
            united,
            rows: members.iter().fold(0, |rows, member| rows.saturating_add(member.rows)),
            rows_out: members
                .iter()
                .fold(0u64, |rows, member| rows.saturating_add(member.rows_out))
                .min(i64::MAX as u64),
            unmatched_rows: is_matched
                .then(|| members.iter().fold(0u64, |rows, member| rows.saturating_add(unmatched(member)))),
        })
    }
}

fn malformed(what: &str) -> EngineError {
    EngineError::Malformed(format!("a union with {what}"))
}

/// Columns as they are asked for.
struct Columns<'a> {
    members: &'a [Member<'a>],
    overflow: Overflow,
    /// Expressions by branch, with the column that is their filter.
    asked: Vec<(Vec<Expr>, Option<usize>)>,
    facts: Vec<Facts>,
}

impl Columns<'_> {
    /// The register of a column with these expressions, one a branch; equal columns are one.
    fn ask(&mut self, exprs: Vec<Expr>, guard: Option<usize>) -> Result<Expr> {
        let is_known = |(known, filter): &(Vec<Expr>, Option<usize>)| {
            *filter == guard && known.iter().zip(&exprs).all(|(known, expr)| known.is_same(expr))
        };
        let position = match self.asked.iter().position(is_known) {
            Some(position) => position,
            None => {
                self.facts.push(of_all(self.of_branches(&exprs)?)?);
                self.asked.push((exprs, guard));
                self.asked.len() - 1
            }
        };
        Ok(Expr::Reg(position))
    }

    fn of_branches(&self, exprs: &[Expr]) -> Result<Vec<Facts>> {
        let of_branch = |(expr, member): (&Expr, &Member)| {
            analyse(&[expr], member.registers, self.overflow).map(|(mut facts, _)| facts.remove(0))
        };
        exprs.iter().zip(self.members).map(of_branch).collect()
    }

    /// An aggregate over columns.
    fn call(&mut self, calls: &[&AggregateCall]) -> Result<AggregateCall> {
        let filter = match calls.iter().all(|call| call.filter.is_none()) {
            true => None,
            false => {
                let all = || Expr::Literal(Literal::Int(1), Ty::Bool);
                Some(self.ask(calls.iter().map(|call| call.filter.clone().unwrap_or_else(all)).collect(), None)?)
            }
        };
        let guard =
            filter.as_ref().and_then(|filter| if let Expr::Reg(column) = filter { Some(*column) } else { None });
        let arguments: Vec<Option<&Expr>> = calls.iter().map(|call| call.argument.as_ref()).collect();
        let exprs: Vec<Expr> = arguments.iter().copied().flatten().cloned().collect();
        let argument = match (exprs.len(), calls[0].kind) {
            (0, _) => None,
            (count, AggregateKind::Count) if count < calls.len() || !self.are_of_one_type(&exprs)? => {
                Some(self.ask(arguments.into_iter().map(is_there).collect(), guard)?)
            }
            (count, _) if count < calls.len() => return Err(malformed("an aggregate without argument")),
            _ => Some(self.ask(exprs, guard)?),
        };
        Ok(AggregateCall { filter, argument, ..calls[0].clone() })
    }

    /// The accumulators that an aggregate unites, over columns that hold the cells. Groups that have no count of what
    /// went in are never empty: theirs is one.
    fn united(&mut self, calls: &[&AggregateCall]) -> Result<United> {
        let of_branch = |(call, member): (&&AggregateCall, &Member)| {
            let united = United::of(call, member.values, member.columns.len())?;
            united.ok_or_else(|| malformed("a branch that unites no accumulators"))
        };
        let all = calls.iter().zip(self.members).map(of_branch).collect::<Result<Vec<_>>>()?;
        let is_alike = |one: &Output, other: &Output| {
            let strings = |output: &Output| output.dictionary.as_ref().map(Arc::as_ptr);
            one.read == other.read && strings(one) == strings(other)
        };
        if !all.iter().all(|one| is_alike(&one.output, &all[0].output)) {
            return Err(malformed("accumulators of several forms"));
        }
        let is_counted = all.iter().any(|united| united.output.count.is_some());
        let width = all[0].cells.len() - usize::from(all[0].output.count.is_some());
        let mut cells = Vec::with_capacity(width + 1);
        for position in 0..width + usize::from(is_counted) {
            let one = || Expr::Literal(Literal::Int(1), Ty::U64);
            let expr = |united: &United| united.cells.get(position).map_or_else(one, |(_, cell)| Expr::Reg(*cell));
            let op = all.iter().find_map(|united| united.cells.get(position)).map_or(CellOp::Add, |(op, _)| *op);
            if let Expr::Reg(column) = self.ask(all.iter().map(expr).collect(), None)? {
                cells.push((op, column));
            }
        }
        let count = is_counted.then_some(width);
        let facts = of_all(all.iter().map(|united| united.facts.clone()).collect())?;
        // A sum may be one of groups of all branches.
        let times = |bound: i128| bound.checked_mul(all.len() as i128);
        let is_sum = !matches!(all[0].output.read, Read::Image { .. });
        let range = match facts.range.filter(|_| is_sum) {
            Some((low, high)) => times(low.min(0)).zip(times(high.max(0))).filter(|range| fits(*range, facts.ty)),
            None => facts.range.filter(|_| !is_sum),
        };
        Ok(United { facts: Facts { range, ..facts }, cells, output: Output { count, ..all[0].output.clone() } })
    }

    fn are_of_one_type(&self, exprs: &[Expr]) -> Result<bool> {
        let facts = self.of_branches(exprs)?;
        Ok(facts.iter().all(|value| value.ty == facts[0].ty))
    }
}

/// Whether bounds are within those of a type.
fn fits((low, high): (i128, i128), ty: Ty) -> bool {
    ty.bounds().is_some_and(|(least, most)| low >= least && high <= most)
}

/// True where there is an argument, else NULL: what a count needs of values whose types differ.
fn is_there(argument: Option<&Expr>) -> Expr {
    let one = Expr::Literal(Literal::Int(1), Ty::Bool);
    let Some(argument) = argument else { return one };
    let is_there = Expr::Unary(UnaryOp::IsNotNull, Box::new(argument.clone()));
    Expr::Case(vec![(is_there, one)], Box::new(Expr::Literal(Literal::Null, Ty::Bool)))
}

/// What is known of the values of all branches together. NULLs have no bounds that matter: the constant, and strings
/// without a dictionary among others with one.
fn of_all(values: Vec<Facts>) -> Result<Facts> {
    let ty = values[0].ty;
    if values.iter().any(|value| value.ty != ty) {
        return Err(malformed("columns of several types"));
    }
    let nullable = values.iter().any(|value| value.nullable);
    let are_codes = values.iter().any(|value| value.dictionary.is_some());
    let has_values = |value: &Facts| !value.is_null && (value.dictionary.is_some() || !are_codes);
    if !values.iter().any(has_values) {
        return Ok(values[0].clone());
    }
    let values: Vec<Facts> = values.into_iter().filter(has_values).collect();
    let magnitude = values.iter().map(|value| value.magnitude).reduce(|one, other| Some(one?.max(other?))).flatten();
    Ok(Facts { nullable, magnitude, ..case(values)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_hold_for_all_branches() {
        let int = |nullable, range| Facts::new(Ty::I64, nullable, Some(range));
        let both = of_all(vec![int(false, (5, 9)), int(true, (-3, 2))]).unwrap();
        assert_eq!((both.range, both.nullable), (Some((-3, 9)), true));
        let null = Facts { is_null: true, ..int(true, (0, 0)) };
        let both = of_all(vec![int(false, (5, 9)), null.clone()]).unwrap();
        assert_eq!((both.range, both.nullable, both.is_null), (Some((5, 9)), true, false));
        assert!(of_all(vec![null.clone(), null]).unwrap().is_null);
        assert!(of_all(vec![int(false, (5, 9)), Facts::new(Ty::I32, false, None)]).is_err());
        let both = of_all(vec![crate::facts::text("a"), Facts::new(Ty::U32, true, None)]).unwrap();
        assert_eq!((both.dictionary.unwrap().len(), both.range, both.nullable), (1, Some((0, 0)), true));
    }
}
