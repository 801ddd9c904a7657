//! Records what volumes and encrypted swap create outside of their sandbox's folder, before it is created, and undoes
//! it.
//!
//! A sandbox that ended without a clean-up leaves mounts, loop devices and mappings behind. The next start finds them
//! in the kernel's own lists and undoes them, but only those that the sandbox's journal names *and* that lie inside
//! that sandbox: a mount point in its folder, a loop device of an image in its folder, a mapping over such a loop
//! device, swap on such a mapping.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::Write,
    path::{Component, Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::mounts;
use crate::{
    fault::Fault,
    launch::Command,
    sandbox::{
        is_sandbox, leave_behind,
        process::{self, Running},
    },
};

/// File in the sandbox's folder: one [`JournalEntry`] per line, as JSON.
const FILE: &str = "volumes.jsonl";

/// Time that a file system may stay busy while its servers end.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An object that outlives the process that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "kebab-case", deny_unknown_fields)]
pub enum JournalEntry {
    /// A loop device.
    Loop {
        /// The file behind it.
        image: PathBuf,
    },
    /// A mapping of the device mapper over a loop device.
    Mapping {
        /// Its name below `/dev/mapper`.
        name: String,
        /// The file behind the loop device.
        image: PathBuf,
    },
    /// Swap in use on such a mapping.
    Swap {
        /// The mapping's name.
        name: String,
        /// The file behind the loop device.
        image: PathBuf,
    },
    /// A mounted file system.
    Mount {
        /// Where.
        at: PathBuf,
    },
}

impl JournalEntry {
    /// With its path as `change` makes it.
    fn moved(self, change: impl Fn(&Path) -> PathBuf) -> Self {
        match self {
            Self::Loop { image } => Self::Loop { image: change(&image) },
            Self::Mapping { name, image } => Self::Mapping { name, image: change(&image) },
            Self::Swap { name, image } => Self::Swap { name, image: change(&image) },
            Self::Mount { at } => Self::Mount { at: change(&at) },
        }
    }

    /// As it stands in the journal of `sandbox`: by its path within, so that a sandbox that was moved is cleaned up.
    fn within(&self, sandbox: &Path) -> Self {
        self.clone().moved(|path| path.strip_prefix(sandbox).unwrap_or(path).to_owned())
    }
}

/// The journal of one sandbox, open for one volume; when dropped, it undoes everything that it noted.
pub struct Journal {
    file: File,
    sandbox: PathBuf,
    made: Vec<JournalEntry>,
    /// Programs that serve a mount, by mount point.
    serving: Vec<(PathBuf, Running)>,
}

impl Journal {
    /// The journal of the sandbox at `sandbox`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(sandbox: &Path) -> Result<Self, Fault> {
        let path = sandbox.join(FILE);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|error| Fault::machine(path.display(), error))?;
        Ok(Self { file, sandbox: sandbox.to_owned(), made: Vec::new(), serving: Vec::new() })
    }

    /// Notes that `made` is about to be made. The entry is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written: then `made` must not be made.
    pub fn note(&mut self, made: JournalEntry) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::machine("cannot write the journal of volumes", error);
        let line = serde_json::to_string(&made.within(&self.sandbox)).map_err(|error| failed(error.into()))?;
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        self.made.push(made);
        Ok(())
    }

    /// Takes over the program that serves the mount at `at`. It is ended after unmounting, and before the objects below
    /// it are removed.
    pub fn serve(&mut self, at: PathBuf, program: Running) {
        self.serving.push((at, program));
    }

    /// How the program that was taken over last has ended, and its last words; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        self.serving.last_mut().and_then(|(_, program)| program.ended())
    }

    /// The process that serves a mount, if there is one.
    pub fn process(&self) -> Option<i32> {
        self.serving.first().map(|(_, program)| program.process())
    }

    /// Undoes everything noted here, in reverse order.
    pub fn undo(&mut self) {
        let made = std::mem::take(&mut self.made);
        wake_all(&self.sandbox, &made);
        for made in made.iter().rev() {
            undo_one(&self.sandbox, made);
            self.serving.retain(|(served, _)| !matches!(made, JournalEntry::Mount { at } if at == served));
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.undo();
    }
}

