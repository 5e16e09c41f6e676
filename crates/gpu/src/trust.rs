//! Trust in files that run as code.
//!
//! Libraries and compiled kernels are loaded only from files that no other unprivileged user can change. A path is
//! *trusted* if, with all links followed, the file and each folder above it belong to root or to the effective user,
//! and no other user may write them. A folder with the sticky bit, such as `/tmp`, may be writable: other users cannot
//! replace files there. Write access of two groups is accepted: root's own group without further members, and the
//! user's private group, which has the user's name, is the user's primary group and has no other member (distributions
//! create one for each user). The tables of this machine may not list all members of other groups. Write access by an
//! access control list is refused.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

const ROOT: u32 = 0;
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The path with all links followed, if it is trusted; otherwise the file or folder and its fault.
pub(crate) fn trusted(path: &Path) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    for part in real.ancestors() {
        let metadata = fs::symlink_metadata(part).map_err(|error| format!("{}: {error}", part.display()))?;
        let group_is_own = || !has_access_list(part) && is_own_group(metadata.gid());
        let facts = (metadata.uid(), metadata.mode(), metadata.is_dir());
        if let Some(fault) = fault(facts, effective_user(), group_is_own) {
            return Err(format!("{} {fault}", part.display()));
        }
    }
    Ok(real)
}

/// Creates the folder if it is missing. Refuses a folder that is not trusted, belongs to another user or is writable by
/// a group: its files were written by this user alone.
///
/// # Errors
/// The folder and its fault.
pub fn private_folder(folder: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    make_folder(folder).map_err(failed)?;
    let real = trusted(folder)?;
    match is_own(&fs::metadata(&real).map_err(failed)?) {
        true => Ok(()),
        false => Err(format!("{} is not this user's alone: others may write there, or it is theirs", real.display())),
    }
}

/// Creates a folder, and missing ones above it, for this user alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// True if a file exists, belongs to this user and is not writable by others; its folder is not checked.
pub(crate) fn is_own_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && is_own(&metadata))
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == effective_user() && metadata.mode() & (GROUP_WRITES | OTHERS_WRITE) == 0
}

/// Writes a new file for this user alone.
pub(crate) fn write_new(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    content.iter().try_for_each(|part| file.write_all(part))
}

/// Writes a file under a temporary name and renames it to `path`, so that no reader sees a part.
pub(crate) fn publish(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let unfinished = temporary(path, "tmp");
    write_new(&unfinished, content)?;
    fs::rename(unfinished, path)
}

/// A name in the folder of `target` that no other thread or process uses or has used. Processes of containers share the
/// same few numbers, so the name has a random one too.
pub(crate) fn temporary(target: &Path, extension: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static RANDOM: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    target.with_extension(format!("{}-{:016x}-{count}.{extension}", std::process::id(), *RANDOM))
}

/// Deletes files that ended processes left under [`temporary`] names with the extension `tmp`: files of this user,
/// last written `age` ago. Only the first call of a process for a folder has an effect.
pub(crate) fn sweep(folder: &Path, age: Duration) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SWEPT.lock().insert(folder.to_path_buf()) {
        return;
    }
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_temporary = |path: &Path| {
        let numbers = path.file_stem().map(Path::new).and_then(Path::extension).and_then(OsStr::to_str);
        let has_numbers = numbers.is_some_and(|numbers| numbers.contains('-') && numbers.split('-').all(is_number));
        path.extension() == Some(OsStr::new("tmp")) && has_numbers
    };
    let is_old = |path: &Path| {
        let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
        written.ok().and_then(|written| written.elapsed().ok()).is_some_and(|elapsed| elapsed >= age)
    };
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if is_temporary(&path) && is_own_file(&path) && is_old(&path) {
            _ = fs::remove_file(&path);
        }
    }
}

