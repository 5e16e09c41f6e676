//! Vectors of rows: which rows go on, and what registers hold of them. A row has the same place in all registers, which
//! is not its number in the vector ([`rows_of_places`]); places whose rows do not go on hold any value.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use warpcube_column::{VECTOR_ROWS as ROWS, Values, VectorBuffer, rows_of_places};
use warpcube_vector::{SELECTED, select, widen};

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
    rows: Box<[u16; SELECTED]>,
    len: usize,
    /// Whether these are the first rows of the vector, without a gap.
    all: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { rows: Box::new([0; SELECTED]), len: 0, all: true }
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

    /// Whether these are all places of a vector.
    pub(super) fn is_whole(&self) -> bool {
        self.all && self.len == ROWS
    }

    /// Of all places of a vector, leaves those whose flags are set.
    pub(super) fn take(&mut self, flags: &Flags) {
        self.len = select(flags, &mut self.rows);
        self.all = self.len == ROWS;
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

/// The places whose offsets were widened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Widened {
    #[default]
    None,
    Selected,
    All,
}

/// Rows up to which offsets are widened one by one.
const FEW_ROWS: usize = 160;

/// What a register holds of a vector.
#[derive(Debug, Default)]
pub(super) struct Register {
    pub(super) buffer: VectorBuffer,
    /// Where the values are; none before they are read.
    pub(super) values: Option<Values>,
    /// How many integers are there beside offsets: of all places, or of the rows that went on.
    widened: Widened,
    /// The values of decimals wider than 64 bits; they are in place of the buffer's.
    wide: Option<Own<i128>>,
    /// Which rows are valid, where some may not be.
    pub(super) valid: Option<Own<u8>>,
}

impl Register {
    /// Forgets the values of the vector before.
    pub(super) fn clear(&mut self) {
        (self.values, self.widened, self.wide, self.valid) = (None, Widened::None, None, None);
    }

    /// Notes that the values are integers in the buffer, or floats.
    pub(super) fn fill(&mut self, values: Values, valid: Option<Own<u8>>) {
        (self.values, self.valid, self.wide, self.widened) = (Some(values), valid, None, Widened::None);
    }

    /// Takes decimals wider than 64 bits.
    pub(super) fn fill_wide(&mut self, wide: Own<i128>, valid: Option<Own<u8>>) {
        self.fill(Values::Integers, valid);
        self.wide = Some(wide);
    }

    /// Notes which rows are valid, a bit each.
    pub(super) fn set_validity(&mut self, words: &[u32; ROWS / 32]) {
        let mut flags = Own::new();
        for (flag, row) in flags.iter_mut().zip(rows_of_places()) {
            *flag = (words[usize::from(*row) / 32] >> (row % 32) & 1) as u8;
        }
        self.valid = Some(flags);
    }

    /// Computes integers of the offsets of rows.
    pub(super) fn widen(&mut self, rows: &Selection) {
        let Some(Values::Offsets(reference)) = self.values else { return };
        match self.widened {
            Widened::All => {}
            // Fewer rows go on with every step.
            Widened::Selected if rows.len() <= FEW_ROWS => {}
            _ if rows.len() <= FEW_ROWS => {
                let (offsets, integers) = (&self.buffer.offsets, &mut self.buffer.integers);
                rows.each(|row| integers[row] = reference.wrapping_add(i64::from(offsets[row])));
                self.widened = Widened::Selected;
            }
            _ => {
                widen(reference, &self.buffer.offsets, &mut self.buffer.integers);
                self.widened = Widened::All;
            }
        }
    }

    /// Takes the values that another register has at these places.
    pub(super) fn gather(&mut self, other: &Register, from: &[u16]) {
        fn put<T: Copy>(to: &mut [T; ROWS], of: &[T; ROWS], from: &[u16]) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = of[usize::from(*from) % ROWS]);
        }
        fn own<T: Slot>(of: &Own<T>, from: &[u16]) -> Own<T> {
            let mut own = Own::new();
            put(&mut own, of, from);
            own
        }
        let valid = other.valid.as_ref().map(|valid| own(valid, from));
        if let Some(wide) = &other.wide {
            return self.fill_wide(own(wide, from), valid);
        }
        let is_float = other.values == Some(Values::Floats);
        match is_float {
            true => put(&mut self.buffer.floats, &other.buffer.floats, from),
            false => put(&mut self.buffer.integers, &other.buffer.integers, from),
        }
        self.fill(if is_float { Values::Floats } else { Values::Integers }, valid);
    }

    /// The values; offsets have been widened.
    pub(super) fn value(&self) -> Value<'_> {
        let data = match (&self.wide, self.values) {
            (Some(wide), _) => Data::Wide(Slots::Of(wide)),
            (None, Some(Values::Floats)) => Data::Floats(Slots::Of(&self.buffer.floats)),
            _ => Data::Integers(Slots::Of(&self.buffer.integers)),
        };
        Value { data, valid: self.valid.as_deref().map(Slots::Of) }
    }
}

/// Memory for a value a row, which goes back to its thread's pool. Its places hold any value at first.
#[derive(Debug)]
pub(super) struct Own<T: Slot>(Option<Box<[T; ROWS]>>);

/// Arrays that a thread keeps for the next vectors.
type Pool<T> = RefCell<Vec<Box<[T; ROWS]>>>;

/// Most arrays of a pool.
const POOL_MAX: usize = 64;

/// A type of slots, with the pool of the thread.
pub(super) trait Slot: Copy + Default + 'static {
    fn pool<R>(with: impl FnOnce(&Pool<Self>) -> R) -> R;
}

