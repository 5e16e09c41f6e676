//! Keys of facts that name no base element to the letter: each distinct one has a code beyond all coordinates, and a
//! count of rows.

use std::fmt;

use hashbrown::HashMap;

use super::encode::NOT_KEPT;
use crate::error::all_quoted;

/// Codes from here on are problems; coordinates lie below.
pub(super) const FIRST: u32 = 1 << 31;
/// Most distinct problems of a dimension with codes of their own; the others share one code.
const KINDS_MAX: usize = 1 << 20;
/// The code of NULL.
pub(super) const NULL: u32 = FIRST;

/// Why a key names no base element, or which one it names in another case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Problem {
    /// NULL, empty text or blanks.
    Null,
    /// No element has the name.
    Unknown(String),
    /// A consolidated element.
    Consolidated(String),
    /// An element of texts.
    Text(String),
    /// Several base elements share the name: it, and their full names.
    Several(String, Vec<String>),
    /// No element has the name, and these names differ from it in case alone.
    Case(String, Vec<String>),
    /// The name of a base element in another case.
    OtherCase {
        /// The key.
        key: String,
        /// The name.
        name: String,
        /// The coordinate of the element.
        base: u32,
    },
    /// A problem after the first [`KINDS_MAX`] distinct ones.
    Other,
}

impl Problem {
    /// The key, where it is known.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Problem::Null | Problem::Other => None,
            Problem::Unknown(key) | Problem::Consolidated(key) | Problem::Text(key) => Some(key),
            Problem::Several(key, _) | Problem::Case(key, _) | Problem::OtherCase { key, .. } => Some(key),
        }
    }

    /// The coordinate of the element that a key names in another case.
    pub(super) fn base(&self) -> Option<u32> {
        if let Problem::OtherCase { base, .. } = self { Some(*base) } else { None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Null => f.write_str("NULL or blank text names no element"),
            Problem::Unknown(key) => write!(f, "no element is named '{key}'"),
            Problem::Consolidated(key) => {
                write!(f, "'{key}' is a consolidated element, and facts lie at base elements")
            }
            Problem::Text(key) => write!(f, "'{key}' is an element of texts"),
            Problem::Several(key, names) => write!(f, "'{key}' is several elements: {}", names.join(", ")),
            Problem::Case(key, names) => {
                write!(f, "'{key}' is no element; {} are, which differ in case alone", all_quoted(names))
            }
            Problem::OtherCase { key, name, .. } => write!(f, "{key} is {name}"),
            Problem::Other => f.write_str("other names name no base element"),
        }
    }
}

/// The problems of one dimension.
pub(super) struct Problems {
    held: Vec<Problem>,
    codes: HashMap<Problem, u32>,
    /// Rows of each problem, by place in `held`.
    rows: Vec<u64>,
    /// Rows of [`Problem::Other`].
    other_rows: u64,
    /// Places in `held` of problems that rows have, in the order of their first rows.
    met: Vec<u32>,
}

impl Problems {
    pub(super) fn new() -> Problems {
        let codes = HashMap::from_iter([(Problem::Null, NULL)]);
        Problems { held: vec![Problem::Null], codes, rows: vec![0], other_rows: 0, met: Vec::new() }
    }

    /// The code of a problem; past the first [`KINDS_MAX`] the coordinate itself of a key in another case.
    pub(super) fn code(&mut self, problem: Problem) -> u32 {
        if let Some(code) = self.codes.get(&problem) {
            return *code;
        }
        if self.held.len() >= KINDS_MAX {
            return problem.base().unwrap_or(NOT_KEPT);
        }
        let code = FIRST + self.held.len() as u32;
        self.held.push(problem.clone());
        self.rows.push(0);
        self.codes.insert(problem, code);
        code
    }

    /// The problem of a code.
    pub(super) fn of(&self, code: u32) -> &Problem {
        if code == NOT_KEPT { &Problem::Other } else { &self.held[(code - FIRST) as usize] }
    }

    /// Counts a row.
    pub(super) fn count(&mut self, code: u32) {
        if code == NOT_KEPT {
            self.other_rows += 1;
            return;
        }
        let rows = &mut self.rows[(code - FIRST) as usize];
        if *rows == 0 {
            self.met.push(code - FIRST);
        }
        *rows += 1;
    }

    /// Keys that name base elements in another case with the number of their rows, in the order of their first rows.
    pub(super) fn other_case(&self) -> impl Iterator<Item = (&Problem, u64)> {
        self.met().filter(|(problem, _)| problem.base().is_some())
    }

    /// Keys that name no base element with the number of their rows, in the order of their first rows.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&Problem, u64)> {
        let met = self.met().filter(|(problem, _)| problem.base().is_none());
        met.chain((self.other_rows > 0).then_some((&Problem::Other, self.other_rows)))
    }

    fn met(&self) -> impl Iterator<Item = (&Problem, u64)> {
        self.met.iter().map(|place| (&self.held[*place as usize], self.rows[*place as usize]))
    }
}
