//! Admission: loads missing columns, pins all columns and reserves transient memory in one step.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use warpcube_gpu::{GpuError, Reservation};

use super::ledger::ColumnOrigin;
use super::waiting::{Active, BackgroundLoad, EVERY_TURN, ForegroundLoad, PATIENCE, Turn, WAIT, until};
use super::{Pinned, Purpose, Residency, TableRequest};
use crate::device::{Relation, ResidentColumn, Room, request_better};
use crate::error::{ColumnError, Result};
use crate::load::{HostColumn, LoadLimits, LoadReport, Loaded, Wanted, bytes_alone, load};
use crate::source::ColumnSource;
use crate::units::is_string;

/// The admission of one statement.
struct Admission<'a, F> {
    residency: &'a Residency,
    requests: &'a [TableRequest],
    limits: &'a LoadLimits,
    /// Bytes of transient memory for the pinned columns.
    transient: F,
    /// Report of the loads so far.
    report: LoadReport,
    /// Columns read from their source: number of the request, position of the column.
    read: HashSet<(usize, usize)>,
}

/// A statement that waits for exclusive admission.
struct Exclusive<'a> {
    since: Instant,
    turn: Option<Turn<'a>>,
}

/// Tables, transient memory and the running statement.
type Admitted = (Vec<Relation>, Reservation, Active);

enum Refusal<E> {
    Column(ColumnError),
    Caller(E),
}

impl<E> From<ColumnError> for Refusal<E> {
    fn from(error: ColumnError) -> Refusal<E> {
        Refusal::Column(error)
    }
}

/// The outcome of an attempt, and whether other statements had pins during it. A refusal holds nothing.
type Attempt<E> = (Result<Admitted, Refusal<E>>, bool);

impl Residency {
    /// Loads missing columns, pins all columns and reserves transient memory; `transient` computes its bytes from the
    /// pinned columns.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] for columns that cannot be resident, [`ColumnError::OverBudget`] if the statement
    /// alone exceeds the budget, [`GpuError::Cancelled`] once `limits.cancelled` is set during a wait.
    pub fn admit<E: From<ColumnError>>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: impl Fn(&[Relation]) -> Result<u64, E>,
    ) -> Result<Pinned, E> {
        let (report, read) = (LoadReport::default(), HashSet::new());
        let mut admission = Admission { residency: self, requests, limits, transient, report, read };
        let (mut changed_once, mut exclusive) = (false, None);
        let arrived = self.turns.arrive();
        if !self.turns.has_passed(arrived) {
            until(&limits.cancelled, || self.turns.has_passed(arrived).then_some(()))?;
        }
        loop {
            let resident = exclusive.is_none().then(|| admission.resident()).flatten();
            let (outcome, others) = match (resident, &mut exclusive) {
                (Some(outcome), _) => (outcome, true),
                (None, None) => admission.attempt_shared(),
                (None, Some(exclusive)) => admission.attempt_exclusive(exclusive),
            };
            match outcome {
                Ok((tables, transient, active)) => {
                    // A process that loads once does not pay for better encoders.
                    if !admission.read.is_empty() && self.loads.fetch_add(1, Ordering::Relaxed) > 0 {
                        request_better(&self.device);
                    }
                    admission.write_files(&tables);
                    return Ok(Pinned { tables, transient, loaded: admission.report, _active: active });
                }
                Err(Refusal::Column(ColumnError::OverBudget { .. }))
                    if !limits.in_background && (exclusive.is_none() || others) =>
                {
                    if limits.cancelled.load(Ordering::Relaxed) {
                        return Err(ColumnError::from(GpuError::Cancelled).into());
                    }
                    match exclusive {
                        Some(_) => self.device.pool().wait_for_release(WAIT),
                        None => exclusive = Some(Exclusive { since: Instant::now(), turn: None }),
                    }
                }
                Err(Refusal::Column(ColumnError::Changed { .. })) if !changed_once => changed_once = true,
                Err(Refusal::Column(error)) => return Err(error.into()),
                Err(Refusal::Caller(error)) => return Err(error),
            }
        }
    }

    /// As [`Residency::admit`] with `transient` bytes, without a load and without a wait for other statements; `None`
    /// where one of them is needed.
    pub fn admit_at_once(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: u64,
    ) -> Result<Option<Pinned>> {
        if !self.turns.has_passed(self.turns.arrive()) {
            return Ok(None);
        }
        let (report, read) = (LoadReport::default(), HashSet::new());
        let transient = |_: &[Relation]| Ok::<_, ColumnError>(transient);
        let admission = Admission { residency: self, requests, limits, transient, report, read };
        match admission.resident() {
            None | Some(Err(Refusal::Column(ColumnError::OverBudget { .. }))) => Ok(None),
            Some(Err(Refusal::Column(error) | Refusal::Caller(error))) => Err(error),
            Some(Ok((tables, transient, active))) => {
                Ok(Some(Pinned { tables, transient, loaded: admission.report, _active: active }))
            }
        }
    }
}

