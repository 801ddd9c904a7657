//! Network namespaces as hosts: each has a network, a name and, where it is asked for, clocks of its own.
//!
//! The hosts are joined by a bridge in a namespace that is none of them, so nothing of the machine's own network
//! changes. A namespace is there for as long as somebody is in it: a shell that waits for the end of its input, which
//! only the test writes to. Once the test drops it, or has ended in whatever way, the shell kills everybody who is left
//! in its namespace and ends, and with it go namespace and devices. Files, processes and accounts are the machine's.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{self, Write as _},
    net::Ipv4Addr,
    ops::Deref,
    os::{fd::AsRawFd, unix::process::CommandExt},
    panic::resume_unwind,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use tithe_machine::proc::signal;

use super::process::Process;

/// Waits for the end of its input, then kills the other processes of its network namespace, until none is left.
const HOLDER: &str = r#"while read -r _; do :; done
left=1
while [ "$left" = 1 ]; do
  left=0
  for process in /proc/[0-9]*; do
    if [ "$process" != "/proc/$$" ] && [ "$process/ns/net" -ef "/proc/$$/ns/net" ]; then
      left=1
      kill -9 "${process#/proc/}" 2>/dev/null
    fi
  done
  [ "$left" = 0 ] || sleep 0.02
done"#;

/// Some hosts in one network, which end with it.
pub struct Hosts {
    // Before the bridge that joins them.
    hosts: Vec<Host>,
    _switch: Namespaces,
}

/// One of them.
pub struct Host {
    namespaces: Namespaces,
    address: Ipv4Addr,
}

/// Namespaces that go with the process that holds them.
struct Namespaces {
    holder: Child,
    /// Each with its kind, as setns(2) wants it.
    files: Vec<(File, libc::c_int)>,
}

impl Hosts {
    /// So many hosts with the machine's clocks. Where namespaces cannot be made the test says so and is skipped, and
    /// fails where `CI` is set.
    pub fn new(count: usize) -> Option<Self> {
        Self::with_clock_offsets_ns(&vec![0; count])
    }

    /// A host for each of `offsets_ns`, whose clocks since boot (CLOCK_MONOTONIC, CLOCK_BOOTTIME) are so far ahead of
    /// the machine's. No clock can be made to say less than 0. As [`Hosts::new`] where that cannot be.
    #[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
    pub fn with_clock_offsets_ns(offsets_ns: &[i64]) -> Option<Self> {
        match Self::make(offsets_ns) {
            Ok(hosts) => Some(hosts),
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "no namespaces: {why}");
                eprintln!("SKIPPED: no namespaces: {why}");
                None
            }
        }
    }

    fn make(offsets_ns: &[i64]) -> Result<Self, String> {
        let switch = Namespaces::make("switch", 0)?;
        switch.ip("link add switch type bridge\nlink set switch up\n")?;
        let hosts = (1u8..).zip(offsets_ns).map(|(number, offset_ns)| {
            let namespaces = Namespaces::make(&format!("host{number}"), *offset_ns)?;
            let address = Ipv4Addr::new(10, 77, 0, number);
            let process = namespaces.holder.id();
            switch.ip(&format!(
                "link add port{number} type veth peer name eth0 netns {process}\nlink set port{number} master switch up\n"
            ))?;
            namespaces.ip(&format!("link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\n"))?;
            Ok(Host { namespaces, address })
        });
        Ok(Self { hosts: hosts.collect::<Result<_, String>>()?, _switch: switch })
    }
}

impl Deref for Hosts {
    type Target = [Host];

    fn deref(&self) -> &[Host] {
        &self.hosts
    }
}

impl Host {
    /// Its address in the network of the hosts.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Has `command` run here.
    pub fn enter(&self, command: &mut Command) {
        enter(command, self.namespaces.files.iter().map(|(file, kind)| (file.as_raw_fd(), *kind)).collect());
    }

    /// Starts `command` here.
    pub fn spawn(&self, command: &mut Command) -> Process {
        self.enter(command);
        Process::start(command)
    }

    /// Runs `command` here to its end.
    pub fn output(&self, command: &mut Command) -> Output {
        self.enter(command);
        command.output().expect("it runs in its host")
    }

