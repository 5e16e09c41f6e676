//! Work of a session's threads that a run waits for.

use std::future::Future;
use std::sync::mpsc::{self, RecvTimeoutError};
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
    let (sender, receiver) = mpsc::channel();
    // The receiver is gone only after a stop.
    let task = threads.spawn(async move { drop(sender.send(work.await)) });
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) if !run.is_stopped() => {}
            Err(RecvTimeoutError::Timeout) => {
                task.abort();
                return Err(Failure::Cancelled);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panic = threads.block_on(task).err().map_or("a task ended early".into(), |error| error.to_string());
                return Err(SqlError::Internal(panic).into());
            }
        }
    }
}
