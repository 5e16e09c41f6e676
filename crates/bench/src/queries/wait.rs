//! Work of a session's threads that a run waits for.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use warpcube_sql::SqlError;

use crate::suite::{Failure, Run};

/// How often a run that goes on is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Does work on the threads and waits for it, unless the run is stopped.
///
/// # Errors
/// Those of the work; [`Failure::Cancelled`].
pub(super) fn wait<T: Send + 'static>(
    threads: &Handle,
    run: &Run,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let mut task = threads.spawn(work);
    threads.block_on(async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                ended = &mut task => return ended.map_err(|error| SqlError::Internal(error.to_string()))?,
                _ = ticks.tick() => if run.is_stopped() {
                    task.abort();
                    return Err(Failure::Cancelled);
                }
            }
        }
    })
}
