//! What a database has on its device, and what is under way there.

use warpcube_gpu::Device;

use super::Database;
use crate::device::DeviceSlot;
use crate::device_tables::DeviceTable;
use crate::values::Placement;

impl Database {
    /// The database's device.
    pub fn device(&self) -> &DeviceSlot {
        &self.shared.device
    }

    /// Opens the device in the background, where there seems to be one, it is not open and the placement that
    /// connections begin with may use it: for programs that go on to run statements, and are idle now. No statement
    /// waits for it that does not use it. [`DeviceSlot::close`] waits for the thread.
    pub fn open_device_in_background(&self) {
        if matches!(self.shared.start.settings.placement, Placement::Auto | Placement::Cuda)
            && self.shared.device.may_open()
        {
            let device = self.shared.device.clone();
            // Without a thread the first statement that uses the device opens it.
            _ = std::thread::Builder::new().name("open".into()).spawn(move || device.get());
        }
    }

    /// Waits until nothing is under way beside the statements: columns that come to the device, kernels that are
    /// compiled; whether columns were coming. Blocks.
    pub fn settle(&self) -> bool {
        let came = self.shared.planner.background().wait();
        if let Some(device) = self.open_device() {
            device.settle();
        }
        came
    }

    /// Stops loads that are under way beside the statements, and waits until they have ended and what is being compiled
    /// is: a process that ends while something is compiled would take the compiler apart under its own hands. Removes
    /// the places of files elsewhere. Blocks.
    pub fn close(&self) {
        self.shared.planner.background().close();
        if let Some(device) = self.open_device() {
            device.cancel_waiting();
        }
        self.settle();
        self.shared.mirror.close();
    }

    /// The device, if it is open.
    fn open_device(&self) -> Option<Device> {
        let device = &self.shared.device;
        device.is_open().then(|| device.get()).flatten()
    }

    /// What is in device memory, as `SHOW DEVICE TABLES` tells it.
    pub fn resident_tables(&self) -> Vec<DeviceTable> {
        self.shared.tables.show()
    }
}
