//! Monoids: what reductions, scans and segmented forms join items to. `kernels/prims/monoid.cuh` is the device's side
//! of this file.

use crate::error::{GpuError, Result};
use crate::prims::sum::{Sum, SumType};
use crate::prims::{Element, Key};

/// Kernel text of monoids, behind keys, tiles and look-back.
pub(crate) const MONOID: &str = include_str!("../../kernels/prims/monoid.cuh");

/// What items are joined to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum, in elements of this type; of nothing 0.
    Sum(Element),
    /// Their number, in [`Element::U64`].
    Count,
    /// The least of them, in the order of keys; of nothing the largest key, which is NaN for floats.
    Least,
    /// The largest of them, in the order of keys: NaN if there is one. Of nothing the least key, which is −∞ for
    /// floats.
    Largest,
}

/// A reduction of items of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) input: Element,
    pub(crate) of: Reduction,
}

impl Joined {
    /// A reduction of items of a type.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for types that have no such sums.
    pub(crate) fn new(operation: &str, input: Element, of: Reduction) -> Result<Joined> {
        match of {
            Reduction::Sum(sum) => SumType::new(operation, input, sum).map(drop)?,
            Reduction::Count | Reduction::Least | Reduction::Largest => {}
        }
        Ok(Joined { input, of })
    }

    /// The same where states of look-back hold parts.
    ///
    /// # Errors
    /// As [`Joined::new`], and for parts of 16 bytes.
    pub(crate) fn in_states(operation: &str, input: Element, of: Reduction) -> Result<Joined> {
        let joined = Joined::new(operation, input, of)?;
        match joined.part_bytes() {
            ..=8 => Ok(joined),
            bytes => {
                Err(GpuError::Contract(format!("{operation}: the {of:?} of {input} has {bytes} bytes, 8 at most")))
            }
        }
    }

    /// Type of a result.
    pub(crate) fn output(self) -> Element {
        match self.of {
            Reduction::Sum(sum) => sum,
            Reduction::Count => Element::U64,
            Reduction::Least | Reduction::Largest => self.input,
        }
    }

    /// Bytes of a part, `Part` of the kernels.
    pub(crate) fn part_bytes(self) -> usize {
        self.output().bytes().max(4)
    }

    /// Words of a state of look-back that is a part.
    pub(crate) fn words(self) -> usize {
        if self.part_bytes() <= 4 { 1 } else { 2 }
    }

    /// The macros of the kernels.
    pub(crate) fn text(self) -> String {
        let input = self.input.c_type();
        match self.of {
            Reduction::Sum(sum) => SumType { input: self.input, sum }.text(),
            Reduction::Count => {
                format!("#define WC_IN {input}\n#define WC_SUM uint64_t\n#define WC_WIDEN(x) ((WC_SUM)1)\n")
            }
            Reduction::Least => format!("#define WC_IN {input}\n#define WC_LEAST\n"),
            Reduction::Largest => format!("#define WC_IN {input}\n#define WC_LARGEST\n"),
        }
    }
}

/// A monoid on the host, for references. The number of items is the sum of as many ones.
#[derive(Debug, Clone, Copy)]
pub struct Monoid<T> {
    /// What joins with any value to that value.
    pub nothing: T,
    /// The join of two values.
    pub join: fn(T, T) -> T,
}

impl<S: Sum> Monoid<S> {
    /// Sums; integers wrap.
    pub fn sum() -> Monoid<S> {
        Monoid { nothing: S::ZERO, join: S::plus }
    }
}

impl<K: Key> Monoid<K> {
    /// The least, in the order of keys.
    pub fn least() -> Monoid<K> {
        let join = |a: K, b: K| if b.ordered_bits() < a.ordered_bits() { b } else { a };
        Monoid { nothing: K::LARGEST, join }
    }

    /// The largest, in the order of keys.
    pub fn largest() -> Monoid<K> {
        let join = |a: K, b: K| if b.ordered_bits() > a.ordered_bits() { b } else { a };
        Monoid { nothing: K::LEAST, join }
    }
}
