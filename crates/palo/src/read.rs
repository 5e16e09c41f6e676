//! Reading `database.csv`.

use std::io::BufRead;

use super::check::Lines;
use super::database::{Cube, Database, Dimension, Element, ElementType, Elements, Section};
use super::error::{PaloError, Result};
use super::record::{RecordKind, RecordReader, Row};

/// Start of the comment that names the server's version.
const VERSION_COMMENT: &str = "version:";

/// The section that rows belong to.
enum RowSection {
    Before,
    Database,
    Dimensions,
    /// Position in the list of dimensions.
    Dimension(usize),
    Elements(usize),
    Cubes,
    /// Position in the list of other sections.
    Other(usize),
}

impl Database {
    /// Reads a database.
    ///
    /// # Errors
    /// [`PaloError::Field`] with line and field for what breaks the format, for repeated numbers and names, and for
    /// edges to unknown elements or recorded at one end alone; [`PaloError::Line`], [`PaloError::Read`].
    pub fn read(input: impl BufRead) -> Result<Self> {
        let mut reader = RecordReader::new(input);
        let mut database = Self::default();
        let mut lines = Lines::default();
        let mut place = RowSection::Before;
        let mut row = Row::default();
        while reader.read(&mut row)? {
            match row.kind {
                RecordKind::Comment => database.comment(row.text(0).unwrap_or_default()),
                RecordKind::Section => place = database.enter(&row)?,
                RecordKind::Row => database.row(&row, &place, &mut lines)?,
            }
        }
        database.line_end = reader.line_end();
        if lines.heading.is_none() {
            let problem = "the file ends without a section [DATABASE]".to_owned();
            return Err(PaloError::Line { line: reader.line(), problem });
        }
        lines.check(&database)?;
        Ok(database)
    }

    fn comment(&mut self, text: &str) {
        if let Some(version) = text.strip_prefix(VERSION_COMMENT) {
            self.version.get_or_insert_with(|| version.trim().to_owned());
        }
    }

    fn enter(&mut self, row: &Row) -> Result<RowSection> {
        let title = row.required(0, "section")?;
        Ok(match title {
            "DATABASE" => RowSection::Database,
            "DIMENSIONS" => RowSection::Dimensions,
            "CUBES" => RowSection::Cubes,
            _ => {
                let numbered = |prefix: &str| title.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
                if let Some(id) = numbered("ELEMENTS DIMENSION ") {
                    RowSection::Elements(self.listed(id, row)?)
                } else if let Some(id) = numbered("DIMENSION ") {
                    let at = self.listed(id, row)?;
                    if self.dimensions[at].elements.replace(Elements::default()).is_some() {
                        return Err(row.error(0, "section", format!("[{title}] stands in the file twice")));
                    }
                    RowSection::Dimension(at)
                } else {
                    self.other.push(Section { title: title.to_owned(), rows: Vec::new() });
                    RowSection::Other(self.other.len() - 1)
                }
            }
        })
    }

    /// Position of a dimension that [DIMENSIONS] lists.
    fn listed(&self, id: u32, row: &Row) -> Result<usize> {
        let at = self.dimensions.iter().position(|dimension| dimension.id == id);
        at.ok_or_else(|| row.error(0, "section", format!("[DIMENSIONS] lists no dimension {id}")))
    }

