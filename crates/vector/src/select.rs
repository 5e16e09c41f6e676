//! Tests of all values of a vector, and the list of those that pass.

use crate::ROWS;
use crate::dispatch::dispatch;

/// Places of a list of rows: eight more than there are rows, which a block of flags may write.
pub const SELECTED: usize = ROWS + 8;

/// For each eight flags the numbers of those that are set, in front.
static NUMBERS: [[u16; 8]; 256] = numbers();

const fn numbers() -> [[u16; 8]; 256] {
    let mut numbers = [[0; 8]; 256];
    let mut flags = 0;
    while flags < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if flags >> bit & 1 != 0 {
                numbers[flags][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        flags += 1;
    }
    numbers
}

dispatch! {
    /// Clears the flags of offsets that are not in `first..=first + span`, modulo 2³². A flag is 0 or 1.
    pub fn within(offsets: &[u32; ROWS], first: u32, span: u32, flags: &mut [u8; ROWS]) {
        for (flag, offset) in flags.iter_mut().zip(offsets) {
            *flag &= u8::from(offset.wrapping_sub(first) <= span);
        }
    }
}

dispatch! {
    /// Lists the places whose flags are set, in their order; returns their number. Behind them the list holds anything.
    pub fn select(flags: &[u8; ROWS], rows: &mut [u16; SELECTED]) -> usize {
        let mut count = 0;
        for (block, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
            // The product moves the lowest bit of byte `i` to bit `56 + i`.
            let bits = u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            let first = 8 * block as u16;
            let numbers = &NUMBERS[bits as usize];
            if let Some(rows) = rows[count..].first_chunk_mut::<8>() {
                rows.iter_mut().zip(numbers).for_each(|(row, number)| *row = first + number);
            }
            count += bits.count_ones() as usize;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_listed_in_their_order() {
        let mut rows = [0; SELECTED];
        for step in [1, 2, 3, 7, 1023] {
            let flags: [u8; ROWS] = std::array::from_fn(|row| u8::from(row % step == 0));
            let count = select(&flags, &mut rows);
            let expected: Vec<u16> = (0..ROWS as u16).step_by(step).collect();
            assert_eq!(rows[..count], expected);
        }
        assert_eq!(select(&[0; ROWS], &mut rows), 0);
    }

    #[test]
    fn ranges_may_wrap() {
        let offsets: [u32; ROWS] = std::array::from_fn(|row| row as u32);
        let mut flags = [1; ROWS];
        within(&offsets, u32::MAX, 3, &mut flags);
        assert_eq!(flags.iter().map(|flag| u32::from(*flag)).sum::<u32>(), 3);
        within(&offsets, 1, 0, &mut flags);
        assert_eq!((flags[0], flags[1], flags[2]), (0, 1, 0));
    }
}
