//! Descriptors, threads, memory and clocks.

use std::{fs, path::Path, process::Command};

use super::fault::{Begin, Fault, How, Leaves};

const BARE: Fault = Fault { statuses: &[1, 4, 7], ..Fault::BARE };

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "few descriptors",
        how: How::From(|begin| {
            let most = 4 + begin.draw.below(40);
            limit(begin, &format!("ulimit -n {most}"));
        }),
        words: &["descriptors", "open files", "RLIMIT_NOFILE", "os error 24"],
        statuses: &[1, 4, 5, 7, 127],
        ..BARE
    },
    Fault {
        name: "EMFILE once",
        how: How::From(|begin| strike(begin, "open", libc::EMFILE, false)),
        words: &["Too many open files", "too many open files"],
        ..BARE
    },
    Fault {
        name: "a thread is refused",
        how: How::From(|begin| strike(begin, "thread", libc::EAGAIN, false)),
        words: &["thread", "Resource temporarily unavailable"],
        ..BARE
    },
    Fault {
        name: "all threads are refused",
        how: How::From(|begin| strike(begin, "thread", libc::EAGAIN, true)),
        words: &["thread", "Resource temporarily unavailable"],
        ..BARE
    },
    Fault {
        name: "little memory",
        on: |kind| kind == super::product::Kind::Simulated,
        how: How::From(|begin| {
            let kib = 20_000 + begin.draw.below(100_000);
            limit(begin, &format!("ulimit -v {kib}"));
        }),
        words: &["memory", "Resource temporarily unavailable", "allocate", "map segment"],
        statuses: &[1, 4, 127, -6, -11],
        ..BARE
    },
    Fault {
        name: "killed for memory",
        on: |kind| can_confine() && kind != super::product::Kind::Attached,
        how: How::From(confine),
        words: &[
            "memory",
            "signal: 9",
            "SIGKILL",
            "killed",
            "Killed",
            "ended",
            "closed",
            "connection",
            "no operation succeeded",
        ],
        statuses: &[1, 4, 5, 7, -9],
        ..BARE
    },
    Fault {
        name: "the clock jumps ahead",
        how: How::From(|begin| step(begin, 100_000)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
    Fault {
        name: "the clock jumps back",
        how: How::From(|begin| step(begin, -100_000)),
        leaves: Leaves::Unharmed,
        statuses: &[],
        ..BARE
    },
];

fn strike(begin: &mut Begin<'_>, call: &str, error: i32, lasts: bool) {
    begin.tools.strike((begin.command, begin.case), (call, error, lasts), begin.reference, begin.draw);
}

/// Where groups with a limit of memory are made (cgroup version 1).
const GROUPS: &str = "/sys/fs/cgroup/memory";

fn can_confine() -> bool {
    rustix::process::geteuid().is_root() && Path::new(GROUPS).join("memory.limit_in_bytes").exists()
}

/// Lets the program and all that it starts have a drawn amount of memory, beyond which the kernel kills.
fn confine(begin: &mut Begin<'_>) {
    let most = match begin.case.product.kind() {
        super::product::Kind::Simulated => 24,
        _ => 200,
    };
    let group = Path::new(GROUPS).join(format!("faults-{}-{}", std::process::id(), begin.draw.number()));
    fs::create_dir_all(&group).expect("a control group");
    let bytes = (2 + begin.draw.below(most)) << 20;
    fs::write(group.join("memory.limit_in_bytes"), bytes.to_string()).expect("a limit");
    limit(begin, &format!("echo $$ >{}/cgroup.procs", group.display()));
    begin.case.when_over(move || {
        // Processes that were killed take a moment to go.
        for _ in 0..200 {
            if fs::remove_dir(&group).is_ok() || !group.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
}

/// The system's clock is another one after a drawn look at it.
fn step(begin: &mut Begin<'_>, seconds: i64) {
    begin.command.env("FAULT_STEP_S", seconds.to_string());
    strike(begin, "clock", 1, false);
}

/// Has a shell set limits before it becomes the program.
pub fn limit(begin: &mut Begin<'_>, limits: &str) {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(begin.command.get_program());
    shell.args(begin.command.get_args());
    for (name, value) in begin.command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.current_dir(&begin.case.folder);
    *begin.command = shell;
}
