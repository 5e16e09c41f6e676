//! Key layouts with room for growth.

use warpcube_arrays::key::{KEY_BITS_MAX, KeyLayout, coordinate_bits};

use crate::error::{ModelError, Result};

/// Bits of a key that needs one word.
const WORD_BITS: u32 = 64;

/// The layout of dimensions given by name and number of coordinates. Dimensions get room for twice their coordinates
/// where that costs no further word of 64 bits.
///
/// # Errors
/// [`ModelError::KeyTooWide`] if the coordinates need more than [`KEY_BITS_MAX`] bits without any room.
pub(crate) fn layout_of<'a>(dimensions: impl IntoIterator<Item = (&'a str, usize)>) -> Result<KeyLayout> {
    let dimensions: Vec<(&str, usize)> = dimensions.into_iter().collect();
    let mut bits: Vec<u32> = dimensions.iter().map(|(_, count)| coordinate_bits(*count)).collect();
    let too_wide = |bits: &[u32]| {
        let names = dimensions.iter().map(|(name, _)| (*name).to_owned());
        ModelError::KeyTooWide { bits: names.zip(bits.iter().copied()).collect() }
    };
    let total: u32 = bits.iter().sum();
    if total > KEY_BITS_MAX {
        return Err(too_wide(&bits));
    }
    let mut room = if total <= WORD_BITS { WORD_BITS - total } else { KEY_BITS_MAX - total };
    // The fullest dimensions outgrow their bits first.
    let mut fullest: Vec<usize> = (0..bits.len()).collect();
    let share = |at: &usize| dimensions[*at].1 as f64 / 2f64.powi(bits[*at] as i32);
    fullest.sort_by(|a, b| share(b).total_cmp(&share(a)));
    for at in fullest {
        if room > 0 && bits[at] < u32::BITS {
            bits[at] += 1;
            room -= 1;
        }
    }
    KeyLayout::new(&bits).map_err(|_| too_wide(&bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_where_it_costs_no_word() {
        let layout = layout_of([("a", 16), ("b", 12), ("c", 50)]).unwrap();
        assert_eq!(layout.bits(), [5, 5, 7]);
        assert!(layout.holds(0, 32) && !layout.holds(0, 33));
        let full = layout_of([("a", 1 << 32), ("b", 1 << 31)]).unwrap();
        assert_eq!((full.bits(), full.is_narrow()), (&[32, 32][..], true));
        let wide = layout_of(std::iter::repeat_n(("d", 16), 32)).unwrap();
        assert_eq!((wide.total_bits(), wide.is_narrow()), (128, false));
        let error = layout_of(std::iter::repeat_n(("d", 17), 32)).unwrap_err().to_string();
        assert!(error.starts_with("the key needs 160 bits, at most 128: d 5 + d 5"), "{error}");
    }
}
