//! Control groups: limits on a server's processors and memory, independent of its clients, and the total usage of all
//! its processes, including ended ones.
//!
//! Supports both versions of Linux's interface (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/) as plain files.
//! Groups have the name of their sandbox, and are removed with it or by the next start.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Access, access},
    process::geteuid,
};
use tithe_model::{fact::BY_CONTROL_GROUPS, quantity};

use crate::{fault::Fault, proc::value};

/// Period of the processor quota, µs. The kernel's default of 100 ms is longer than a slot: a server would use up its
/// share in one slot and have none in the next.
const PERIOD_US: u64 = 10_000;

/// Time that killed processes get to leave a group.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Prefix of the number of processes killed for lack of memory, in both versions' files.
const KILLS: &str = "oom_kill ";

/// Limits of a group of processes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupLimits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, page cache included, bytes.
    pub memory_bytes: Option<u64>,
    /// Counts the processor time of the whole group; limits nothing.
    pub account: bool,
}

impl GroupLimits {
    /// True if something is limited.
    pub fn confine(&self) -> bool {
        self.cpus.is_some() || self.memory_bytes.is_some()
    }
}

/// Folders for new groups on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Controllers {
    /// For groups of the controller `cpu`.
    cpu: Option<PathBuf>,
    /// For groups of the controller `memory`.
    memory: Option<PathBuf>,
    /// For groups that count processor time: that of `cpuacct`, or any of version 2.
    account: Option<PathBuf>,
    /// `account` is one of version 2.
    account_unified: bool,
    /// `cpu` and `memory` are those of version 2.
    unified: bool,
}

impl Controllers {
    fn find() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), &|path| {
            fs::read_to_string(path).unwrap_or_default()
        })
    }

    /// From the texts of `/proc/self/mounts` and `/proc/self/cgroup`; `read` reads a file.
    fn parse(mounts: &str, own: &str, read: &dyn Fn(&Path) -> String) -> Self {
        let mut controllers = Self::default();
        let mut version_2 = None;
        for mount in mounts.lines() {
            let fields: Vec<&str> = mount.split_ascii_whitespace().collect();
            let [_, point, kind, options, ..] = fields[..] else { continue };
            let point = Path::new(point);
            match kind {
                // Version 1 has one hierarchy per controller; new groups may be made below Tithe's own.
                "cgroup" => {
                    for option in options.split(',') {
                        let place = match option {
                            "cpu" => &mut controllers.cpu,
                            "memory" => &mut controllers.memory,
                            "cpuacct" => &mut controllers.account,
                            _ => continue,
                        };
                        let below = own_group(own, option).filter(|group| !group.is_empty());
                        let below = below.map(|group| point.join(group));
                        let below = below.filter(|folder| !read(&folder.join("cgroup.procs")).is_empty());
                        *place = Some(below.unwrap_or_else(|| point.to_owned()));
                    }
                }
                // Version 2: only the root may contain both processes and groups, and it must enable its controllers
                // for them.
                "cgroup2" => {
                    let handed_on = read(&point.join("cgroup.subtree_control"));
                    let has = |name: &str| handed_on.split_ascii_whitespace().any(|found| found == name);
                    let place = Some(point.to_owned());
                    if has("cpu") && has("memory") {
                        let (cpu, memory) = (place.clone(), place.clone());
                        return Self { cpu, memory, account: place, account_unified: true, unified: true };
                    }
                    version_2 = place;
                }
                _ => {}
            }
        }
        // Version 2 counts the time of every group, whatever is enabled.
        if controllers.account.is_none() {
            controllers.account_unified = version_2.is_some();
            controllers.account = version_2;
        }
        controllers
    }
}

/// The version 1 group of this process, relative to the root of the hierarchy of `controller`.
fn own_group<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|found| found == controller).then(|| path.trim_start_matches('/'))
    })
}

/// True if this machine can count the processor time of a group.
pub fn counts() -> bool {
    // In containers the folder may be read-only.
    Controllers::find().account.is_some_and(|place| access(place, Access::WRITE_OK).is_ok())
}

/// The processor time of a control group: of all processes that were ever in it.
pub struct Account {
    file: File,
    /// Unit of the file's counter, ns.
    unit_ns: u64,
}

