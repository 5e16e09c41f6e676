//! What kept plans depend on: the catalog's generation, the settings, and what the device has refused.
//!
//! Settings are compared by content, so that connections with the same settings share plans and no others do. The
//! content has a number ([`SettingsKeys`]), and plans are found by their text and that number.

use std::collections::HashMap;

use datafusion::execution::SessionState;
use parking_lot::Mutex;
use quick_cache::Equivalent;

use crate::catalog::HeaderSaid;

/// Contents of settings that are remembered; after that many, equal ones get another number.
const CONTENTS_MAX: usize = 1024;

/// What a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// The catalog's generation.
    pub(crate) catalog: u64,
    /// The number of the connection's settings.
    pub(crate) settings: u64,
    /// Number of fragments found unfit for the device.
    pub(crate) refusals: u64,
    /// Number of changes to what the connection has prepared; none for plans that do not depend on it.
    pub(crate) prepared: Option<u64>,
}

/// Numbers of contents of settings; no two contents ever have one.
#[derive(Debug, Default)]
pub(crate) struct SettingsKeys(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<String, u64>,
    next: u64,
    functions: u64,
}

impl SettingsKeys {
    /// A number for functions that no other state has.
    pub(crate) fn functions(&self) -> u64 {
        let mut known = self.0.lock();
        known.functions += 1;
        known.functions
    }

    /// The number of a state's settings: all of ours and of DataFusion's. `database` counts changes to those of the
    /// database, among them its device and its runtime; `functions` tells the state's functions from those of other
    /// states, 0 stands for those that every connection begins with.
    pub(crate) fn of(&self, state: &SessionState, database: u64, functions: u64) -> u64 {
        let mut entries = state.config_options().entries();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        let header = state.config().get_extension::<HeaderSaid>();
        let settings = entries.iter().map(|entry| format!("{} = {:?}\n", entry.key, entry.value));
        let text: String = settings.chain([format!("{header:?} {database} {functions}")]).collect();
        let mut known = self.0.lock();
        if let Some(number) = known.numbers.get(&text) {
            return *number;
        }
        if known.numbers.len() >= CONTENTS_MAX {
            known.numbers.clear();
        }
        let number = known.next;
        known.next += 1;
        known.numbers.insert(text, number);
        number
    }
}

/// What a plan is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TextKey {
    pub(super) text: Box<str>,
    pub(super) settings: u64,
}

/// A key that is asked for.
#[derive(Debug, Hash)]
pub(super) struct TextAsked<'a> {
    pub(super) text: &'a str,
    pub(super) settings: u64,
}

impl Equivalent<TextKey> for TextAsked<'_> {
    fn equivalent(&self, key: &TextKey) -> bool {
        *self.text == *key.text && self.settings == key.settings
    }
}
