//! The end of the process: its database and device are closed.

use warpcube_gpu::Device;
use warpcube_sql::Database;

/// Closes a database before the process ends: its device, and what compiles for it.
pub fn close(database: &Database) {
    let device = database.device().close();
    // Abandoned statements may still run: the closed device starts no compiler for them, which `exit` would destroy.
    device.iter().for_each(Device::close);
    database.close();
    // The driver frees the memory of an ended process sooner than the process could. The handle is leaked, so that no
    // thread drops the last one while the process ends.
    std::mem::forget(device);
}