impl Account {
    /// The time so far, ns; 0 once the group is gone.
    pub fn cpu_ns(&self) -> u64 {
        let mut buffer = [0; 64];
        let length = self.file.read_at(&mut buffer, 0).unwrap_or(0);
        first_number(&String::from_utf8_lossy(&buffer[..length])).saturating_mul(self.unit_ns)
    }
}

/// The first number in `cpuacct.usage` (ns) or `cpu.stat` (`usage_usec 17…`, µs); 0 if there is none.
fn first_number(text: &str) -> u64 {
    text.split_ascii_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

/// The account of the group of `process`; `None` if Tithe is in the same group.
pub fn account_of(process: i32) -> Option<Account> {
    let found = Controllers::find();
    let controller = if found.account_unified { "" } else { "cpuacct" };
    let group_of = |who: &str| {
        let text = fs::read_to_string(format!("/proc/{who}/cgroup")).ok()?;
        own_group(&text, controller).map(str::to_owned)
    };
    let group = group_of(&process.to_string())?;
    if group_of("self").as_ref() == Some(&group) {
        return None;
    }
    let folder = found.account?.join(Path::new(&group).file_name()?);
    let (name, unit_ns) = if found.account_unified { ("cpu.stat", 1000) } else { ("cpuacct.usage", 1) };
    Some(Account { file: File::open(folder.join(name)).ok()?, unit_ns })
}

/// Why this machine cannot apply `limits`, one sentence; `None` if it can.
pub fn lacks(limits: GroupLimits) -> Option<String> {
    let found = Controllers::find();
    let missing = [
        ("cpu", limits.cpus.is_some() && found.cpu.is_none()),
        ("memory", limits.memory_bytes.is_some() && found.memory.is_none()),
    ];
    let names: Vec<&str> = missing.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name).collect();
    if !names.is_empty() {
        return Some(format!(
            "no control group controller {}: none is mounted as version 1, and none is handed on by a mounted version 2",
            names.join(" and ")
        ));
    }
    (limits.confine() && !geteuid().is_root()).then(|| "only root makes control groups".to_owned())
}

/// Files that limit swap, in version 2 and version 1 of control groups.
const SWAP_FILES: [&str; 2] = ["memory.swap.max", "memory.memsw.limit_in_bytes"];

/// Control groups of one server; removed when dropped.
#[derive(Debug)]
pub struct Group {
    /// One folder with version 2, one per controller with version 1.
    folders: Vec<PathBuf>,
    limits: GroupLimits,
    unified: bool,
    /// The kernel limits memory and does not count swap.
    swaps: bool,
}

impl Group {
    /// Makes the groups called `name` that `limits` need.
    ///
    /// # Errors
    /// When a controller is missing or the kernel refuses.
    pub fn make(name: &str, limits: GroupLimits) -> Result<Self, Fault> {
        if let Some(reason) = lacks(limits) {
            return Err(Fault::Machine(reason));
        }
        let found = Controllers::find();
        let unified = if limits.confine() { found.unified } else { found.account_unified };
        let mut group = Self { folders: Vec::new(), limits, unified, swaps: false };
        for (place, settings) in settings(&found, limits) {
            let folder = place.join(name);
            let failed = |error: io::Error| Fault::machine(format!("control group {}", folder.display()), error);
            if !folder.exists() {
                fs::create_dir(&folder).map_err(failed)?;
                group.folders.push(folder.clone());
            }
            for (file, value) in settings {
                group.swaps |= !set(&folder, file, &value).map_err(failed)?;
            }
        }
        Ok(group)
    }

