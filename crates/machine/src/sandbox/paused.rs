//! Pauses servers while another one is measured.
//!
//! A server without requests is not idle: it vacuums, flushes pages, compiles its own code. So all its processes are
//! paused (SIGSTOP) and continue (SIGCONT) when it is their server's turn. Signals need no control group and work for
//! processes and threads alike.
//!
//! If Tithe is killed, the paused processes would stay paused for ever: the parent-death signal reaches only the
//! process that Tithe started, and its children notice only when they run. So each process is recorded in the sandbox
//! before it is paused, and the next start kills those of a sandbox whose maker is gone.
//!
//! Not covered: work for a server outside of its processes (kernel threads, the process of a FUSE mount).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Signal, geteuid},
};

use super::is_sandbox;
use crate::{
    fault::Fault,
    proc::{ProcessSnapshot, is_stopped, processes, signal, start_of},
};

/// File in the sandbox's folder: the machine's boot, then one line for each process that may be paused, with its start.
const FILE: &str = "paused-processes";

/// The kernel's name for this boot (random(4)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Number of scans for further processes of a server that is being paused. A process whose parent is already paused
/// starts no others, so each scan but the last goes one generation deeper.
const SCANS: usize = 8;

/// Paused servers; all continue when this is dropped.
pub struct PausedServers {
    journal: File,
    noted: BTreeSet<Member>,
    /// The paused processes of each server, by its main process.
    processes: BTreeMap<i32, Vec<i32>>,
}

/// A process and when it started, in ticks since the machine did: numbers are reused, the pair is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    process: i32,
    start: u64,
}

impl PausedServers {
    /// For servers of the sandbox in `folder`.
    ///
    /// # Errors
    /// When the file cannot be written: then nothing may be paused.
    pub fn new(folder: &Path) -> Result<Self, Fault> {
        let failed = |error| Fault::machine(folder.join(FILE).display(), error);
        let mut journal = File::create(folder.join(FILE)).map_err(failed)?;
        let boot = fs::read_to_string(BOOT).map_err(failed)?;
        journal.write_all(format!("{}\n", boot.trim()).as_bytes()).map_err(failed)?;
        Ok(Self { journal, noted: BTreeSet::new(), processes: BTreeMap::new() })
    }

    /// Pauses the server whose main process is `server`, with all its descendants.
    ///
    /// # Errors
    /// When a process cannot be recorded or the kernel refuses to pause it. The processes paused so far are resumed
    /// like all others.
    pub fn pause(&mut self, server: i32) -> io::Result<()> {
        // Before the first scan, which takes a while: servers without children are paused at once.
        if !self.processes.contains_key(&server) {
            self.pause_one(server, server)?;
        }
        for _ in 0..SCANS {
            let mut found = false;
            for process in ProcessSnapshot::take().tree(server) {
                if !self.processes.get(&server).is_some_and(|paused| paused.contains(&process)) {
                    found |= self.pause_one(server, process)?;
                }
            }
            if !found {
                break;
            }
        }
        Ok(())
    }

    /// False for a process that has ended in the meantime.
    fn pause_one(&mut self, server: i32, process: i32) -> io::Result<bool> {
        let Some(start) = start_of(process) else { return Ok(false) };
        let member = Member { process, start };
        if !self.noted.contains(&member) {
            self.journal.write_all(line(member).as_bytes())?;
            self.noted.insert(member);
        }
        match signal(process, Signal::STOP) {
            Ok(()) => self.processes.entry(server).or_default().push(process),
            Err(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Resumes the server whose main process is `server`; does nothing if it is not paused.
    pub fn resume(&mut self, server: i32) {
        // The main process last: all its children then run already.
        for process in self.processes.remove(&server).into_iter().flatten().rev() {
            // Fails only if the process was killed; then there is nothing to resume.
            let _ = signal(process, Signal::CONT);
        }
    }
}

impl Drop for PausedServers {
    fn drop(&mut self) {
        for server in self.processes.keys().copied().collect::<Vec<i32>>() {
            self.resume(server);
        }
        // No process is paused any more, so a failure leaves only unused entries.
        let _ = self.journal.set_len(0);
    }
}

/// Kills the processes that are still paused in the sandbox `folder`, whose maker is gone.
pub fn end_abandoned(folder: &Path) {
    use std::os::unix::fs::MetadataExt;
    let user = geteuid().as_raw();
    let own = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.uid() == user);
    let path = folder.join(FILE);
    // Files of other users must not make us kill processes.
    if !own(folder) || !own(&path) {
        return;
    }
    let boot = fs::read_to_string(BOOT).unwrap_or_default();
    let text = fs::read(&path).unwrap_or_default();
    for member in parse(&String::from_utf8_lossy(&text), boot.trim()) {
        if start_of(member.process) == Some(member.start) {
            let _ = signal(member.process, Signal::KILL);
        }
    }
}

/// All sandboxes with a paused process working in them, anywhere on the machine.
pub fn sandboxes_in_use() -> BTreeSet<PathBuf> {
    processes()
        .filter(|process| is_stopped(*process))
        .filter_map(|process| fs::read_link(format!("/proc/{process}/cwd")).ok())
        .filter_map(|folder| folder.ancestors().find(|path| is_sandbox(path)).map(Path::to_owned))
        .collect()
}

fn line(Member { process, start }: Member) -> String {
    format!("{process} {start}\n")
}

/// The processes of a journal that was written during this `boot`. The last line may be torn: a process is paused only
/// after its line is complete.
fn parse(text: &str, boot: &str) -> Vec<Member> {
    let Some((first, rest)) = text.split_once('\n') else { return Vec::new() };
    if first != boot || boot.is_empty() {
        return Vec::new();
    }
    let lines = rest.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let member = |line: &str| {
        let (process, start) = line.split_once(' ')?;
        let process = process.parse().ok().filter(|process| *process > 1)?;
        Some(Member { process, start: start.parse().ok()? })
    };
    lines.filter_map(member).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command},
    };