/// The reason why another unprivileged user could change a file of this owner and mode, if there is one.
fn fault((owner, mode, is_folder): (u32, u32, bool), user: u32, group_is_own: impl FnOnce() -> bool) -> Option<String> {
    if owner != ROOT && owner != user {
        return Some(format!("belongs to user {owner}, neither to root nor to user {user} of this process"));
    }
    let sticky = is_folder && mode & STICKY != 0;
    let by_others = mode & OTHERS_WRITE != 0 && !sticky;
    let by_group = mode & GROUP_WRITES != 0 && !sticky && !group_is_own();
    (by_others || by_group).then(|| format!("can be written by others (mode {:03o}): chmod go-w", mode & 0o7777))
}

fn effective_user() -> u32 {
    // SAFETY: the call has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// True if the file has an access control list, whose permissions the mode shows as the group's.
fn has_access_list(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return true };
    // SAFETY: both names end with a zero byte; without room for the value the call gives its size and writes nothing.
    let bytes = unsafe { libc::getxattr(path.as_ptr(), c"system.posix_acl_access".as_ptr(), std::ptr::null_mut(), 0) };
    bytes > 0
}

fn is_own_group(group: u32) -> bool {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    is_private(group, effective_user(), &text("/etc/group"), &text("/etc/passwd"))
}

