//! Types of elements, and the order of keys.
//!
//! Keys are compared as unsigned integers: [`Key::ordered_bits`] maps a key to bits whose unsigned order is that of the
//! keys (Knuth, The Art of Computer Programming 3, 5.2.5; the sign trick for floats is that of CUB's `Traits`). There
//! is one NaN, larger than all other floats, and one zero, as in the whole system: keys that pass through their bits
//! lose the sign of a zero and the payload of a NaN. `kernels/prims/keys.cuh` is the device's side of this file.

use std::fmt;

use bytemuck::Pod;

/// Type of the elements of a [`super::DeviceSlice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// One byte, also a flag.
    U8,
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `f32`.
    F32,
    /// `u64`.
    U64,
    /// `i64`.
    I64,
    /// `f64`.
    F64,
    /// `u128`, low word first.
    U128,
    /// `i128`, low word first.
    I128,
}

impl Element {
    /// All types.
    pub const ALL: [Element; 9] = [
        Element::U8,
        Element::U32,
        Element::I32,
        Element::F32,
        Element::U64,
        Element::I64,
        Element::F64,
        Element::U128,
        Element::I128,
    ];

    /// Size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Element::U8 => 1,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
            Element::U128 | Element::I128 => 16,
        }
    }

    /// Whether it is a type of floats.
    pub const fn is_float(self) -> bool {
        matches!(self, Element::F32 | Element::F64)
    }

    /// Name of the type in kernels.
    pub const fn c_type(self) -> &'static str {
        match self {
            Element::U8 => "uint8_t",
            Element::U32 => "uint32_t",
            Element::I32 => "int32_t",
            Element::F32 => "float",
            Element::U64 => "uint64_t",
            Element::I64 => "int64_t",
            Element::F64 => "double",
            Element::U128 => "unsigned __int128",
            Element::I128 => "__int128",
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::U8 => "u8",
            Element::U32 => "u32",
            Element::I32 => "i32",
            Element::F32 => "f32",
            Element::U64 => "u64",
            Element::I64 => "i64",
            Element::F64 => "f64",
            Element::U128 => "u128",
            Element::I128 => "i128",
        })
    }
}

/// Unsigned bits whose order is that of keys, wide enough for all of them.
pub type OrderedBits = u128;

/// A type of keys on the host.
pub trait Key: Pod + PartialEq + fmt::Debug + Send + Sync {
    /// Its name for devices.
    const ELEMENT: Element;
    /// The least key.
    const LEAST: Self;
    /// The largest key: NaN for floats.
    const LARGEST: Self;

    /// Bits whose unsigned order is the order of keys.
    fn ordered_bits(self) -> OrderedBits;
}

macro_rules! unsigned_key {
    ($($rust:ty => $element:ident),*) => {$(
        impl Key for $rust {
            const ELEMENT: Element = Element::$element;
            const LEAST: $rust = <$rust>::MIN;
            const LARGEST: $rust = <$rust>::MAX;

            fn ordered_bits(self) -> OrderedBits {
                self.into()
            }
        }
    )*};
}

macro_rules! signed_key {
    ($($rust:ty, $unsigned:ty => $element:ident),*) => {$(
        impl Key for $rust {
            const ELEMENT: Element = Element::$element;
            const LEAST: $rust = <$rust>::MIN;
            const LARGEST: $rust = <$rust>::MAX;

            fn ordered_bits(self) -> OrderedBits {
                (self as $unsigned ^ (1 << (<$unsigned>::BITS - 1))).into()
            }
        }
    )*};
}

macro_rules! float_key {
    ($($rust:ty, $unsigned:ty => $element:ident),*) => {$(
        impl Key for $rust {
            const ELEMENT: Element = Element::$element;
            const LEAST: $rust = <$rust>::NEG_INFINITY;
            const LARGEST: $rust = <$rust>::NAN;

            fn ordered_bits(self) -> OrderedBits {
                let one = if self.is_nan() { <$rust>::NAN } else if self == 0.0 { 0.0 } else { self };
                let (bits, sign): ($unsigned, $unsigned) = (one.to_bits(), 1 << (<$unsigned>::BITS - 1));
                (if bits & sign == 0 { bits | sign } else { !bits }).into()
            }
        }
    )*};
}

unsigned_key!(u8 => U8, u32 => U32, u64 => U64, u128 => U128);
signed_key!(i32, u32 => I32, i64, u64 => I64, i128, u128 => I128);
float_key!(f32, u32 => F32, f64, u64 => F64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_order_of_keys() {
        let floats = [f64::NEG_INFINITY, -1e300, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
        assert!(floats.windows(2).all(|pair| pair[0].ordered_bits() < pair[1].ordered_bits()));
        assert!(floats.windows(2).all(|pair| (pair[0] as f32).ordered_bits() <= (pair[1] as f32).ordered_bits()));
        assert_eq!((-0.0f32).ordered_bits(), 0.0f32.ordered_bits());
        assert_eq!((-f64::NAN).ordered_bits(), f64::NAN.ordered_bits());
        for keys in [[i64::MIN, -1, 0, 1, i64::MAX], [-5, -4, 3, 4, 5]] {
            assert!(keys.windows(2).all(|pair| pair[0].ordered_bits() < pair[1].ordered_bits()));
            let wide = keys.map(|key| i128::from(key) << 60);
            assert!(wide.windows(2).all(|pair| pair[0].ordered_bits() < pair[1].ordered_bits()));
        }
        assert_eq!(i32::MIN.ordered_bits(), 0);
        assert_eq!(u128::MAX.ordered_bits(), OrderedBits::MAX);
    }
}
