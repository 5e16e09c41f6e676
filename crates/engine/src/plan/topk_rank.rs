//! Ranks: the keys of an order and the row in one unsigned number, the largest of which come first.
//!
//! Each key becomes a place, an offset between the bounds of its values that grows towards the front of the order:
//! complemented where the order ascends, with one more place before or behind all where there are NULLs. Floats are
//! their ordered bits (`gpu::prims`), which leave codes free on both sides for NULL. Places side by side are the *key*;
//! below it lies the complement of the row number, so that ranks are distinct and of equal keys the first row comes
//! first. No rank is zero: that is the mark of a place without a row.
//!
//! Where each row's rank lies at the place of its number and a stable sort puts all of them in order, the number is not
//! part of the rank: the sort knows it by the place. Below the key is then one bit that is set in the rank of a row, or
//! nothing where no place is without a row.
//!
//! Such a rank may *carry* other values of the row below all that is compared, where all of it takes no more than 64
//! bits, or beside it, where they take no more than 32, in place of the row's number: the sort then brings along what
//! would be read of rows at random places.
//!
//! Where keys and row take more than 128 bits, the rank holds the leading keys that fit, and a *tail* of as many bits
//! the others and the row. If the others do not fit, the first of them is cut in two parts: the upper bits of its place
//! fill the rank, the lower ones begin the tail. Ranks with tails are compared with the threshold and sorted, and no
//! tail of a row is zero: that is the mark of a place without one.

use warpcube_gpu::prims::Element;

use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::ir::{Expr, OrderKey, Ty};

/// Bits of the widest rank, of the widest one that carries values, and of those that lie beside it.
const BITS_MAX: u32 = 128;
const CARRYING_BITS_MAX: u32 = 64;
const BESIDE_BITS_MAX: u32 = 32;

/// How one key becomes a place, of which this part lies in a rank or a tail.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Position of the key; of a value that is carried, among outputs.
    pub(crate) key: usize,
    /// Bounds of valid values; those of a float's bits.
    pub(crate) low: i128,
    pub(crate) high: i128,
    /// Bits of a place.
    pub(crate) place_bits: u32,
    /// Those of them that this part has, the number of lower ones that another part has, and how far left of the lowest
    /// part's they lie.
    pub(crate) bits: u32,
    pub(crate) below: u32,
    pub(crate) shift: u32,
    pub(crate) float: bool,
    pub(crate) nullable: bool,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// How the keys of a row become its rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ranks {
    pub(crate) parts: Vec<Part>,
    /// Parts that lie in the rank; the others lie in the tail. One key may have a part in both.
    pub(crate) leading: usize,
    /// Bits of the rank's keys, and of the tail's where there is a tail.
    pub(crate) key_bits: u32,
    pub(crate) tail_bits: Option<u32>,
    /// Bits below the keys, of the row's complement: one more value than there are rows. Of ranks by place one bit that
    /// is set, or none.
    pub(crate) row_bits: u32,
    /// Whether a rank's place tells the row.
    pub(crate) by_place: bool,
    /// Values that are not compared, and their bits; whether they lie beside the rank and not below all of these.
    pub(crate) carried: Vec<Part>,
    pub(crate) carried_bits: u32,
    pub(crate) is_beside: bool,
}

/// Bits that hold all numbers up to `last`.
fn bits(last: u128) -> u32 {
    128 - last.leading_zeros()
}

/// The narrowest C type of so many bits.
pub(crate) fn c_type(bits: u32) -> &'static str {
    match bits {
        0..=32 => "uint32_t",
        33..=64 => "uint64_t",
        _ => "unsigned __int128",
    }
}

/// Lays parts side by side, the last one lowest; their bits.
fn side_by_side(parts: &mut [Part]) -> u32 {
    parts.iter_mut().rev().fold(0, |below, part| {
        part.shift = below;
        below + part.bits
    })
}

impl Part {
    fn new((position, key): (usize, &OrderKey), value: &Facts) -> Result<Part> {
        Part::of((position, key.descending, key.nulls_first), value)
    }

    fn of((position, descending, nulls_first): (usize, bool, bool), value: &Facts) -> Result<Part> {
        let nullable = value.nullable;
        let (low, high) = match (value.ty, value.bounds()) {
            (Ty::F32, _) => (0, u32::MAX.into()),
            (Ty::F64, _) => (0, u64::MAX.into()),
            // A column without valid values has no bounds of its own.
            (_, Some((low, high))) if low <= high => (low, high),
            _ => (0, 0),
        };
        let float = value.ty.is_float();
        let last = (high.wrapping_sub(low) as u128).checked_add(u128::from(nullable && !float));
        let Some(last) = last else { return unsupported("an order by a decimal of 128 bits that may be NULL") };
        Ok(Part {
            key: position,
            low,
            high,
            place_bits: bits(last),
            bits: bits(last),
            below: 0,
            shift: 0,
            float,
            nullable,
            descending,
            nulls_first,
        })
    }

