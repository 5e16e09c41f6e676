//! How text files are read: their characters, and types of their columns.
//!
//! A definition, its facts and its tables have the same fields; those of a part count before those of the definition.

use std::fmt;
use std::str::FromStr;

use super::Named;
use crate::model::SCALE_MAX;

/// Characters that may stand between thousands.
const THOUSANDS: [char; 6] = [',', '.', '\'', ' ', '\u{a0}', '\u{202f}'];
/// Letters of a pattern of dates, one a digit.
const FIELDS: [(&str, DateField); 3] = [("YYYY", DateField::Year), ("MM", DateField::Month), ("DD", DateField::Day)];

/// The format of text in a part of a definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextFormat {
    /// Types of columns, by name.
    pub types: Named<ColumnType>,
    /// The character between the values of a line.
    pub delimiter: Option<char>,
    /// The character in front of the fraction of numbers.
    pub decimal: Option<char>,
    /// The character between thousands.
    pub thousands: Option<char>,
    /// How characters are stored.
    pub encoding: Option<Encoding>,
    /// Whether the first line has the names of the columns.
    pub header: Option<bool>,
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberStyle {
    /// The character in front of the fraction.
    pub decimal: char,
    /// The character between thousands.
    pub thousands: Option<char>,
}

/// The type of a column of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Text as it is written.
    Text,
    /// Whole numbers of 64 bits.
    Integer,
    /// Decimals with so many digits behind the point.
    Decimal(u8),
    /// Floating-point numbers of 64 bits.
    Double,
    /// Dates: written as 2026-03-31, or by a pattern.
    Date(Option<DatePattern>),
}

/// A pattern of dates: `YYYY`, `MM` and `DD`, each at most once, with other characters between them. Without days a
/// date is the first of its month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePattern(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DateField {
    Year,
    Month,
    Day,
}

/// How the characters of a text file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16; little-endian unless a byte order mark says otherwise.
    Utf16,
    /// ISO 8859-1.
    Latin1,
    /// Windows-1252: ISO 8859-1 with further characters, as `€`.
    Windows1252,
}

/// Gives parts of a definition a method `text`: the [`TextFormat`] of their fields.
macro_rules! give_text_format {
    ($($name:ident)*) => {$(
        impl $name {
            /// Its format of text.
            pub fn text(&self) -> TextFormat {
                let Self { types, delimiter, decimal, thousands, encoding, header, .. } = self.clone();
                TextFormat { types, delimiter, decimal, thousands, encoding, header }
            }
        }
    )*};
}

pub(super) use give_text_format;

impl TextFormat {
    /// The fields of a part; absent ones are those of the whole, except types.
    pub fn or(self, whole: &TextFormat) -> TextFormat {
        TextFormat {
            types: self.types,
            delimiter: self.delimiter.or(whole.delimiter),
            decimal: self.decimal.or(whole.decimal),
            thousands: self.thousands.or(whole.thousands),
            encoding: self.encoding.or(whole.encoding),
            header: self.header.or(whole.header),
        }
    }

    /// The first field that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("types", !self.types.is_empty()),
            ("delimiter", self.delimiter.is_some()),
            ("decimal", self.decimal.is_some()),
            ("thousands", self.thousands.is_some()),
            ("encoding", self.encoding.is_some()),
            ("header", self.header.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// How its numbers are written.
    pub fn style(&self) -> NumberStyle {
        let decimal = self.decimal.unwrap_or('.');
        NumberStyle { decimal, thousands: self.thousands }
    }

    /// What is wrong with its characters.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(delimiter) = self.delimiter
            && (!delimiter.is_ascii() || delimiter.is_ascii_alphanumeric() || "\"\n\r\\".contains(delimiter))
        {
            return Err(format!("delimiter is one character as ; , | or a tab (\"\\t\"), not {delimiter:?}"));
        }
        let style = self.style();
        if ![',', '.'].contains(&style.decimal) {
            return Err(format!("decimal is a point or a comma, not {:?}", style.decimal));
        }
        match style.thousands {
            Some(thousands) if !THOUSANDS.contains(&thousands) => {
                Err(format!("thousands is a comma, a point, an apostrophe or a space, not {thousands:?}"))
            }
            Some(thousands) if thousands == style.decimal => Err(format!(
                "{thousands:?} cannot stand between thousands and in front of the fraction: write decimal, too"
            )),
            _ => Ok(()),
        }
    }
}

impl NumberStyle {
    /// Numbers as programs write them: `-1234.5`.
    pub const PLAIN: NumberStyle = NumberStyle { decimal: '.', thousands: None };

    /// True for a character that stands between thousands; all kinds of spaces are one.
    pub(crate) fn is_between_thousands(self, character: char) -> bool {
        self.thousands.is_some_and(|thousands| {
            character == thousands || thousands.is_whitespace() && THOUSANDS[3..].contains(&character)
        })
    }
}

impl DatePattern {
    /// Year, month and day of a text. Months and days may have one digit where other characters part them.
    pub(crate) fn parse(&self, text: &str) -> Option<(i64, u8, Option<u8>)> {
        let (mut text, mut pattern) = (text.trim(), self.0.as_str());
        let (mut year, mut month, mut day) = (None, None, None);
        let is_parted = pattern.contains(|letter: char| !letter.is_ascii_alphabetic());
        while let Some(wanted) = pattern.chars().next() {
            let Some((letters, field)) = FIELDS.iter().find(|(letters, _)| pattern.starts_with(letters)) else {
                text = text.strip_prefix(wanted)?;
                pattern = &pattern[wanted.len_utf8()..];
                continue;
            };
            pattern = &pattern[letters.len()..];
            let found = text.bytes().take(letters.len()).take_while(u8::is_ascii_digit).count();
            let may_be_short = is_parted && *field != DateField::Year && found > 0;
            if found < letters.len() && !may_be_short {
                return None;
            }
            let number: i64 = text[..found].parse().ok()?;
            text = &text[found..];
            match field {
                DateField::Year => year = Some(number),
                DateField::Month => month = Some(u8::try_from(number).ok()?),
                DateField::Day => day = Some(u8::try_from(number).ok()?),
            }
        }
        text.is_empty().then_some((year?, month?, day))
    }

