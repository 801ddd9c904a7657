//! The machine: its description, and its background load.

use std::{fs, path::Path};

use rustix::{
    fs::{major, minor, statvfs},
    time::ClockId,
};
use tithe_model::{
    quantity,
    record::{Host, Machine},
};

use super::{process, swap};
use crate::{clock, fingerprint::fingerprint, proc};

/// Counters of the machine at one moment; the difference between two is a [`Host`].
pub struct HostSample {
    at: std::time::Instant,
    cpu_stall_us: Option<u64>,
    io_stall_us: Option<u64>,
    processor_ticks: Vec<u64>,
    /// By control group, from ours to the root.
    throttled_us: Option<Vec<u64>>,
    clocks: Clocks,
}

impl HostSample {
    /// Reads the counters.
    pub fn take() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = stat.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
        Self {
            at: std::time::Instant::now(),
            cpu_stall_us: stall_us("/proc/pressure/cpu"),
            io_stall_us: stall_us("/proc/pressure/io"),
            processor_ticks: ticks.map(|field| field.parse().unwrap_or(0)).collect(),
            throttled_us: throttled_us(),
            clocks: Clocks::read(),
        }
    }

    /// The change since this sample.
    pub fn until_now(&self) -> Host {
        let now = Self::take();
        let elapsed_us = (now.at - self.at).as_micros().max(1) as f64;
        let share = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?) as f64 / elapsed_us);
        // /proc/stat, first line: user nice system idle iowait irq softirq steal guest guest_nice; guest is within
        // user.
        let grown: Vec<u64> = now
            .processor_ticks
            .iter()
            .zip(&self.processor_ticks)
            .map(|(after, before)| after.saturating_sub(*before))
            .collect();
        let total: u64 = grown.iter().take(8).sum();
        Host {
            load: load(),
            cpu_pressure: share(self.cpu_stall_us, now.cpu_stall_us),
            io_pressure: share(self.io_stall_us, now.io_stall_us),
            steal: (total > 0).then(|| grown.get(7).copied().unwrap_or(0) as f64 / total as f64),
            throttled: longest(self.throttled_us.as_deref(), now.throttled_us.as_deref())
                .map(|throttled_us| throttled_us as f64 / elapsed_us),
        }
    }

    /// Why times since then are not reliable; `None` if they are.
    pub fn clock_fault(&self) -> Option<String> {
        self.clocks.fault(&Clocks::read())
    }
}

/// The kernel's clocks at one moment, ns.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    /// The clock for all measurements; time servers slew it, and it stops while the machine sleeps.
    monotonic: u64,
    /// The hardware's own clock.
    raw: u64,
    /// Continues while the machine sleeps.
    boot: u64,
    /// The time of day.
    real: u64,
}

impl Clocks {
    fn read() -> Self {
        Self {
            monotonic: clock::read(ClockId::Monotonic),
            raw: clock::read(ClockId::MonotonicRaw),
            boot: clock::read(ClockId::Boottime),
            real: clock::read(ClockId::Realtime),
        }
    }

    /// A problem of the clocks between `self` and `later`.
    ///
    /// Time servers slew by at most 500 parts in a million (adjtimex(2)). The four clocks are not read at the same
    /// instant, and a busy machine may delay the reader in between.
    fn fault(&self, later: &Self) -> Option<String> {
        const APART_NS: u64 = 100_000_000;
        let elapsed = later.monotonic.saturating_sub(self.monotonic);
        let off = |before: u64, after: u64| after.saturating_sub(before).abs_diff(elapsed);
        let allowed = APART_NS + elapsed / 1000;
        let ms = |ns: u64| ns / 1_000_000;
        if later.boot.saturating_sub(self.boot) > elapsed + allowed {
            return Some(format!("the machine slept for {} ms", ms(off(self.boot, later.boot))));
        }
        if off(self.raw, later.raw) > allowed {
            return Some(format!("the clock is off by {} ms against its hardware", ms(off(self.raw, later.raw))));
        }
        // The time of day may go backwards.
        let stepped = (later.real as i128 - self.real as i128 - i128::from(elapsed)).unsigned_abs() as u64;
        (stepped > allowed).then(|| format!("the time of day was set by {} ms", ms(stepped)))
    }
}

