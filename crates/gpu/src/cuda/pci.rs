//! GPUs of this host by the PCI bus, before their driver has started, which takes a tenth of a second.

use std::fs;
use std::path::Path;

/// Folder in which Linux lists the devices of the bus.
const DEVICES: &str = "/sys/bus/pci/devices";
const NVIDIA: u32 = 0x10de;
/// Display controllers: with a monitor and without.
const CLASSES: [u32; 2] = [0x0300, 0x0302];

/// The architecture (`90` for Hopper) of all NVIDIA GPUs of this host by their device numbers; none if they differ or
/// are unknown. A guess, which the driver confirms.
pub(super) fn architecture() -> Option<u32> {
    architecture_in(Path::new(DEVICES))
}

fn architecture_in(devices: &Path) -> Option<u32> {
    let number = |device: &Path, file: &str| {
        let text = fs::read_to_string(device.join(file)).ok()?;
        u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let mut found = None;
    for device in fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path()) {
        let is_gpu = number(&device, "class").is_some_and(|class| CLASSES.contains(&(class >> 8)));
        if !is_gpu || number(&device, "vendor") != Some(NVIDIA) {
            continue;
        }
        let architecture = of_chip(number(&device, "device")?)?;
        if found.replace(architecture).is_some_and(|before| before != architecture) {
            return None;
        }
    }
    found
}

/// The architecture of a chip by its device number, if it runs the kernels (the PCI ID Repository, vendor 10de).
fn of_chip(number: u32) -> Option<u32> {
    match number >> 8 {
        0x20 => Some(80),
        0x22 | 0x24 | 0x25 => Some(86),
        0x23 => Some(90),
        0x26..=0x28 => Some(89),
        0x29 => Some(100),
        0x2b..=0x2d | 0x2f => Some(120),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_one_kind_have_an_architecture() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str, vendor: &str, device: &str, class: &str| {
            let device_folder = folder.path().join(name);
            fs::create_dir(&device_folder).unwrap();
            for (file, text) in [("vendor", vendor), ("device", device), ("class", class)] {
                fs::write(device_folder.join(file), format!("{text}\n")).unwrap();
            }
        };
        assert_eq!(architecture_in(&folder.path().join("none")), None);
        add("0000:00:00.0", "0x8086", "0x0d57", "0x060000");
        // A switch by NVIDIA, and a display by another vendor.
        add("0000:00:01.0", "0x10de", "0x22a3", "0x068000");
        add("0000:00:02.0", "0x1a03", "0x2000", "0x030000");
        assert_eq!(architecture_in(folder.path()), None);
        add("0000:00:03.0", "0x10de", "0x2335", "0x030200");
        add("0000:00:04.0", "0x10de", "0x2330", "0x030200");
        assert_eq!(architecture_in(folder.path()), Some(90));
        add("0000:00:05.0", "0x10de", "0x2684", "0x030000");
        assert_eq!(architecture_in(folder.path()), None, "an RTX 4090 beside them");
    }
}
