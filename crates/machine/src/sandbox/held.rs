//! Folders and files that a process holds as long as it lives, and the clean-up of those whose holder is gone.
//!
//! The kernel releases a lock when its holder ends, however it ends. A clean-up removes nothing whose lock it does not
//! hold, and it removes the lock's file last.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags, open},
    process::{Signal, geteuid},
    time::ClockId,
};

use super::{SANDBOX_PREFIX, is_sandbox, journal, leave_behind, paused};
use crate::{cgroup, fault::Fault, proc::has_signal};

/// Marks a folder as made by Tithe; locked while the process that made it lives.
const LOCK: &str = "tithe-sandbox.lock";

/// Longest content of that file, bytes.
const LOCK_MAX: u64 = 1024;

/// Number of attempts to make a folder that other processes remove at once.
const MAKE_TRIES: u32 = 100;

/// Time that a killed maker gets to disappear once nothing blocks it any more.
const MAKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a removed mount or loop device may still be listed.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a sandbox's folder below `parent`, with its lock taken.
pub(super) fn make_locked(parent: &Path) -> Result<(PathBuf, File), Fault> {
    for _ in 0..MAKE_TRIES {
        let clock = crate::clock::read(ClockId::Realtime) as u32;
        let folder = parent.join(format!("{SANDBOX_PREFIX}{}-{clock:08x}", std::process::id()));
        if let Some(lock) = lock_new(&folder)
            .map_err(|error| Fault::machine(format!("cannot create the sandbox {}", folder.display()), error))?
        {
            return Ok((folder, lock));
        }
    }
    Err(Fault::Machine(format!("cannot create a sandbox in {}: others remove it at once", parent.display())))
}

/// Makes `folder` and takes its lock. `None` if another process was faster: a clean-up removes folders that are empty
/// or whose lock is not held yet.
fn lock_new(folder: &Path) -> io::Result<Option<File>> {
    let made = fs::create_dir(folder).and_then(|()| File::create(folder.join(LOCK)));
    let lock = match made {
        Ok(lock) => lock,
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            // If the parent is missing, another attempt cannot help.
            return if folder.parent().is_some_and(Path::is_dir) { Ok(None) } else { Err(error) };
        }
        Err(error) => return Err(error),
    };
    // A clean-up holds the lock until the file is gone, so a file that still exists is ours.
    let locked = try_lock(&lock).inspect_err(|_| drop(fs::remove_dir_all(folder)))?;
    let is_ours = locked && has_name(&lock)?;
    if is_ours {
        // On a full disk it stays empty, and only a run that makes its sandbox in the same folder removes this one.
        let _ = (&lock).write_all(here().as_bytes());
    }
    Ok(is_ours.then_some(lock))
}

/// Removes this user's sandboxes whose makers are gone: those below `parent`, and all others that left volumes or
/// paused processes behind.
pub fn remove_abandoned(parent: &Path) {
    let mut folders = journal::sandboxes_in_use();
    folders.extend(paused::sandboxes_in_use());
    folders.extend(sandboxes_in(parent));
    remove_all(folders);
}

/// Removes this user's abandoned sandboxes in the folders beside the run folder `run`, if this machine has made them.
pub fn remove_abandoned_beside(run: &Path) {
    let folders = run.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let sandboxes = folders.filter(|folder| is_own(folder)).flat_map(|folder| sandboxes_in(&folder));
    remove_all(sandboxes.filter(|sandbox| is_of_here(sandbox)));
}

/// The sandboxes in `folder`, by absolute paths: the kernel lists mounts by these.
fn sandboxes_in(folder: &Path) -> Vec<PathBuf> {
    let read = folder.canonicalize().and_then(fs::read_dir);
    let entries = read.into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_sandbox(path)).collect()
}

/// This machine, as the locks of its sandboxes name it. Machines that share a folder may not see each other's locks.
fn here() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    format!("{} {}", read("/proc/sys/kernel/hostname"), read("/etc/machine-id"))
}

/// True if this machine has made the sandbox `folder`.
fn is_of_here(folder: &Path) -> bool {
    let mut made_by = String::new();
    let read = its_lock(folder).map(|lock| lock.take(LOCK_MAX).read_to_string(&mut made_by));
    read.is_some_and(|read| read.is_ok()) && made_by == here()
}

