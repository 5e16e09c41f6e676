//! Numbers: bits, neighbours, and functions of floats.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, UInt64Array};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type};
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::error::Result;

use super::{Any, Arguments, Boolean, Date, Decimal, Double, Long, Own, Text, Time, Unsigned, raised};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("bar", &[Double, Double, Double], Text, |args| {
        args.texts(|row| bar([0, 1, 2].map(|place| args.doubles(place).value(row)), 80.0).map(Some))
    }),
    Own::new("bar", &[Double, Double, Double, Double], Text, |args| {
        args.texts(|row| {
            bar([0, 1, 2].map(|place| args.doubles(place).value(row)), args.doubles(3).value(row)).map(Some)
        })
    }),
    Own::new("binom", &[Long, Long], Long, |args| {
        args.integers(|row| binomial(args.longs(0).value(row), args.longs(1).value(row)).map(Some))
    }),
    Own::new("bit_count", &[Long], Long, |args| {
        args.integers(|row| Ok(Some(i64::from(args.longs(0).value(row).count_ones()))))
    }),
    Own::new("even", &[Double], Double, |args| args.floats(|row| Ok(Some(even(args.doubles(0).value(row)))))),
    Own::new("fmod", &[Double, Double], Double, |args| {
        args.floats(|row| {
            let (value, divisor) = (args.doubles(0).value(row), args.doubles(1).value(row));
            let rest = value % divisor;
            Ok(Some(if rest != 0.0 && (rest < 0.0) != (divisor < 0.0) { rest + divisor } else { rest }))
        })
    }),
    Own::new("gamma", &[Double], Double, |args| args.floats(|row| Ok(Some(libm::tgamma(args.doubles(0).value(row)))))),
    Own::new("hash", &[Any, Any], Unsigned, hash).repeating_last(),
    Own::new("isfinite", &[Double], Boolean, |args| {
        args.booleans(|row| Ok(Some(args.doubles(0).value(row).is_finite())))
    }),
    Own::new("isfinite", &[Date], Boolean, |args| args.booleans(|_| Ok(Some(true)))),
    Own::new("isfinite", &[Time], Boolean, |args| args.booleans(|_| Ok(Some(true)))),
    Own::new("isinf", &[Date], Boolean, |args| args.booleans(|_| Ok(Some(false)))),
    Own::new("isinf", &[Time], Boolean, |args| args.booleans(|_| Ok(Some(false)))),
    Own::new("isinf", &[Double], Boolean, |args| {
        args.booleans(|row| Ok(Some(args.doubles(0).value(row).is_infinite())))
    }),
    Own::new("lgamma", &[Double], Double, |args| args.floats(|row| Ok(Some(libm::lgamma(args.doubles(0).value(row)))))),
    Own::new("nextafter", &[Double, Double], Double, |args| {
        args.floats(|row| Ok(Some(libm::nextafter(args.doubles(0).value(row), args.doubles(1).value(row)))))
    }),
    Own::new("parse_formatted_bytes", &[Text], Unsigned, |args| {
        let bytes = args.each(|row| bytes_of(args.text(0).value(row)).map(Some))?;
        Ok(Arc::new(UInt64Array::from(bytes)))
    }),
    Own::new("round_even", &[Decimal, Long], Decimal, round_decimals_even),
    Own::new("round_even", &[Double, Long], Double, |args| {
        args.floats(|row| Ok(Some(round_even(args.doubles(0).value(row), args.longs(1).value(row)))))
    }),
    Own::new("signbit", &[Double], Boolean, |args| {
        args.booleans(|row| Ok(Some(args.doubles(0).value(row).is_sign_negative())))
    }),
    Own::new("to_base", &[Long, Long], Text, |args| {
        args.texts(|row| in_base(args.longs(0).value(row), args.longs(1).value(row), 0).map(Some))
    }),
    Own::new("to_base", &[Long, Long, Long], Text, |args| {
        args.texts(|row| {
            in_base(args.longs(0).value(row), args.longs(1).value(row), args.longs(2).value(row)).map(Some)
        })
    }),
    Own::new("xor", &[Long, Long], Long, |args| {
        args.integers(|row| Ok(Some(args.longs(0).value(row) ^ args.longs(1).value(row))))
    }),
];

/// Most characters of a bar.
const BAR_MAX: f64 = 1_000.0;

/// A bar whose length is proportional to a value between two others, in eighths of characters.
fn bar([value, low, high]: [f64; 3], width: f64) -> Result<String> {
    if !(1.0..=BAR_MAX).contains(&width) {
        return Err(raised(format!("a bar of {width} characters; it has 1 to {BAR_MAX}")));
    }
    if low.partial_cmp(&high) != Some(Ordering::Less) {
        return Err(raised(format!("a bar from {low} to {high}; the first bound is to be below the second")));
    }
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    let eighths = if share.is_nan() { 0 } else { (share * width * 8.0).floor() as usize };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    let blanks = (width as usize).saturating_sub(bar.chars().count());
    Ok(bar + &" ".repeat(blanks))
}