    /// The part of the upper bits, so many, and that of the lower ones.
    fn cut(self, upper: u32) -> [Part; 2] {
        let lower = self.bits - upper;
        [Part { bits: upper, below: lower, ..self.clone() }, Part { bits: lower, ..self }]
    }

    /// The place of NULL.
    pub(crate) fn null_place(&self) -> u128 {
        match (self.nulls_first, self.float) {
            (false, _) => 0,
            (true, true) => self.high as u128,
            (true, false) => self.high.wrapping_sub(self.low) as u128 + 1,
        }
    }

    /// What a value's offset is raised by: one where place zero is that of NULL.
    pub(crate) fn raised(&self) -> bool {
        self.nullable && !self.nulls_first && !self.float
    }
}

impl Ranks {
    /// The ranks of a table of so many rows; `values` is what is known of each key. Keys at the positions `determined`
    /// are those that others before them determine.
    ///
    /// # Errors
    /// Unsupported if the rank or the tail takes more than 128 bits.
    pub(crate) fn new(keys: &[OrderKey], values: &[Facts], determined: &[usize], rows: u64) -> Result<Ranks> {
        let mut parts = keys
            .iter()
            .enumerate()
            .zip(values)
            .filter(|((position, _), _)| !determined.contains(position))
            .map(|(key, value)| Part::new(key, value))
            .collect::<Result<Vec<_>>>()?;
        let row_bits = bits(rows.into()).max(1);
        let all: u32 = parts.iter().map(|part| part.bits).sum();
        let has_tail = all + row_bits > BITS_MAX;
        let fits = |count: &usize| parts[..*count].iter().map(|part| part.bits).sum::<u32>() <= BITS_MAX;
        let leading = if has_tail { (0..=parts.len()).rev().find(fits).unwrap_or(0) } else { parts.len() };
        let ranked: u32 = parts[..leading].iter().map(|part| part.bits).sum();
        let is_cut = all - ranked + row_bits > BITS_MAX && leading < parts.len() && ranked < BITS_MAX;
        if is_cut {
            let two = parts[leading].clone().cut(BITS_MAX - ranked);
            parts.splice(leading..=leading, two);
        }
        let leading = leading + usize::from(is_cut);
        let (ranked, behind) = parts.split_at_mut(leading);
        let (key_bits, tail_bits) = (side_by_side(ranked), side_by_side(behind));
        if tail_bits + row_bits > BITS_MAX {
            let most = 2 * BITS_MAX - row_bits;
            return unsupported(format!("an order by keys of {all} bits, where {most} are the most"));
        }
        let tail_bits = has_tail.then_some(tail_bits);
        Ok(Ranks { parts, leading, key_bits, tail_bits, row_bits, ..Ranks::default() })
    }

    /// The same ranks where places tell rows, and may be without one or not; none if they take more than 128 bits.
    pub(crate) fn by_place(&self, has_gaps: bool) -> Option<Ranks> {
        let mut parts = self.parts.clone();
        let (key_bits, row_bits) = (side_by_side(&mut parts), u32::from(has_gaps));
        let leading = parts.len();
        (key_bits + row_bits <= BITS_MAX).then_some(Ranks {
            parts,
            leading,
            key_bits,
            tail_bits: None,
            row_bits,
            by_place: true,
            ..self.clone()
        })
    }

    /// The same ranks by place that carry the values of these outputs; none if they take too many bits, and if a
    /// value is not told by its place.
    pub(crate) fn carrying(&self, outputs: &[(usize, &Facts)]) -> Option<Ranks> {
        let part = |(position, value): &(usize, &Facts)| {
            let part = Part::of((*position, true, false), value).ok()?;
            (!part.float && !value.is_wide() && value.texts.is_none()).then_some(part)
        };
        let mut carried = outputs.iter().map(part).collect::<Option<Vec<_>>>()?;
        let carried_bits = side_by_side(&mut carried);
        let compared = self.key_bits + self.row_bits;
        let is_beside = compared + carried_bits > CARRYING_BITS_MAX;
        let fits = !is_beside || compared <= CARRYING_BITS_MAX && carried_bits <= BESIDE_BITS_MAX;
        (self.by_place && compared > 0 && fits).then(|| Ranks { carried, carried_bits, is_beside, ..self.clone() })
    }

