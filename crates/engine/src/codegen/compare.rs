//! Comparisons of packed columns with constants, without unpacking: an offset that is shifted to the top of a word
//! compares like the value, whatever lies below it, if the constant is shifted too.
//!
//! A value `v` is `reference + offset` with an offset of `width` bits. `v < c` is `offset < c - reference`, and with
//! `s = 32 - width` that is `offset · 2^s + below < (c - reference) · 2^s` for any `below` less than `2^s`. Codes of a
//! column with a lookup sort like its values: the constant becomes the first code that is not below it.

use std::sync::Arc;

use warpcube_column::ColumnReader;
use warpcube_column::format::Packed;

use crate::codegen::params::{Argument, ParamList};
use crate::ir::{BinaryOp, Expr};

/// The condition for slot `k` that a filter holds, if all it does is to compare a packed column with a constant.
/// `distinct` has the values of columns of codes.
pub(super) fn packed_test(
    expr: &Expr,
    readers: &[ColumnReader],
    distinct: &[Option<Arc<[i128]>>],
    params: &mut ParamList,
) -> Option<String> {
    Some(test(expr, readers, distinct)?.condition(readers, params))
}

/// `offset < limit` of a column, or its contrary.
struct Test {
    column: usize,
    packed: Packed,
    /// From 0 to 2^width.
    limit: u64,
    below: bool,
}

fn test(expr: &Expr, readers: &[ColumnReader], distinct: &[Option<Arc<[i128]>>]) -> Option<Test> {
    let (column, op, constant) = expr.against_constant()?;
    let (packed, reference) = readers.get(column)?.layout().packed()?;
    // The first value, or code, that is not below.
    let (first, below) = match op {
        BinaryOp::Lt => (constant, true),
        BinaryOp::Le => (constant + 1, true),
        BinaryOp::Ge => (constant, false),
        BinaryOp::Gt => (constant + 1, false),
        _ => return None,
    };
    let first = match (readers[column].layout().is_coded(), distinct.get(column)?) {
        (true, Some(values)) => values.partition_point(|value| *value < first) as i128,
        (true, None) => return None,
        (false, _) => first,
    };
    let limit = (first - reference).clamp(0, 1 << packed.width) as u64;
    Some(Test { column, packed, limit, below })
}

impl Test {
    fn condition(&self, readers: &[ColumnReader], params: &mut ParamList) -> String {
        let Test { column, packed, limit, below } = self;
        let test = match *limit {
            0 => (!below).to_string(),
            all if all == 1 << packed.width => below.to_string(),
            limit => {
                let limit = params.add("uint64_t", Argument::U64(limit << (32 - packed.width)));
                format!("{} {} (uint32_t){limit}", readers[*column].top("d"), if *below { "<" } else { ">=" })
            }
        };
        match readers[*column].is_nullable() {
            true => format!("(dn{column} >> k & 1u) && {test}"),
            false => test,
        }
    }
}