/// Undoes everything that the journal of the sandbox at `sandbox` names.
pub fn undo_all(sandbox: &Path) {
    let text = std::fs::read_to_string(sandbox.join(FILE)).unwrap_or_default();
    undo(sandbox, &parse(sandbox, &text));
}

/// The entries of the journal of `sandbox`, as it is called now. The last line may be torn; its object was then never
/// made.
fn parse(sandbox: &Path, text: &str) -> Vec<JournalEntry> {
    let read = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    read.map(|made: JournalEntry| made.moved(|path| sandbox.join(path))).collect()
}

/// Undoes all existing objects of `made` inside `sandbox`, in reverse order, after waking suspended mappings. If an
/// object cannot be undone, it stays, and the sandbox with it: see [`in_use`].
fn undo(sandbox: &Path, made: &[JournalEntry]) {
    wake_all(sandbox, made);
    made.iter().rev().for_each(|made| undo_one(sandbox, made));
}

fn wake_all(sandbox: &Path, made: &[JournalEntry]) {
    for made in made {
        if let JournalEntry::Mapping { name, image } = made
            && inside(sandbox, image)
        {
            wake(name, image);
        }
    }
}

fn undo_one(sandbox: &Path, made: &JournalEntry) {
    match made {
        JournalEntry::Mount { at } if inside(sandbox, at) => unmount(at),
        JournalEntry::Swap { name, image } if inside(sandbox, image) => swap_off(name, image),
        JournalEntry::Mapping { name, image } if inside(sandbox, image) => close(name, image),
        JournalEntry::Loop { image } if inside(sandbox, image) => detach(image),
        _ => {}
    }
}

/// Aborts the file systems in user space that the journal of the sandbox at `sandbox` names: every process that waits
/// for one continues with an error.
pub fn abort_all(sandbox: &Path) {
    let text = std::fs::read_to_string(sandbox.join(FILE)).unwrap_or_default();
    for made in parse(sandbox, &text).iter().rev() {
        if let JournalEntry::Mount { at } = made
            && inside(sandbox, at)
        {
            // This fails as busy, because the file system is in use; it is only needed to release the waiting
            // processes.
            let _ = mounts::unmount(at, false);
        }
    }
}

/// True for a path below `sandbox` without `.` or `..`.
fn inside(sandbox: &Path, path: &Path) -> bool {
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    is_sandbox(sandbox) && plain(path) && path != sandbox && path.starts_with(sandbox)
}

/// Unmounts everything at `at`. If it stays busy, it is detached lazily and disappears with its last user.
fn unmount(at: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    while mounts::mount_points().iter().any(|point| point == at) {
        let late = Instant::now() > deadline;
        match mounts::unmount(at, late) {
            Err(error) if late => return leave_behind(format!("{} stays mounted: {error}", at.display())),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            Ok(()) => {}
        }
    }
}

/// The mappings over a loop device of `image`: the one called `name`, and those that cryptsetup puts below it while it
/// re-encrypts, called `NAME-overlay` and similar.
fn standing(name: &str, image: &Path) -> Vec<mounts::Mapping> {
    let loops: Vec<_> = mounts::loops().into_iter().filter(|device| device.image == image).collect();
    let loops: Vec<&str> = loops.iter().filter_map(|device| device.device.file_name()?.to_str()).collect();
    let all = mounts::mappings();
    let called = |found: &str| found.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let ours = |mapping: &&mounts::Mapping| called(&mapping.name) && mounts::stands_on(&mapping.device, &loops, &all);
    all.iter().filter(ours).cloned().collect()
}

/// Resumes mappings that cryptsetup had suspended when it was killed: unmounting a file system on a suspended mapping
/// would block for ever.
fn wake(name: &str, image: &Path) {
    for mapping in standing(name, image).iter().filter(|mapping| mapping.suspended) {
        tool("dmsetup", &["resume", &mapping.name]);
    }
}

fn swap_off(name: &str, image: &Path) {
    if !standing(name, image).is_empty() {
        // Fails if swap was never switched on. If memory is too short for it, the mapping stays and is reported.
        tool("swapoff", &[&format!("/dev/mapper/{name}")]);
    }
}

