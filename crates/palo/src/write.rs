//! Writing rows: quoted texts, lists and numbers in the server's form.

use std::io::Write;

use super::error::{PaloError, Result};
use warpcube_cube::store::{Field, LineEnd};

/// Digits that the server writes of a number.
const SERVER_DIGITS: i32 = 15;

/// Writes rows, headings and comments line by line.
#[derive(Debug)]
pub(super) struct RowWriter<W> {
    out: W,
    line: Vec<u8>,
    line_end: LineEnd,
}

impl<W: Write> RowWriter<W> {
    pub(super) fn new(out: W, line_end: LineEnd) -> Self {
        Self { out, line: Vec::new(), line_end }
    }

    pub(super) fn comment(&mut self, text: &str) -> Result<()> {
        self.line.extend_from_slice(b"# ");
        self.line.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.end()
    }

    pub(super) fn section(&mut self, title: &str) -> Result<()> {
        self.line.push(b'[');
        self.line.extend_from_slice(title.as_bytes());
        self.line.push(b']');
        self.end()
    }

    pub(super) fn number(&mut self, number: u32) -> &mut Self {
        self.list([number])
    }

    /// A field that is a list of whole numbers.
    pub(super) fn list(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Self {
        self.items(numbers, |line, number| line.extend_from_slice(number.to_string().as_bytes()))
    }

    /// A field that is a list of finite numbers; one that is not discards the row.
    pub(super) fn doubles(&mut self, numbers: &[f64]) -> Result<&mut Self> {
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            self.line.clear();
            return Err(PaloError::Unwritable(format!(
                "{number} cannot be written: numbers of a Palo file are finite"
            )));
        }
        Ok(self.items(numbers, |line, number| line.extend_from_slice(spelled(*number).as_bytes())))
    }

    /// A field between quotes.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.line.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                self.line.push(b'"');
            }
            self.line.push(byte);
        }
        self.line.extend_from_slice(b"\";");
        self
    }

    /// A field as it stood.
    pub(super) fn field(&mut self, field: &Field) -> &mut Self {
        if field.quoted || field.text.contains([';', '"', '\n', '\r']) {
            return self.text(&field.text);
        }
        self.line.extend_from_slice(field.text.as_bytes());
        self.line.push(b';');
        self
    }

    pub(super) fn fields(&mut self, fields: &[Field]) -> &mut Self {
        for field in fields {
            self.field(field);
        }
        self
    }

    /// Ends the row and writes it.
    pub(super) fn end(&mut self) -> Result<()> {
        self.line.extend_from_slice(match self.line_end {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
        });
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// Flushes what is written and returns the output.
    pub(super) fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn items<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) -> &mut Self {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            write(&mut self.line, item);
        }
        self.line.push(b';');
        self
    }
}

/// A number as C's `%.15g` writes it if those digits read back as the number, else with as many as do.
fn spelled(number: f64) -> String {
    let shortest = format!("{number:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    if exponent >= -4 && exponent < digits.max(SERVER_DIGITS) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_form_of_the_server() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (123456789012345.0, "123456789012345"),
            (1234567890123456.0, "1234567890123456"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e300, "1e+300"),
        ];
        for (number, text) in cases {
            assert_eq!(spelled(number), text);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
    }
}
