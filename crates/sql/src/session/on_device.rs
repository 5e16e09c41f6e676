//! What a session has on its device, and what is under way there.

use std::sync::Arc;

use warpcube_gpu::Device;

use super::{Inner, Session};
use crate::device::DeviceSlot;
use crate::device_tables::{DeviceTable, DeviceTables};
use crate::values::Placement;

impl Session {
    /// The session's device.
    pub fn device(&self) -> &DeviceSlot {
        &self.inner.device
    }

    /// Opens the session's device in the background, where there seems to be one, it is not open and the placement of
    /// the session may use it: for programs that go on to run statements, and are idle now. No statement waits for it
    /// that does not use it. [`DeviceSlot::close`] waits for the thread.
    pub fn open_device_in_background(&self) {
        if self.settings().placement != Placement::Cpu && self.inner.device.may_open() {
            let session = self.clone();
            // Without a thread the first statement that uses the device opens it.
            _ = std::thread::Builder::new().name("open".into()).spawn(move || session.inner.device.get());
        }
    }

    /// Waits until nothing is under way beside the statements: columns that come to the device, kernels that are
    /// compiled; whether columns were coming. Blocks.
    pub fn settle(&self) -> bool {
        let came = self.inner.planner.background().wait();
        if let Some(device) = self.open_device() {
            device.settle();
        }
        came
    }

    /// Stops loads that are under way beside the statements, and waits until they have ended and what is being compiled
    /// is: a process that ends while something is compiled would take the compiler apart under its own hands. Blocks.
    pub fn close(&self) {
        self.inner.planner.background().close();
        if let Some(device) = self.open_device() {
            device.cancel_waiting();
        }
        self.settle();
    }

    /// The device, if it is open.
    fn open_device(&self) -> Option<Device> {
        let device = &self.inner.device;
        device.is_open().then(|| device.get()).flatten()
    }

    /// Registers what keeps tables in device memory.
    pub fn set_device_tables(&self, tables: Arc<dyn DeviceTables>) {
        *self.inner.device_tables.write() = Some(tables);
    }

    /// What is in device memory, as `SHOW DEVICE TABLES` tells it.
    pub fn resident_tables(&self) -> Vec<DeviceTable> {
        self.device_tables().map_or_else(Vec::new, |tables| tables.show())
    }

    pub(super) fn device_tables(&self) -> Option<Arc<dyn DeviceTables>> {
        self.inner.device_tables.read().clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.planner.background().close();
    }
}
