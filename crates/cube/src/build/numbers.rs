//! Numbers of texts, exact: digits with a fraction, an exponent and characters between thousands, as a
//! [`NumberStyle`] has them.

use crate::define::NumberStyle;

/// Digits of the largest power of ten of 128 bits.
const DIGITS_MAX: u64 = 38;

/// 2⁵³: doubles have all whole numbers up to it.
pub(super) const WHOLE_MAX: u128 = 1 << 53;

/// Why a text is no decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is no number.
    Word,
    /// It is NaN or infinite.
    NotFinite,
    /// It is beyond 128 bits.
    Size,
}

/// Reads numbers of texts.
pub(super) struct Reader {
    style: NumberStyle,
    /// The last text as programs write numbers.
    plain: String,
}

impl Reader {
    pub(super) fn new(style: NumberStyle) -> Reader {
        Reader { style, plain: String::new() }
    }

    /// The number in units of 10^-`scale`, rounded half away from zero; true if rounding changed it.
    pub(super) fn decimal(&mut self, text: &str, scale: i32) -> Result<(i128, bool), Unread> {
        if !self.make_plain(text) {
            return Err(if is_not_finite(text) { Unread::NotFinite } else { Unread::Word });
        }
        let (number, exponent) = self.plain.split_once('e').unwrap_or((&self.plain, "0"));
        let (is_negative, number) = match number.strip_prefix('-') {
            Some(number) => (true, number),
            None => (false, number),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // The number is units × 10^power; digits beyond 128 bits only tell that it is not what is held.
        let (mut units, mut power, mut is_cut) = (0_i128, 0_i64, false);
        let next = |units: i128, digit: u8| units.checked_mul(10)?.checked_add(i128::from(digit - b'0'));
        let digits = whole.bytes().map(|digit| (digit, 0)).chain(fraction.bytes().map(|digit| (digit, 1)));
        for (digit, behind) in digits {
            match next(units, digit).filter(|_| !is_cut) {
                Some(more) => (units, power) = (more, power - behind),
                None => (is_cut, power) = (is_cut || digit != b'0', power + 1 - behind),
            }
        }
        // An exponent of more than 64 bits is as good as the largest one.
        let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let shift = exponent.parse().unwrap_or(beyond).saturating_add(i64::from(scale)).saturating_add(power);
        let power = |digits: u64| (digits <= DIGITS_MAX).then(|| 10_i128.pow(digits as u32));
        let (units, is_rounded) = match (shift, power(shift.unsigned_abs())) {
            _ if units == 0 => (0, is_cut),
            (0.., Some(power)) => (units.checked_mul(power).ok_or(Unread::Size)?, is_cut),
            (0.., None) => return Err(Unread::Size),
            (_, None) => (0, true),
            (_, Some(power)) => {
                let (quotient, rest) = (units / power, units % power);
                (quotient + i128::from(rest >= power - rest), is_cut || rest != 0)
            }
        };
        Ok((if is_negative { -units } else { units }, is_rounded))
    }

    /// The number as a double; NaN and infinity are numbers here.
    pub(super) fn double(&mut self, text: &str) -> Option<f64> {
        if self.make_plain(text) {
            self.plain.parse().ok()
        } else {
            text.trim().parse().ok().filter(|it: &f64| !it.is_finite())
        }
    }

    /// True if the text is a number and not a code: no zeros or plus lead it, a double has all digits of a whole
    /// number, and an exponent stands behind a fraction alone.
    pub(super) fn is_number(&mut self, text: &str) -> bool {
        let text = text.trim();
        let digits = text.trim_start_matches('-');
        let has_zeros = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        if has_zeros || text.starts_with('+') || !self.make_plain(text) {
            return false;
        }
        let is_held = |whole: i128| whole.unsigned_abs() <= WHOLE_MAX;
        self.plain.contains('.') || self.plain.parse().is_ok_and(is_held)
    }

    /// Writes a number as programs do: digits, a point and a fraction, `e` and an exponent; false for other texts.
    fn make_plain(&mut self, text: &str) -> bool {
        let Reader { style, plain } = self;
        plain.clear();
        let text = text.trim();
        let (sign, text) = match text.as_bytes().first() {
            Some(b'-') => ("-", &text[1..]),
            Some(b'+') => ("", &text[1..]),
            _ => ("", text),
        };
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (whole, fraction) = number.split_once(style.decimal).unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        plain.push_str(sign);
        let digits_from = plain.len();
        for (at, group) in whole.split(|character| style.is_between_thousands(character)).enumerate() {
            // Groups are whole: 1,234 and no 1,23.
            let is_whole = at == 0 && !group.is_empty() && group.len() <= 3 || at > 0 && group.len() == 3;
            let is_only = at == 0 && group.len() == whole.len();
            if !is_digits(group) || !(is_whole || is_only) {
                return false;
            }
            plain.push_str(group);
        }
        if !is_digits(fraction) || plain.len() == digits_from && fraction.is_empty() {
            return false;
        }
        if plain.len() == digits_from {
            plain.push('0');
        }
        if !fraction.is_empty() {
            plain.push('.');
            plain.push_str(fraction);
        }
        let Some(exponent) = exponent else { return true };
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        plain.push('e');
        plain.push_str(exponent.strip_prefix('+').unwrap_or(exponent));
        is_digits(digits) && !digits.is_empty()
    }
}

/// True for NaN and infinities as programs write them.
fn is_not_finite(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(|number| !number.is_finite()) && !text.contains(|c: char| c.is_ascii_digit())
}

/// The advice for a text that is no number.
pub(super) fn remedy(text: &str, style: NumberStyle) -> String {
    other_styles(text, style)
        .unwrap_or_else(|| "values are numbers: mend it in the source, or select other rows in a query".to_owned())
}

/// What to write for a text that is a number in other styles: each number that it may be.
pub(super) fn other_styles(text: &str, style: NumberStyle) -> Option<String> {
    let of = |decimal, thousands| NumberStyle { decimal, thousands: Some(thousands) };
    let read = |other: NumberStyle| {
        let mut reader = Reader::new(other);
        (other != style && reader.make_plain(text)).then_some((reader.plain, other))
    };
    let mut found: Vec<(String, NumberStyle)> = Vec::new();
    for (number, other) in [of(',', '.'), of('.', ','), of(',', ' '), of('.', ' ')].into_iter().filter_map(read) {
        if found.iter().all(|(known, _)| *known != number) {
            found.push((number, other));
        }
    }
    let fields = |NumberStyle { decimal, thousands }: &NumberStyle| {
        let thousands = thousands.map_or(String::new(), |thousands| format!(" and thousands: \"{thousands}\""));
        format!("write decimal: \"{decimal}\"{thousands}")
    };
    match found.as_slice() {
        [] => None,
        [(_, only)] => Some(format!("if numbers are written so, {}", fields(only))),
        several => {
            let each: Vec<String> =
                several.iter().map(|(number, style)| format!("if it is {number}, {}", fields(style))).collect();
            Some(each.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: NumberStyle = NumberStyle { decimal: ',', thousands: Some('.') };

    #[test]
    fn decimals_of_texts_are_exact() {
        for (style, text, expected) in [
            (NumberStyle::PLAIN, "0.29", Ok((29, false))),
            (NumberStyle::PLAIN, "-1.005", Ok((-101, true))),
            (NumberStyle::PLAIN, " +.5 ", Ok((50, false))),
            (NumberStyle::PLAIN, "12e1", Ok((12_000, false))),
            (NumberStyle::PLAIN, "1.5E-2", Ok((2, true))),
            (NumberStyle::PLAIN, "1e-400", Ok((0, true))),
            (NumberStyle::PLAIN, "0e400", Ok((0, false))),
            (NumberStyle::PLAIN, "1e400", Err(Unread::Size)),
            (NumberStyle::PLAIN, "0.3000000000000000444089209850062616169452667236328125", Ok((30, true))),
            (NumberStyle::PLAIN, "99999999999999999999999999999999999999999", Err(Unread::Size)),
            (NumberStyle::PLAIN, "1e9223372036854775807", Err(Unread::Size)),
            (NumberStyle::PLAIN, "1e99999999999999999999", Err(Unread::Size)),
            (NumberStyle::PLAIN, "1.5e-9223372036854775808", Ok((0, true))),
            (NumberStyle::PLAIN, "1e-99999999999999999999", Ok((0, true))),
            (NumberStyle::PLAIN, "0e99999999999999999999", Ok((0, false))),
            (NumberStyle::PLAIN, "10000000000000000000000000000000000000000000000e-46", Ok((100, false))),
            (NumberStyle::PLAIN, "99999999999999999999999999999999999999999e-41", Ok((100, true))),
            (NumberStyle::PLAIN, "0.000000000000000000000000000000000000000000000015e45", Ok((2, true))),
            (NumberStyle::PLAIN, "NaN", Err(Unread::NotFinite)),
            (NumberStyle::PLAIN, "-inf", Err(Unread::NotFinite)),
            (NumberStyle::PLAIN, "1,234", Err(Unread::Word)),
            (NumberStyle::PLAIN, "", Err(Unread::Word)),
            (NumberStyle::PLAIN, "-", Err(Unread::Word)),
            (NumberStyle::PLAIN, "1e", Err(Unread::Word)),
            (GERMAN, "1.234,50", Ok((123_450, false))),
            (GERMAN, "1234,5", Ok((123_450, false))),
            (GERMAN, "12.34", Err(Unread::Word)),
            (GERMAN, "1.2345", Err(Unread::Word)),
            (GERMAN, ".123", Err(Unread::Word)),
            (NumberStyle { decimal: ',', thousands: Some(' ') }, "-1\u{202f}234,5", Ok((-123_450, false))),
        ] {
            assert_eq!(Reader::new(style).decimal(text, 2), expected, "{text}");
        }
    }

    #[test]
    fn doubles_and_codes() {
        let mut plain = Reader::new(NumberStyle::PLAIN);
        assert_eq!(plain.double("1e400"), Some(f64::INFINITY));
        assert_eq!(plain.double("-0.1"), Some(-0.1));
        assert!(plain.double("nan").is_some_and(f64::is_nan));
        assert_eq!(plain.double("x"), None);
        assert_eq!(Reader::new(GERMAN).double("-1.000,25"), Some(-1000.25));
        for (text, is_number) in [
            ("0", true),
            ("0.5", true),
            ("-0", true),
            ("9007199254740992", true),
            ("1.5e20", true),
            ("9007199254740993", false),
            ("123456789012345678901234567890123456789012", false),
            ("1E5", false),
            ("+49", false),
            ("007", false),
            ("-01", false),
            ("nan", false),
            ("x", false),
        ] {
            assert_eq!(plain.is_number(text), is_number, "{text}");
        }
    }

    #[test]
    fn the_remedy_names_the_characters() {
        assert!(remedy("1.234,5", NumberStyle::PLAIN).contains("decimal: \",\" and thousands: \".\""));
        assert!(remedy("1,234.5", NumberStyle::PLAIN).contains("decimal: \".\" and thousands: \",\""));
        assert!(remedy("0,5", NumberStyle::PLAIN).contains("decimal: \",\""));
        assert_eq!(
            remedy("1,234", NumberStyle::PLAIN),
            "if it is 1.234, write decimal: \",\" and thousands: \".\"; if it is 1234, write decimal: \".\" and \
             thousands: \",\""
        );
        assert!(remedy("n/a", NumberStyle::PLAIN).starts_with("values are numbers"));
    }
}