    /// The first key with a part in the tail.
    pub(crate) fn first_behind(&self) -> Option<usize> {
        self.parts.get(self.leading).map(|part| part.key)
    }

    /// The part of a rank that has all of a key of this value, if a value is told by its place.
    pub(crate) fn whole(&self, keys: &[OrderKey], expr: &Expr) -> Option<usize> {
        let is_whole = |part: &Part| {
            !part.float && part.below == 0 && part.bits == part.place_bits && (1..=64).contains(&part.bits)
        };
        self.parts[..self.leading].iter().position(|part| is_whole(part) && keys[part.key].expr.is_same(expr))
    }

    /// Bits of keys and row, in ranks and tails.
    pub(crate) fn bits(&self) -> u32 {
        self.key_bits + self.tail_bits.unwrap_or(0) + self.row_bits
    }

    /// Bits below the keys of a rank.
    pub(crate) fn key_shift(&self) -> u32 {
        if self.tail_bits.is_some() { 0 } else { self.row_bits + self.carried_below() }
    }

    /// Bits of a rank below all that is compared.
    pub(crate) fn carried_below(&self) -> u32 {
        if self.is_beside { 0 } else { self.carried_bits }
    }

    /// The type of ranks.
    pub(crate) fn element(&self) -> Element {
        match self.key_bits + self.row_bits + self.carried_below() {
            _ if self.tail_bits.is_some() => Element::U128,
            0..=32 if self.by_place => Element::U32,
            0..=64 => Element::U64,
            _ => Element::U128,
        }
    }

    /// The C type of ranks.
    pub(crate) fn c_type(&self) -> &'static str {
        self.element().c_type()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(ty: Ty, range: Option<(i128, i128)>, nullable: bool) -> Facts {
        Facts::new(ty, nullable, range)
    }

    fn key(descending: bool, nulls_first: bool) -> OrderKey {
        OrderKey { expr: Expr::Reg(0), descending, nulls_first }
    }

    #[test]
    fn keys_lie_side_by_side_above_the_row() {
        let keys = [key(true, true), key(false, false)];
        let values = [value(Ty::I32, Some((-3, 4)), false), value(Ty::I64, Some((0, 255)), true)];
        let ranks = Ranks::new(&keys, &values, &[], 1000).unwrap();
        // 255 and NULL are 257 places.
        assert_eq!((ranks.key_bits, ranks.row_bits, ranks.element()), (3 + 9, 10, Element::U64));
        assert_eq!((ranks.parts[0].shift, ranks.parts[1].shift), (9, 0));
        assert!(ranks.parts[1].raised() && !ranks.parts[0].raised());
        assert_eq!(ranks.parts[1].null_place(), 0);
    }

    #[test]
    fn a_float_has_room_for_null_among_its_bits() {
        let floats = value(Ty::F64, None, true);
        let ranks = Ranks::new(&[key(true, true)], std::slice::from_ref(&floats), &[], 1 << 31).unwrap();
        assert_eq!((ranks.key_bits, ranks.row_bits, ranks.element()), (64, 32, Element::U128));
        assert_eq!(ranks.parts[0].null_place(), u64::MAX.into());
        let of = |count: usize| {
            let keys: Vec<OrderKey> = (0..count).map(|_| key(true, true)).collect();
            Ranks::new(&keys, &vec![floats.clone(); count], &[], 10)
        };
        let three = of(3).unwrap();
        assert_eq!((three.leading, three.key_bits, three.tail_bits, three.row_bits), (2, 128, Some(64), 4));
        assert_eq!(three.parts.iter().map(|part| part.shift).collect::<Vec<_>>(), [64, 0, 0]);
        assert_eq!(of(2).unwrap().tail_bits, Some(0), "the row alone");
        assert!(of(4).is_err());
        let narrow = [value(Ty::I32, Some((0, 255)), false), value(Ty::I64, Some((0, 255)), false)];
        let three = [floats.clone(), floats.clone(), floats.clone()];
        let values = [&narrow[..1], &three, &narrow[1..]].concat();
        let keys: Vec<OrderKey> = values.iter().map(|_| key(true, true)).collect();
        let cut = Ranks::new(&keys, &values, &[], 1 << 20).unwrap();
        // 8 + 64 + 56 bits; the other 8 of the second float, the third and 8 more lie behind.
        assert_eq!((cut.leading, cut.key_bits, cut.tail_bits), (3, 128, Some(80)));
        let parts = cut.parts.iter().map(|part| (part.key, part.bits, part.below, part.shift)).collect::<Vec<_>>();
        let expected = [(0, 8, 0, 120), (1, 64, 0, 56), (2, 56, 8, 0), (2, 8, 0, 72), (3, 64, 0, 8), (4, 8, 0, 0)];
        assert_eq!((parts.as_slice(), cut.first_behind()), (&expected[..], Some(2)));
    }