/// In how many ways some of several things can be taken.
fn binomial(things: i64, taken: i64) -> Result<i64> {
    let overflow = || raised(format!("overflow: binom({things}, {taken}) leaves BIGINT"));
    if taken < 0 || taken > things {
        return Ok(0);
    }
    let mut ways = 1_i128;
    for step in 1..=i128::from(taken.min(things - taken)) {
        // Each product of so many neighbours is divisible.
        ways = ways * (i128::from(things) - step + 1) / step;
        if ways > i64::MAX.into() {
            return Err(overflow());
        }
    }
    i64::try_from(ways).map_err(|_| overflow())
}

/// The number of bytes that a text tells: `1.5 MB` has thousands, `16 KiB` powers of 1,024.
fn bytes_of(text: &str) -> Result<u64> {
    let refused = || raised(format!("'{text}' is no number of bytes, as '16 KiB' is"));
    let bare = text.trim();
    let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
    let number: f64 = bare[..end].parse().map_err(|_| refused())?;
    let unit = bare[end..].trim().to_lowercase();
    let power = |prefix: &str| "kmgtp".find(prefix).map(|place| place as i32 + 1);
    let factor = match unit.as_str() {
        "" | "b" | "byte" | "bytes" => Some(1.0),
        unit => match (unit.strip_suffix("ib"), unit.strip_suffix('b').unwrap_or(unit)) {
            (Some(prefix), _) if prefix.len() == 1 => power(prefix).map(|power| 1_024_f64.powi(power)),
            (None, prefix) if prefix.len() == 1 => power(prefix).map(|power| 1_000_f64.powi(power)),
            _ => None,
        },
    };
    let bytes = (number * factor.ok_or_else(refused)?).round();
    if bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(refused()) }
}

/// The next even number away from zero.
fn even(value: f64) -> f64 {
    let whole = if value < 0.0 { value.floor() } else { value.ceil() };
    match whole % 2.0 == 0.0 {
        true => whole,
        false => whole + 1.0_f64.copysign(whole),
    }
}

/// A number to some digits behind the point, halves to the even one.
fn round_even(value: f64, digits: i64) -> f64 {
    let factor = 10_f64.powi(digits.clamp(-308, 308) as i32);
    let rounded = (value * factor).round_ties_even() / factor;
    if rounded.is_finite() { rounded } else { value }
}

/// The type of decimals that were rounded up past their digits.
pub(super) fn one_digit_more(precision: u8, scale: i8) -> DataType {
    DataType::Decimal128((precision + 1).min(DECIMAL128_MAX_PRECISION), scale)
}

/// Decimals to some digits behind the point, halves to the even one; their scale stays.
fn round_decimals_even(args: &Arguments) -> Result<ArrayRef> {
    let values = args.columns[0].as_primitive::<Decimal128Type>();
    let (precision, scale) = (values.precision(), values.scale());
    let rounded = args.each(|row| {
        let (value, cut) = (values.value(row), i64::from(scale).saturating_sub(args.longs(1).value(row)));
        let Some(unit) = u32::try_from(cut.max(0)).ok().and_then(|cut| 10_i128.checked_pow(cut)) else {
            return Ok(Some(0));
        };
        let (whole, rest) = (value / unit, value % unit);
        let is_up = match (rest.unsigned_abs() * 2).cmp(&unit.unsigned_abs()) {
            Ordering::Less => false,
            Ordering::Equal => whole % 2 != 0,
            Ordering::Greater => true,
        };
        let whole = if is_up { whole + value.signum() } else { whole };
        let rounded = whole.checked_mul(unit).filter(|rounded| fits_precision(*rounded, precision + 1));
        rounded.map(Some).ok_or_else(|| raised("round_even leaves 38 digits".into()))
    })?;
    let rounded = Decimal128Array::from_iter(rounded);
    Ok(Arc::new(rounded.with_data_type(one_digit_more(precision, scale))))
}

/// Whether an integer has no more digits than decimals of a precision, 38 at most.
fn fits_precision(value: i128, precision: u8) -> bool {
    let digits = u32::from(precision.min(DECIMAL128_MAX_PRECISION));
    value.unsigned_abs() < 10_u128.pow(digits)
}

/// A number that equal rows share; NULL has one, too.
fn hash(args: &Arguments) -> Result<ArrayRef> {
    let mut hashes = vec![0; args.rows];
    create_hashes(&args.columns, &RandomState::default(), &mut hashes)?;
    Ok(Arc::new(UInt64Array::from(hashes)))
}

/// The digits of a number in a base, with zeros in front up to a length.
fn in_base(number: i64, base: i64, length: i64) -> Result<String> {
    let radix = u32::try_from(base).ok().filter(|base| (2..=36).contains(base));
    let (Some(radix), Ok(mut rest)) = (radix, u64::try_from(number)) else {
        return Err(raised(format!("to_base({number}, {base}); numbers are not negative, bases from 2 to 36")));
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= 64);
    let length = length.ok_or_else(|| raised("to_base with more than 64 digits".into()))?;
    let mut digits = Vec::new();
    while rest > 0 || digits.len() < length.max(1) {
        digits.extend(char::from_digit((rest % u64::from(radix)) as u32, radix));
        rest /= u64::from(radix);
    }
    Ok(digits.into_iter().rev().collect::<String>().to_uppercase())
}
