//! The lock of a cube folder: one holder at a time may change the cube.
//!
//! The lock is the system's lock on the file `lock`, which ends with the process. The file names the holder, for the
//! message to others; it is empty while the cube is not held.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{Result, StoreError};
use super::folder::{LOCK_NAME, MANIFEST_NAME};
use super::holder::{Holder, now};
use super::record;

/// Bytes of a holder's name at most.
const HOLDER_BYTES_MAX: u64 = 256;
/// Attempts to take the lock while the file names no holder, so long as a holder may take to write its name or to end.
const ATTEMPTS: u32 = 20;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The exclusive right to change a cube, until it is dropped.
#[derive(Debug)]
pub struct CubeLock {
    folder: PathBuf,
    file: File,
}

impl CubeLock {
    /// Takes the lock of a cube folder, if no other holds it.
    ///
    /// # Errors
    /// [`StoreError::Locked`] names the process that holds it; [`StoreError::NoCube`], [`StoreError::Io`].
    pub fn lock(folder: &Path) -> Result<CubeLock> {
        CubeLock::wait(folder, &mut |_| false)
    }

    /// Takes the lock of a cube folder. While another process holds it, which is named if it has written its name,
    /// `waits` is asked again and again whether to wait on, some milliseconds each time.
    ///
    /// # Errors
    /// As [`CubeLock::lock`], once `waits` says false.
    pub fn wait(folder: &Path, waits: &mut dyn FnMut(Option<&Holder>) -> bool) -> Result<CubeLock> {
        let is_there = match folder.join(MANIFEST_NAME).try_exists() {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
            tried => tried.map_err(StoreError::io(folder, "read"))?,
        };
        if !is_there {
            return Err(StoreError::no_cube(folder));
        }
        let held = CubeLock::lock_folder(folder, LOCK_NAME, waits)?;
        record::finish(folder)?;
        Ok(held)
    }

    /// Takes the lock of the file of that name in a folder with or without a cube.
    ///
    /// # Errors
    /// As [`CubeLock::lock`], but for [`StoreError::NoCube`].
    pub fn lock_folder(folder: &Path, name: &str, waits: &mut dyn FnMut(Option<&Holder>) -> bool) -> Result<CubeLock> {
        let path = folder.join(name);
        let io = |action| StoreError::io(&path, action);
        let mut file = loop {
            let opened = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
            let mut file = opened.map_err(io("opened"))?;
            take(&mut file, folder, &path, waits)?;
            // A creation that was given up removes its lock; who waited for it has a file without a name.
            let number = |of: fs::Metadata| (of.dev(), of.ino());
            let own = number(file.metadata().map_err(io("read"))?);
            if fs::metadata(&path).is_ok_and(|found| number(found) == own) {
                break file;
            }
        };
        let holder = Holder { pid: std::process::id(), since: now() };
        let text = serde_json::to_vec(&holder).expect("a holder has two numbers");
        // A crash may have left the name of another holder.
        let named = file.set_len(0).and_then(|()| file.write_all(&text));
        named.map_err(io("written"))?;
        Ok(CubeLock { folder: folder.to_path_buf(), file })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for CubeLock {
    fn drop(&mut self) {
        // The name serves messages only.
        let _ = self.file.set_len(0);
        // Closing alone does not end the lock while a process that was just forked has a copy of the file.
        let _ = self.file.unlock();
    }
}

/// Takes the lock; while another process has it, as long as `waits` says so.
fn take(file: &mut File, folder: &Path, path: &Path, waits: &mut dyn FnMut(Option<&Holder>) -> bool) -> Result<()> {
    let mut unnamed = 0;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(StoreError::io(path, "locked")(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let holder = read_holder(file).map_err(StoreError::io(path, "read"))?;
        unnamed = if holder.is_none() { unnamed + 1 } else { 0 };
        if (holder.is_some() || unnamed > ATTEMPTS) && !waits(holder.as_ref()) {
            return Err(StoreError::Locked { folder: folder.to_path_buf(), holder });
        }
        std::thread::sleep(PAUSE);
    }
}

/// The holder that the file names.
fn read_holder(file: &mut File) -> io::Result<Option<Holder>> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(HOLDER_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).ok())
}
