//! Where a kernel has constants of its filters, so that other constants take their places without its text being
//! written again.
//!
//! A [`Site`] is what one conjunct of a pipeline's filters wrote at one place: its text, and the parameters and tables
//! that it added. For other constants the conjunct is written again by the same code, beside the kernel. Where that
//! gives the same text and parameters of the same types, the kernel is the same, and the values are taken over; where
//! a comparison folds into a truth value, or a constant needs more bits, the text differs and the pipeline is generated
//! anew. Whatever else a kernel has depends on shapes, columns and estimates, and estimates never change a result.

use std::ops::Range;
use std::sync::Arc;

use warpcube_column::ColumnReader;

use crate::arena::{Arena, Region};
use crate::codegen::compare::packed_test;
use crate::codegen::ends::ends;
use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::ParamList;
use crate::ir::{Expr, Overflow};

/// How a conjunct is written.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// As a comparison of a packed column, over vectors.
    Packed,
    /// As statements, over these values of registers.
    Statements {
        /// Values of registers, those that it reads among them.
        registers: Arc<[Option<Value>]>,
        /// Counter of names before it.
        next: usize,
        /// Slots of a step, where it tests vectors.
        step_slots: Option<usize>,
    },
    /// As the ends of what it lets pass.
    Ends,
}

/// What a conjunct wrote.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// Number of the conjunct among those of the pipeline's filters.
    pub(crate) part: usize,
    pub(crate) written: Written,
    pub(crate) text: String,
    /// Numbers of its parameters.
    pub(crate) params: Range<usize>,
    /// Its tables.
    pub(crate) tables: Vec<Region>,
}

/// All sites of a kernel's filters, with what writing them takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub(crate) sites: Vec<Site>,
    /// How columns are read, and the values of codes; for comparisons of packed columns.
    pub(crate) readers: Arc<[ColumnReader]>,
    pub(crate) distinct: Arc<[Option<Arc<[i128]>>]>,
    pub(crate) error_slot: String,
    pub(crate) overflow: Overflow,
}

/// Parameters and regions before a conjunct is written.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    params: usize,
    regions: usize,
}

impl Before {
    pub(crate) fn of(params: &ParamList, arena: &Arena) -> Before {
        Before { params: params.next(), regions: arena.regions().len() }
    }

    /// The site of a conjunct that was written since.
    pub(crate) fn site(
        self,
        part: usize,
        written: Written,
        text: String,
        (params, arena): (&ParamList, &Arena),
    ) -> Site {
        let tables = arena.regions()[self.regions..].to_vec();
        Site { part, written, text, params: self.params..params.next(), tables }
    }
}

impl Filters {
    /// Puts the constants of these conjuncts, one for each of the pipeline's, into a kernel's parameters and tables;
    /// false if the kernel is another with them, and some may have been put then.
    pub(crate) fn put(&self, parts: &[Expr], params: &mut ParamList, arena: &mut Arena) -> bool {
        self.sites.iter().all(|site| self.put_one(site, parts, params, arena).is_some())
    }

    fn put_one(&self, site: &Site, parts: &[Expr], params: &mut ParamList, arena: &mut Arena) -> Option<()> {
        let expr = parts.get(site.part)?;
        let (mut values, mut tables) = (ParamList::numbered_from(site.params.start), arena.beside());
        let text = match &site.written {
            Written::Packed => packed_test(expr, &self.readers, &self.distinct, &mut values)?,
            Written::Statements { registers, next, step_slots } => {
                let (mut next, slot) = (*next, (self.error_slot.as_str(), self.overflow));
                let mut emitter = Emitter::new(registers, &mut values, &mut tables, slot, &mut next);
                emitter.step_slots = *step_slots;
                let truth = emitter.emit(expr).ok()?.truth();
                emitter.of_step + &emitter.out + &truth
            }
            Written::Ends => ends(expr, &mut values)?.text(),
        };
        let is_same = text == site.text
            && params.is_typed_as(site.params.clone(), &values)
            && arena.is_laid_out_as(&site.tables, &tables);
        if !is_same {
            return None;
        }
        params.take_numbers(values);
        arena.take_constants(&site.tables, &tables);
        Some(())
    }
}