    use proptest::prelude::*;

    use super::{super::SANDBOX_PREFIX, *};
    use crate::{
        proc::state,
        soon::{await_state, soon},
    };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{SANDBOX_PREFIX}paused-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// A process with a child in a session of its own, like PostgreSQL's.
    fn server(folder: &Path) -> (Child, Vec<i32>) {
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 600 & wait"]).current_dir(folder).process_group(0);
        let child = command.spawn().expect("a shell");
        let process = child.id() as i32;
        let tree = soon("the shell and its child", || {
            let tree = ProcessSnapshot::take().tree(process);
            if tree.len() < 2 { Err(tree) } else { Ok(tree) }
        });
        (child, tree)
    }

    /// Waits until each is in one of `states`.
    fn await_states(tree: &[i32], states: &[&str]) {
        tree.iter().for_each(|process| await_state(*process, states));
    }

    fn end(mut child: Child, tree: &[i32]) {
        for process in tree {
            let _ = signal(*process, Signal::KILL);
        }
        child.wait().expect("it ends");
    }

    #[test]
    fn a_server_is_paused_with_its_children_until_it_may_go_on() {
        let folder = folder("tree");
        let (child, tree) = server(&folder);
        let mut paused = PausedServers::new(&folder).expect("a journal");
        paused.pause(tree[0]).expect("it is paused");
        await_states(&tree, &["T"]);
        paused.resume(tree[0]);
        await_states(&tree, &["S", "R"]);
        paused.pause(tree[0]).expect("it is paused again");
        await_states(&tree, &["T"]);
        drop(paused);
        await_states(&tree, &["S", "R"]);
        end(child, &tree);
        fs::remove_dir_all(&folder).expect("clean up");
    }

    #[test]
    fn what_a_killed_maker_left_paused_is_found_and_killed_and_nobody_else() {
        let folder = folder("abandoned");
        let (child, tree) = server(&folder);
        let (neighbour, others) = server(&folder);
        let mut paused = PausedServers::new(&folder).expect("a journal");
        paused.pause(tree[0]).expect("it is paused");
        await_states(&tree, &["T"]);
        // As if Tithe had been killed: they are not resumed.
        std::mem::forget(paused);
        assert!(sandboxes_in_use().contains(&folder));
        end_abandoned(&folder);
        await_states(&tree, &["Z", "gone"]);
        // One that has just begun may still wait for a disk (D).
        assert!(
            others.iter().all(|process| ["S", "R", "D"].contains(&state(*process).as_str())),
            "another process was killed"
        );
        end(child, &tree);
        end(neighbour, &others);
        fs::remove_dir_all(&folder).expect("clean up");
    }

    #[test]
    fn a_journal_names_processes_of_this_boot() {
        let text = "boot\n17 400\n18 9";
        let first = Member { process: 17, start: 400 };
        assert_eq!(parse(text, "boot"), [first], "a torn line names no process");
        assert_eq!(parse(&format!("boot\n{}1 5\n-4 5\n0 5\n", line(first)), "boot"), [first]);
        assert_eq!(parse(text, "another"), []);
        assert_eq!(parse("\n17 400\n", ""), []);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(boot)?(\n|[0-9]{1,12}|-| |[a-z])*") {
            prop_assert!(parse(&text, "boot").iter().all(|member| member.process > 1));
        }
    }
}
