//! The nearest of some names to one that is not there, for error messages.

/// Edits at most between a name and one that is suggested for it, however long both are.
const EDITS_MAX: usize = 3;

/// The candidate with the fewest edits to `name`, case aside; none where more than a third of it differs, or more than
/// three characters. A name of one or two characters differs from what is suggested in case alone.
pub(crate) fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(name, &candidate)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edits between two names that are near each other.
pub(crate) fn distance(name: &str, candidate: &str) -> Option<usize> {
    let wanted = name.to_lowercase();
    let most = (wanted.chars().count() / 3).min(EDITS_MAX);
    Some(edits(&wanted, &candidate.to_lowercase())).filter(|distance| *distance <= most)
}

/// Levenshtein distance with swaps of neighbours counted as one (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_and_swaps_but_no_strangers() {
        let names = || ["lineorder", "customer", "part"].map(String::from);
        assert_eq!(nearest("lineodrer", names()).as_deref(), Some("lineorder"));
        assert_eq!(nearest("CUSTOMERS", names()).as_deref(), Some("customer"));
        assert_eq!(nearest("warehouse", names()), None);
        assert_eq!(nearest("prat", names()).as_deref(), Some("part"));
        for (name, other) in [("b", "a"), ("zz", "za"), ("foo", "cos"), ("nosuch", "cosh"), ("lag", "log10")] {
            assert_eq!(nearest(name, [other.to_string()]), None, "{name}");
        }
        assert_eq!(nearest("x", ["X".to_string()]).as_deref(), Some("X"));
        assert_eq!(nearest("a_name_of_many_letters", ["a_name_of_fewer_letters".to_string()]), None);
        assert_eq!(edits("ab", "ba"), 1);
        assert_eq!(edits("", "abc"), 3);
    }
}
