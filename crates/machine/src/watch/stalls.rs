//! How long other programs kept a lane's client and servers off their processor.
//!
//! Client and server of a lane share one processor. In a slot its time goes to the client, to the server, to background
//! load, or it is idle. The wanted figure is the time in which *none of the lane ran though one could*: that is caused
//! by background load. It is not the sum of the tasks' waits for a processor (`schedstat`): while the server finishes
//! its work after an answer, the client waits for it; and both may wait at once.
//!
//! * *By pressure.* The kernel keeps exactly that time for a control group: the line `full` of `cpu.pressure`
//!   (Documentation/accounting/psi.rst). [`Lanes`] puts each lane into its own group, with the tasks that serve it.
//! * *By waits*, if no group can be made and the lane has one connection per arm: the sum of the waits, which is too
//!   long by the time in which both of the pair were awake.
//!
//! Both include the time that an idle processor takes to wake up, which no other program causes. So each is limited to
//! the time that others ran on that processor, if that can be seen, and to the time that the pair did not run.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::clock::VirtualTime;

/// Prefix of the names of all groups of lanes, before the number of the process that made them.
const PREFIX: &str = "tithe-lanes-";

/// Share of the processor's time since the machine's start that the topmost group must have; with less it is the group
/// of a container.
const WHOLE_MACHINE: f64 = 0.9;

/// The source that a lane reads before and after each slot.
pub enum StallWatch {
    /// Invented time.
    Virtual(Arc<VirtualTime>),
    /// The pressure of the lane's group, and the use of its processor.
    Pressure(File, Option<ProcessorUse>),
    /// The waits of its tasks, and the use of its processor.
    Waits(Option<ProcessorUse>),
    /// It cannot be observed.
    Unseen,
}

/// A reading of [`StallWatch::read`]; only the difference between two is meaningful.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stalls {
    stalled_ns: u64,
    processor_ns: Option<u64>,
}

/// Times of the tasks of a lane in a slot, ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares {
    /// Length of the slot.
    pub wall_ns: u64,
    /// Processor time of client and servers.
    pub cpu_ns: u64,
    /// Sum of their waits for a processor.
    pub wait_ns: u64,
}

impl StallWatch {
    /// Reads the current counters.
    pub fn read(&self) -> Stalls {
        match self {
            Self::Virtual(time) => Stalls { stalled_ns: time.wait.load(Ordering::Relaxed), processor_ns: None },
            Self::Pressure(file, processor) => {
                Stalls { stalled_ns: full_ns(file), processor_ns: processor.as_ref().map(ProcessorUse::ns) }
            }
            Self::Waits(processor) => Stalls { stalled_ns: 0, processor_ns: processor.as_ref().map(ProcessorUse::ns) },
            Self::Unseen => Stalls::default(),
        }
    }

    /// Time since `before` in which other programs ran and the lane could have, ns; `None` if unknown.
    pub fn since(&self, before: Stalls, shares: Shares) -> Option<u64> {
        let now = self.read();
        let ready_ns = match self {
            Self::Virtual(_) => return Some(now.stalled_ns - before.stalled_ns),
            Self::Pressure(..) => now.stalled_ns.saturating_sub(before.stalled_ns),
            Self::Waits(_) => shares.wait_ns,
            Self::Unseen => return None,
        };
        let of_processor = before.processor_ns.zip(now.processor_ns).map(|(before, now)| now.saturating_sub(before));
        Some(neighbours_ns(ready_ns, of_processor, shares))
    }
}

/// `ready_ns` of waiting, limited to what other programs can have caused: the `of_processor` ns that the processor ran
/// less the lane's own time, and the slot less the lane's own time.
fn neighbours_ns(ready_ns: u64, of_processor: Option<u64>, shares: Shares) -> u64 {
    let others_ns = of_processor.map_or(u64::MAX, |ns| ns.saturating_sub(shares.cpu_ns));
    ready_ns.min(others_ns).min(shares.wall_ns.saturating_sub(shares.cpu_ns))
}

/// The line `full` of a group's `cpu.pressure`, ns; 0 if there is none.
fn full_ns(file: &File) -> u64 {
    let mut buffer = [0; 256];
    let length = file.read_at(&mut buffer, 0).unwrap_or(0);
    full_us(&String::from_utf8_lossy(&buffer[..length])).unwrap_or(0) * 1000
}

fn full_us(text: &str) -> Option<u64> {
    let full = text.lines().find_map(|line| line.strip_prefix("full "))?;
    full.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Time that each processor of the machine was busy, as control groups of version 1 count it.
pub struct ProcessorAccounts {
    file: PathBuf,
}

impl ProcessorAccounts {
    /// The counters of this machine; `None` if it has none, or shows only those of a container.
    pub fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let folder = mount_point(&mounts, "cgroup", "cpuacct")?;
        let all: u64 = fs::read_to_string(folder.join("cpuacct.usage")).ok()?.trim().parse().ok()?;
        let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
        let busy_s = busy_ticks(&fs::read_to_string("/proc/stat").ok()?)? as f64 / ticks;
        (all as f64 / 1e9 >= WHOLE_MACHINE * busy_s).then(|| Self { file: folder.join("cpuacct.usage_percpu") })
    }

    /// The counter of `processor`; `None` if the file is gone.
    pub fn of(&self, processor: usize) -> Option<ProcessorUse> {
        // One file for each reader: lanes read at the same moment, and the kernel serialises readers of one open file.
        Some(ProcessorUse { file: File::open(&self.file).ok()?, processor })
    }
}

/// Total busy time of one processor.
pub struct ProcessorUse {
    file: File,
    processor: usize,
}