impl<'a, E, F: Fn(&[Relation]) -> Result<u64, E>> Admission<'a, F> {
    /// An attempt without loads; `None` if a column is missing. Waits neither for loads nor for exclusive statements.
    fn resident(&self) -> Option<Result<Admitted, Refusal<E>>> {
        let versions = self.requests.iter().map(|request| (request.source.key(), request.source.version()));
        let versions: Vec<(String, String)> = versions.collect();
        let needed =
            || versions.iter().zip(self.requests).map(|((key, version), request)| (key, version, &request.columns));
        let mut ledger = self.residency.ledger.lock();
        if !needed().all(|(key, version, columns)| ledger.is_resident(key, version, columns)) {
            return None;
        }
        let coded = versions.iter().zip(self.requests).map(|((key, version), request)| (key, version, &request.coded));
        if coded.into_iter().any(|(key, version, coded)| ledger.bytes_among(key, version, coded).is_some()) {
            return None;
        }
        // The count comes before the pins: a statement without room because of these pins must see the count.
        let active = Active::begin(&self.residency.activity);
        let tables: Option<Vec<Relation>> =
            needed().map(|(key, version, columns)| ledger.pin(key, version, columns, true).0).collect();
        drop(ledger);
        let tables = tables?;
        Some(self.reserve(&tables).map(|reservation| (tables, reservation, active)))
    }

    /// An attempt concurrent with other loading statements.
    fn attempt_shared(&mut self) -> Attempt<E> {
        let residency = self.residency;
        // A load during a turn would delay the statements that wait for the turn.
        let may_load = || residency.turns.has_passed(EVERY_TURN);
        let shared = until(&self.limits.cancelled, || {
            may_load().then(|| residency.admission.try_read_for(WAIT)).flatten().filter(|_| may_load())
        });
        match shared {
            Ok(_held) => self.attempt(),
            Err(cancelled) => (Err(cancelled.into()), false),
        }
    }

    /// An attempt without other loading statements; begins a turn after [`PATIENCE`].
    fn attempt_exclusive(&mut self, exclusive: &mut Exclusive<'a>) -> Attempt<E> {
        let residency = self.residency;
        let admission = until(&self.limits.cancelled, || {
            residency.cancel_background_load(self.limits);
            residency.admission.try_write_for(WAIT)
        });
        let _held = match admission {
            Ok(held) => held,
            Err(cancelled) => return (Err(cancelled.into()), false),
        };
        let (outcome, others) = self.attempt();
        if outcome.is_err() && others && exclusive.turn.is_none() && exclusive.since.elapsed() >= PATIENCE {
            // No load is in progress and none begins, so that the turn waits for running statements alone.
            exclusive.turn = Some(residency.turns.take());
        }
        (outcome, others)
    }

    fn attempt(&mut self) -> Attempt<E> {
        let residency = self.residency;
        let activity = &residency.activity;
        let begun = || activity.begun.load(Ordering::Acquire);
        let (running, before) = (activity.running.load(Ordering::Acquire), begun());
        let outcome = self.pin_all().and_then(|tables| Ok((self.reserve(&tables)?, tables)));
        let others = running > 0 || begun() != before;
        (outcome.map(|(transient, tables)| (tables, transient, Active::begin(activity))), others)
    }

