//! Bounds of integer operations, from which the widths of sums and the packing of keys are decided.

use crate::ir::BinaryOp;

/// Bounds of an exact integer operation; `None` where an operand is unbounded or 128 bits overflow.
pub(crate) fn interval(op: BinaryOp, left: Option<(i128, i128)>, right: Option<(i128, i128)>) -> Option<(i128, i128)> {
    let ((a, b), (c, d)) = (left?, right?);
    match op {
        BinaryOp::Add => Some((a.checked_add(c)?, b.checked_add(d)?)),
        BinaryOp::Sub => Some((a.checked_sub(d)?, b.checked_sub(c)?)),
        BinaryOp::Mul => {
            let corners = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            Some((corners.into_iter().min()?, corners.into_iter().max()?))
        }
        BinaryOp::Div => {
            let largest = a.checked_abs()?.max(b.checked_abs()?);
            if c <= 0 && d >= 0 {
                return Some((-largest, largest));
            }
            // A slot without a row, whose divisor may be zero after all, has the quotient 0.
            let corners = [a.checked_div(c)?, a.checked_div(d)?, b.checked_div(c)?, b.checked_div(d)?, 0];
            Some((corners.into_iter().min()?, corners.into_iter().max()?))
        }
        BinaryOp::Rem => {
            let largest = (c.checked_abs()?.max(d.checked_abs()?) - 1).max(0);
            Some((if a < 0 { -largest } else { 0 }, if b > 0 { largest } else { 0 }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_bound_every_result() {
        let ranges = [(-7i128, 5), (-7, -2), (0, 5), (2, 5), (3, 3), (-1, 0)];
        for (left, right) in ranges.into_iter().flat_map(|left| ranges.map(|right| (left, right))) {
            bound_every_result(left, right);
        }
        assert_eq!(interval(BinaryOp::Div, Some((80, 100)), Some((10, 10))), Some((0, 10)));
        assert_eq!(interval(BinaryOp::Rem, Some((80, 100)), Some((10, 10))), Some((0, 9)));
    }

    fn bound_every_result(left: (i128, i128), right: (i128, i128)) {
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem] {
            let (low, high) = interval(op, Some(left), Some(right)).unwrap();
            for a in left.0..=left.1 {
                for b in (right.0..=right.1).filter(|b| *b != 0) {
                    let exact = match op {
                        BinaryOp::Add => a + b,
                        BinaryOp::Sub => a - b,
                        BinaryOp::Mul => a * b,
                        BinaryOp::Div => a / b,
                        _ => a % b,
                    };
                    assert!((low..=high).contains(&exact), "{a} {op:?} {b}");
                }
            }
        }
    }
}