    #[test]
    fn ranks_by_place_hold_keys_alone() {
        let narrow = value(Ty::I32, Some((0, (1 << 16) - 1)), false);
        let floats = value(Ty::F64, None, false);
        let of = |values: &[Facts]| {
            let keys: Vec<OrderKey> = values.iter().map(|_| key(false, false)).collect();
            Ranks::new(&keys, values, &[], 1 << 28).unwrap()
        };
        let two = of(&[narrow.clone(), narrow.clone()]);
        assert_eq!((two.bits(), two.element()), (61, Element::U64));
        let all = two.by_place(false).unwrap();
        assert_eq!((all.bits(), all.element(), all.key_shift()), (32, Element::U32, 0));
        let some = two.by_place(true).unwrap();
        assert_eq!((some.bits(), some.element(), some.key_shift()), (33, Element::U64, 1));
        // Without numbers two doubles leave no tail.
        let wide = of(&[floats.clone(), floats.clone()]);
        let all = wide.by_place(false).unwrap();
        assert_eq!((wide.tail_bits, all.tail_bits, all.leading, all.key_bits), (Some(0), None, 2, 128));
        assert_eq!(all.parts.iter().map(|part| part.shift).collect::<Vec<_>>(), [64, 0]);
        assert_eq!(wide.by_place(true), None);
        assert_eq!(of(&[floats.clone(), floats, narrow]).by_place(false), None);
    }

    #[test]
    fn ranks_carry_values_below_what_is_compared() {
        let narrow = value(Ty::I32, Some((0, (1 << 16) - 1)), false);
        let keys = [key(false, false), key(true, true)];
        let all = Ranks::new(&keys, &[narrow.clone(), narrow.clone()], &[], 1 << 28).unwrap();
        let (byte, other) = (value(Ty::I64, Some((-1, 253)), true), value(Ty::I32, Some((5, 8)), false));
        let outputs = [(2, &byte), (4, &other)];
        assert_eq!(all.carrying(&outputs), None, "the row's number is compared");
        let carrying = all.by_place(true).unwrap().carrying(&outputs).unwrap();
        assert_eq!((carrying.bits(), carrying.carried_bits, carrying.key_shift()), (33, 10, 11));
        assert_eq!(carrying.element(), Element::U64);
        let parts: Vec<_> = carrying.carried.iter().map(|part| (part.key, part.bits, part.shift)).collect();
        assert_eq!(parts, [(2, 8, 2), (4, 2, 0)]);
        let (all, float) = (all.by_place(false).unwrap(), value(Ty::F32, None, false));
        assert_eq!(all.carrying(&[(0, &float)]), None);
        let beside = |outputs: &[(usize, &Facts)]| all.carrying(outputs).map(|ranks| ranks.is_beside);
        assert_eq!(beside(&[(0, &narrow), (1, &narrow)]), Some(false));
        assert_eq!(beside(&[(0, &narrow), (1, &narrow), (4, &other)]), None, "34 bits beside 32");
        let wide = Ranks::new(&keys, &[narrow.clone(), value(Ty::I64, Some((0, 1 << 40)), false)], &[], 1 << 28);
        let wide = wide.unwrap().by_place(false).unwrap().carrying(&outputs).unwrap();
        assert_eq!((wide.key_bits, wide.carried_bits, wide.is_beside, wide.key_shift()), (57, 10, true, 0));
        assert_eq!(wide.element(), Element::U64);
    }

    #[test]
    fn bounds_of_all_widths_fit_or_are_refused() {
        let one = [key(false, true)];
        let of = |range, nullable| Ranks::new(&one, &[value(Ty::I128, Some(range), nullable)], &[], 15);
        assert_eq!(of((7, 7), false).unwrap().key_bits, 0);
        assert_eq!(of((5, 4), true).unwrap().key_bits, 1, "no value and NULL");
        assert_eq!(of((i64::MIN.into(), i64::MAX.into()), true).unwrap().key_bits, 65);
        assert_eq!(of((i128::MIN, i128::MAX), false).unwrap().tail_bits, Some(0));
        assert!(of((i128::MIN, i128::MAX), true).is_err());
    }
}