    /// Pins the columns of all tables.
    fn pin_all(&mut self) -> Result<Vec<Relation>, Refusal<E>> {
        // The largest table comes first: the encoders of all tables compile during its read.
        let mut order: Vec<usize> = (0..self.requests.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(self.requests[*number].source.rows()));
        let mut tables: Vec<Option<Relation>> = self.requests.iter().map(|_| None).collect();
        for number in order {
            tables[number] = Some(self.pin(number)?);
        }
        Ok(tables.into_iter().flatten().collect())
    }

    /// Reserves transient memory.
    fn reserve(&self, tables: &[Relation]) -> Result<Reservation, Refusal<E>> {
        let bytes = (self.transient)(tables).map_err(Refusal::Caller)?;
        Ok(self.residency.evicting_for(Purpose::Results, self.limits).reserve(bytes)?)
    }

    /// Pins the columns of a table, after a load of the missing ones.
    fn pin(&mut self, number: usize) -> Result<Relation> {
        let (residency, request, limits) = (self.residency, &self.requests[number], self.limits);
        let (source, columns) = (request.source.as_ref(), &request.columns);
        let (key, version) = (source.key(), source.version());
        self.want_codes(source, &version, &request.coded)?;
        if let (Some(table), _) = residency.ledger.lock().pin(&key, &version, columns, true) {
            return Ok(table);
        }
        let foreground_loads = ForegroundLoad::begin(&residency.foreground_loads, limits);
        let _loading = until(&limits.cancelled, || {
            residency.cancel_background_load(limits);
            residency.loading.try_lock_for(WAIT)
        })?;
        drop(foreground_loads);
        let _background_load = limits.in_background.then(|| {
            *residency.background_load.lock() = Some(limits.cancelled.clone());
            BackgroundLoad(&residency.background_load)
        });
        if limits.in_background && residency.foreground_loads.load(Ordering::SeqCst) > 0 {
            return Err(GpuError::Cancelled.into());
        }
        let (found, pinned) = residency.ledger.lock().pin(&key, &version, columns, false);
        if let Some(table) = found {
            return Ok(table);
        }
        // Pins of loaded columns until the pin of the whole table.
        let mut fresh: Vec<Arc<ResidentColumn>> = Vec::new();
        let mut missing = Vec::new();
        let room = residency.evicting_for(Purpose::Table(source.name()), limits);
        let copies = residency.ledger.lock().missing(&key, columns);
        for (column, copy) in copies {
            match copy {
                Some(copy) => fresh.extend(self.restore(source, &version, &copy, &room)?),
                None => missing.push(column),
            }
        }
        let file = source.column_file();
        let mut has_chunks = !fresh.is_empty();
        if let Some(file) = file.as_ref().filter(|_| !missing.is_empty() || fresh.is_empty()) {
            let chunks = residency.ledger.lock().chunks(&key, &version);
            let target = (&residency.device, &room as &dyn Room, &residency.staging);
            let content = (&version[..], chunks.as_deref());
            let wanted = (&missing[..], &request.coded[..]);
            let restored = residency.files.restore(file, source, content, wanted, limits, target);
            let restored = restored.inspect_err(|error| self.remember(source, &version, error))?;
            self.report.warnings.extend(restored.warnings);
            if let Some(loaded) = restored.loaded {
                missing.retain(|column| !loaded.relation.columns.iter().any(|restored| restored.index() == *column));
                self.report.add(&loaded.report);
                fresh.extend(residency.ledger.lock().enter(
                    &key,
                    &version,
                    source,
                    (loaded.relation, ColumnOrigin::File),
                )?);
                has_chunks = true;
            }
        }
        if !missing.is_empty() || !has_chunks {
            let relation = self.read_source(source, &version, (&missing, &request.coded), &room)?;
            self.read.extend(missing.iter().map(|column| (number, *column)));
            let entered = residency.ledger.lock().enter(&key, &version, source, (relation, ColumnOrigin::Source));
            if let (Err(_), Some(file)) = (&entered, &file) {
                // The chunks of the file may differ from those of the source.
                residency.files.exclude(file);
            }
            fresh.extend(entered?);
        }
        let (found, _) = residency.ledger.lock().pin(&key, &version, columns, false);
        drop((pinned, fresh));
        found.ok_or_else(|| ColumnError::changed(source.name(), "an eviction removed its columns during the load"))
    }

