//! Steps that leave rows out, or multiply them: ranges of a column and probes.

use std::mem;

use warpcube_column::{VECTOR_ROWS as ROWS, Values};
use warpcube_vector::within;

use super::keys::Form;
use super::origin::Origin;
use super::plan::HostProbe;
use super::program::Program;
use super::scan::{Scanned, Worker};
use super::tables::{NONE, Table, translate};
use super::values::{Data, Register, Slots};
use crate::error::{EngineError, Result};
use crate::ir::JoinKind;

/// Rows with their matches, for a vector of their own.
struct Pairs {
    from: Box<[u16; ROWS]>,
    entries: Box<[u32; ROWS]>,
    len: usize,
}

impl Pairs {
    fn push(&mut self, row: usize, entry: u32) {
        (self.from[self.len], self.entries[self.len]) = (row as u16, entry);
        self.len += 1;
    }
}

impl Worker<'_> {
    /// Calls `visit` for rows and their matches in vectors of their own, with the registers that are read behind the
    /// probe. No row goes on here.
    pub(super) fn multiply(
        &mut self,
        number: usize,
        probe: &HostProbe,
        visit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        for register in &probe.read_behind {
            self.load_register(*register)?;
        }
        let mut pairs = Pairs { from: Box::new([0; ROWS]), entries: Box::new([NONE; ROWS]), len: 0 };
        let mut places = Vec::with_capacity(self.rows.len());
        self.rows.each(|row| places.push(row));
        if let Some(residual) = &probe.residual {
            let mut hits = Box::new([false; ROWS]);
            self.matches_where((number, probe, residual), &places, &mut |worker, row, entry| {
                hits[row] = true;
                pairs.push(row, entry);
                worker.flush(&mut pairs, number, probe, false, visit)
            })?;
            // An outer join keeps rows that no match meets the condition of.
            for row in places.into_iter().filter(|row| !hits[*row]) {
                pairs.push(row, NONE);
                self.flush(&mut pairs, number, probe, false, visit)?;
            }
            places = Vec::new();
        }
        let found = self.found[number].clone();
        for row in places {
            if self.has_enough() {
                break;
            }
            let matches = table.rows_of(found[row]);
            if matches.is_empty() && probe.kind == JoinKind::Left {
                pairs.push(row, NONE);
                self.flush(&mut pairs, number, probe, false, visit)?;
            }
            for entry in matches {
                pairs.push(row, entry);
                if pairs.len == ROWS {
                    self.flush(&mut pairs, number, probe, false, visit)?;
                    if self.has_enough() {
                        break;
                    }
                }
            }
        }
        self.flush(&mut pairs, number, probe, true, visit)?;
        self.rows.start_in_order(0);
        Ok(())
    }

    /// Registers for another vector, without values.
    fn spare_registers(&mut self) -> Vec<Register> {
        let mut registers = self.spare.pop().unwrap_or_default();
        registers.iter_mut().for_each(Register::clear);
        registers.resize_with(self.registers.len(), Register::default);
        registers
    }

    /// Visits a full vector of pairs, or all that are left.
    fn flush(
        &mut self,
        pairs: &mut Pairs,
        number: usize,
        probe: &HostProbe,
        all: bool,
        visit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if pairs.len == 0 || pairs.len < ROWS && !all {
            return Ok(());
        }
        self.check()?;
        let mut own = self.spare_registers();
        for register in &probe.read_behind {
            own[*register].gather(&self.registers[*register], &pairs.from[..pairs.len]);
        }
        mem::swap(&mut self.registers, &mut own);
        mem::swap(&mut self.found[number], &mut pairs.entries);
        let rows = mem::take(&mut self.rows);
        self.rows.start_in_order(pairs.len);
        let depth = mem::replace(&mut self.is_multiplied, true);
        let visited = visit(self);
        self.is_multiplied = depth;
        self.rows = rows;
        mem::swap(&mut self.found[number], &mut pairs.entries);
        self.spare.push(mem::replace(&mut self.registers, own));
        pairs.len = 0;
        visited
    }

    /// Leaves the rows whose integer of a column lies within bounds.
    pub(super) fn range(&mut self, column: usize, low: i64, high: i64) {
        if let Scanned::Table { columns, .. } = self.scanned
            && self.registers[column].values.is_none()
            && let Some((least, most)) = columns[column].bounds(self.chunk, self.vector)
        {
            if most < low || least > high {
                return self.rows.start_in_order(0);
            }
            if least >= low && most <= high {
                return;
            }
        }
        self.read(column);
        let register = &self.registers[column];
        match register.values {
            Some(Values::Offsets(reference)) => {
                // Of offsets, which are not less than zero, those within other bounds.
                let first = (i128::from(low) - i128::from(reference)).max(0);
                let last = (i128::from(high) - i128::from(reference)).min(u32::MAX.into());
                if first > last {
                    return self.rows.start_in_order(0);
                }
                let (first, span) = (first as u32, (last - first) as u32);
                let offsets = &register.buffer.offsets;
                if self.rows.is_whole() {
                    let mut flags = [1; ROWS];
                    within(offsets, first, span, &mut flags);
                    return self.rows.take(&flags);
                }
                self.rows.retain(|row| offsets[row].wrapping_sub(first) <= span);
            }
            _ => {
                let integers = &register.buffer.integers;
                self.rows.retain(|row| (low..=high).contains(&integers[row]));
            }
        }
    }

    pub(super) fn probe(&mut self, number: usize, probe: &HostProbe) -> Result<()> {
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        if self.probe_by_offset(number, probe, table) {
            return Ok(());
        }
        self.load(&probe.keys)?;
        let mut candidates = self.rows.filtered(|_| true);
        let mut values =
            probe.keys.iter().map(|key| key.evaluate(&self.registers, &self.rows)).collect::<Result<Vec<_>>>()?;
        for (value, codes) in values.iter_mut().zip(&probe.codes) {
            if let Some(codes) = codes {
                let translated = translate(value, codes, &self.rows);
                value.data = Data::Integers(Slots::Own(translated));
            }
        }
        let keys = &mut self.keys[number];
        let found = &mut self.found[number];
        keys.pack(&probe.pack, &values, Form::Equal, &probe.facts, &mut candidates);
        if candidates.len() < self.rows.len() {
            self.rows.each(|row| found[row] = NONE);
        }
        table.find(keys, &candidates, found);
        drop(values);
        if let Some(residual) = &probe.residual
            && probe.several
        {
            // Those of an outer join are found where its rows are multiplied.
            return if probe.kind == JoinKind::Left { Ok(()) } else { self.probe_several(number, probe, residual) };
        }
        if let Some(residual) = &probe.residual {
            self.load_before(number, residual)?;
            let mut matched = candidates;
            matched.retain(|row| self.found[number][row] != NONE);
            let rows = mem::replace(&mut self.rows, matched);
            self.load([residual])?;
            let truths = residual.evaluate(&self.registers, &self.rows)?;
            let found = &mut self.found[number];
            self.rows.each(|row| {
                if truths.bits(row) == 0 || !truths.is_valid(row) {
                    found[row] = NONE;
                }
            });
            self.rows = rows;
            // These hold values of rows that have matched alone.
            for register in &residual.registers {
                if self.is_payload_of(number, *register) {
                    self.registers[*register].clear();
                }
            }
        }
        self.keep(number, probe.kind);
        Ok(())
    }

    /// Finds the rows of which any match meets a condition.
    fn probe_several(&mut self, number: usize, probe: &HostProbe, residual: &Program) -> Result<()> {
        let mut places = Vec::with_capacity(self.rows.len());
        self.rows.each(|row| places.push(row));
        let mut hits = Box::new([false; ROWS]);
        self.matches_where((number, probe, residual), &places, &mut |_, row, _| {
            hits[row] = true;
            Ok(())
        })?;
        let found = &mut self.found[number];
        self.rows.each(|row| found[row] = if hits[row] { 0 } else { NONE });
        self.keep(number, probe.kind);
        Ok(())
    }

    /// Calls `visit` for the rows and their matches that meet a condition.
    fn matches_where(
        &mut self,
        (number, probe, residual): (usize, &HostProbe, &Program),
        places: &[usize],
        visit: &mut dyn FnMut(&mut Self, usize, u32) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        self.load_before(number, residual)?;
        let found = self.found[number].clone();
        let mut all = places.iter().flat_map(|row| table.rows_of(found[*row]).map(|entry| (*row, entry)));
        let mut pairs: Vec<(usize, u32)> = Vec::with_capacity(ROWS);
        loop {
            pairs.clear();
            pairs.extend(all.by_ref().take(ROWS));
            if pairs.is_empty() {
                return Ok(());
            }
            self.check()?;
            let meets = self.meet(number, residual, &pairs)?;
            for ((row, entry), _) in pairs.iter().zip(meets).filter(|(_, meets)| *meets) {
                visit(self, *row, *entry)?;
            }
        }
    }

    /// Which rows and matches meet a condition.
    fn meet(&mut self, number: usize, residual: &Program, pairs: &[(usize, u32)]) -> Result<Vec<bool>> {
        let spare = self.spare_registers();
        let parent = mem::replace(&mut self.registers, spare);
        let rows = mem::take(&mut self.rows);
        let from: Vec<u16> = pairs.iter().map(|(row, _)| *row as u16).collect();
        for register in &residual.registers {
            if !self.is_payload_of(number, *register) {
                self.registers[*register].gather(&parent[*register], &from);
            }
        }
        pairs.iter().enumerate().for_each(|(place, (_, entry))| self.found[number][place] = *entry);
        self.rows.start_in_order(pairs.len());
        let meets = self.load([residual]).and_then(|()| {
            let truths = residual.evaluate(&self.registers, &self.rows)?;
            Ok((0..pairs.len()).map(|place| truths.bits(place) != 0 && truths.is_valid(place)).collect())
        });
        self.spare.push(mem::replace(&mut self.registers, parent));
        self.rows = rows;
        meets
    }

    /// Whether a register is of the table that a step probes.
    fn is_payload_of(&self, number: usize, register: usize) -> bool {
        matches!(self.pipeline.registers[register], Origin::Payload { step, .. } if step == number)
    }

    /// Reads what a condition reads beside the payload of its own table, for all rows that the step is asked about.
    fn load_before(&mut self, number: usize, residual: &Program) -> Result<()> {
        for register in &residual.registers {
            if !self.is_payload_of(number, *register) {
                self.load_register(*register)?;
            }
        }
        Ok(())
    }

    /// Leaves the rows that a probe keeps.
    fn keep(&mut self, number: usize, kind: JoinKind) {
        let found = &self.found[number];
        match kind {
            JoinKind::Inner | JoinKind::Semi => self.rows.retain(|row| found[row] != NONE),
            JoinKind::Anti => self.rows.retain(|row| found[row] == NONE),
            JoinKind::Left | JoinKind::Mark => {}
        }
    }

    /// Probes a table of bits by offsets of a column, without computing keys; false where keys are no such offsets.
    fn probe_by_offset(&mut self, number: usize, probe: &HostProbe, table: &Table) -> bool {
        let ([key], Some(low), Some(bits)) = (&probe.keys[..], probe.pack.only_low(), table.bits()) else {
            return false;
        };
        let Some(register) = key.register().filter(|_| probe.codes[0].is_none() && probe.residual.is_none()) else {
            return false;
        };
        if !matches!(self.pipeline.registers[register], Origin::Column(_)) {
            return false;
        }
        self.read(register);
        let register = &self.registers[register];
        let (Some(Values::Offsets(reference)), None) = (register.values, &register.valid) else { return false };
        // Keys are offsets from the lowest key: those below it are large ones.
        let delta = reference.wrapping_sub(low as i64) as u64;
        let (offsets, found) = (&register.buffer.offsets, &mut self.found[number]);
        let mut find = |row: usize| {
            let key = delta.wrapping_add(u64::from(offsets[row]));
            let word = bits.get((key / 64) as usize).copied().unwrap_or(0);
            let is_there = word >> (key % 64) & 1 != 0;
            found[row] = if is_there { key as u32 } else { NONE };
            is_there
        };
        match probe.kind {
            JoinKind::Inner | JoinKind::Semi => self.rows.retain(find),
            JoinKind::Anti => self.rows.retain(|row| !find(row)),
            JoinKind::Left | JoinKind::Mark => self.rows.each(|row| {
                find(row);
            }),
        }
        true
    }
}