fn remove_all(folders: impl IntoIterator<Item = PathBuf>) {
    for folder in folders.into_iter().filter(|folder| is_own(folder)) {
        if let Some(lock) = its_lock(&folder)
            && (try_lock(&lock).unwrap_or(false) || release(&folder, &lock))
        {
            // Volumes are busy until the processes that use them are gone.
            paused::end_abandoned(&folder);
            journal::undo_all(&folder);
            cgroup::remove_abandoned(&folder);
            remove(&folder);
        } else if maker(&folder).is_some() {
            // The maker was killed before its lock existed. This removes only empty folders, and a maker that still
            // lives makes another.
            let _ = fs::remove_dir(&folder);
        }
    }
}

/// True for a folder of this user. In a place where everyone may write, other users can make folders with a sandbox's
/// name, and can replace them by links while they are removed.
fn is_own(folder: &Path) -> bool {
    let user = geteuid().as_raw();
    folder.symlink_metadata().is_ok_and(|seen| seen.is_dir() && seen.uid() == user)
}

/// The lock file in the sandbox `folder`. In a world-writable place any user may make such a folder: so this does not
/// block on special files and does not follow links.
fn its_lock(folder: &Path) -> Option<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = File::from(open(folder.join(LOCK), flags, Mode::empty()).ok()?);
    lock.metadata().is_ok_and(|seen| seen.is_file()).then_some(lock)
}

/// Takes the lock of a sandbox whose maker was killed but cannot end, because it waits for a file system in user space
/// that does not answer. That file system is unmounted by force. False if the maker is alive.
fn release(folder: &Path, lock: &File) -> bool {
    if !maker(folder).is_some_and(is_dying) {
        return false;
    }
    journal::abort_all(folder);
    let deadline = Instant::now() + MAKER_TIMEOUT;
    loop {
        if try_lock(lock).unwrap_or(false) {
            return true;
        }
        if Instant::now() > deadline {
            let folder = folder.display();
            leave_behind(format!(
                "{folder} is left: the process that made it was killed and waits in the kernel for a disk or a file \
                 system"
            ));
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process that made the sandbox `folder`, from the folder's name.
fn maker(folder: &Path) -> Option<i32> {
    let name = folder.file_name()?.to_str()?.strip_prefix(SANDBOX_PREFIX)?;
    name.split_once('-')?.0.parse().ok()
}

/// True for a process that was killed and still has threads.
fn is_dying(process: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).any(|status| is_killed(&status))
}

/// True if the text of a thread's `/proc/…/status` has SIGKILL pending.
fn is_killed(status: &str) -> bool {
    has_signal(status, "SigPnd:", Signal::KILL)
}

/// Removes a sandbox, its lock last, unless something stays mounted in it: then the next run tries again. A detached
/// loop device disappears only with its last reader, so this waits for it. A sandbox in which nothing is mounted is
/// found only by later runs with the same parent folder.
pub(super) fn remove(folder: &Path) {
    let deadline = Instant::now() + REMOVE_TIMEOUT;
    while journal::in_use(folder) {
        if Instant::now() > deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if let Err(error) = remove_but_lock(folder, &remove_any).and_then(|()| fs::remove_dir_all(folder))
        && folder.exists()
    {
        leave_behind(format!("{} with keys and data is left: {error}; remove it", folder.display()));
    }
}

/// Removes everything in the sandbox `folder` but its lock, by `remove`; returns the first error. By its lock the next
/// clean-up recognises the sandbox if this process is killed or something could not be removed.
fn remove_but_lock(folder: &Path, remove: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut removed = Ok(());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != folder.join(LOCK) {
            removed = removed.and(remove(&path));
        }
    }
    removed
}

fn remove_any(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path).or_else(|_| fs::remove_file(path))
}

/// Takes the lock of `file` for as long as the file stays open; `false` if another process has it.
///
/// # Errors
/// The file system keeps no locks, as Lustre and NFS if they are mounted without.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes the file at `path` and takes its lock for as long as it stays open; `None` if another process has it. The
/// previous holder may remove the file before it ends. A lock on a removed file protects nothing, so another file is
/// made then. A link in its place is an error: another user may have put it there.
///
/// # Errors
/// The file cannot be made, locked or checked.
pub fn hold_file(path: &Path) -> io::Result<Option<File>> {
    loop {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::from_raw_mode(0o666))?);
        if !try_lock(&file)? {
            return Ok(None);
        }
        if has_name(&file)? {
            return Ok(Some(file));
        }
    }
}

