//! A share of the memory of operators on the CPU: what the statements of several connections may have together, within
//! the limit of their database.
//!
//! A connection with a share runs on a runtime whose memory pool counts what its operators reserve, before the pool of
//! the database does. An operator that can spill does so where the share is used up; any other fails with SQL-009.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result as DataFusionResult;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;

/// A share of the memory, which clones are the same one of.
#[derive(Clone)]
pub struct MemoryShare {
    count: Arc<Count>,
    /// The runtime of the database that was last limited, and the one that is limited.
    made: Arc<Mutex<Option<Runtimes>>>,
}

/// The runtime of a database, and the one within a share of it.
type Runtimes = (Arc<RuntimeEnv>, Arc<RuntimeEnv>);

#[derive(Debug)]
struct Count {
    /// Whose share it is.
    name: String,
    most: usize,
    used: AtomicUsize,
}

impl MemoryShare {
    /// A share of so many bytes; errors name whose it is.
    pub fn new(name: &str, most: usize) -> MemoryShare {
        let count = Count { name: name.to_string(), most, used: AtomicUsize::new(0) };
        MemoryShare { count: Arc::new(count), made: Arc::default() }
    }

    /// The runtime of a database within this share; the same one while that of the database is.
    pub(crate) fn within(&self, runtime: &Arc<RuntimeEnv>) -> Arc<RuntimeEnv> {
        let mut made = self.made.lock();
        if let Some((whole, within)) = made.as_ref()
            && Arc::ptr_eq(whole, runtime)
        {
            return within.clone();
        }
        let pool = SharePool { pool: runtime.memory_pool.clone(), count: self.count.clone() };
        let within = Arc::new(RuntimeEnv { memory_pool: Arc::new(pool), ..runtime.as_ref().clone() });
        *made = Some((runtime.clone(), within.clone()));
        within
    }
}

impl fmt::Debug for MemoryShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryShare").field(&self.count).finish()
    }
}

/// The pool of a database, of which a share is counted.
#[derive(Debug)]
struct SharePool {
    pool: Arc<dyn MemoryPool>,
    count: Arc<Count>,
}

impl fmt::Display for SharePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (share of '{}': {} bytes)", self.pool, self.count.name, self.count.most)
    }
}

impl MemoryPool for SharePool {
    fn name(&self) -> &str {
        "share"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.count.used.fetch_add(additional, Ordering::Relaxed);
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.count.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionResult<()> {
        let Count { name, most, used } = self.count.as_ref();
        let grown = |used: usize| used.checked_add(additional).filter(|grown| grown <= most);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).map_err(|used| {
            let text =
                format!("'{name}' may use {most} bytes, of which {used} are in use, and asks for {additional} more");
            DataFusionError::ResourcesExhausted(text)
        })?;
        self.pool.try_grow(reservation, additional).inspect_err(|_| {
            used.fetch_sub(additional, Ordering::Relaxed);
        })
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.count.most)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    #[test]
    fn a_share_bounds_what_its_connections_have_together() {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(1000, 1.0).build_arc().unwrap();
        let share = MemoryShare::new("a", 100);
        let within = share.within(&runtime);
        assert!(Arc::ptr_eq(&within, &share.clone().within(&runtime)));
        let one = MemoryConsumer::new("one").register(&within.memory_pool);
        let two = MemoryConsumer::new("two").register(&within.memory_pool);
        one.try_grow(60).unwrap();
        let told = two.try_grow(50).unwrap_err().to_string();
        assert!(told.contains("'a' may use 100 bytes, of which 60 are in use"), "{told}");
        two.try_grow(40).unwrap();
        assert_eq!(runtime.memory_pool.reserved(), 100);
        one.free();
        two.try_grow(60).unwrap();
        drop(two);
        assert_eq!((runtime.memory_pool.reserved(), share.count.used.load(Ordering::Relaxed)), (0, 0));
        // What the database refuses is not counted.
        let other = MemoryConsumer::new("other").register(&runtime.memory_pool);
        other.try_grow(950).unwrap();
        assert!(one.try_grow(80).is_err());
        assert_eq!(share.count.used.load(Ordering::Relaxed), 0);
    }
}
