//! Servers that are paused while another one is measured.
//!
//! A server that is not asked anything is not idle: it vacuums, flushes pages, compiles its own code. So all its
//! processes are paused (SIGSTOP), and go on (SIGCONT) when it is its turn. Signals need no control group and are the
//! same for processes and for threads.
//!
//! A process killed with Tithe would stay paused for ever: the parent-death signal reaches the process that Tithe
//! started, and its children only hear of it when they run. So each process is written down in the sandbox before it is
//! paused, and the next start kills those of a sandbox whose maker is gone.
//!
//! Left out: what works for a server outside its processes (kernel threads, the process of a FUSE mount).

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
    proc::{ProcessSnapshot, signal, stat_fields},
};

/// File in the sandbox's folder: the machine's boot, then a process that may be paused with its start, one a line.
const FILE: &str = "paused-processes";

/// The kernel's name for this boot (random(4)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Looks that may find further processes of a server that is being paused. A process whose parent is paused already
/// starts no others, so each look but the last goes one generation deeper.
const SCANS: usize = 8;

/// Paused servers; all go on when it is dropped.
pub struct PausedServers {
    journal: File,
    noted: BTreeSet<Member>,
    /// The paused processes of each server, by its main process.
    processes: BTreeMap<i32, Vec<i32>>,
}

/// A process and when it started, in ticks since the machine did: numbers are given again, the two together are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    process: i32,
    start: u64,
}

impl PausedServers {
    /// For servers of the sandbox in `folder`.
    ///
    /// # Errors
    /// When nothing can be written there: then nothing may be paused.
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
    /// When a process cannot be written down or the kernel refuses to pause it; what was paused until then goes on at
    /// the end, as if it had not failed.
    pub fn pause(&mut self, server: i32) -> io::Result<()> {
        // Before any look, which takes a while: servers without children are paused at once.
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

    /// False for a process that has ended meanwhile.
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

    /// Lets the server go on whose main process is `server`; nothing happens to one that runs.
    pub fn resume(&mut self, server: i32) {
        // The main process last: it finds its children as they were.
        for process in self.processes.remove(&server).into_iter().flatten().rev() {
            // Refused only where somebody has killed it: there is nobody left to go on.
            let _ = signal(process, Signal::CONT);
        }
    }
}

impl Drop for PausedServers {
    fn drop(&mut self) {
        for server in self.processes.keys().copied().collect::<Vec<i32>>() {
            self.resume(server);
        }
        // None is paused: what is left in the file names nobody.
        let _ = self.journal.set_len(0);
    }
}

/// Kills the processes that still are paused in the sandbox `folder`, whose maker is gone.
pub fn end_abandoned(folder: &Path) {
    use std::os::unix::fs::MetadataExt;
    let user = geteuid().as_raw();
    let own = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.uid() == user);
    let path = folder.join(FILE);
    // What another user wrote is no reason to kill anything.
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

/// Sandboxes in which a paused process works, wherever they are.
pub fn sandboxes_in_use() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes
        .filter(|process| {
            let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
            stat_fields(&stat).next() == Some("T")
        })
        .filter_map(|process| fs::read_link(process.join("cwd")).ok())
        .filter_map(|folder| folder.ancestors().find(|path| is_sandbox(path)).map(Path::to_owned))
        .collect()
}

fn line(Member { process, start }: Member) -> String {
    format!("{process} {start}\n")
}

/// The processes of a journal that was written since this `boot`. The last line may be torn: a process is paused only
/// after its line is whole.
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

/// When a process started, in ticks since the machine did; `None` for one that is gone.
fn start_of(process: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Field 22 of proc(5); the state is the third.
    stat_fields(&stat).nth(19)?.parse().ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command},
        time::{Duration, Instant},
    };

    use proptest::prelude::*;

    use super::{super::SANDBOX_PREFIX, *};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("{SANDBOX_PREFIX}paused-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// A process with a child in a session of its own, as PostgreSQL's have.
    fn server(folder: &Path) -> (Child, Vec<i32>) {
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 600 & wait"]).current_dir(folder).process_group(0);
        let child = command.spawn().expect("a shell");
        let process = child.id() as i32;
        let begun = Instant::now();
        let mut tree = Vec::new();
        while tree.len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(120), "{tree:?}");
            tree = ProcessSnapshot::take().tree(process);
        }
        (child, tree)
    }

    fn state(process: i32) -> String {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat_fields(&stat).next().unwrap_or("gone").to_owned()
    }

    /// Waits until all are in one of `states`: a signal takes effect when its receiver runs.
    fn await_states(tree: &[i32], states: &[&str]) {
        let begun = Instant::now();
        while !tree.iter().all(|process| states.contains(&state(*process).as_str())) {
            let now: Vec<String> = tree.iter().map(|process| state(*process)).collect();
            assert!(begun.elapsed() < Duration::from_secs(120), "{now:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
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
        // As if Tithe had been killed: nobody lets them go on.
        std::mem::forget(paused);
        assert!(sandboxes_in_use().contains(&folder));
        end_abandoned(&folder);
        await_states(&tree, &["Z", "gone"]);
        assert!(
            others.iter().all(|process| ["S", "R"].contains(&state(*process).as_str())),
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