/// How long the quota of each control group of this process has throttled it since the group was made, µs.
///
/// cgroup v2: `throttled_usec` of `cpu.stat`, in every group from ours to the root (Linux, cgroup-v2.rst, "CPU
/// Interface Files").
fn throttled_us() -> Option<Vec<u64>> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let stat = |group: &Path| {
        let text = fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join("cpu.stat")).ok()?;
        proc::value(&text, "throttled_usec")
    };
    let totals: Vec<Option<u64>> = Path::new(own).ancestors().map(stat).collect();
    totals.iter().any(Option::is_some).then(|| totals.into_iter().map(Option::unwrap_or_default).collect())
}

/// The largest increase of throttled time of any group between two readings, µs. Totals cannot be compared directly: an
/// old group may have the largest total while another one is being throttled.
fn longest(before: Option<&[u64]>, after: Option<&[u64]>) -> Option<u64> {
    before?.iter().zip(after?).map(|(before, after)| after.saturating_sub(*before)).max()
}

/// The `some` total of a pressure file, µs.
fn stall_us(path: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// One-minute load average.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Describes the machine; `data` is a path on the file system of the data folders.
pub fn machine(data: &Path) -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let entry = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let flags = entry("flags");
    let flags: Vec<&str> = flags.split_ascii_whitespace().collect();
    let wanted = ["aes", "vaes", "pclmulqdq", "vpclmulqdq", "sha_ni", "avx2", "avx512f"];
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    Machine {
        processor: entry("model name"),
        processors: process::processors().len() as u32,
        memory_bytes: 1024 * proc::value(&memory, "MemTotal:").unwrap_or(0),
        kernel: line("/proc/sys/kernel/osrelease"),
        system: system.trim_matches('"').to_owned(),
        crypto_flags: wanted.into_iter().filter(|flag| flags.contains(flag)).map(str::to_owned).collect(),
        kernel_crypto: kernel_crypto(&fs::read_to_string("/proc/crypto").unwrap_or_default()),
        clock: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        file_system: file_system(data, &fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
        storage: storage(data).unwrap_or_default(),
        swap: swap::in_words(&swap::swaps()),
        virtualised: flags.contains(&"hypervisor"),
        boot: boot(&line("/proc/sys/kernel/random/boot_id")),
    }
}

/// The fingerprint of a boot, from the kernel's boot identity (random(4)), which is the same in all containers of a
/// host. The identity itself is not kept, because other programs may use it as a key. Empty if there is none.
fn boot(id: &str) -> String {
    if id.is_empty() { String::new() } else { fingerprint(format!("tithe boot {id}").as_bytes()) }
}

/// `name = driver` of the AES modes that volumes use, from the text of `/proc/crypto`.
fn kernel_crypto(text: &str) -> Vec<String> {
    let mut drivers = Vec::new();
    for block in text.split("\n\n") {
        let entry = |name: &str| {
            let line = block.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        if let (Some(name), Some(driver)) = (entry("name"), entry("driver"))
            && ["xts(aes)", "gcm(aes)", "cbc(aes)", "aes"].contains(&name.as_str())
        {
            drivers.push(format!("{name} = {driver}"));
        }
    }
    drivers.sort();
    drivers.dedup();
    drivers
}

/// Type of the file system that holds `path`: that of the longest mount point above it.
fn file_system(path: &Path, mounts: &str) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut best = (0, String::new());
    for mount in mounts.lines() {
        let mut fields = mount.split_ascii_whitespace().skip(1);
        let (Some(point), Some(kind)) = (fields.next(), fields.next()) else { continue };
        if path.starts_with(point) && point.len() >= best.0 {
            best = (point.len(), kind.to_owned());
        }
    }
    best.1
}

/// A description of the disk that holds `path`; `None` if it is on no disk of this kernel.
///
/// What the kernel knows of a block device is in `/sys/dev/block/MAJOR:MINOR` (Documentation/ABI/stable/sysfs-block).
fn storage(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let device = fs::metadata(path).ok()?.dev();
    let number = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let device = Path::new(&number).canonicalize().ok()?;
    let is_partition = device.join("partition").exists();
    disk_in_words(if is_partition { device.parent()? } else { &device })
}

/// A description of a disk from its folder in `/sys`.
fn disk_in_words(disk: &Path) -> Option<String> {
    let line = |file: &str| Some(fs::read_to_string(disk.join(file)).ok()?.trim().to_owned());
    let driver = || Some(fs::read_link(disk.join("device/driver")).ok()?.file_name()?.to_string_lossy().into_owned());
    let name = || Some(disk.file_name()?.to_string_lossy().into_owned());
    let called = line("device/model").filter(|model| !model.is_empty()).or_else(driver).or_else(name)?;
    // The kernel counts sectors of 512 bytes for every disk.
    let size = quantity::memory(512 * line("size")?.parse::<u64>().ok()?);
    let rotates = match line("queue/rotational").as_deref() {
        Some("1") => ", rotating",
        Some("0") => ", not rotating",
        _ => "",
    };
    Some(format!("{called}, {size}{rotates}"))
}

/// Free bytes on the file system that holds `path`; `None` if unknown.
pub fn free_bytes(path: &Path) -> Option<u64> {
    statvfs(path).ok().map(|status| status.f_bavail * status.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_told_by_its_model_its_driver_or_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("nvme0n1");
        for below in ["device", "queue"] {
            fs::create_dir_all(disk.join(below)).expect("a folder");
        }
        assert_eq!(disk_in_words(&disk), None, "of no size");
        fs::write(disk.join("size"), "536870912\n").expect("written");
        assert_eq!(disk_in_words(&disk).as_deref(), Some("nvme0n1, 256 GiB"));
        std::os::unix::fs::symlink("/sys/bus/virtio/drivers/virtio_blk", disk.join("device/driver")).expect("a link");
        fs::write(disk.join("queue/rotational"), "1\n").expect("written");
        assert_eq!(disk_in_words(&disk).as_deref(), Some("virtio_blk, 256 GiB, rotating"));
        fs::write(disk.join("queue/rotational"), "0\n").expect("written");
        fs::write(disk.join("device/model"), "Fast Store 7  \n").expect("written");
        assert_eq!(disk_in_words(&disk).as_deref(), Some("Fast Store 7, 256 GiB, not rotating"));
        assert_eq!(storage(Path::new("/proc")), None, "no disk is below it");
    }

    #[test]
    fn file_system_is_that_of_the_longest_mount_point() {
        let mounts = "a / ext4 rw 0 0\nb /proc proc rw 0 0\n";
        assert_eq!(file_system(Path::new("/proc/self"), mounts), "proc");
        assert_eq!(file_system(Path::new("/etc"), mounts), "ext4");
    }

    #[test]
    fn a_young_group_that_is_throttled_is_seen_behind_an_old_one_that_is_not() {
        assert_eq!(longest(Some(&[40, 100_000, 7]), Some(&[90, 100_000, 8])), Some(50));
        assert_eq!(longest(Some(&[40]), None), None);
    }

    #[test]
    fn clocks_that_step_are_noticed() {
        const S: u64 = 1_000_000_000;
        let before = Clocks { monotonic: 10 * S, raw: 20 * S, boot: 30 * S, real: 1000 * S };
        let after = Clocks { monotonic: 11 * S, raw: 21 * S, boot: 31 * S, real: 1001 * S };
        assert_eq!(before.fault(&after), None);
        let told = |later: Clocks| before.fault(&later).expect("a fault");
        assert_eq!(told(Clocks { real: 1000 * S, ..after }), "the time of day was set by 1000 ms");
        assert_eq!(told(Clocks { real: 3601 * S, ..after }), "the time of day was set by 2600000 ms");
        assert_eq!(told(Clocks { boot: 38 * S, ..after }), "the machine slept for 7000 ms");
        assert_eq!(told(Clocks { raw: 22 * S, ..after }), "the clock is off by 1000 ms against its hardware");
    }

    #[test]
    fn kernel_drivers_are_listed_by_mode() {
        let text =
            "name         : xts(aes)\ndriver       : xts-aes-aesni\n\nname         : md5\ndriver       : md5-generic\n";
        assert_eq!(kernel_crypto(text), ["xts(aes) = xts-aes-aesni"]);
    }
}
