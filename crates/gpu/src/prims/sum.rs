//! Sums: which types they have. Integers of 4 bytes sum up in 4 or 8 bytes and wrap; floats sum up as doubles.
//! There are no sums of 16 bytes. Keys have up to 16 bytes wherever keys are compared (sorts, merge, search, unique,
//! run-length encode, ordered aggregation, least and largest), and so has what is only moved (gather, scatter, select,
//! partition); what scans, segmented forms and ordered sums add up are values.

use crate::error::{GpuError, Result};
use crate::prims::Element;

/// How a kernel adds up elements of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumType {
    /// The type of items.
    pub input: Element,
    /// The type of their sum.
    pub sum: Element,
}

impl SumType {
    /// Sums of `input` in elements of `sum`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if kernels cannot: a sum has at least the bytes of its items, up to 8, and their kind.
    pub fn new(operation: &str, input: Element, sum: Element) -> Result<SumType> {
        let fits = match sum {
            Element::U32 => matches!(input, Element::U8 | Element::U32),
            Element::U64 => matches!(input, Element::U8 | Element::U32 | Element::U64),
            Element::I32 => input == Element::I32,
            Element::I64 => matches!(input, Element::U8 | Element::U32 | Element::I32 | Element::I64),
            Element::F64 => matches!(input, Element::F32 | Element::F64),
            _ => false,
        };
        if fits {
            return Ok(SumType { input, sum });
        }
        Err(GpuError::Contract(format!("{operation}: no sums of {input} in {sum}")))
    }

    /// What kernels call the types: `WC_IN`, `WC_SUM` (unsigned for integers, so that they may wrap), `WC_WIDEN`.
    pub fn text(self) -> String {
        let sum = match self.sum {
            Element::U32 | Element::I32 => "uint32_t",
            Element::U64 | Element::I64 => "uint64_t",
            other => other.c_type(),
        };
        let through = if self.input == Element::I32 { "(int64_t)" } else { "" };
        let input = self.input.c_type();
        format!("#define WC_IN {input}\n#define WC_SUM {sum}\n#define WC_WIDEN(x) ((WC_SUM){through}(x))\n")
    }
}

/// A type of sums on the host, for references.
pub trait Sum: bytemuck::Pod + PartialEq + std::fmt::Debug {
    /// Its name for devices.
    const ELEMENT: Element;
    /// The sum of nothing.
    const ZERO: Self;

    /// The sum of both; integers wrap.
    fn plus(self, other: Self) -> Self;
}

macro_rules! integer_sum {
    ($($rust:ty => $element:ident),*) => {$(
        impl Sum for $rust {
            const ELEMENT: Element = Element::$element;
            const ZERO: $rust = 0;

            fn plus(self, other: $rust) -> $rust {
                self.wrapping_add(other)
            }
        }
    )*};
}
integer_sum!(u32 => U32, i32 => I32, u64 => U64, i64 => I64);

impl Sum for f64 {
    const ELEMENT: Element = Element::F64;
    const ZERO: f64 = 0.0;

    fn plus(self, other: f64) -> f64 {
        self + other
    }
}