    /// Puts a running process into the groups.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&self, process: i32) -> Result<(), Fault> {
        let write = |mut door: File| door.write_all(process.to_string().as_bytes());
        self.task_files()?.into_iter().try_for_each(write).map_err(|error| Fault::machine("control group", error))
    }

    /// The files that a process writes to, to enter the groups.
    ///
    /// # Errors
    /// When the groups are gone.
    pub fn task_files(&self) -> Result<Vec<File>, Fault> {
        let open = |folder: &PathBuf| OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
        self.folders.iter().map(open).collect::<io::Result<_>>().map_err(|error| Fault::machine("control group", error))
    }

    /// A message if the kernel killed processes for lack of memory; `None` if it did not.
    pub fn short_of_memory(&self) -> Option<String> {
        let limit = quantity::size(self.limits.memory_bytes?);
        // Version 2 and version 1 of control groups.
        let files = ["memory.events", "memory.oom_control"];
        let all = self.folders.iter().flat_map(|folder| files.map(|file| folder.join(file)));
        let killed: u64 = all.filter_map(|file| value(&fs::read_to_string(file).ok()?, KILLS)).sum();
        // The number is not reported: a process that is slow to end is counted again.
        (killed > 0).then(|| {
            format!("{limit} of memory were not enough, and the kernel ended what the server ran: raise its `memory`")
        })
    }

    /// `processors 1, memory 512.0 MB with page cache, by control groups of version 1`.
    pub fn in_words(&self) -> String {
        let cpus = self.limits.cpus.map(|cpus| format!("processors {cpus}"));
        let swaps = if self.swaps { ", swap not limited by this kernel" } else { "" };
        let in_words = |bytes| format!("memory {} with page cache{swaps}", quantity::size(bytes));
        let memory = self.limits.memory_bytes.map(in_words);
        let account = self.limits.account.then(|| "processor time counted".to_owned());
        let what: Vec<String> = cpus.into_iter().chain(memory).chain(account).collect();
        format!("{}{BY_CONTROL_GROUPS} of version {}", what.join(", "), if self.unified { 2 } else { 1 })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| remove(folder));
    }
}

/// Writes `value` to `file` of the group in `folder`; false if the file limits swap and is missing, because not every
/// kernel counts swap.
fn set(folder: &Path, file: &str, value: &str) -> io::Result<bool> {
    match OpenOptions::new().write(true).open(folder.join(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && SWAP_FILES.contains(&file) => Ok(false),
        opened => opened?.write_all(value.as_bytes()).map(|()| true),
    }
}

/// The files to write, by the folder of their controller.
fn settings(found: &Controllers, limits: GroupLimits) -> Vec<(PathBuf, Vec<(&'static str, String)>)> {
    let mut all = Vec::new();
    if let (Some(cpus), Some(place)) = (limits.cpus, &found.cpu) {
        // Processors are at most 1024: far below what a u64 holds.
        let quota_us = (cpus * PERIOD_US as f64).round() as u64;
        let files = match found.unified {
            true => vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))],
            false => vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota_us.to_string())],
        };
        all.push((place.clone(), files));
    }
    if let (Some(bytes), Some(place)) = (limits.memory_bytes, &found.memory) {
        // Memory above the limit must not go to swap.
        let files = match found.unified {
            true => vec![("memory.max", bytes.to_string()), (SWAP_FILES[0], "0".to_owned())],
            false => {
                vec![("memory.limit_in_bytes", bytes.to_string()), (SWAP_FILES[1], bytes.to_string())]
            }
        };
        all.push((place.clone(), files));
    }
    if let (true, Some(place)) = (limits.account, &found.account) {
        all.push((place.clone(), Vec::new()));
    }
    all
}

/// Moves the calling process into the group whose file of members is `door`. Async-signal-safe.
///
/// # Errors
/// The kernel's.
pub fn enter(mut door: &File) -> io::Result<()> {
    // 0 means the caller.
    door.write_all(b"0")
}

/// Removes the groups of a sandbox whose maker is gone. A group that contains processes cannot be removed.
pub fn remove_abandoned(sandbox: &Path) {
    let Some(name) = sandbox.file_name().and_then(|name| name.to_str()) else { return };
    let prefix = format!("{name}.");
    let found = Controllers::find();
    for place in found.cpu.iter().chain(&found.memory).chain(&found.account) {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        ours.for_each(|entry| remove(&entry.path()));
    }
}

