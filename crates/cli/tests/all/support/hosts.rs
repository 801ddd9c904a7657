//! Network namespaces as hosts: each has a network, a name and, on request, clocks of its own.
//!
//! A bridge in a separate namespace joins the hosts, so nothing of the machine's own network changes. A namespace
//! exists as long as a process is in it: a shell that waits for the end of its input, which only the test writes to.
//! Once the test drops it, or has ended in any way, the shell kills all other processes in its namespace and ends. Then
//! the namespace and its devices disappear. Files, processes and accounts are the machine's.

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

/// Some hosts in one network, which end when this is dropped.
pub struct Hosts {
    // Dropped before the bridge that joins them.
    hosts: Vec<Host>,
    _switch: Namespaces,
}

/// One of them.
pub struct Host {
    namespaces: Namespaces,
    address: Ipv4Addr,
}

/// Namespaces that end with the process that holds them.
struct Namespaces {
    holder: Child,
    /// Each with its type for setns(2).
    files: Vec<(File, libc::c_int)>,
}

impl Hosts {
    /// This number of hosts with the machine's clocks. If namespaces cannot be created, the test is skipped with a
    /// notice, or fails if `CI` is set.
    pub fn new(count: usize) -> Option<Self> {
        Self::with_clock_offsets_ns(&vec![0; count])
    }

    /// A host for each of `offsets_ns`, whose clocks since boot (CLOCK_MONOTONIC, CLOCK_BOOTTIME) are ahead of the
    /// machine's by that offset. No clock can be made negative. If this is impossible, as [`Hosts::new`].
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

    /// Makes `command` run here.
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

    /// Does `work` in a thread in this host's network; threads and processes that it starts are there, too. Name and
    /// clocks stay the machine's.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let here = || {
            let (network, kind) = &self.namespaces.files[0];
            // SAFETY: the descriptor is open, and only the calling thread changes its network.
            checked(unsafe { libc::setns(network.as_raw_fd(), *kind) }).expect("in the network of the host");
            work()
        };
        thread::scope(|scope| scope.spawn(here).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Kills all processes here at once by kill -9, as when a host loses its power. It can be used again afterwards.
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
                // A process that has ended meanwhile is fine.
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
            // SAFETY: the process has one thread, and no other process's namespaces change.
            checked(unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWUTS | clocks) })?;
            // SAFETY: the length is that of the name.
            checked(unsafe { libc::sethostname(name.as_ptr(), name.as_bytes().len()) })?;
            if has_clocks { fs::write("/proc/self/timens_offsets", &offsets) } else { Ok(()) }
        };
        // SAFETY: between fork and exec there are only system calls, on memory that was allocated before.
        unsafe { command.pre_exec(separate) };
        let holder = command.spawn().map_err(|error| format!("/bin/sh in namespaces of its own: {error}"))?;
        let folder = Path::new("/proc").join(holder.id().to_string()).join("ns");
        let mut namespaces = Self { holder, files: Vec::new() };
        // New clocks apply only to the children of the process that created them.
        let kinds =
            [("net", libc::CLONE_NEWNET), ("uts", libc::CLONE_NEWUTS), ("time_for_children", libc::CLONE_NEWTIME)];
        for (kind, flag) in kinds.into_iter().take(if has_clocks { 3 } else { 2 }) {
            let file = File::open(folder.join(kind)).map_err(|error| format!("its {kind} namespace: {error}"))?;
            namespaces.files.push((file, flag));
        }
        Ok(namespaces)
    }

    /// Lets `ip` carry out `lines` in the network.
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

/// Makes `command` run in `namespaces`, which are descriptors with their types.
fn enter(command: &mut Command, namespaces: Vec<(i32, libc::c_int)>) {
    let join = move || {
        // SAFETY: the kernel refuses closed descriptors; the process has one thread.
        namespaces.iter().try_for_each(|(file, kind)| checked(unsafe { libc::setns(*file, *kind) }))
    };
    // SAFETY: between fork and exec there are only system calls.
    unsafe { command.pre_exec(join) };
}

/// The result of a system call.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
