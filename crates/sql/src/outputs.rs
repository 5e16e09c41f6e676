//! Files that statements and the program write: what a path stands for, and the hidden folders that outputs are in
//! until they are whole.
//!
//! A link is followed. A pipe, a device or an open file of this process is written as it is. A plain file is written in
//! a hidden folder ([`MarkedFolder`]) beside its place and takes the place at the end, with the mode of the file that
//! was there and, where the system lets it, its owner.
//!
//! [`remove_all`] removes the hidden folders of a process that ends. Those of a process that was killed are removed by
//! the next one that writes in the same folder.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use warpcube_palo::catalog::{MarkedFolder, check_output};

/// Links that are followed at most, as by Linux.
const LINKS_MAX: usize = 40;
/// The mode of files where there was none before, less what the umask takes away.
const MODE_NEW: u32 = 0o666;
/// The bits of a mode that a new file takes over from the one before it.
const MODE_KEPT: u32 = 0o777;
/// Bytes that are written between two looks at whether to go on.
const PART_BYTES: u64 = 1 << 20;
/// Open files of this process, by number.
const OPEN_FILES: &str = "/proc/self/fd";

/// The hidden folders of this process, with the folders that it made around each, innermost first.
static HIDDEN: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
/// Folders in which this process has removed the hidden folders of processes that were killed.
static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What a path stands for once its links are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A plain file, or nothing as yet.
    File(PathBuf),
    /// A folder.
    Folder(PathBuf),
    /// A pipe, a device or an open file of this process: it has no place that another file could take.
    Special(PathBuf),
}

impl Destination {
    /// Follows the links of a path.
    ///
    /// # Errors
    /// Whatever the operating system says about the path other than that there is nothing; a place in the folder of a
    /// cube or over a file of a database of cubes.
    pub fn of(path: &Path) -> io::Result<Destination> {
        let destination = Destination::behind(path)?;
        if let Destination::File(place) | Destination::Folder(place) = &destination {
            check_place(place)?;
        }
        Ok(destination)
    }

    fn behind(path: &Path) -> io::Result<Destination> {
        let mut at = std::path::absolute(path)?;
        for _ in 0..LINKS_MAX {
            if open_file(&at).is_some() {
                return Ok(Destination::Special(at));
            }
            let found = match fs::symlink_metadata(&at) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Destination::File(at)),
                Err(error) => return Err(error),
            };
            let kind = found.file_type();
            if !kind.is_symlink() {
                return Ok(match (kind.is_file(), kind.is_dir()) {
                    (true, _) => Destination::File(at),
                    (_, true) => Destination::Folder(at),
                    _ => Destination::Special(at),
                });
            }
            let target = fs::read_link(&at)?;
            at = at.parent().unwrap_or(&at).join(target);
        }
        Err(io::Error::other("too many links"))
    }
}

/// Refuses a place where a file would damage a cube.
///
/// # Errors
/// The cube or the database of cubes, by name.
pub(crate) fn check_place(place: &Path) -> io::Result<()> {
    check_output(place).map_err(|error| io::Error::other(error.to_string()))
}

/// The number of the open file of this process that a path names.
fn open_file(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(path.parent()?).ok()?;
    (folder == fs::canonicalize(OPEN_FILES).ok()?).then_some(number)
}

/// Opens what is no plain file, for writing behind what is there.
///
/// # Errors
/// Whatever the operating system says.
pub fn open_special(path: &Path) -> io::Result<File> {
    // The standard output and error are shared with the parent process, with their offsets in a file.
    match open_file(path) {
        Some(1) => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some(2) => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        Some(_) => File::options().append(true).open(path),
        None => File::options().write(true).open(path),
    }
}

/// A file or a folder of files within a hidden folder, which is removed when this is dropped.
#[derive(Debug)]
pub struct Hidden {
    folder: MarkedFolder,
    path: PathBuf,
}

impl Hidden {
    /// A new file beside `place`, which it is to take, with the mode of the file that is there.
    ///
    /// # Errors
    /// Whatever the operating system says: the folder, or the file that is there, cannot be written.
    pub fn file(place: &Path) -> io::Result<(Hidden, File)> {
        let mode = match fs::metadata(place) {
            Ok(found) => {
                // A file that could not be written in its place is not replaced either.
                File::options().write(true).open(place)?;
                found.mode() & MODE_KEPT
            }
            Err(_) => MODE_NEW,
        };
        let name = place.file_name().unwrap_or_default();
        let mut hidden = Hidden::within(&folder_of(place), name, Vec::new())?;
        hidden.path.push(name);
        let file = File::options().write(true).create_new(true).mode(mode).open(&hidden.path)?;
        Ok((hidden, file))
    }

