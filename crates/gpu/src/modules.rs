//! What a device has loaded: a module for each program, least recently requested ones evicted.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::backend::{Backend, BackendModule, Image};
use crate::error::Result;
use crate::program::Program;

/// Limit of a device's modules, apart from those in use.
const MODULES_MAX: usize = 512;

/// Shared values by key. Past a number of them the least recently requested of the unused ones is evicted.
pub(crate) struct Recent<K, V: ?Sized> {
    values: HashMap<K, (Arc<V>, u64)>,
    max: usize,
    /// Counts requests.
    clock: u64,
}

impl<K: Hash + Eq + Clone, V: ?Sized> Recent<K, V> {
    /// No values; later `max` at most, apart from those in use.
    pub(crate) fn new(max: usize) -> Recent<K, V> {
        Recent { values: HashMap::new(), max, clock: 0 }
    }

    /// The value of a key.
    pub(crate) fn get(&mut self, key: &K) -> Option<Arc<V>> {
        self.clock += 1;
        let (value, requested) = self.values.get_mut(key)?;
        *requested = self.clock;
        Some(value.clone())
    }

    /// Adds a value; gives those that are evicted, to be dropped without a lock.
    pub(crate) fn insert(&mut self, key: K, value: Arc<V>) -> Vec<Arc<V>> {
        self.clock += 1;
        let mut evicted: Vec<Arc<V>> =
            self.values.insert(key, (value, self.clock)).map(|(old, _)| old).into_iter().collect();
        while self.values.len() > self.max
            && let Some(unused) = self.evict()
        {
            evicted.push(unused);
        }
        evicted
    }

    fn evict(&mut self) -> Option<Arc<V>> {
        let unused = self.values.iter().filter(|(_, (value, _))| Arc::strong_count(value) == 1);
        let key = unused.min_by_key(|(_, (_, requested))| *requested)?.0.clone();
        self.values.remove(&key).map(|(value, _)| value)
    }
}

/// The modules of a device, by the hash of their program.
pub(crate) struct Modules {
    backend: Arc<dyn Backend>,
    loaded: Mutex<Recent<Arc<str>, dyn BackendModule>>,
}

impl Modules {
    /// No modules yet.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Modules {
        Modules { backend, loaded: Mutex::new(Recent::new(MODULES_MAX)) }
    }

    /// The module of a program, if it is loaded.
    pub(crate) fn get(&self, program: &Program) -> Option<Arc<dyn BackendModule>> {
        self.loaded.lock().get(program.hash())
    }

    /// The module of a program, loaded from its machine code if it is not. Of two calls at once the first one's stays.
    pub(crate) fn load(&self, program: &Program, image: &Image) -> Result<Arc<dyn BackendModule>> {
        if let Some(module) = self.get(program) {
            return Ok(module);
        }
        let module = self.backend.load(program, image)?;
        let mut loaded = self.loaded.lock();
        if let Some(first) = loaded.get(program.hash()) {
            drop(loaded);
            return Ok(first);
        }
        let evicted = loaded.insert(program.hash().clone(), module.clone());
        drop(loaded);
        drop(evicted);
        Ok(module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_requested_unused_value_is_evicted() {
        let mut recent = Recent::new(2);
        let add = |recent: &mut Recent<&str, String>, name: &'static str| {
            let value = Arc::new(name.to_string());
            let evicted: Vec<String> =
                recent.insert(name, value.clone()).iter().map(|value| value.to_string()).collect();
            (value, evicted)
        };
        drop((add(&mut recent, "a"), add(&mut recent, "b")));
        assert_eq!(*recent.get(&"a").unwrap(), "a");
        let (c, evicted) = add(&mut recent, "c");
        assert_eq!(evicted, ["b"]);
        // Values in use stay, though others were requested later.
        let a = recent.get(&"a").unwrap();
        let (d, evicted) = add(&mut recent, "d");
        assert!(evicted.is_empty());
        drop((a, c, d));
        assert_eq!(add(&mut recent, "e").1, ["c", "a"]);
        assert!(recent.get(&"d").is_some() && recent.get(&"e").is_some());
    }
}
