//! Writing `database.csv`, comments in the server's form.

use std::io::Write;

use super::database::{Cube, Database, Dimension, Elements};
use super::error::Result;
use super::write::RowWriter;

impl Database {
    /// Writes the database; what [`Database::read`] read of a file that the server wrote comes out byte for byte.
    ///
    /// # Errors
    /// [`super::PaloError::Write`]; [`super::PaloError::Unwritable`] for a weight that is not finite.
    pub fn write<W: Write>(&self, out: W) -> Result<W> {
        let mut rows = RowWriter::new(out, self.line_end);
        self.write_heading(&mut rows)?;
        for dimension in &self.dimensions {
            if let Some(elements) = &dimension.elements {
                write_elements(&mut rows, dimension, elements)?;
            }
        }
        rows.comment("Description of data:")?;
        rows.comment("ID;NAME;DIMENSIONS;TYPE;DELETABLE;RENAMABLE;...")?;
        rows.section("CUBES")?;
        for Cube { id, name, dimensions, settings } in &self.cubes {
            rows.number(*id).text(name).list(dimensions.iter().copied()).fields(settings).end()?;
        }
        for section in &self.other {
            rows.section(&section.title)?;
            section.rows.iter().try_for_each(|fields| rows.fields(fields).end())?;
        }
        ["", "", "PALO DATABASE DATA END"].into_iter().try_for_each(|line| rows.comment(line))?;
        rows.finish()
    }

    fn write_heading(&self, rows: &mut RowWriter<impl Write>) -> Result<()> {
        rows.comment("PALO DATABASE DATA")?;
        if let Some(version) = &self.version {
            rows.comment(&format!("version: {version}"))?;
        }
        rows.comment("")?;
        rows.comment("Description of data:")?;
        rows.comment("SIZE_DIMENSIONS;SIZE_CUBES;TYPE")?;
        rows.section("DATABASE")?;
        rows.number(self.dimension_size).number(self.cube_size).fields(&self.settings).end()?;
        rows.comment("Description of data:")?;
        rows.comment("ID;NAME;TYPE;...")?;
        rows.section("DIMENSIONS")?;
        for Dimension { id, name, kind, settings, .. } in &self.dimensions {
            rows.number(*id).text(name).number(*kind).fields(settings).end()?;
        }
        Ok(())
    }
}

fn write_elements(rows: &mut RowWriter<impl Write>, dimension: &Dimension, elements: &Elements) -> Result<()> {
    rows.comment("Description of data: ")?;
    rows.comment("ID;NAME,LEVEL,INDENT,DEPTH,SIZE_ELEMENTS; ")?;
    rows.section(&format!("DIMENSION {}", dimension.id))?;
    let Elements { level, indent, depth, size, settings, rows: list } = elements;
    rows.number(dimension.id).text(&dimension.name).number(*level).number(*indent).number(*depth).number(*size);
    rows.fields(settings).end()?;
    rows.comment("Description of data: ")?;
    rows.comment("ID;NAME,POSITION,TYPE,STRING_CONSOLIDATION,LEVEL,INDENT,DEPTH,PARENTS,CHILDREN,CHILDREN_WEIGHT; ")?;
    rows.section(&format!("ELEMENTS DIMENSION {}", dimension.id))?;
    for element in list {
        rows.number(element.id).text(&element.name).number(element.position).number(element.kind.number());
        rows.number(u32::from(element.string_consolidation));
        rows.number(element.level).number(element.indent).number(element.depth);
        rows.list(element.parents.iter().copied()).list(element.children.iter().copied());
        rows.doubles(&element.weights)?.fields(&element.settings).end()?;
    }
    Ok(())
}
