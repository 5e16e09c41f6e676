//! Scales: where a value lies on an axis, and which values are marked.

/// Superscripts of the digits.
const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// How an axis is divided.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scale {
    /// From zero.
    Linear,
    /// Powers of ten, with twos and fives where there are few.
    Log10,
    /// Powers of two, written out up to thousands.
    Log2,
    /// Powers of two, as bytes.
    Bytes,
    /// Names at 0, 1, 2, ….
    Names(Vec<String>),
}

/// A scale with the range of its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range<'a> {
    scale: &'a Scale,
    from: f64,
    to: f64,
}

impl<'a> Range<'a> {
    /// The range of these values, of which there is at least one.
    pub(super) fn of(scale: &'a Scale, values: impl Iterator<Item = f64>) -> Range<'a> {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let (from, to) = match scale {
            Scale::Linear => (0.0, high),
            Scale::Log10 => (low.log10(), high.log10()),
            Scale::Log2 | Scale::Bytes => (low.log2(), high.log2()),
            Scale::Names(names) => return Range { scale, from: -0.5, to: names.len() as f64 - 0.5 },
        };
        // Room for markers at both ends, and a range that is not empty.
        let room = match (scale, to - from) {
            (_, width) if width > 0.0 => width * 0.04,
            _ => 0.5,
        };
        let from = if *scale == Scale::Linear { from } else { from - room };
        Range { scale, from, to: to + room }
    }

    /// Where a value lies, 0 at the beginning of the axis and 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear | Scale::Names(_) => value,
            Scale::Log10 => value.log10(),
            Scale::Log2 | Scale::Bytes => value.log2(),
        };
        (value - self.from) / (self.to - self.from)
    }

    /// The marked values with their labels; `most` fit beside each other.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Names(names) => names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect(),
            Scale::Linear => self.linear(most),
            Scale::Log10 => self.decades(most),
            Scale::Log2 => self.powers(most, count),
            Scale::Bytes => self.powers(most, bytes),
        }
    }

    /// Multiples of one, two or five times a power of ten.
    fn linear(&self, most: usize) -> Vec<(f64, String)> {
        let width = self.to - self.from;
        let power = (width / most as f64).log10().floor();
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|step| step * 10f64.powf(power));
        let step = steps.into_iter().find(|step| width / step <= most as f64).unwrap_or(width);
        let last = (self.to / step).floor() as usize;
        (0..=last).map(|at| at as f64 * step).map(|value| (value, number(value))).collect()
    }

    /// Powers of ten, with 2 and 5 times them if that many fit.
    fn decades(&self, most: usize) -> Vec<(f64, String)> {
        let with = |factors: &[f64]| -> Vec<(f64, String)> {
            let decades = self.from.floor() as i32..=self.to.ceil() as i32;
            let values = decades.flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)));
            let inside = values.filter(|value| (self.from..=self.to).contains(&value.log10()));
            inside.map(|value| (value, number(value))).collect()
        };
        let all = with(&[1.0, 2.0, 5.0]);
        if all.len() <= most { all } else { with(&[1.0]) }
    }

    /// Every power of two, or every second one, or fourth, as many as fit.
    fn powers(&self, most: usize, text: fn(u32) -> String) -> Vec<(f64, String)> {
        let (first, last) = (self.from.ceil().max(0.0) as u32, self.to.floor().max(0.0) as u32);
        let fits = |step: &u32| ((last - first) / step) < most as u32;
        let step = [1, 2, 4, 5, 10].into_iter().find(fits).unwrap_or(20);
        let marked = (first..=last).filter(|power| power.is_multiple_of(step));
        marked.map(|power| (f64::from(power).exp2(), text(power))).collect()
    }
}

/// A number without more digits than it needs.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// 2^power, written out while it is short.
pub(super) fn count(power: u32) -> String {
    match power {
        0..=12 => (1u64 << power).to_string(),
        power => {
            let digits =
                power.to_string().bytes().map(|digit| SUPERSCRIPTS[usize::from(digit - b'0')]).collect::<String>();
            format!("2{digits}")
        }
    }
}

/// 2^power bytes.
fn bytes(power: u32) -> String {
    let unit = ["B", "KB", "MB", "GB", "TB"][(power as usize / 10).min(4)];
    format!("{} {unit}", 1u64 << (power % 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale, values: &[f64], most: usize) -> Vec<String> {
        let range = Range::of(scale, values.iter().copied());
        range.ticks(most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(&Scale::Linear, &[0.3, 1.12], 8), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            texts(&Scale::Linear, &[0.0, 100.0], 11),
            ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]
        );
        assert_eq!(texts(&Scale::Log10, &[0.4, 30.0], 8), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(texts(&Scale::Log10, &[0.1, 1000.0], 8), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(texts(&Scale::Log2, &[1.0, 256.0], 9), ["1", "2", "4", "8", "16", "32", "64", "128", "256"]);
        assert_eq!(texts(&Scale::Log2, &[1.0, 1048576.0], 6), ["1", "16", "256", "4096", "2¹⁶", "2²⁰"]);
        assert_eq!(texts(&Scale::Bytes, &[8192.0, 1073741824.0], 6), ["64 KB", "1 MB", "16 MB", "256 MB"]);
    }

    #[test]
    fn values_lie_between_the_ends() {
        for (scale, values) in [(Scale::Linear, [0.0, 9.0]), (Scale::Log10, [0.1, 3.0]), (Scale::Bytes, [8.0, 64.0])] {
            let range = Range::of(&scale, values.into_iter());
            let [low, high] = values.map(|value| range.place(value));
            assert!((0.0..0.1).contains(&low) && (0.9..1.0).contains(&high), "{scale:?}: {low} {high}");
        }
        // One value alone has a range, too.
        assert!(Range::of(&Scale::Log2, [8.0].into_iter()).place(8.0).is_finite());
        let names = Scale::Names(vec!["a".into(), "b".into()]);
        assert_eq!(Range::of(&names, [0.0].into_iter()).place(1.0), 0.75);
    }
}
