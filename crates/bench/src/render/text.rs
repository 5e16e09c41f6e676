//! Numbers as people read them.

/// A time in milliseconds with three digits that count, and its unit.
pub fn time(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 100_000.0 => format!("{:.2} s", ms / 1e3),
        ms => format!("{:.0} s", ms / 1e3),
    }
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds with four digits or so that count.
pub(super) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.4}"),
        ms if ms < 100.0 => format!("{ms:.3}"),
        ms => format!("{ms:.1}"),
    }
}

/// Milliseconds with three digits.
pub(super) fn rounded(ms: f64) -> String {
    let digits = (2.0 - ms.log10().floor()).max(0.0) as usize;
    format!("{ms:.digits$}")
}

/// Two digits behind the point below 10, else none.
pub(super) fn two_below_ten(figure: f64) -> String {
    format!("{figure:.*}", if figure < 10.0 { 2 } else { 0 })
}

/// Three digits behind the point below 10, else one.
pub(super) fn three_below_ten(figure: f64) -> String {
    format!("{figure:.*}", if figure < 10.0 { 3 } else { 1 })
}

/// About three digits.
pub(super) fn short(figure: f64) -> String {
    let digits = [(0.1, 4), (1.0, 3), (10.0, 2), (100.0, 1)].into_iter().find(|(below, _)| figure < *below);
    let digits = digits.map_or(0, |(_, digits)| digits);
    format!("{figure:.digits$}")
}

/// What a rival is called.
pub(super) fn rival(name: &str) -> String {
    if name == "cub" { "CUB".into() } else { name.to_string() }
}

/// The distinct values, in their order.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let texts = [0.1806, 1.036, 62.93, 258.6, 1234.0].map(rounded);
        assert_eq!(texts, ["0.181", "1.04", "62.9", "259", "1234"]);
    }
}