/// Closes the mapping called `name`, and with it those that cryptsetup has put below it.
fn close(name: &str, image: &Path) {
    if !standing(name, image).is_empty() {
        tool("cryptsetup", &["close", name]);
    }
}

fn detach(image: &Path) {
    for device in mounts::loops().into_iter().filter(|device| device.image == image) {
        tool("losetup", &["--detach", &device.device.display().to_string()]);
    }
}

/// Runs a tool. Failures are ignored: the object that stays is detected later.
fn tool(program: &str, arguments: &[&str]) {
    let Some(program) = super::tools::tool(program) else { return };
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let _ = process::run(&Command { program, arguments, ..Command::default() }, None, Path::new("/"));
}

/// All folders with the name of a sandbox that have mounts or loop devices inside, anywhere on the machine.
pub fn sandboxes_in_use() -> BTreeSet<PathBuf> {
    let points = mounts::mount_points().into_iter();
    let images = mounts::loops().into_iter().map(|device| device.image);
    points.chain(images).filter_map(|path| path.ancestors().find(|path| is_sandbox(path)).map(Path::to_owned)).collect()
}

/// True while something is mounted or looped inside `sandbox`: removing its files could then remove files of a mount.
pub fn in_use(sandbox: &Path) -> bool {
    sandboxes_in_use().contains(sandbox)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_journal_is_lines_of_json() {
        let made = [
            JournalEntry::Loop { image: "/s/tithe-sandbox-1/01-a.img".into() },
            JournalEntry::Mapping { name: "tithe-1-01".to_owned(), image: "/s/tithe-sandbox-1/01-a.img".into() },
            JournalEntry::Swap { name: "tithe-1-01".to_owned(), image: "/s/tithe-sandbox-1/01-a.img".into() },
            JournalEntry::Mount { at: "/s/tithe-sandbox-1/01-a".into() },
        ];
        let sandbox = Path::new("/s/tithe-sandbox-1");
        let lines = made.iter().map(|made| serde_json::to_string(&made.within(sandbox)).expect("JSON"));
        let lines: Vec<String> = lines.collect();
        let text = lines.join("\n");
        expect![[r#"
            {"made":"loop","image":"01-a.img"}
            {"made":"mapping","name":"tithe-1-01","image":"01-a.img"}
            {"made":"swap","name":"tithe-1-01","image":"01-a.img"}
            {"made":"mount","at":"01-a"}"#]]
        .assert_eq(&text);
        assert_eq!(parse(sandbox, &text), made);
        assert_eq!(parse(sandbox, &text[..text.len() - 4]), made[..3], "a torn line was not made");
        let moved = parse(Path::new("/t/tithe-sandbox-1"), &text);
        assert_eq!(moved[3], JournalEntry::Mount { at: "/t/tithe-sandbox-1/01-a".into() }, "its folder was moved");
        let elsewhere = JournalEntry::Mount { at: "/home".into() };
        assert!(!inside(sandbox, Path::new("/home")) && elsewhere.within(sandbox) == elsewhere);
    }

    #[test]
    fn only_what_lies_inside_a_sandbox_is_ever_undone() {
        let sandbox = Path::new("/var/tmp/tithe-sandbox-1-2");
        assert!(inside(sandbox, Path::new("/var/tmp/tithe-sandbox-1-2/01-plain")));
        for path in [
            "/",
            "/var/tmp",
            "/var/tmp/tithe-sandbox-1-2",
            "/var/tmp/tithe-sandbox-1-2/../other",
            "/var/tmp/tithe-sandbox-1-23/x",
            "tithe-sandbox-1-2/x",
        ] {
            assert!(!inside(sandbox, Path::new(path)), "{path}");
        }
        assert!(!inside(Path::new("/home"), Path::new("/home/x")), "a folder that is not a sandbox");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\{\"made\":\"mount\",\"at\":\"|\"\\}|[ -~\\n])*") {
            prop_assert!(parse(Path::new("/s/tithe-sandbox-1"), &text).len() <= text.lines().count());
        }
    }
}