macro_rules! slots {
    ($($slot:ty),*) => {$(
        impl Slot for $slot {
            fn pool<R>(with: impl FnOnce(&Pool<$slot>) -> R) -> R {
                thread_local!(static POOL: Pool<$slot> = const { RefCell::new(Vec::new()) });
                POOL.with(with)
            }
        }
    )*};
}

slots!(i64, f64, i128, u8);

impl<T: Slot> Own<T> {
    pub(super) fn new() -> Own<T> {
        let pooled = T::pool(|pool| pool.borrow_mut().pop());
        Own(Some(pooled.unwrap_or_else(|| Box::new([T::default(); ROWS]))))
    }
}

impl<T: Slot> Drop for Own<T> {
    fn drop(&mut self) {
        let Some(slots) = self.0.take() else { return };
        T::pool(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < POOL_MAX {
                pool.push(slots);
            }
        });
    }
}

impl<T: Slot> Clone for Own<T> {
    fn clone(&self) -> Own<T> {
        let mut clone = Own::new();
        *clone = **self;
        clone
    }
}

impl<T: Slot> Deref for Own<T> {
    type Target = [T; ROWS];

    fn deref(&self) -> &[T; ROWS] {
        self.0.as_ref().expect("the slots are there until the drop")
    }
}

impl<T: Slot> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut [T; ROWS] {
        self.0.as_mut().expect("the slots are there until the drop")
    }
}

/// A value for each row of a vector.
#[derive(Debug, Clone)]
pub(super) enum Slots<'a, T: Slot> {
    /// Those of a register.
    Of(&'a [T; ROWS]),
    /// Computed ones.
    Own(Own<T>),
    /// The same for all rows.
    Same(T),
}

#[derive(Debug, Clone)]
pub(super) enum Data<'a> {
    /// Integers, truth values, codes and decimals of up to 64 bits.
    Integers(Slots<'a, i64>),
    Floats(Slots<'a, f64>),
    /// Decimals of more.
    Wide(Slots<'a, i128>),
}

/// What an expression gives for the rows of a vector.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) data: Data<'a>,
    /// Which rows are valid; all if there are no flags.
    pub(super) valid: Option<Slots<'a, u8>>,
}

impl<'a> Value<'a> {
    pub(super) fn integers(values: Own<i64>, valid: Option<Slots<'a, u8>>) -> Value<'a> {
        Value { data: Data::Integers(Slots::Own(values)), valid }
    }

    pub(super) fn floats(values: Own<f64>, valid: Option<Slots<'a, u8>>) -> Value<'a> {
        Value { data: Data::Floats(Slots::Own(values)), valid }
    }

    pub(super) fn wide(values: Own<i128>, valid: Option<Slots<'a, u8>>) -> Value<'a> {
        Value { data: Data::Wide(Slots::Own(values)), valid }
    }

    /// The slots of integers; others have none, which the types of expressions exclude.
    pub(super) fn of_integers(&self) -> &Slots<'a, i64> {
        if let Data::Integers(slots) = &self.data { slots } else { &Slots::Same(0) }
    }

    /// The slots of floats; NULL has none.
    pub(super) fn of_floats(&self) -> &Slots<'a, f64> {
        if let Data::Floats(slots) = &self.data { slots } else { &Slots::Same(0.0) }
    }

    /// The slots of decimals wider than 64 bits.
    pub(super) fn of_wide(&self) -> &Slots<'a, i128> {
        if let Data::Wide(slots) = &self.data { slots } else { &Slots::Same(0) }
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|flags| with_slots!(flags, at => at(row) != 0))
    }

    /// Leaves the rows for which a truth value is true.
    pub(super) fn keep_true(&self, rows: &mut Selection) {
        with_slots!(self.of_integers(), at => match &self.valid {
            None => rows.retain(|row| at(row) != 0),
            Some(valid) => with_slots!(valid, is_valid => rows.retain(|row| at(row) != 0 && is_valid(row) != 0)),
        });
    }

    /// The value of one row by its bits; of a wide decimal the lower ones.
    pub(super) fn bits(&self, row: usize) -> u64 {
        match &self.data {
            Data::Integers(slots) => with_slots!(slots, at => at(row) as u64),
            Data::Floats(slots) => with_slots!(slots, at => at(row).to_bits()),
            Data::Wide(slots) => with_slots!(slots, at => at(row) as u64),
        }
    }

    /// The bits of a wide decimal above the lower ones.
    pub(super) fn high_bits(&self, row: usize) -> Option<u64> {
        match &self.data {
            Data::Wide(slots) => Some(with_slots!(slots, at => (at(row) >> 64) as u64)),
            Data::Integers(_) | Data::Floats(_) => None,
        }
    }

    /// The words of one row's value: one, or two of a wide decimal, the lower one first.
    pub(super) fn words(&self, row: usize) -> impl Iterator<Item = u64> {
        [self.bits(row)].into_iter().chain(self.high_bits(row))
    }
}

/// Rows that are valid in both.
pub(super) fn both<'a>(one: &Option<Slots<'a, u8>>, other: &Option<Slots<'a, u8>>) -> Option<Slots<'a, u8>> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let mut flags = Own::new();
            with_slots!(one, one => with_slots!(other, other => {
                flags.iter_mut().enumerate().for_each(|(row, flag)| *flag = one(row) & other(row));
            }));
            Some(Slots::Own(flags))
        }
        (one, other) => one.clone().or_else(|| other.clone()),
    }
}