impl ProcessorUse {
    fn ns(&self) -> u64 {
        let mut buffer = [0; 8192];
        let length = self.file.read_at(&mut buffer, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&buffer[..length]);
        text.split_ascii_whitespace().nth(self.processor).and_then(|word| word.parse().ok()).unwrap_or(0)
    }
}

/// Ticks of programs and of the kernel on their behalf: `user`, `nice` and `system` of `/proc/stat` (proc(5)).
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    fields.take(3).map(|field| field.parse::<u64>().ok()).sum()
}

/// Where a file system of `kind` is mounted with `option` among its options.
fn mount_point(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|mount| {
        let fields: Vec<&str> = mount.split_ascii_whitespace().collect();
        let [_, point, found, options, ..] = fields[..] else { return None };
        let fits = found == kind && options.split(',').any(|found| found == option);
        fits.then(|| PathBuf::from(point))
    })
}

/// Control groups of version 2 for the lanes of this process.
///
/// A thread may be in another group than its process only below a group that contains the whole process ("threaded"
/// groups, Documentation/admin-guide/cgroup-v2.rst): the [`Home`].
pub struct Lanes {
    folders: Vec<PathBuf>,
    _home: Home,
}

/// Keeps this process and its children in a group below the original one. It limits nothing. The process returns to the
/// original group when the last `Home` is dropped.
pub struct Home {
    folder: PathBuf,
}

/// The home of this process, and the number of holders.
#[derive(Default)]
struct Held {
    holds: usize,
    folder: PathBuf,
    /// The original group of the process.
    before: PathBuf,
}

static HELD: Mutex<Option<Held>> = Mutex::new(None);

/// Numbers the groups of lanes.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Home {
    /// Holds the home of this process and makes it if needed. Hold it from before the first server is started until the
    /// last has ended: servers start in it.
    ///
    /// # Errors
    /// When the kernel has no such groups, or does not let this process make them.
    pub fn hold() -> io::Result<Self> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let mut home = match held.take() {
            Some(home) => home,
            None => Held::make()?,
        };
        home.holds += 1;
        let folder = home.folder.clone();
        *held = Some(home);
        Ok(Self { folder })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = held.as_mut() {
            home.holds -= 1;
            if home.holds == 0 {
                *held = None;
            }
        }
    }
}

impl Held {
    fn make() -> io::Result<Self> {
        let missing = |what: &str| io::Error::new(io::ErrorKind::NotFound, what.to_owned());
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let point = mount_point(&mounts, "cgroup2", "rw").ok_or_else(|| missing("no control groups of version 2"))?;
        let before = group_of("self").map(|group| point.join(group)).ok_or_else(|| missing("no group"))?;
        remove_abandoned(&before);
        let folder = before.join(format!("{PREFIX}{}", std::process::id()));
        if !folder.exists() {
            fs::create_dir(&folder)?;
        }
        // From here on the folder is removed on every failure.
        let home = Self { holds: 0, folder, before };
        let told = fs::read_to_string(home.folder.join("cpu.pressure"))?;
        full_us(&told).ok_or_else(|| missing("this kernel keeps no pressure of groups"))?;
        // Only the groups of lanes are read, and each level makes every wake-up cost more. Older kernels count on all.
        let _ = write(&home.folder.join("cgroup.pressure"), 0);
        write(&home.folder.join("cgroup.procs"), std::process::id() as i32)?;
        Ok(home)
    }
}

impl Drop for Held {
    /// Servers normally end before the last run does. A process that still lives keeps its group, which a later start
    /// removes.
    fn drop(&mut self) {
        // Without this the group cannot be removed; a failure has no one to be reported to.
        let _ = write(&self.before.join("cgroup.procs"), std::process::id() as i32);
        remove(&self.folder);
    }
}

impl Lanes {
    /// A group for each of `count` lanes.
    ///
    /// # Errors
    /// When the kernel has no such groups, or does not let this process make them.
    pub fn make(count: usize) -> io::Result<Self> {
        let home = Home::hold()?;
        let folder = |_| home.folder.join(format!("lane{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let lanes = Self { folders: (0..count).map(folder).collect(), _home: home };
        for folder in &lanes.folders {
            fs::create_dir(folder)?;
            fs::write(folder.join("cgroup.type"), "threaded")?;
        }
        Ok(lanes)
    }

    /// Puts one thread into the group of `lane`: the calling one with 0, or one of a server that Tithe has started.
    ///
    /// # Errors
    /// When the thread belongs to a process outside of Tithe's group: one that Tithe did not start, or one with limits.
    pub fn join(&self, lane: usize, thread: i32) -> io::Result<()> {
        write(&self.folders[lane].join("cgroup.threads"), thread)
    }

    /// The pressure file of `lane`.
    ///
    /// # Errors
    /// When the group is gone.
    pub fn pressure(&self, lane: usize) -> io::Result<File> {
        File::open(self.folders[lane].join("cpu.pressure"))
    }
}

impl Drop for Lanes {
    /// A group in which a server keeps an idle thread stays until the home is dropped.
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The version 2 group of a process, relative to the mount point of the groups.
fn group_of(process: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::/")).map(str::to_owned)
}

fn write(file: &Path, task: i32) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(task.to_string().as_bytes())
}

/// Removes the groups of processes that were killed. A group that still contains a process cannot be removed and stays.
fn remove_abandoned(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let maker = |entry: &fs::DirEntry| Some(entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned());
    let gone = |entry: &fs::DirEntry| maker(entry).is_some_and(|maker| !Path::new("/proc").join(maker).exists());
    entries.filter(gone).for_each(|entry| remove(&entry.path()));
}

fn remove(folder: &Path) {
    let lanes = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    lanes.filter(|path| path.is_dir()).for_each(|lane| drop(fs::remove_dir(lane)));
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests;
