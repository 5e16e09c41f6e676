//! Numbers of texts, exact: digits with a fraction, an exponent and characters between thousands, as a
//! [`NumberStyle`] has them.

use crate::define::NumberStyle;

/// Digits of a fraction beyond which powers of ten have no 128 bits.
const DIGITS_MAX: i32 = 38;

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
        let (mut units, mut digits, mut is_cut) = (0_i128, 0, false);
        let next = |units: i128, digit: u8| units.checked_mul(10)?.checked_add(i128::from(digit - b'0'));
        for digit in whole.bytes() {
            units = next(units, digit).ok_or(Unread::Size)?;
        }
        for digit in fraction.bytes() {
            match next(units, digit).filter(|_| !is_cut && digits < DIGITS_MAX) {
                Some(more) => (units, digits) = (more, digits + 1),
                // Digits beyond 128 bits are dropped; one that is not zero makes the number inexact.
                None => is_cut |= digit != b'0',
            }
        }
        let exponent: i64 = exponent.parse().map_err(|_| Unread::Size)?;
        let shift = i64::from(scale) + exponent - i64::from(digits);
        let power = |digits: u64| (digits <= DIGITS_MAX as u64).then(|| 10_i128.pow(digits as u32));
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

    /// True if the text is a number and not a code: no zeros lead it.
    pub(super) fn is_number(&mut self, text: &str) -> bool {
        let digits = text.trim().trim_start_matches(['-', '+']);
        let is_code = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        !is_code && (self.make_plain(text) || is_not_finite(text))
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
    let german = NumberStyle { decimal: ',', thousands: Some('.') };
    let english = NumberStyle { decimal: '.', thousands: Some(',') };
    let fits = |style: NumberStyle| Reader::new(style).make_plain(text);
    let spaced = |decimal| NumberStyle { decimal, thousands: Some(' ') };
    let other = [german, english, spaced(','), spaced('.')].into_iter().find(|other| *other != style && fits(*other));
    match other {
        Some(NumberStyle { decimal, thousands }) => {
            let thousands = thousands.map_or(String::new(), |thousands| format!(" and thousands: \"{thousands}\""));
            format!("if numbers are written so, write decimal: \"{decimal}\"{thousands}")
        }
        None => "values are numbers: mend it in the source, or select other rows in a query".to_owned(),
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
        for (text, is_number) in
            [("0", true), ("0.5", true), ("-0", true), ("007", false), ("-01", false), ("x", false)]
        {
            assert_eq!(plain.is_number(text), is_number, "{text}");
        }
    }

    #[test]
    fn the_remedy_names_the_characters() {
        assert!(remedy("1.234,5", NumberStyle::PLAIN).contains("decimal: \",\" and thousands: \".\""));
        assert!(remedy("1,234.5", NumberStyle::PLAIN).contains("decimal: \".\" and thousands: \",\""));
        assert!(remedy("0,5", NumberStyle::PLAIN).contains("decimal: \",\""));
        assert!(remedy("n/a", NumberStyle::PLAIN).starts_with("values are numbers"));
    }
}