/// True if the system's tables of groups and users list a group as root's or as the user's private one, without another
/// member. Accounts with root's group as primary group are system accounts.
fn is_private(group: u32, user: u32, groups: &str, users: &str) -> bool {
    let rows = |text: &str| text.lines().map(|line| line.split(':').map(String::from).collect()).collect();
    let (groups, users): (Vec<Vec<String>>, Vec<Vec<String>>) = (rows(groups), rows(users));
    let is = |row: &[String], field: usize, id: u32| row.get(field).and_then(|field| field.parse().ok()) == Some(id);
    let owner = if group == ROOT { ROOT } else { user };
    let Some(own) = users.iter().find(|row| is(row, 2, owner) && is(row, 3, group)) else { return false };
    let is_owner = |name: &str| name == own[0];
    let holds_owner_alone = |row: &&Vec<String>| {
        let members = row.get(3).map_or("", String::as_str);
        is_owner(&row[0]) && members.split(',').all(|name| name.is_empty() || name == "root" || is_owner(name))
    };
    let mut named = groups.iter().filter(|row| is(row, 2, group)).peekable();
    let mut first_in_it = users.iter().filter(|row| is(row, 3, group));
    let is_alone = group == ROOT || first_in_it.all(|row| is(row, 2, user) || is(row, 2, ROOT));
    is_alone && named.peek().is_some() && named.all(|row| holds_owner_alone(&row))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn owners_and_modes_that_others_could_use() {
        let judged = |owner, mode, is_folder, group_is_own| fault((owner, mode, is_folder), 1000, || group_is_own);
        for (owner, mode, is_folder) in [(0, 0o755, true), (1000, 0o644, false), (0, 0o1777, true), (1000, 0o700, true)]
        {
            assert_eq!(judged(owner, mode, is_folder, false), None, "{owner} {mode:o}");
        }
        let foreign = judged(1001, 0o600, false, true).unwrap();
        assert!(foreign.contains("belongs to user 1001, neither to root nor to user 1000"), "{foreign}");
        for (mode, is_folder) in [(0o777, true), (0o757, true), (0o666, false), (0o1666, false), (0o775, true)] {
            assert!(judged(1000, mode, is_folder, false).is_some_and(|fault| fault.contains("chmod go-w")), "{mode:o}");
        }
        assert_eq!(judged(1000, 0o775, true, true), None);
        assert!(judged(1000, 0o777, true, true).is_some());
    }

    #[test]
    fn only_groups_of_root_and_of_the_user_alone_are_accepted() {
        let groups = "root:x:0:\nada:x:1000:\nstaff:x:50:\nteam:x:60:ada,ben\nown:x:61:ada,root\nben:x:1001:\n";
        let users = "root:x:0:0::/:\noperator:x:11:0::/:\nada:x:1000:1000::/:\nben:x:1001:1001::/:\n";
        // A directory server may list members of `staff`.
        for (group, expected) in [(0, true), (1000, true), (50, false), (60, false), (61, false), (99, false)] {
            assert_eq!(is_private(group, 1000, groups, users), expected, "{group}");
        }
        assert!(!is_private(1000, 1001, groups, users) && !is_private(1001, 1000, groups, users));
        // A user of a directory server, whose primary group is one of this machine.
        assert!(!is_private(50, 2000, groups, users) && is_private(0, 2000, groups, users));
        let with = |row: &str, user: &str| is_private(1000, 1000, &format!("{groups}{row}"), &format!("{users}{user}"));
        assert!(with("", "") && with("ada:x:1000:ada,root\n", "ada:x:1000:1000::/:\n"));
        assert!(!with("ada:x:1000:ben\n", "") && !with("other:x:1000:\n", "") && !with("", "eve:x:1002:1000::/:\n"));
        assert!(!is_private(0, 1000, &groups.replace("root:x:0:", "root:x:0:ben"), users));
        let renamed = users.replace("ada", "ann");
        assert!(
            !is_private(1000, 1000, groups, &renamed) && !is_private(1000, 1000, "", "") && !is_private(0, 0, "", "")
        );
    }

    #[test]
    fn a_file_is_as_trusted_as_the_folders_above_it() {
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/inner"));
        make_folder(&inner).unwrap();
        let (file, link) = (inner.join("library"), folder.path().join("link"));
        write_new(&file, &[b"two ", b"parts"]).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two parts");
        assert!(write_new(&file, &[]).is_err(), "an existing file is not overwritten");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let real = file.canonicalize().unwrap();
        assert_eq!((trusted(&file), trusted(&link)), (Ok(real.clone()), Ok(real)));
        assert!(is_own_file(&file) && !is_own_file(&link) && !is_own_file(&inner));

        for (part, open) in [(&file, 0o646), (&inner, 0o757), (&outer, 0o707)] {
            let before = fs::metadata(part).unwrap().mode();
            mode(part, open);
            for path in [&file, &link] {
                let reason = trusted(path).unwrap_err();
                assert!(reason.contains(&format!("{} can be written", part.display())), "{reason}");
            }
            mode(part, before);
        }
        assert!(private_folder(&inner).is_ok() && trusted(&folder.path().join("none")).is_err());
        mode(&outer, 0o707);
        assert!(private_folder(&inner).is_err_and(|reason| reason.contains("outer can be written")));
        mode(&outer, 0o1707);
        assert!(private_folder(&inner).is_ok());
        // Other users may add files to the outer folder.
        assert!(private_folder(&outer).is_err_and(|reason| reason.contains("others may write there")));
        mode(&file, 0o664);
        assert!(!is_own_file(&file));
    }

    #[test]
    fn names_of_temporary_files_differ() {
        let target = Path::new("/folder/kernel.cubin");
        let (one, other) = (temporary(target, "tmp"), temporary(target, "tmp"));
        assert!(one != other && one.parent() == target.parent(), "{} {}", one.display(), other.display());
        // Names of an ended process with the same number.
        let before = |count| target.with_extension(format!("{}-{count}.tmp", std::process::id()));
        assert!((0..1000).all(|count| before(count) != one && before(count) != other));
    }

    #[test]
    fn temporary_files_of_ended_processes_are_deleted_once_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let names = ["a.1-0.tmp", "kernel.cubin", "a.1-0.so", "1-0.tmp.cubin", "notes.tmp", "a-b.x-y.tmp"];
        let left = temporary(&place("b.cubin"), "tmp");
        names.map(place).iter().chain([&left]).for_each(|path| write_new(path, &[b"text"]).unwrap());
        let count = || fs::read_dir(folder.path()).unwrap().count();
        sweep(folder.path(), Duration::from_secs(3600));
        assert_eq!(count(), names.len() + 1, "all are new");
        sweep(folder.path(), Duration::ZERO);
        assert_eq!(count(), names.len() + 1, "a folder is swept once");
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        sweep(&link, Duration::ZERO);
        let mut found: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, ["1-0.tmp.cubin", "a-b.x-y.tmp", "a.1-0.so", "kernel.cubin", "notes.tmp"]);
    }
}
