//! Operators of expressions.

/// Operators of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Logical negation.
    Not,
    /// Arithmetic negation; integers that leave their type do what [`Overflow`] says.
    Negate,
    /// Whether the operand is NULL; never NULL itself.
    IsNull,
    /// Whether the operand is not NULL; never NULL itself.
    IsNotNull,
    /// Whether the operand is true; never NULL itself.
    IsTrue,
    /// Magnitude; the smallest integer of a type raises, whatever [`Overflow`] says. A decimal that may be the smallest
    /// of 128 bits is refused.
    Absolute,
    /// The largest whole number that is not above a float.
    Floor,
    /// The smallest whole number that is not below a float.
    Ceil,
    /// The whole number nearest to a float, halves away from zero.
    Round,
    /// The whole number nearest to a float, of two the even one.
    RoundEven,
    /// A float without its digits behind the point; zeros of both signs give 0.
    Truncate,
    /// -1, 0 or 1 by the sign of a float; NaN of NaN.
    Sign,
    /// Square root of a float; NaN of those below zero.
    Root,
}

/// Operators of two operands; both have the same type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum; integers that leave their type do what [`Overflow`] says, decimals that may leave 128 bits are refused.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, truncated for integers; zero divisors raise, as does the smallest integer by -1.
    Div,
    /// Remainder with the dividend's sign.
    Rem,
    /// Equality; NaN equals NaN, zeros of both signs are equal.
    Eq,
    /// Inequality.
    Ne,
    /// Order; NaN is largest, whatever its sign, zeros of both signs are equal.
    Lt,
    /// Order or equality.
    Le,
    /// Order.
    Gt,
    /// Order or equality.
    Ge,
    /// Kleene conjunction.
    And,
    /// Kleene disjunction.
    Or,
}

impl BinaryOp {
    /// Whether the result is a truth value.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// The comparison that holds of `b` and `a` where this one holds of `a` and `b`; itself if it is none.
    pub(crate) fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Lt => BinaryOp::Gt,
            BinaryOp::Le => BinaryOp::Ge,
            BinaryOp::Gt => BinaryOp::Lt,
            BinaryOp::Ge => BinaryOp::Le,
            other => other,
        }
    }
}