/// True if `file` was not removed.
fn has_name(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt as _, lchown, symlink},
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
    };

    use rustix::fs::{CWD, FileType, mknodat};

    use super::{
        super::{Sandbox, give, write},
        *,
    };

    /// Without that check, a process that opened the file before it was removed would take a lock that excludes no
    /// other process.
    #[test]
    fn one_holds_a_file_though_every_holder_removes_it() {
        let path = std::env::temp_dir().join(format!("tithe-held-{}", std::process::id()));
        let holding = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let Some(held) = hold_file(&path).expect("a file") else { continue };
                        assert_eq!(holding.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                        assert!(has_name(&held).expect("it is seen"), "another one could be made and held");
                        holding.fetch_sub(1, Ordering::SeqCst);
                        let _ = fs::remove_file(&path);
                        drop(held);
                    }
                });
            }
        });
    }

    #[test]
    fn a_file_that_takes_no_lock_is_not_one_that_another_process_holds() {
        let path = std::env::temp_dir().join(format!("tithe-unlocked-{}", std::process::id()));
        let [mut held, other] = [(); 2].map(|()| File::create(&path).expect("a file"));
        assert_eq!([&held, &other].map(|file| try_lock(file).ok()), [Some(true), Some(false)]);
        // flock(2) refuses a descriptor of a path.
        held = File::from(open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("its path"));
        assert!(try_lock(&held).is_err());
        fs::remove_file(&path).expect("clean up");
    }

    #[test]
    fn a_killed_process_is_told_from_a_living_one() {
        assert!(is_killed("Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n"));
        assert!(!is_killed("SigPnd:\t0000000000004200\nShdPnd:\t0000000000000100\n"));
        assert!(!is_killed("SigPnd:\n") && !is_killed(""));
        assert_eq!(maker(Path::new("/var/tmp/tithe-sandbox-417-1f2e3d4c")), Some(417));
        assert_eq!(maker(Path::new("/var/tmp/tithe-sandbox-mine")), None);
        assert!(!is_dying(std::process::id() as i32));
    }

    #[test]
    fn an_abandoned_sandbox_is_removed_and_a_living_one_is_not() {
        let parent = parent("abandoned");
        let abandoned = parent.join("tithe-sandbox-0-0");
        let foreign = parent.join("tithe-sandbox-mine");
        fs::create_dir_all(&abandoned).expect("folder");
        fs::create_dir_all(&foreign).expect("folder");
        fs::write(abandoned.join(LOCK), "").expect("lock");
        let living = Sandbox::new(&parent).expect("a sandbox");
        let _second = Sandbox::new(&parent).expect("a second sandbox");
        assert!(!abandoned.exists());
        assert!(foreign.exists(), "a folder without Tithe's lock is not Tithe's");
        assert!(living.folder().exists());
        fs::remove_dir_all(&parent).expect("clean up");
    }

    #[test]
    fn sandboxes_that_killed_runs_have_left_go_with_the_next_run_beside_theirs() {
        let parent = parent("beside");
        let left = |run: &str, made_by: &str| {
            let folder = parent.join(run).join("tithe-sandbox-0-0");
            fs::create_dir_all(&folder).expect("folder");
            fs::write(folder.join(LOCK), made_by).expect("lock");
            folder
        };
        let all = [left("1", &here()), left("2", "elsewhere 7"), left("3", ""), left("4", &here())];
        let whole = all[0].canonicalize().expect("a path");
        assert_eq!(sandboxes_in(&parent.join("2/../1")), [whole], "as mounts are listed");
        let held = File::open(all[3].join(LOCK)).expect("a lock");
        assert!(try_lock(&held).expect("locked"));
        remove_abandoned_beside(&parent.join("next"));
        assert_eq!(all.map(|folder| folder.exists()), [false, true, true, true], "of others, unknown, living");
        let (made, _held) = make_locked(&parent).expect("a sandbox");
        assert_eq!(fs::read_to_string(made.join(LOCK)).expect("a text"), here());
        fs::remove_dir_all(&parent).expect("clean up");
    }

    /// A folder for the sandboxes of one test, which every account may enter.
    fn parent(name: &str) -> PathBuf {
        let parent = std::env::temp_dir().join(format!("tithe-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&parent).expect("folder");
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).expect("permissions");
        parent
    }

    #[test]
    fn who_cleans_up_takes_no_sandbox_away_that_is_being_made() {
        let parent = parent("making");
        let makers = AtomicUsize::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let made = (0..300).map(|_| Sandbox::new(&parent));
                    let lost = made.filter(|sandbox| !sandbox.as_ref().is_ok_and(|it| it.folder.join(LOCK).exists()));
                    let lost: Vec<String> =
                        lost.map(|it| it.map_or_else(|it| it.to_string(), |_| "gone".into())).collect();
                    makers.fetch_sub(1, Ordering::SeqCst);
                    assert!(lost.is_empty(), "{lost:?}");
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    while makers.load(Ordering::SeqCst) > 0 {
                        remove_abandoned(&parent);
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&parent).expect("a folder").count(), 0);
        fs::remove_dir(&parent).expect("clean up");
    }

    #[test]
    fn what_is_left_of_a_start_that_was_killed_goes_with_the_next_one() {
        let parent = parent("begun");
        let at = |name: &str| parent.join(format!("tithe-sandbox-{name}"));
        for name in ["417-00000001", "417-00000002", "417-00000003", "mine"] {
            fs::create_dir(at(name)).expect("folder");
        }
        fs::write(at("417-00000002").join(LOCK), "").expect("lock");
        fs::write(at("417-00000003").join("file"), "").expect("file");
        remove_abandoned(&parent);
        let left = ["417-00000001", "417-00000002", "417-00000003", "mine"].map(|name| at(name).exists());
        assert_eq!(left, [false, false, true, true], "what has no lock of Tithe's is not Tithe's");
        fs::remove_dir_all(&parent).expect("clean up");
    }

    #[test]
    fn what_could_not_be_removed_goes_with_the_next_start() {
        let parent = parent("unremoved");
        let folder = parent.join("tithe-sandbox-417-00000001");
        fs::create_dir_all(folder.join("data")).expect("folder");
        fs::write(folder.join("key"), "").expect("file");
        fs::write(folder.join(LOCK), "").expect("lock");
        let most_fail = |path: &Path| match path.ends_with("key") {
            true => fs::remove_file(path),
            false => Err(io::Error::from_raw_os_error(24)),
        };
        let error = remove_but_lock(&folder, &most_fail).expect_err("data is left");
        assert_eq!(error.raw_os_error(), Some(24));
        assert!(folder.join("data").exists() && folder.join(LOCK).exists() && !folder.join("key").exists());
        remove_abandoned(&parent);
        assert!(!folder.exists());
        fs::remove_dir_all(&parent).expect("clean up");
    }

    #[test]
    fn a_sandbox_of_another_user_is_left_alone() {
        if !geteuid().is_root() {
            return;
        }
        let parent = parent("others");
        let [theirs, own] = ["tithe-sandbox-417-1", "tithe-sandbox-417-2"].map(|name| parent.join(name));
        for folder in [&theirs, &own] {
            fs::create_dir(folder).expect("folder");
            fs::write(folder.join(LOCK), "").expect("lock");
        }
        lchown(&theirs, Some(65534), Some(65534)).expect("root gives it away");
        remove_abandoned(&parent);
        assert!(theirs.exists() && !own.exists());
        fs::remove_dir_all(&parent).expect("clean up");
    }

    #[test]
    fn a_link_in_place_of_a_file_is_not_followed() {
        let parent = parent("links");
        let [victim, link, folder] = ["victim", "link", "folder"].map(|name| parent.join(name));
        fs::write(&victim, "kept").expect("written");
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o644)).expect("a mode");
        symlink(&victim, &link).expect("a link");
        assert!(hold_file(&link).is_err());
        assert!(write(&link, b"lost", 0o600, None).is_err());
        fs::create_dir(&folder).expect("folder");
        symlink(&parent, folder.join("up")).expect("a link");
        give(&folder, None).expect("given");
        let mode = fs::metadata(&victim).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((fs::read_to_string(&victim).expect("read"), mode), ("kept".to_owned(), 0o644));
        fs::remove_dir_all(&parent).expect("clean up");
    }

    #[test]
    fn a_lock_that_is_no_file_is_not_waited_for() {
        let parent = parent("pipe");
        let folder = parent.join("tithe-sandbox-1-1");
        fs::create_dir(&folder).expect("folder");
        mknodat(CWD, folder.join(LOCK), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        let (over, is_over) = mpsc::channel();
        let below = parent.clone();
        std::thread::spawn(move || {
            remove_abandoned(&below);
            let _ = over.send(());
        });
        assert!(is_over.recv_timeout(Duration::from_secs(60)).is_ok(), "it waits for the other end of a pipe");
        assert!(folder.exists());
        fs::remove_dir_all(&parent).expect("clean up");
    }
}
