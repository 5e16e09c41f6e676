//! The figures of Meinke's thesis, as `bench/cubes/thesis.json` has them: tables 5.1 to 5.8, a Tesla K40c.

use std::collections::BTreeMap;

use serde::Deserialize;

const TEXT: &str = include_str!("../../../../bench/cubes/thesis.json");

/// All figures.
#[derive(Debug, Deserialize)]
pub(super) struct Thesis {
    queries: BTreeMap<String, ThesisQuery>,
}

/// Figures of one query.
#[derive(Debug, Deserialize)]
pub(super) struct ThesisQuery {
    /// Table 5.1.
    #[cfg(test)]
    pub(super) relevant_cells: u64,
    #[cfg(test)]
    pub(super) targets: u64,
    #[cfg(test)]
    pub(super) filled_targets: u64,
    /// Table 5.2, by variant.
    #[cfg(test)]
    pub(super) atomic_additions: BTreeMap<String, u64>,
    /// Tables 5.3 to 5.6 and 5.8, by variant.
    runs: BTreeMap<String, ThesisRun>,
}

/// A response time at the number of hash functions that gave the least.
#[derive(Debug, Deserialize)]
struct ThesisRun {
    ms: f64,
}

impl Thesis {
    /// Parses the file.
    ///
    /// # Errors
    /// A file that is not of the form, with its place.
    pub(super) fn read() -> Result<Thesis, String> {
        serde_json::from_str(TEXT).map_err(|error| format!("thesis.json: {error}"))
    }

    /// Figures of a query.
    ///
    /// # Errors
    /// A query that the thesis does not have.
    pub(super) fn query(&self, name: &str) -> Result<&ThesisQuery, String> {
        self.queries.get(name).ok_or_else(|| format!("thesis.json: no query {name}"))
    }
}

impl ThesisQuery {
    /// The least response time of a GPU in milliseconds.
    pub(super) fn best_ms(&self) -> f64 {
        self.runs.values().map(|run| run.ms).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_times_are_those_of_its_conclusion() {
        let thesis = Thesis::read().unwrap();
        let best = ["B1", "B2", "B3", "M1", "M2", "M3"].map(|name| thesis.query(name).unwrap().best_ms());
        assert_eq!(best, [1367.0, 8559.0, 15209.0, 163.0, 3521.0, 16067.0]);
        assert!(thesis.query("B4").is_err());
    }
}