    /// A new folder in `folder` for what is called `name` later; only this user can look into it. Folders that are made
    /// around it go with it, until [`Hidden::keep_folders`].
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn folder(folder: &Path, name: &OsStr) -> io::Result<Hidden> {
        let made: Vec<PathBuf> =
            folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_path_buf).collect();
        let hidden = fs::create_dir_all(folder).and_then(|()| Hidden::within(folder, name, made.clone()));
        hidden.inspect_err(|_| remove_made(&made))
    }

    fn within(folder: &Path, name: &OsStr, made: Vec<PathBuf>) -> io::Result<Hidden> {
        if SWEPT.lock().insert(folder.to_path_buf()) {
            MarkedFolder::remove_left(folder);
        }
        let folder = MarkedFolder::new(folder, name)?;
        HIDDEN.lock().insert(folder.path().to_path_buf(), made);
        Ok(Hidden { path: folder.content(), folder })
    }

    /// Leaves the folders that were made around it, which hold something now.
    pub(crate) fn keep_folders(&self) {
        HIDDEN.lock().insert(self.root().to_path_buf(), Vec::new());
    }

    /// The file, or the folder of files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hidden folder around it.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Gives a whole file its place.
    ///
    /// # Errors
    /// Whatever the operating system says; the place is as it was then.
    pub fn take(self, place: &Path) -> io::Result<()> {
        take_place(&self.path, place)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let made = HIDDEN.lock().remove(self.root());
        self.folder.remove();
        remove_made(&made.unwrap_or_default());
    }
}

/// Removes all hidden folders of this process, when it ends: no thread may be left that writes.
pub fn remove_all() {
    for (path, made) in std::mem::take(&mut *HIDDEN.lock()) {
        // It may be gone already; there is no caller that could act on another error.
        let _ = fs::remove_dir_all(path);
        remove_made(&made);
    }
}

/// Removes folders, innermost first, up to one that holds something.
fn remove_made(made: &[PathBuf]) {
    made.iter().map(fs::remove_dir).take_while(io::Result::is_ok).for_each(drop);
}

/// Moves a whole file to a place, with the mode and the owner of the file that is there, or writes its content to what
/// is no plain file, until it is told to stop.
pub(crate) fn put(file: &Path, place: &Path, is_stopped: impl Fn() -> bool) -> io::Result<()> {
    let Destination::Special(special) = Destination::of(place)? else { return take_place(file, place) };
    let (mut file, mut special) = (File::open(file)?, open_special(&special)?);
    while !is_stopped() && io::copy(&mut (&mut file).take(PART_BYTES), &mut special)? > 0 {}
    Ok(())
}

fn take_place(file: &Path, place: &Path) -> io::Result<()> {
    if let Ok(before) = fs::metadata(place) {
        File::options().write(true).open(place)?;
        let new = fs::metadata(file)?;
        if (new.uid(), new.gid()) != (before.uid(), before.gid()) {
            // Only the superuser changes a file's owner; an owner may give it to a group of the owner's.
            let all = chown(file, Some(before.uid()), Some(before.gid()));
            let _ = all.or_else(|_| chown(file, None, Some(before.gid())));
        }
        fs::set_permissions(file, Permissions::from_mode(before.mode() & MODE_KEPT))?;
    }
    fs::rename(file, place)
}

fn folder_of(place: &Path) -> PathBuf {
    match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_files_folders_and_what_is_neither() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let path = |name: &str| root.join(name);
        fs::write(path("file"), "").unwrap();
        for (name, target) in [
            ("to-file", "file"),
            ("twice", "to-file"),
            ("to-nothing", "sub/../new"),
            ("to-null", "/dev/null"),
            ("to-itself", "to-itself"),
            ("to-output", "/dev/stdout"),
        ] {
            symlink(target, path(name)).unwrap();
        }
        let of = |name: &str| Destination::of(&path(name)).unwrap();
        assert_eq!(of("twice"), Destination::File(path("file")));
        assert_eq!(of("to-nothing"), Destination::File(path("sub/../new")));
        assert_eq!(of("new"), Destination::File(path("new")));
        assert_eq!(of("."), Destination::Folder(root.clone()));
        assert_eq!(of("to-null"), Destination::Special("/dev/null".into()));
        for output in [path("to-output"), "/dev/stdout".into(), "/dev/fd/1".into(), "/proc/self/fd/1".into()] {
            assert!(matches!(Destination::of(&output).unwrap(), Destination::Special(_)), "{}", output.display());
        }
        assert!(Destination::of(&path("to-itself")).is_err());
    }

    #[test]
    fn a_file_keeps_the_mode_of_its_place_and_a_dropped_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x.csv");
        fs::write(&place, "old").unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o640)).unwrap();
        drop(Hidden::file(&place).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let (hidden, mut file) = Hidden::file(&place).unwrap();
        io::Write::write_all(&mut file, b"new").unwrap();
        hidden.take(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"new");
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_that_were_made_for_nothing_go() {
        let folder = tempfile::tempdir().unwrap();
        let (deep, kept) = (folder.path().join("a/b"), folder.path().join("c/d"));
        drop(Hidden::folder(&deep, OsStr::new("x")).unwrap());
        assert!(!folder.path().join("a").exists());
        let hidden = Hidden::folder(&deep, OsStr::new("x")).unwrap();
        fs::write(folder.path().join("a/other"), "").unwrap();
        drop(hidden);
        assert!(folder.path().join("a/other").exists() && !deep.exists());
        let hidden = Hidden::folder(&kept, OsStr::new("x")).unwrap();
        hidden.keep_folders();
        drop(hidden);
        assert!(kept.exists());
    }

    #[test]
    fn what_is_told_to_stop_writes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, vec![7; 3 << 20]).unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let place = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer)));
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            { reader }.read_to_end(&mut all).unwrap();
            all.len()
        });
        let looks = std::cell::Cell::new(0);
        put(&file, &place, || looks.replace(looks.get() + 1) > 0).unwrap();
        drop(writer);
        assert_eq!(reading.join().unwrap(), 1 << 20);
    }
}
