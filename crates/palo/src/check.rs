//! Checks of a whole `database.csv`: numbers and names are unique, references lead to something, edges have two ends.

use hashbrown::{HashMap, HashSet};

use super::database::{Database, Dimension, Element};
use super::error::{PaloError, Result};
use warpcube_cube::model::folded;

/// Lines of the rows of a database, for messages.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) heading: Option<u64>,
    pub(super) dimensions: Vec<u64>,
    /// By position of the dimension, then of the element.
    pub(super) elements: Vec<Vec<u64>>,
    pub(super) cubes: Vec<u64>,
}

impl Lines {
    /// Checks what concerns several rows.
    pub(super) fn check(&self, database: &Database) -> Result<()> {
        let listed = database.dimensions.iter().map(|dimension| (dimension.id, dimension.name.as_str()));
        let dimensions = distinct(listed, &self.dimensions)?;
        distinct(database.cubes.iter().map(|cube| (cube.id, cube.name.as_str())), &self.cubes)?;
        for (cube, line) in database.cubes.iter().zip(&self.cubes) {
            if let Some(id) = cube.dimensions.iter().find(|id| !dimensions.contains_key(*id)) {
                return Err(field(*line, 3, "dimensions", format!("[DIMENSIONS] lists no dimension {id}")));
            }
        }
        database.dimensions.iter().zip(&self.elements).try_for_each(|(dimension, lines)| check_edges(dimension, lines))
    }
}

/// Checks that numbers and names, case ignored, are unique; returns the row of each number.
fn distinct<'a>(rows: impl Iterator<Item = (u32, &'a str)>, lines: &[u64]) -> Result<HashMap<u32, usize>> {
    let mut numbers = HashMap::new();
    let mut names: HashMap<String, u64> = HashMap::new();
    for (at, ((id, name), line)) in rows.zip(lines).enumerate() {
        if let Some(first) = numbers.insert(id, at) {
            return Err(field(*line, 1, "id", format!("{id} is taken by line {}", lines[first])));
        }
        if name.is_empty() {
            return Err(field(*line, 2, "name", "the name is empty".to_owned()));
        }
        if let Some(first) = names.insert(folded(name), *line) {
            return Err(field(*line, 2, "name", format!("'{name}' is taken by line {first}; names ignore case")));
        }
    }
    Ok(numbers)
}

fn check_edges(dimension: &Dimension, lines: &[u64]) -> Result<()> {
    let Some(elements) = &dimension.elements else { return Ok(()) };
    let rows = distinct(elements.rows.iter().map(|element| (element.id, element.name.as_str())), lines)?;
    for (element, line) in elements.rows.iter().zip(lines) {
        for (at, name, others) in [(9, "parents", &element.parents), (10, "children", &element.children)] {
            let mut seen = HashSet::with_capacity(others.len());
            for other in others {
                if !rows.contains_key(other) {
                    return Err(field(*line, at, name, format!("the dimension has no element {other}")));
                }
                if !seen.insert(*other) {
                    return Err(field(*line, at, name, format!("element {other} is listed twice")));
                }
            }
        }
    }
    check_ends(&elements.rows, lines)
}

/// Checks that both ends of every edge list it.
fn check_ends(rows: &[Element], lines: &[u64]) -> Result<()> {
    let down = ends(rows, |element| &element.children);
    let up = ends(rows, |element| &element.parents);
    for (element, line) in rows.iter().zip(lines) {
        let no_end = |ends: &HashSet<(u32, u32)>, others: &[u32]| {
            others.iter().copied().find(|other| !ends.contains(&(*other, element.id)))
        };
        if let Some(other) = no_end(&down, &element.parents) {
            let problem = format!("element {other} does not list '{}' as its child", element.name);
            return Err(field(*line, 9, "parents", problem));
        }
        if let Some(other) = no_end(&up, &element.children) {
            let problem = format!("element {other} does not list '{}' as its parent", element.name);
            return Err(field(*line, 10, "children", problem));
        }
    }
    Ok(())
}

/// Pairs of an element and another that it lists.
fn ends<'a>(rows: &'a [Element], others: impl Fn(&'a Element) -> &'a Vec<u32>) -> HashSet<(u32, u32)> {
    rows.iter().flat_map(|element| others(element).iter().map(|other| (element.id, *other))).collect()
}

fn field(line: u64, field: usize, name: &'static str, problem: String) -> PaloError {
    PaloError::Field { line, field, name, problem }
}
