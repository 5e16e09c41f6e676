//! Memory of the tables of a database, charged to its memory pool while a version holds it, whichever connection's
//! statement brought it.
//!
//! Rows are charged by the buffers that they are in: slices of one batch share them, and so do batches of several
//! versions and tables. A buffer is charged once, from the first [`Charge`] that has it to the last. Indices of keys
//! are charged by their size.
//!
//! Invariant: the owner of a charge of a batch drops it before the batch, so that no other buffer has its address.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayData, RecordBatch};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

use crate::error::{Result, SqlError};

/// What the tables of a database hold.
#[derive(Debug)]
pub(crate) struct Ledger(Mutex<Entries>);

#[derive(Debug)]
struct Entries {
    /// The database's.
    pool: Arc<dyn MemoryPool>,
    /// In that pool.
    reservation: MemoryReservation,
    /// By address the bytes of a buffer, and its charges.
    buffers: HashMap<usize, (usize, usize)>,
    bytes: usize,
}

/// The buffers of a batch, charged until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Arc<Ledger>,
    addresses: Box<[usize]>,
}

impl Ledger {
    /// A ledger that charges to a pool.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Ledger {
        let reservation = registered(pool);
        Ledger(Mutex::new(Entries { pool: pool.clone(), reservation, buffers: HashMap::new(), bytes: 0 }))
    }

    /// Charges a batch of a table.
    ///
    /// # Errors
    /// [`SqlError::Memory`] if the pool has no room for it.
    pub(crate) fn charge(self: &Arc<Self>, table: &str, batch: &RecordBatch) -> Result<Charge> {
        let mut buffers = HashMap::new();
        batch.columns().iter().for_each(|column| collect(&column.to_data(), &mut buffers));
        let mut entries = self.0.lock();
        let new = buffers.iter().filter(|(address, _)| !entries.buffers.contains_key(address));
        let bytes = new.map(|(_, bytes)| bytes).sum();
        entries.grow(bytes).map_err(|error| explained(table, error))?;
        let addresses = buffers.keys().copied().collect();
        for (address, bytes) in buffers {
            entries.buffers.entry(address).or_insert((bytes, 0)).1 += 1;
        }
        drop(entries);
        Ok(Charge { ledger: self.clone(), addresses })
    }

    /// Charges something of a table whose size has changed.
    ///
    /// # Errors
    /// [`SqlError::Memory`] if the pool has no room for it; then what was charged before still is.
    pub(super) fn resize(&self, table: &str, from: usize, to: usize) -> Result<()> {
        let mut entries = self.0.lock();
        entries.grow(to.saturating_sub(from)).map_err(|error| explained(table, error))?;
        entries.shrink(from.saturating_sub(to));
        Ok(())
    }

    /// Gives bytes of [`Ledger::resize`] back.
    pub(super) fn release(&self, bytes: usize) {
        self.0.lock().shrink(bytes);
    }

    /// Charges everything to another pool, whether or not it has room: the rows are there.
    pub(crate) fn move_to(&self, pool: &Arc<dyn MemoryPool>) {
        let mut entries = self.0.lock();
        if Arc::ptr_eq(&entries.pool, pool) {
            return;
        }
        entries.pool = pool.clone();
        let reservation = registered(pool);
        reservation.grow(entries.bytes);
        entries.reservation = reservation;
    }
}

impl Entries {
    fn grow(&mut self, bytes: usize) -> datafusion::error::Result<()> {
        self.reservation.try_grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.reservation.shrink(bytes);
    }
}

fn registered(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("tables in memory").register(pool)
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut entries = self.ledger.0.lock();
        let mut released = 0;
        for address in &self.addresses {
            if let Some((bytes, charges)) = entries.buffers.get_mut(address) {
                *charges -= 1;
                if *charges == 0 {
                    released += *bytes;
                    entries.buffers.remove(address);
                }
            }
        }
        entries.shrink(released);
    }
}

/// The buffers of an array by their addresses, with their bytes.
fn collect(array: &ArrayData, buffers: &mut HashMap<usize, usize>) {
    for buffer in array.buffers().iter().chain(array.nulls().map(|nulls| nulls.buffer())) {
        if buffer.capacity() > 0 {
            buffers.insert(buffer.data_ptr().as_ptr() as usize, buffer.capacity());
        }
    }
    array.child_data().iter().for_each(|child| collect(child, buffers));
}

/// The error with what it is about.
fn explained(table: &str, error: datafusion::error::DataFusionError) -> SqlError {
    match SqlError::from(error) {
        SqlError::Memory(text) => {
            SqlError::Memory(format!("table '{table}' and the tables in memory do not fit ({text})"))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    /// The most that a pool ever had reserved.
    #[derive(Debug)]
    struct Peak(GreedyMemoryPool, Mutex<usize>);

    impl std::fmt::Display for Peak {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.name())
        }
    }

    impl MemoryPool for Peak {
        fn name(&self) -> &str {
            "peak"
        }

        fn grow(&self, reservation: &MemoryReservation, additional: usize) {
            self.0.grow(reservation, additional);
            let mut peak = self.1.lock();
            *peak = (*peak).max(self.0.reserved());
        }

        fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
            self.0.shrink(reservation, shrink);
        }

        fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> datafusion::error::Result<()> {
            self.0.try_grow(reservation, additional)
        }

        fn reserved(&self) -> usize {
            self.0.reserved()
        }
    }

    #[test]
    fn tables_are_charged_once_whatever_pool_they_move_to() {
        let pools = [(); 2].map(|()| Arc::new(Peak(GreedyMemoryPool::new(1 << 20), Mutex::default())));
        let [first, second]: [Arc<dyn MemoryPool>; 2] = [pools[0].clone(), pools[1].clone()];
        let ledger = Arc::new(Ledger::new(&first));
        let values: Arc<dyn arrow::array::Array> = Arc::new(Int64Array::from_iter_values(0..1000));
        let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
        let charge = ledger.charge("t", &batch).unwrap();
        let bytes = first.reserved();
        ledger.move_to(&first);
        assert_eq!((first.reserved(), *pools[0].1.lock()), (bytes, 0), "all rows are registered anew");
        ledger.move_to(&second);
        assert_eq!((first.reserved(), second.reserved(), *pools[1].1.lock()), (0, bytes, bytes));
        drop(charge);
        assert_eq!(second.reserved(), 0);
    }
}
