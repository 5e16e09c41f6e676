//! The nearest of some names to one that is not there, for error messages.

/// Edits at most between a name and one that is suggested for it, however long both are.
const EDITS_MAX: usize = 3;

/// The candidate with the fewest edits to `name`, case aside; none where more than a third of it differs, or more than
/// three characters. A name of one or two characters differs from what is suggested in case alone.
pub fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(name, &candidate)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edits between two names that are near each other; a swap of neighbours is one.
pub(crate) fn distance(name: &str, candidate: &str) -> Option<usize> {
    let wanted = name.to_lowercase();
    let most = (wanted.chars().count() / 3).min(EDITS_MAX);
    Some(strsim::osa_distance(&wanted, &candidate.to_lowercase())).filter(|distance| *distance <= most)
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
    }
}
