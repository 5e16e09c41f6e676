//! Cells of a cube file: `database_CUBE_<id>.csv`.

use std::io::{BufRead, Write};

use super::error::{PaloError, Result};
use super::record::{RecordKind, RecordReader, Row};
use super::write::RowWriter;
use warpcube_cube::store::{Field, LineEnd};

/// The row of section `[CUBE]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CubeHeader {
    /// Number of the cube.
    pub cube: u32,
    /// Elements of each dimension, by the writer's count.
    pub sizes: Vec<u32>,
    /// Further fields of the row.
    pub settings: Vec<Field>,
}

/// Value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// A finite number, from section `[NUMERIC]`.
    Number(f64),
    /// A text, from section `[STRING]`.
    Text(String),
}

/// A filled cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Line in the file, from 1.
    pub line: u64,
    /// Number of its element in each dimension.
    pub path: Vec<u32>,
    /// Its value.
    pub value: CellValue,
}

/// The section that cells belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Numeric,
    String,
}

/// Reads the cells of a cube file one by one; an iterator that ends after its first error.
#[derive(Debug)]
pub struct CellReader<R> {
    records: RecordReader<R>,
    row: Row,
    header: CubeHeader,
    part: Option<Part>,
    failed: bool,
}

impl<R: BufRead> CellReader<R> {
    /// Reads the header of a cube file.
    ///
    /// # Errors
    /// [`PaloError::Line`] if the file does not start with section `[CUBE]`; [`PaloError::Field`],
    /// [`PaloError::Read`].
    pub fn new(input: R) -> Result<Self> {
        let mut records = RecordReader::new(input);
        let mut row = Row::default();
        let mut inside = false;
        while records.read(&mut row)? {
            match row.kind {
                RecordKind::Comment => {}
                RecordKind::Section if !inside && row.text(0) == Some("CUBE") => inside = true,
                RecordKind::Row if inside => {
                    let header = header(&row)?;
                    return Ok(Self { records, row, header, part: None, failed: false });
                }
                _ => break,
            }
        }
        let problem = "a cube file starts with section [CUBE] and its row".to_owned();
        Err(PaloError::Line { line: records.line().max(1), problem })
    }

    /// The header.
    pub fn header(&self) -> &CubeHeader {
        &self.header
    }

    /// Lines read so far.
    pub fn line(&self) -> u64 {
        self.records.line()
    }

    /// How the lines of the file end.
    pub fn line_end(&self) -> LineEnd {
        self.records.line_end()
    }

    /// Reads the next cell into `cell`, whose memory is reused; returns false at the end of the file.
    ///
    /// # Errors
    /// [`PaloError::Field`] for paths of another length than the cube's and for values that are not finite numbers;
    /// [`PaloError::Line`] for unknown sections; [`PaloError::Read`].
    pub fn read(&mut self, cell: &mut Cell) -> Result<bool> {
        while self.records.read(&mut self.row)? {
            match (self.row.kind, self.part) {
                (RecordKind::Comment, _) => {}
                (RecordKind::Section, _) => self.part = Some(part(&self.row)?),
                (RecordKind::Row, Some(part)) => return self.cell(part, cell).map(|()| true),
                (RecordKind::Row, None) => {
                    let problem = "section [CUBE] has a second row".to_owned();
                    return Err(PaloError::Line { line: self.row.line, problem });
                }
            }
        }
        Ok(false)
    }

    fn cell(&self, part: Part, cell: &mut Cell) -> Result<()> {
        let row = &self.row;
        cell.line = row.line;
        cell.path.clear();
        row.numbers(0, "element ids", &mut cell.path)?;
        let (found, wanted) = (cell.path.len(), self.header.sizes.len());
        if found != wanted {
            return Err(row.error(0, "element ids", format!("{found} ids for the {wanted} dimensions of the cube")));
        }
        cell.value = match part {
            Part::Numeric => CellValue::Number(row.double(1, "value")?),
            Part::String => CellValue::Text(row.required(1, "value")?.to_owned()),
        };
        match row.len() {
            2 => Ok(()),
            _ => Err(row.error(2, "end of row", "a cell has two fields")),
        }
    }
}

impl<R: BufRead> Iterator for CellReader<R> {
    type Item = Result<Cell>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut cell = Cell { line: 0, path: Vec::new(), value: CellValue::Number(0.0) };
        match self.read(&mut cell) {
            Ok(more) => more.then_some(Ok(cell)),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

fn header(row: &Row) -> Result<CubeHeader> {
    let mut sizes = Vec::new();
    row.numbers(1, "dimension sizes", &mut sizes)?;
    Ok(CubeHeader { cube: row.number(0, "cube id")?, sizes, settings: row.tail(2) })
}

fn part(row: &Row) -> Result<Part> {
    match row.required(0, "section")? {
        "NUMERIC" => Ok(Part::Numeric),
        "STRING" => Ok(Part::String),
        title => {
            let problem = format!("[{title}] is no section of a cube file; those are CUBE, NUMERIC and STRING");
            Err(PaloError::Line { line: row.line, problem })
        }
    }
}

/// Writes the cells of a cube file: numbers first, texts after them.
#[derive(Debug)]
pub struct CellWriter<W> {
    rows: RowWriter<W>,
    dimensions: usize,
    part: Part,
}

impl<W: Write> CellWriter<W> {
    /// Starts a cube file.
    ///
    /// # Errors
    /// [`PaloError::Write`].
    pub fn new(out: W, header: &CubeHeader, line_end: LineEnd) -> Result<Self> {
        let mut rows = RowWriter::new(out, line_end);
        rows.comment("PALO CUBE DATA")?;
        rows.comment("")?;
        rows.comment("Description of data:")?;
        rows.comment("ID;SIZES_DIMENSIONS;...")?;
        rows.section("CUBE")?;
        rows.number(header.cube).list(header.sizes.iter().copied()).fields(&header.settings).end()?;
        rows.comment("Description of data:")?;
        rows.comment("PATH;VALUE;")?;
        rows.section("NUMERIC")?;
        Ok(Self { rows, dimensions: header.sizes.len(), part: Part::Numeric })
    }

    /// Writes a cell.
    ///
    /// # Errors
    /// [`PaloError::Unwritable`] for a number after a text, a number that is not finite and a path of another length
    /// than the cube's; [`PaloError::Write`].
    pub fn write(&mut self, path: &[u32], value: &CellValue) -> Result<()> {
        if path.len() != self.dimensions {
            let problem = format!("a cell of {} ids was given to a cube of {} dimensions", path.len(), self.dimensions);
            return Err(PaloError::Unwritable(problem));
        }
        match value {
            CellValue::Number(_) if self.part == Part::String => {
                Err(PaloError::Unwritable("a numeric cell was given after a text cell; numbers come first".to_owned()))
            }
            CellValue::Number(number) => self.rows.list(path.iter().copied()).doubles(&[*number])?.end(),
            CellValue::Text(text) => {
                self.start_texts()?;
                self.rows.list(path.iter().copied()).text(text).end()
            }
        }
    }

    /// Ends the file and returns the output.
    ///
    /// # Errors
    /// [`PaloError::Write`].
    pub fn finish(mut self) -> Result<W> {
        self.start_texts()?;
        ["", "", "PALO CUBE DATA END"].into_iter().try_for_each(|line| self.rows.comment(line))?;
        self.rows.finish()
    }

    fn start_texts(&mut self) -> Result<()> {
        if self.part == Part::String {
            return Ok(());
        }
        self.part = Part::String;
        self.rows.comment("Description of data:")?;
        self.rows.comment("PATH;VALUE;")?;
        self.rows.section("STRING")
    }
}
