//! Vectors of rows: which rows go on, and what registers hold of them. A row has the same place in all registers, which
//! is not its number in the vector ([`rows_of_places`]); places whose rows do not go on hold any value.

use warpcube_column::{VECTOR_ROWS as ROWS, Values, VectorBuffer, rows_of_places};

/// Evaluates an expression in which `$at` gives the value of a row, once for each form of slots.
macro_rules! with_slots {
    ($slots:expr, $at:ident => $body:expr) => {
        match $slots {
            $crate::vector::values::Slots::Of(values) => {
                let values = *values;
                let $at = |row: usize| values[row];
                $body
            }
            $crate::vector::values::Slots::Own(values) => {
                let values = &**values;
                let $at = |row: usize| values[row];
                $body
            }
            $crate::vector::values::Slots::Same(value) => {
                let value = *value;
                let $at = |_: usize| value;
                $body
            }
        }
    };
}
pub(super) use with_slots;

/// The rows of a vector that go on, in their order.
#[derive(Debug)]
pub(super) struct Selection {
    rows: Box<[u16; ROWS]>,
    len: usize,
    /// Whether these are the first rows of the vector, without a gap.
    all: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { rows: Box::new([0; ROWS]), len: 0, all: true }
    }
}

impl Selection {
    /// The places of the first `len` rows.
    pub(super) fn start(&mut self, len: usize) {
        (self.len, self.all) = (ROWS, true);
        if len < ROWS {
            let rows = rows_of_places();
            self.retain(|place| usize::from(rows[place]) < len);
        }
    }

    /// The first `len` places.
    pub(super) fn start_in_order(&mut self, len: usize) {
        (self.len, self.all) = (len.min(ROWS), true);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `visit` for each row.
    #[inline(always)]
    pub(super) fn each(&self, mut visit: impl FnMut(usize)) {
        match self.all {
            true => (0..self.len.min(ROWS)).for_each(visit),
            false => self.rows[..self.len].iter().for_each(|row| visit(usize::from(*row) % ROWS)),
        }
    }

    /// Leaves out the rows for which `keep` is false.
    #[inline(always)]
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut kept = 0;
        if self.all {
            for row in 0..self.len.min(ROWS) {
                self.rows[kept % ROWS] = row as u16;
                kept += usize::from(keep(row));
            }
        } else {
            for at in 0..self.len.min(ROWS) {
                let row = self.rows[at];
                self.rows[kept % ROWS] = row;
                kept += usize::from(keep(usize::from(row) % ROWS));
            }
        }
        self.all &= kept == self.len;
        self.len = kept;
    }

    /// The rows of this selection for which `keep` is true.
    pub(super) fn filtered(&self, keep: impl FnMut(usize) -> bool) -> Selection {
        let mut rows = Selection { rows: self.rows.clone(), len: self.len, all: self.all };
        rows.retain(keep);
        rows
    }
}

/// A flag a row: 1 or 0.
pub(super) type Flags = [u8; ROWS];

/// What a register holds of a vector.
#[derive(Debug, Default)]
pub(super) struct Register {
    pub(super) buffer: VectorBuffer,
    /// Where the values are; none before they are read.
    pub(super) values: Option<Values>,
    /// Whether the integers are there beside offsets.
    is_widened: bool,
    /// Which rows are valid, where some may not be.
    pub(super) valid: Option<Box<Flags>>,
}

impl Register {
    /// Forgets the values of the vector before.
    pub(super) fn clear(&mut self) {
        (self.values, self.is_widened, self.valid) = (None, false, None);
    }

    /// Notes that the values are integers in the buffer, or floats.
    pub(super) fn fill(&mut self, values: Values, valid: Option<Box<Flags>>) {
        (self.values, self.valid, self.is_widened) = (Some(values), valid, false);
    }

    /// Notes which rows are valid, a bit each.
    pub(super) fn set_validity(&mut self, words: &[u32; ROWS / 32]) {
        let mut flags = Box::new([0; ROWS]);
        for (flag, row) in flags.iter_mut().zip(rows_of_places()) {
            *flag = (words[usize::from(*row) / 32] >> (row % 32) & 1) as u8;
        }
        self.valid = Some(flags);
    }

    /// Computes integers of offsets.
    pub(super) fn widen(&mut self) {
        if let (Some(Values::Offsets(reference)), false) = (self.values, self.is_widened) {
            let integers = self.buffer.integers.iter_mut().zip(self.buffer.offsets.iter());
            integers.for_each(|(integer, offset)| *integer = reference.wrapping_add(i64::from(*offset)));
            self.is_widened = true;
        }
    }

    /// The values; offsets have been widened.
    pub(super) fn value(&self) -> Value<'_> {
        let data = match self.values {
            Some(Values::Floats) => Data::Floats(Slots::Of(&self.buffer.floats)),
            _ => Data::Integers(Slots::Of(&self.buffer.integers)),
        };
        Value { data, valid: self.valid.as_deref().map(Slots::Of) }
    }
}

/// A value for each row of a vector.
#[derive(Debug, Clone)]
pub(super) enum Slots<'a, T: Copy> {
    /// Those of a register.
    Of(&'a [T; ROWS]),
    /// Computed ones.
    Own(Box<[T; ROWS]>),
    /// The same for all rows.
    Same(T),
}

#[derive(Debug, Clone)]
pub(super) enum Data<'a> {
    /// Integers, truth values, codes and decimals of up to 64 bits.
    Integers(Slots<'a, i64>),
    Floats(Slots<'a, f64>),
}

/// What an expression gives for the rows of a vector.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) data: Data<'a>,
    /// Which rows are valid; all if there are no flags.
    pub(super) valid: Option<Slots<'a, u8>>,
}

impl<'a> Value<'a> {
    pub(super) fn integers(values: Box<[i64; ROWS]>, valid: Option<Slots<'a, u8>>) -> Value<'a> {
        Value { data: Data::Integers(Slots::Own(values)), valid }
    }

    pub(super) fn floats(values: Box<[f64; ROWS]>, valid: Option<Slots<'a, u8>>) -> Value<'a> {
        Value { data: Data::Floats(Slots::Own(values)), valid }
    }

    /// The slots of integers; floats have none, which the types of expressions exclude.
    pub(super) fn of_integers(&self) -> &Slots<'a, i64> {
        match &self.data {
            Data::Integers(slots) => slots,
            Data::Floats(_) => &Slots::Same(0),
        }
    }

    /// The slots of floats.
    pub(super) fn of_floats(&self) -> &Slots<'a, f64> {
        match &self.data {
            Data::Floats(slots) => slots,
            Data::Integers(_) => &Slots::Same(0.0),
        }
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|flags| with_slots!(flags, at => at(row) != 0))
    }

    /// The value of one row by its bits.
    pub(super) fn bits(&self, row: usize) -> u64 {
        match &self.data {
            Data::Integers(slots) => with_slots!(slots, at => at(row) as u64),
            Data::Floats(slots) => with_slots!(slots, at => at(row).to_bits()),
        }
    }
}

/// Rows that are valid in both.
pub(super) fn both<'a>(one: &Option<Slots<'a, u8>>, other: &Option<Slots<'a, u8>>) -> Option<Slots<'a, u8>> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let mut flags = Box::new([0; ROWS]);
            with_slots!(one, one => with_slots!(other, other => {
                flags.iter_mut().enumerate().for_each(|(row, flag)| *flag = one(row) & other(row));
            }));
            Some(Slots::Own(flags))
        }
        (one, other) => one.clone().or_else(|| other.clone()),
    }
}