fn remove(folder: &Path) {
    let begun = Instant::now();
    while let Err(error) = fs::remove_dir(folder) {
        if error.kind() != io::ErrorKind::ResourceBusy || begun.elapsed() > TIMEOUT {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use rustix::process::Signal;

    use super::*;

    const V1: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
    const OWN: &str = "4:memory:/outer/inner\n1:cpu,cpuacct:/\n0::/\n";

    fn written(mounts: &str, read: &dyn Fn(&Path) -> String) -> String {
        let limits = GroupLimits { cpus: Some(1.5), memory_bytes: Some(64 << 20), account: true };
        let all = settings(&Controllers::parse(mounts, OWN, read), limits).into_iter();
        let line = |place: &Path, (file, value): (&str, String)| format!("{} {file} = {value}\n", place.display());
        all.flat_map(|(place, files)| files.into_iter().map(move |file| line(&place, file))).collect()
    }

    #[test]
    fn a_kernel_that_does_not_limit_swap_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("memory.max"), "max").expect("written");
        assert!(set(folder.path(), "memory.max", "1").expect("it is there"));
        assert!(!set(folder.path(), "memory.swap.max", "0").expect("it may be missing"));
        assert_eq!(set(folder.path(), "cpu.max", "1").expect_err("it may not").kind(), io::ErrorKind::NotFound);
        let limits = GroupLimits { memory_bytes: Some(64_000_000), ..GroupLimits::default() };
        let words = |swaps| Group { folders: Vec::new(), limits, unified: true, swaps }.in_words();
        assert_eq!(
            words(true),
            "memory 64.0 MB with page cache, swap not limited by this kernel, by control groups of version 2"
        );
        assert!(!words(false).contains("swap"));
    }

    #[test]
    fn both_versions_are_written_as_the_kernel_documents_them() {
        let busy = |path: &Path| if path.ends_with("cgroup.procs") { "1\n".to_owned() } else { String::new() };
        expect![[r#"
            /sys/fs/cgroup/cpu cpu.cfs_period_us = 10000
            /sys/fs/cgroup/cpu cpu.cfs_quota_us = 15000
            /sys/fs/cgroup/memory/outer/inner memory.limit_in_bytes = 67108864
            /sys/fs/cgroup/memory/outer/inner memory.memsw.limit_in_bytes = 67108864
        "#]]
        .assert_eq(&written(V1, &busy));
        let handed_on = |_: &Path| "cpuset cpu io memory pids".to_owned();
        expect![[r#"
            /sys/fs/cgroup cpu.max = 15000 10000
            /sys/fs/cgroup memory.max = 67108864
            /sys/fs/cgroup memory.swap.max = 0
        "#]]
        .assert_eq(&written("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", &handed_on));
        assert_eq!(written("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", &|_| "pids".to_owned()), "");
    }

    proptest! {
        #[test]
        fn any_text_is_read(mounts in "(cgroup2? |rw,memory|/| |\\n|[ -~])*", own in "([0-9:,/a-z]|\\n)*") {
            let found = Controllers::parse(&mounts, &own, &|_| String::new());
            prop_assert!(!found.unified, "nothing is handed on");
        }
    }

    #[test]
    fn both_versions_count_what_was_ended() {
        assert_eq!(value("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", KILLS), Some(3));
        assert_eq!(value("low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 0\n", KILLS), Some(2));
        assert_eq!(value("oom_kill_disable 0\n", KILLS), None);
    }

    /// It needs root's right to make control groups.
    mod installed {
        use super::*;
        use crate::soon::soon;

        #[test]
        #[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
        fn a_child_is_in_its_group_from_the_start_and_the_group_vanishes() {
            let limits = GroupLimits { cpus: Some(0.5), memory_bytes: Some(32 << 20), account: true };
            if let Some(reason) = lacks(limits) {
                assert!(std::env::var_os("CI").is_none(), "{reason}");
                eprintln!("SKIPPED: {reason}");
                return;
            }
            let group =
                Group::make(&format!("tithe-test-volumes-{}.one", std::process::id()), limits).expect("a group");
            let log = std::env::temp_dir().join(format!("tithe-test-volumes-cgroup-{}", std::process::id()));
            let run = |script: &str| {
                let command = crate::launch::Command {
                    program: "sh".into(),
                    arguments: vec!["-c".to_owned(), script.to_owned()],
                    ..Default::default()
                };
                File::create(&log).expect("a log");
                let mut running =
                    crate::sandbox::process::start(&command, None, Some(&group), &log, Signal::TERM).expect("started");
                soon("its end", || running.ended().ok_or("it runs"));
                fs::read_to_string(&log).expect("a log")
            };
            let seen = run("cat /proc/self/cgroup");
            assert_eq!(group.short_of_memory(), None);
            run("head -c 100000000 /dev/zero | tail");
            expect!["33.6 MB of memory were not enough, and the kernel ended what the server ran: raise its `memory`"]
                .assert_eq(&group.short_of_memory().expect("it was"));
            let folders = group.folders.clone();
            let inside =
                seen.lines().filter(|line| line.contains(&format!("tithe-test-volumes-{}.one", std::process::id())));
            assert_eq!(inside.count(), folders.len(), "{seen}");
            drop(group);
            assert!(folders.iter().all(|folder| !folder.exists()));
            fs::remove_file(&log).expect("removed");
        }
    }
}