    fn row(&mut self, row: &Row, place: &RowSection, lines: &mut Lines) -> Result<()> {
        match place {
            RowSection::Before => {
                return Err(PaloError::Line { line: row.line, problem: "a row stands before any section".to_owned() });
            }
            RowSection::Database => {
                if lines.heading.replace(row.line).is_some() {
                    let problem = "section [DATABASE] has a second row".to_owned();
                    return Err(PaloError::Line { line: row.line, problem });
                }
                self.dimension_size = row.number(0, "number of dimensions")?;
                self.cube_size = row.number(1, "number of cubes")?;
                self.settings = row.tail(2);
            }
            RowSection::Dimensions => {
                self.dimensions.push(dimension(row)?);
                lines.dimensions.push(row.line);
                lines.elements.push(Vec::new());
            }
            RowSection::Dimension(at) => {
                let elements = header(row, &self.dimensions[*at])?;
                self.dimensions[*at].elements = Some(elements);
            }
            RowSection::Elements(at) => {
                let Some(elements) = &mut self.dimensions[*at].elements else {
                    let problem = "the elements of a dimension stand before its section [DIMENSION n]".to_owned();
                    return Err(PaloError::Line { line: row.line, problem });
                };
                elements.rows.push(element(row)?);
                lines.elements[*at].push(row.line);
            }
            RowSection::Cubes => {
                self.cubes.push(cube(row)?);
                lines.cubes.push(row.line);
            }
            RowSection::Other(at) => self.other[*at].rows.push(row.tail(0)),
        }
        Ok(())
    }
}

fn dimension(row: &Row) -> Result<Dimension> {
    Ok(Dimension {
        id: row.number(0, "id")?,
        name: row.required(1, "name")?.to_owned(),
        kind: row.number(2, "type")?,
        settings: row.tail(3),
        elements: None,
    })
}

/// The row of `[DIMENSION n]`, which repeats number and name.
fn header(row: &Row, dimension: &Dimension) -> Result<Elements> {
    let (id, name) = (row.number(0, "id")?, row.required(1, "name")?);
    if id != dimension.id {
        return Err(row.error(0, "id", format!("{id} stands in the section of dimension {}", dimension.id)));
    }
    if name != dimension.name {
        return Err(row.error(1, "name", format!("'{name}' is listed as '{}' in [DIMENSIONS]", dimension.name)));
    }
    if dimension.elements.as_ref().is_some_and(|elements| *elements != Elements::default()) {
        return Err(PaloError::Line { line: row.line, problem: "section [DIMENSION n] has a second row".to_owned() });
    }
    Ok(Elements {
        level: row.number(2, "level")?,
        indent: row.number(3, "indent")?,
        depth: row.number(4, "depth")?,
        size: row.number(5, "number of elements")?,
        settings: row.tail(6),
        rows: Vec::new(),
    })
}

fn element(row: &Row) -> Result<Element> {
    let number = row.number(3, "type")?;
    let kind = ElementType::from_number(number)
        .ok_or_else(|| row.error(3, "type", format!("{number} is none of 1 numeric, 2 text, 4 consolidated")))?;
    let mark = row.number(4, "string consolidation")?;
    if mark > 1 {
        return Err(row.error(4, "string consolidation", format!("{mark} is neither 0 nor 1")));
    }
    let (mut parents, mut children) = (Vec::new(), Vec::new());
    row.numbers(8, "parents", &mut parents)?;
    row.numbers(9, "children", &mut children)?;
    let weights = row.doubles(10, "weights")?;
    if weights.len() != children.len() {
        return Err(row.error(10, "weights", format!("{} weights for {} children", weights.len(), children.len())));
    }
    if kind != ElementType::Consolidated && !children.is_empty() {
        return Err(row.error(9, "children", format!("an element of type {number} has no children")));
    }
    Ok(Element {
        id: row.number(0, "id")?,
        name: row.required(1, "name")?.to_owned(),
        position: row.number(2, "position")?,
        kind,
        string_consolidation: mark == 1,
        level: row.number(5, "level")?,
        indent: row.number(6, "indent")?,
        depth: row.number(7, "depth")?,
        parents,
        children,
        weights,
        settings: row.tail(11),
    })
}

fn cube(row: &Row) -> Result<Cube> {
    let mut dimensions = Vec::new();
    row.numbers(2, "dimensions", &mut dimensions)?;
    Ok(Cube { id: row.number(0, "id")?, name: row.required(1, "name")?.to_owned(), dimensions, settings: row.tail(3) })
}