    /// Sees to it that no column is bytes whose codes the statement asks for: one that may have a dictionary under
    /// the present limit is loaded again.
    fn want_codes(&self, source: &dyn ColumnSource, version: &str, coded: &[usize]) -> Result<()> {
        let (key, limit) = (source.key(), self.limits.dictionary_values as u64);
        let mut ledger = self.residency.ledger.lock();
        while let Some((column, exceeded)) = ledger.bytes_among(&key, version, coded) {
            if limit <= exceeded {
                return Err(bytes_alone(source.schema().field(column).name(), exceeded));
            }
            ledger.forget_column(&key, column);
        }
        Ok(())
    }

    /// Reads columns of a table version from its source; those among `coded` must have codes if they have strings.
    fn read_source(
        &mut self,
        source: &dyn ColumnSource,
        version: &str,
        (missing, coded): (&[usize], &[usize]),
        room: &dyn Room,
    ) -> Result<Relation> {
        let (residency, limits, schema) = (self.residency, self.limits, source.schema());
        let refused = (source.key(), version.to_string(), limits.dictionary_values);
        let mut past_limit = Vec::new();
        for column in missing {
            let field = schema.field(*column);
            let Some(error) = residency.ledger.lock().refusal(&refused, field.name()) else { continue };
            match is_string(field.data_type()) && !coded.contains(column) {
                true => past_limit.push(*column),
                false => return Err(error),
            }
        }
        let wanted = Wanted { columns: missing, coded, past_limit: &past_limit };
        let span = tracing::info_span!("load", table = source.name(), columns = missing.len());
        let loaded = span.in_scope(|| load(&residency.device, source, wanted, limits, room, &residency.staging));
        if source.refresh_version()? != version {
            // The result, an error included, mixes files of two versions.
            return Err(ColumnError::changed(source.name(), "its files were replaced, added or deleted"));
        }
        let Loaded { relation, report } = loaded.inspect_err(|error| self.remember(source, version, error))?;
        let (LoadReport { rows, bytes, elapsed, .. }, rate) = (&report, report.gigabytes_per_second_core());
        tracing::info!(table = source.name(), rows, bytes, ?elapsed, gigabytes_per_second_core = rate, "loaded");
        self.report.add(&report);
        Ok(relation)
    }

    /// Remembers the error of a column that cannot be resident under the present limit on dictionaries.
    fn remember(&self, source: &dyn ColumnSource, version: &str, error: &ColumnError) {
        if error.is_unsupported() {
            let key = (source.key(), version.to_string(), self.limits.dictionary_values);
            self.residency.ledger.lock().refuse(key, error.clone());
        }
    }

    /// Restores a column from its host copy.
    fn restore(
        &mut self,
        source: &dyn ColumnSource,
        version: &str,
        copy: &HostColumn,
        room: &dyn Room,
    ) -> Result<Vec<Arc<ResidentColumn>>> {
        let (residency, start) = (self.residency, Instant::now());
        let column = copy.restore((&residency.device, room, &residency.staging))?;
        let bytes = column.bytes();
        self.report.add(&LoadReport { bytes, restored: bytes, elapsed: start.elapsed(), ..LoadReport::default() });
        let chunks = column.segments().iter().map(|segment| segment.rows()).collect();
        let relation = Relation { chunks, columns: vec![Arc::new(column)] };
        residency.ledger.lock().enter(&source.key(), version, source, (relation, ColumnOrigin::Host))
    }

    /// Writes the pinned columns that came from their source to the column files.
    fn write_files(&mut self, tables: &[Relation]) {
        for (number, (request, table)) in self.requests.iter().zip(tables).enumerate() {
            let is_read = |column: &&Arc<ResidentColumn>| self.read.contains(&(number, column.index()));
            let columns: Vec<&ResidentColumn> = table.columns.iter().filter(is_read).map(Arc::as_ref).collect();
            let file = request.source.column_file().filter(|file| file.write && !columns.is_empty());
            let Some(file) = file else { continue };
            let content = (request.source.version(), &table.chunks[..], &columns[..]);
            self.report.add(&self.residency.files.add(&self.residency.device, &file, content, self.limits));
        }
    }
}