    /// A pattern by which a text may be a date.
    pub(crate) fn of_text(text: &str) -> Option<DatePattern> {
        const KNOWN: [&str; 9] = [
            "DD.MM.YYYY",
            "MM/DD/YYYY",
            "DD/MM/YYYY",
            "DD-MM-YYYY",
            "YYYY/MM/DD",
            "YYYYMMDD",
            "YYYYMM",
            "MM/YYYY",
            "MM.YYYY",
        ];
        KNOWN.into_iter().map(|pattern| DatePattern(pattern.to_owned())).find(|pattern| {
            let found = pattern.parse(text);
            found.is_some_and(|(_, month, day)| (1..=12).contains(&month) && day.is_none_or(|day| day <= 31))
        })
    }
}

impl fmt::Display for DatePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DatePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<DatePattern, String> {
        let count = |letters: &str| text.matches(letters).count();
        let rest = FIELDS.iter().fold(text.to_owned(), |rest, (letters, _)| rest.replace(letters, ""));
        let is_pattern = count("YYYY") == 1 && count("MM") == 1 && count("DD") <= 1;
        match is_pattern && !rest.contains(|other: char| other.is_alphanumeric()) {
            true => Ok(DatePattern(text.to_owned())),
            false => Err(format!("no pattern of dates {text:?}: YYYY, MM and DD as in DD.MM.YYYY, or YYYYMM")),
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Text => f.write_str("text"),
            ColumnType::Integer => f.write_str("integer"),
            ColumnType::Decimal(scale) => write!(f, "decimal({scale})"),
            ColumnType::Double => f.write_str("double"),
            ColumnType::Date(None) => f.write_str("date"),
            ColumnType::Date(Some(pattern)) => write!(f, "date({pattern})"),
        }
    }
}

impl FromStr for ColumnType {
    type Err = String;

    fn from_str(text: &str) -> Result<ColumnType, String> {
        let lower = text.trim().to_ascii_lowercase();
        let within = |name: &str| {
            let rest = lower.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
            // Patterns keep their case.
            let start = lower.len() - rest.len() - 1;
            text.trim().get(start..start + rest.len()).map(str::trim)
        };
        match lower.as_str() {
            "text" => return Ok(ColumnType::Text),
            "integer" => return Ok(ColumnType::Integer),
            "double" => return Ok(ColumnType::Double),
            "date" => return Ok(ColumnType::Date(None)),
            _ => {}
        }
        if let Some(pattern) = within("date") {
            return Ok(ColumnType::Date(Some(pattern.parse()?)));
        }
        match within("decimal").and_then(|scale| scale.parse::<u8>().ok()) {
            Some(scale) if scale <= SCALE_MAX => Ok(ColumnType::Decimal(scale)),
            _ => Err(format!(
                "no type {text:?}: text, integer, decimal(n) with n of 0 to {SCALE_MAX}, double, date, or a pattern \
                 as date(DD.MM.YYYY)"
            )),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Latin1 => "latin1",
            Encoding::Windows1252 => "windows-1252",
        })
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Encoding, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Encoding::Utf8,
            "utf-16" | "utf16" | "utf-16le" | "utf-16be" => Encoding::Utf16,
            "latin1" | "latin-1" | "iso-8859-1" => Encoding::Latin1,
            "windows-1252" | "cp1252" => Encoding::Windows1252,
            _ => return Err(format!("no encoding {text:?}: utf-8, utf-16, latin1 or windows-1252")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_pattern() {
        for (pattern, text, date) in [
            ("DD.MM.YYYY", "01.04.2025", Some((2025, 4, Some(1)))),
            ("DD.MM.YYYY", "1.4.2025", Some((2025, 4, Some(1)))),
            ("DD.MM.YYYY", "01.04.25", None),
            ("DD.MM.YYYY", "2025-04-01", None),
            ("YYYYMM", "202504", Some((2025, 4, None))),
            ("YYYYMMDD", "2025041", None),
            ("YYYYMMDD", "202541", None),
            ("MM/DD/YYYY", "4/30/2025 ", Some((2025, 4, Some(30)))),
            ("YYYY/MM", "2025/04x", None),
        ] {
            assert_eq!(pattern.parse::<DatePattern>().unwrap().parse(text), date, "{pattern} {text}");
        }
        for wrong in ["MM", "YYYY", "DD.MM.YY", "YYYY-MM-DD hh", "YYYYMMYYYY"] {
            assert!(wrong.parse::<DatePattern>().is_err(), "{wrong}");
        }
        assert_eq!(DatePattern::of_text("01.04.2025").unwrap().to_string(), "DD.MM.YYYY");
        assert_eq!(DatePattern::of_text("31/12/2025").unwrap().to_string(), "DD/MM/YYYY");
        assert!(DatePattern::of_text("Q1").is_none());
    }

    #[test]
    fn types_are_read_as_they_are_written() {
        for text in ["text", "integer", "decimal(4)", "double", "date", "date(DD.MM.YYYY)"] {
            assert_eq!(text.parse::<ColumnType>().unwrap().to_string(), text);
        }
        for wrong in ["number", "decimal", "decimal(19)", "date()", "date(DD)"] {
            assert!(wrong.parse::<ColumnType>().is_err(), "{wrong}");
        }
    }
}
