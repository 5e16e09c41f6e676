//! The process that holds a cube.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::temporal_conversions::timestamp_s_to_datetime;
use serde::{Deserialize, Serialize};

/// The process that holds a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Number of the process.
    pub pid: u32,
    /// When it took the lock, in seconds since 1970 (UTC).
    pub since: u64,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match i64::try_from(self.since).ok().and_then(timestamp_s_to_datetime) {
            Some(since) => write!(f, " since {since} UTC"),
            None => Ok(()),
        }
    }
}

/// Seconds since 1970 (UTC).
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