    /// Does `work` in a thread that is in this host's network, as are the threads and processes that it starts. Name
    /// and clocks stay the machine's.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let here = || {
            let (network, kind) = &self.namespaces.files[0];
            // SAFETY: the descriptor is open, and only the calling thread changes its network.
            checked(unsafe { libc::setns(network.as_raw_fd(), *kind) }).expect("in the network of the host");
            work()
        };
        thread::scope(|scope| scope.spawn(here).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Ends everybody who is here at once, by kill -9, as when a host loses its power. It is there again afterwards.
    pub fn lose_power(&self) {
        let holder = self.namespaces.holder.id();
        loop {
            let all = fs::read_dir("/proc").expect("a folder").flatten();
            let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let here: Vec<u32> = numbers.filter(|process| *process != holder && self.is_here(*process)).collect();
            if here.is_empty() {
                return;
            }
            for process in here {
                // One that has ended meanwhile is what is wanted.
                let _ = signal(process.cast_signed(), Signal::KILL);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// True for a process in its network, until it has ended.
    fn is_here(&self, process: u32) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(format!("/proc/{process}/ns/net")).is_ok_and(|found| found.ino() == self.network())
    }

    /// The kernel's number of its network.
    pub fn network(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        self.namespaces.files[0].0.metadata().expect("an open file").ino()
    }
}

impl Namespaces {
    /// Namespaces of a host called `name`, whose clocks are ahead by `offset_ns`.
    fn make(name: &str, offset_ns: i64) -> Result<Self, String> {
        const SECOND_NS: i64 = 1_000_000_000;
        let (s, ns) = (offset_ns.div_euclid(SECOND_NS), offset_ns.rem_euclid(SECOND_NS));
        let offsets = format!("monotonic {s} {ns}\nboottime {s} {ns}\n");
        let name = CString::new(name).expect("a name without zeros");
        let has_clocks = offset_ns != 0;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", HOLDER]).stdin(Stdio::piped()).process_group(0);
        let separate = move || {
            let clocks = if has_clocks { libc::CLONE_NEWTIME } else { 0 };
            // SAFETY: the process has one thread, and nobody else's namespaces change.
            checked(unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWUTS | clocks) })?;
            // SAFETY: the name is as long as is said.
            checked(unsafe { libc::sethostname(name.as_ptr(), name.as_bytes().len()) })?;
            if has_clocks { fs::write("/proc/self/timens_offsets", &offsets) } else { Ok(()) }
        };
        // SAFETY: between fork and exec there are system calls alone, on memory that was allocated before.
        unsafe { command.pre_exec(separate) };
        let holder = command.spawn().map_err(|error| format!("/bin/sh in namespaces of its own: {error}"))?;
        let folder = Path::new("/proc").join(holder.id().to_string()).join("ns");
        let mut namespaces = Self { holder, files: Vec::new() };
        // Who unshares its clocks has them for its children.
        let kinds =
            [("net", libc::CLONE_NEWNET), ("uts", libc::CLONE_NEWUTS), ("time_for_children", libc::CLONE_NEWTIME)];
        for (kind, flag) in kinds.into_iter().take(if has_clocks { 3 } else { 2 }) {
            let file = File::open(folder.join(kind)).map_err(|error| format!("its {kind} namespace: {error}"))?;
            namespaces.files.push((file, flag));
        }
        Ok(namespaces)
    }

    /// Has `ip` carry out `lines` in the network.
    fn ip(&self, lines: &str) -> Result<(), String> {
        let program = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].into_iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(program.ok_or("there is no program ip (package iproute2)")?);
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let (network, kind) = &self.files[0];
        enter(&mut command, vec![(network.as_raw_fd(), *kind)]);
        let failed = |error: io::Error| format!("ip: {error}");
        let mut child = command.spawn().map_err(failed)?;
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(lines.as_bytes()));
        let output = child.wait_with_output().map_err(failed)?;
        written.map_err(failed)?;
        let words = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("ip: {}", words.trim())) }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Has `command` run in `namespaces`, which are descriptors with their kinds.
fn enter(command: &mut Command, namespaces: Vec<(i32, libc::c_int)>) {
    let join = move || {
        // SAFETY: descriptors that are not open any more are refused by the kernel; the process has one thread.
        namespaces.iter().try_for_each(|(file, kind)| checked(unsafe { libc::setns(*file, *kind) }))
    };
    // SAFETY: between fork and exec there are system calls alone.
    unsafe { command.pre_exec(join) };
}

/// What a system call said.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
