//! What a comparison with a constant lets pass, in kernel source.

use crate::codegen::params::{Argument, ParamList};
use crate::ir::{BinaryOp, Expr};

/// The least and the largest value that a comparison of a column with a constant lets pass, in kernel source.
pub(super) struct Ends {
    pub(super) low: Option<String>,
    pub(super) high: Option<String>,
}

impl Ends {
    /// Both as one text.
    pub(super) fn text(&self) -> String {
        format!("{:?} {:?}", self.low, self.high)
    }
}

/// What a comparison with a constant lets pass; none where that is no range.
pub(super) fn ends(expr: &Expr, params: &mut ParamList) -> Option<Ends> {
    let (_, op, constant) = expr.against_constant()?;
    let (low, high) = match op {
        BinaryOp::Eq => (Some(constant), Some(constant)),
        BinaryOp::Lt => (None, constant.checked_sub(1)),
        BinaryOp::Le => (None, Some(constant)),
        BinaryOp::Gt => (constant.checked_add(1), None),
        BinaryOp::Ge => (Some(constant), None),
        _ => return None,
    };
    let mut end = |end: Option<i128>| {
        let inside = end?.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Some(format!("(int64_t){}", params.add("uint64_t", Argument::U64(inside as u64))))
    };
    Some(Ends { low: end(low), high: end(high) })
}
