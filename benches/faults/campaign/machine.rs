//! What there is on the machine that belongs to a case: processes, mounts, loop devices, mappings, swap, control
//! groups, sockets, shared memory, files of temporary folders. Other programs use the same machine, so the case's
//! folder or the numbers of its processes identify them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::proc::{processes, state};

/// Folders in which control groups are made, and how deep.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
const DEPTH: usize = 4;

/// Folders for temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What all programs of the machine share and nothing but a number tells apart, as it was before.
pub struct Shared(BTreeSet<u64>);

impl Shared {
    pub fn take() -> Self {
        Self(segments().into_iter().map(|segment| segment.id).collect())
    }
}

/// Everything of the case in `folder`, of which `known` are the processes, that should not be there any more, in words.
pub fn left_behind(folder: &Path, known: &BTreeSet<i32>, before: &Shared) -> Vec<String> {
    let text = folder.display().to_string();
    let of_processes = |name: &str| known.iter().any(|process| name.contains(&format!("tithe-sandbox-{process}-")));
    let below = format!("{text}/");
    let is_ours = |line: &str| line.contains(&below) || line.trim_end() == text || of_processes(line);
    let mut left: Vec<String> =
        processes().filter_map(|process| of_process(process, &is_ours)).map(|it| format!("process {it}")).collect();
    let lines = |what: &str, path: &str| {
        let lines = fs::read_to_string(path).unwrap_or_default();
        lines.lines().filter(|line| is_ours(line)).map(|line| format!("{what} {line}")).collect::<Vec<_>>()
    };
    left.extend(lines("mount", "/proc/self/mountinfo"));
    left.extend(lines("swap", "/proc/swaps"));
    left.extend(lines("socket", "/proc/net/unix"));
    for device in entries(Path::new("/sys/block")) {
        let image = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        left.extend(is_ours(&image).then(|| format!("loop device of {}", image.trim())));
    }
    let is_mapping = |name: &str| known.iter().any(|process| name.starts_with(&format!("tithe-{process}-")));
    left.extend(
        names(Path::new("/dev/mapper")).into_iter().filter(|it| is_mapping(it)).map(|it| format!("mapping {it}")),
    );
    left.extend(groups(Path::new(CONTROL_GROUPS), DEPTH).into_iter().filter(|name| of_processes(name)));
    for temporary in TEMPORARY {
        let ours = names(Path::new(temporary)).into_iter().filter(|name| of_processes(name));
        left.extend(ours.map(|name| format!("{temporary}/{name}")));
    }
    let unused =
        |segment: &Segment| segment.users == 0 && known.contains(&segment.maker) && !before.0.contains(&segment.id);
    left.extend(
        segments().into_iter().filter(unused).map(|it| format!("shared memory {} of process {}", it.id, it.maker)),
    );
    left.extend(sandboxes(&folder.join("tithe-runs")));
    left
}

/// Sandboxes in the run folders in `runs`; the decoys in `runs` itself are none.
fn sandboxes(runs: &Path) -> Vec<String> {
    let of_runs = entries(runs).into_iter().filter(|path| !path.is_symlink()).flat_map(|run| entries(&run));
    let is_sandbox =
        |path: &PathBuf| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("tithe-sandbox-"));
    of_runs.filter(is_sandbox).map(|path| path.display().to_string()).collect()
}

/// `process` in words where it is ours and no zombie, for which its parent has to answer.
fn of_process(process: i32, is_ours: &dyn Fn(&str) -> bool) -> Option<String> {
    if process == std::process::id() as i32 {
        return None;
    }
    let at = |name: &str| PathBuf::from(format!("/proc/{process}/{name}"));
    let link = |name: &str| fs::read_link(at(name)).map(|path| path.display().to_string()).unwrap_or_default();
    let line = fs::read(at("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let has_ended = ["Z", "X", "gone"].contains(&state(process).as_str());
    // What works in the folder of a case; the case's own programs are elsewhere.
    let ours = is_ours(&link("cwd")) || is_ours(&link("root")) || is_ours(&line);
    (ours && !has_ended).then(|| format!("{process}: {line}"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    entries(folder).into_iter().filter_map(name).collect()
}

/// Control groups below `folder`.
fn groups(folder: &Path, depth: usize) -> Vec<String> {
    let below = entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink());
    let with_their_own = |path: PathBuf| {
        let own = if depth > 0 { groups(&path, depth - 1) } else { Vec::new() };
        own.into_iter().chain([format!("control group {}", path.display())])
    };
    below.flat_map(with_their_own).collect()
}

/// A segment of System V's shared memory.
struct Segment {
    id: u64,
    maker: i32,
    users: u64,
}

fn segments() -> Vec<Segment> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let read = |line: &str| {
        let fields: Vec<u64> = line.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        Some(Segment { id: *fields.get(1)?, maker: *fields.get(4)? as i32, users: *fields.get(6)? })
    };
    text.lines().skip(1).filter_map(read).collect()
}
