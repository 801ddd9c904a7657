//! Disks: full, at their quota, failing.

use std::{
    fs,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    case::{Case, frames_in},
    fault::{Begin, Fault, How, Leaves},
    product::Kind,
};

/// The run folder could not be written, a cell fails for its data, or a check cannot read what it has to.
const STATUSES: &[i32] = &[1, 4, 7];

const BARE: Fault = Fault { statuses: STATUSES, ..Fault::BARE };
const FULL: &[&str] = &[
    "No space left",
    "nothing was started",
    "os error 28",
    "disk full",
    "disk is full",
    "a full disk",
    "MISCONF",
    "out of space",
];
/// The system's words, and SQLite's.
const BROKEN: &[&str] = &["Input/output error", "disk I/O error", "an I/O error"];

pub const FAULTS: &[Fault] = &[
    Fault { name: "ENOSPC once", how: How::From(|begin| strike(begin, "", libc::ENOSPC, false)), words: FULL, ..BARE },
    Fault {
        name: "ENOSPC from there on",
        how: How::From(|begin| strike(begin, "", libc::ENOSPC, true)),
        words: FULL,
        ..BARE
    },
    Fault {
        name: "EDQUOT from there on",
        how: How::From(|begin| strike(begin, "write", libc::EDQUOT, true)),
        words: &["quota"],
        ..BARE
    },
    Fault { name: "EIO once", how: How::From(|begin| strike(begin, "", libc::EIO, false)), words: BROKEN, ..BARE },
    Fault {
        name: "EIO from there on",
        how: How::From(|begin| strike(begin, "", libc::EIO, true)),
        words: BROKEN,
        ..BARE
    },
    Fault {
        name: "EIO of a sync",
        how: How::From(|begin| strike(begin, "sync", libc::EIO, false)),
        words: BROKEN,
        ..BARE
    },
    Fault {
        name: "EROFS from there on",
        how: How::From(|begin| strike(begin, "open", libc::EROFS, true)),
        words: &["Read-only file system"],
        ..BARE
    },
    Fault {
        name: "EIO of a rename",
        how: How::From(|begin| strike(begin, "rename", libc::EIO, false)),
        words: BROKEN,
        ..BARE
    },
    Fault {
        name: "EINTR of a write",
        how: How::From(|begin| strike(begin, "write", libc::EINTR, false)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
    Fault {
        name: "EINTR of an open",
        how: How::From(|begin| strike(begin, "open", libc::EINTR, false)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
    Fault {
        name: "a short write",
        how: How::From(|begin| strike(begin, "write", -1, false)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
    Fault {
        name: "short writes from there on",
        how: How::From(|begin| strike(begin, "write", -1, true)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
    Fault { name: "a small disk", on: on_small, how: How::From(small_disk), words: FULL, ..BARE },
    Fault {
        name: "a disk that fills up",
        on: |kind| mounts() && !matches!(kind, Kind::Attached | Kind::OnVolume),
        how: How::From(filling_disk),
        words: FULL,
        statuses: &[1, 4, 5, 7],
        patience: Duration::from_secs(240),
        ..BARE
    },
    Fault {
        name: "files of a limited size",
        how: How::From(|begin| {
            let blocks = 1 + begin.draw.below(300);
            super::resources::limit(begin, &format!("ulimit -f {blocks}"));
        }),
        words: &["File too large", "File size limit", "signal: 25", "too large", "SIGXFSZ"],
        ..BARE
    },
];

/// Calls on files that the program makes in its own process.
fn strike(begin: &mut Begin<'_>, call: &str, error: i32, lasts: bool) {
    begin.tools.strike((begin.command, begin.case), (call, error, lasts), begin.reference, begin.draw);
}

/// Only root mounts.
fn mounts() -> bool {
    rustix::process::geteuid().is_root()
}

/// PostgreSQL's data alone needs more than what is small here.
fn on_small(kind: Kind) -> bool {
    mounts() && matches!(kind, Kind::Simulated | Kind::Embedded)
}

/// Puts the folder of runs on a disk of a drawn size.
fn small_disk(begin: &mut Begin<'_>) {
    mount(begin.case, 16 + begin.draw.below(1500));
}

/// Mounts a file system of `kib` over the folder of runs, until the fault is over; what it holds then is kept.
fn mount(case: &Case, kib: u64) {
    let runs = case.folder.join("tithe-runs");
    let size = format!("size={kib}k,mode=755");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&runs).status();
    assert!(mounted.is_ok_and(|status| status.success()), "only root mounts");
    let moved = case.folder.join("moved");
    case.when_over(move || {
        // The run folder goes on where there is room, as a user would have it.
        let _ = Command::new("cp").arg("-a").arg(&runs).arg(&moved).status();
        // Processes that the kernel has yet to end keep it busy.
        let unmounted = || Command::new("umount").arg(&runs).status().is_ok_and(|status| status.success());
        let tries = (0..100).any(|_| {
            unmounted() || {
                std::thread::sleep(Duration::from_millis(50));
                false
            }
        });
        assert!(tries, "something keeps {} busy", runs.display());
        for entry in fs::read_dir(&moved).into_iter().flatten().flatten() {
            let _ = Command::new("cp").arg("-a").arg(entry.path()).arg(&runs).status();
        }
        let _ = fs::remove_dir_all(&moved);
    });
}

/// Puts the folder of runs on a disk of its own, which somebody else fills after a drawn number of frames.
fn filling_disk(begin: &mut Begin<'_>) {
    mount(begin.case, DISK_KIB);
    let (runs, frames) = (begin.case.folder.join("tithe-runs"), begin.draw.below(begin.reference.frames as u64 + 1));
    let left_kib = begin.draw.below(64);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let filler = std::thread::spawn(move || {
        while frames_in(&runs) < frames as usize && !is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ballast = runs.join("ballast");
        while !is_over.load(Ordering::SeqCst) {
            // What becomes free meanwhile is taken as well.
            let free = rustix::fs::statvfs(&runs).map_or(0, |it| it.f_bavail * it.f_frsize / 1024);
            if free > left_kib {
                let has = fs::metadata(&ballast).map_or(0, |seen| seen.len());
                let length = (has + (free - left_kib) * 1024).to_string();
                let _ = Command::new("fallocate").args(["-l", &length]).arg(&ballast).stderr(Stdio::null()).status();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = fs::remove_file(&ballast);
    });
    begin.case.when_over(move || {
        over.store(true, Ordering::SeqCst);
        let _ = filler.join();
    });
}

/// Room for two servers' data.
const DISK_KIB: u64 = 700 << 10;
