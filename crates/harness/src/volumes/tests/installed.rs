//! Volumes on this machine: they need root, loop devices and tools, which `tools/install-test-needs` brings.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use std::{
    ffi::CString,
    fs,
    io::Read as _,
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

use rustix::{
    mount::{MountFlags, mount},
    process::Signal,
};
use tithe_machine::{
    launch::{Install, Missing},
    observation::Observation,
    proc::{signal, state},
    sandbox::{Sandbox, journal},
    soon::{await_state, soon},
    watch::swap,
};
use tithe_plugin::{
    evidence::{Check, judge},
    simulated::test_bench::Bench,
};

use super::*;
use crate::volumes::own_swap;

/// True if the volume `id` can be made; prints a notice if it cannot. With `CI` set that fails, except for dm-crypt,
/// which kernels of test machines may lack.
fn possible(id: &str) -> bool {
    has(protection(id).needs(&Install::default(), &chosen(id, &[])))
}

fn has(needs: Result<(), Missing>) -> bool {
    let Err(missing) = needs else { return true };
    let excused = missing.what.ends_with("needs (dm-crypt)");
    assert!(excused || std::env::var_os("CI").is_none(), "{missing:?}");
    eprintln!("SKIPPED: {missing:?}");
    false
}

/// Nothing of `sandbox` is mounted, looped or mapped, or will be soon. The kernel releases a loop device shortly after
/// its last user ends, and another test's start may be cleaning up what a killed process left.
fn assert_clean(sandbox: &Path) {
    let name = sandbox.file_name().expect("a name").to_string_lossy().into_owned();
    let left = || {
        let mounted = mounts::mount_points().into_iter().find(|point| point.starts_with(sandbox));
        let looped = mounts::loops().into_iter().find(|device| device.image.starts_with(sandbox));
        let mapped = mounts::mappings().into_iter().find(|mapping| mapping.name.starts_with(&name));
        (mounted.is_some() || looped.is_some() || mapped.is_some())
            .then(|| format!("mounted: {mounted:?}, looped: {looped:?}, mapped: {mapped:?}"))
    };
    soon("everything of the sandbox is gone", || left().map_or(Ok(()), Err));
}

/// The folder of a sandbox that a later start removes is gone, or soon will be.
fn assert_removed(sandbox: &Path) {
    soon("the sandbox is removed", || if sandbox.exists() { Err(sandbox) } else { Ok(()) });
}

/// What a volume claims, the last only if its key is rotated.
const CLAIMS: [&str; 5] = ["raw-image", "volume-header", "volume-key", "key-apart", "volume-key-rotated"];

/// Sets up the volume `id` with these options and a plain one, runs all of its checks on both, and removes both. It
/// must prove all of `claims`.
fn prove(id: &str, options: &[(&str, OptionValue)], claims: &[&str]) {
    if !possible(id) {
        return;
    }
    let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let folder = sandbox.folder().to_owned();
    let mut arm = |protected: bool| {
        let setup = setup_of(chosen(id, options), protected);
        let place = sandbox.place("arm").expect("a place");
        let mounted = set_up(setup.volume.as_ref().expect("a volume"), &place.folder, &sandbox).expect("a volume");
        (Bench::at(place.folder, setup, protected), mounted)
    };
    let (plain, protected) = (arm(false), arm(true));
    let mut proven = Vec::new();
    for check in protection(id).evidence(&chosen(id, options)) {
        let on_protected = protected.0.observe(&*check);
        let on_plain = plain.0.observe(&*check);
        let verdict = judge(check.entry().control, &on_protected, Some(&on_plain));
        eprintln!("{id} {}: {verdict:?}\n  protected: {on_protected:?}\n  plain: {on_plain:?}", check.id());
        if check.entry().role == tithe_model::record::Role::Claim {
            assert_eq!(verdict, tithe_model::record::Verdict::Holds, "{}: {on_protected:?} {on_plain:?}", check.id());
            proven.push(check.id());
        }
    }
    assert_eq!(proven, claims);
    assert!(mounts::mount_points().contains(&protected.0.server.folder));
    drop((plain, protected));
    assert_clean(&folder);
    drop(sandbox);
    assert!(!folder.exists());
}

#[test]
fn fscrypt_is_proven_and_leaves_nothing_behind() {
    prove("volume-fscrypt", &[], &CLAIMS[..4]);
}

#[test]
fn gocryptfs_is_proven_and_leaves_nothing_behind() {
    prove("volume-gocryptfs", &[], &CLAIMS[..4]);
}

#[test]
fn luks2_is_proven_and_leaves_nothing_behind() {
    prove("volume-luks2", &[("rotate", OptionValue::Flag(true))], &CLAIMS);
}

#[test]
fn encrypted_swap_is_used_and_leaves_nothing_behind() {
    if !has(own_swap::needs()) {
        return;
    }
    let sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let folder = sandbox.folder().to_owned();
    let ours = || swap::swaps().into_iter().filter(|swap| swap.exposure == swap::Exposure::Own).count();
    let before = ours();
    let set_up = own_swap::set_up(16 << 20, &sandbox).expect("swap");
    assert_eq!(ours(), before + 1);
    drop(set_up);
    assert_eq!(ours(), before);
    assert_clean(&folder);
}

#[test]
fn a_plain_volume_proves_no_claim() {
    if !possible("volume-fscrypt") {
        return;
    }
    let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let place = sandbox.place("arm").expect("a place");
    let setup = setup("volume-fscrypt", false);
    let _mounted = set_up(setup.volume.as_ref().expect("a volume"), &place.folder, &sandbox).expect("a volume");
    let bench = Bench::at(place.folder, setup, true);
    let checks: [&dyn Check; 3] = [&evidence::RawImage, &evidence::Header, &evidence::WrongKey];
    for check in checks {
        let observation = bench.observe(check);
        assert!(matches!(observation, Observation::Exposed(_)), "{}: {observation:?}", check.id());
    }
}

/// Reports, as a process that another test has started, where its volume is: as a whole or not at all.
fn report_place(parent: &Path, place: &Path) {
    fs::write(parent.join("ready.part"), place.display().to_string()).expect("written");
    fs::rename(parent.join("ready.part"), parent.join("ready")).expect("written");
}

/// Where the volume of the process is that was started with a sandbox in `parent`.
fn await_place(parent: &Path) -> PathBuf {
    PathBuf::from(soon("the volume of another process", || fs::read_to_string(parent.join("ready"))))
}

/// Set for [`victim`]: the folder of its sandbox's parent, and the volume to set up.
const VICTIM: &str = "TITHE_TEST_VOLUMES_VICTIM";

/// The process that the next test kills: sets up a volume, reports that, and sleeps. It is a test so that it can be
/// started by its name.
#[test]
fn victim() {
    let Some(asked) = std::env::var_os(VICTIM) else { return };
    let asked = asked.into_string().expect("text");
    let (id, parent) = asked.split_once(' ').expect("a volume and a folder");
    let mut sandbox = Sandbox::new(Path::new(parent)).expect("a sandbox");
    let place = sandbox.place("arm").expect("a place");
    let asked = setup(id, true).volume.expect("a volume");
    let _mounted = set_up(&asked, &place.folder, &sandbox).expect("a volume");
    report_place(Path::new(parent), &place.folder);
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// Kills a process while it uses the volume `id`, and starts the next sandbox elsewhere.
fn survive(id: &str) {
    if !possible(id) {
        return;
    }
    let parent = std::env::temp_dir().join(format!("tithe-test-volumes-{id}-{}", std::process::id()));
    fs::create_dir_all(&parent).expect("a folder");
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "volumes::tests::installed::victim", "--test-threads=1"])
        .env(VICTIM, format!("{id} {}", parent.display()))
        .spawn()
        .expect("the victim starts");
    let ready = await_place(&parent);
    let abandoned = ready.parent().expect("a sandbox").to_owned();
    // Something that the journal names but that lies elsewhere must not be touched.
    let foreign = parent.join("foreign");
    fs::create_dir_all(&foreign).expect("a folder");
    mount("tmpfs", &foreign, "tmpfs", MountFlags::empty(), c"size=64k").expect("mounted");
    let line = serde_json::to_string(&journal::JournalEntry::Mount { at: foreign.clone() }).expect("JSON");
    let path = abandoned.join("volumes.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    fs::write(&path, format!("{text}{line}\n")).expect("written");

    // Not afterwards: what a killed process has left may be removed by another test's start first.
    assert!(mounts::mount_points().contains(&ready), "it would leave nothing behind, so nothing is tested");
    victim.kill().expect("killed");
    victim.wait().expect("ended");
    drop(Sandbox::new(&std::env::temp_dir()).expect("the next start"));
    assert_clean(&abandoned);
    assert_removed(&abandoned);
    assert!(mounts::mount_points().contains(&foreign), "what Tithe did not make was unmounted");
    mounts::unmount(&foreign, false).expect("unmounted");
    fs::remove_dir_all(&parent).expect("removed");
}

#[test]
fn the_next_start_undoes_a_killed_fscrypt_volume_and_nothing_else() {
    survive("volume-fscrypt");
}

#[test]
fn the_next_start_undoes_a_killed_gocryptfs_volume_and_nothing_else() {
    survive("volume-gocryptfs");
}

/// True if file systems in user space can be mounted; prints a notice if they cannot.
fn can_serve() -> bool {
    has(machine::needs("a file system in user space", &[], &[("FUSE", machine::fuse)]))
}

/// A sandbox, and the parts of a volume called `name` in it.
fn place(name: &str) -> (Sandbox, Layout) {
    let sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let layout = Layout::of(&sandbox.folder().join(name));
    (sandbox, layout)
}

#[test]
fn a_mount_is_ready_when_its_program_says_so_and_not_when_it_is_there() {
    if !can_serve() {
        return;
    }
    let (sandbox, layout) = place("slow");
    let mut builder = volume_builder::VolumeBuilder::new(layout.clone(), sandbox.folder()).expect("a place");
    builder.make_folder(&layout.folder).expect("a folder");
    let at = layout.folder.display();
    // Like gocryptfs, which works in its mount for a while before others may use it.
    let script =
        format!("mount -t tmpfs -o size=64k none {at}; sleep 1; touch {at}/own; echo now ready; exec sleep 60");
    builder.serve("sh", &["-c", &script], &layout.folder, "now ready").expect("it becomes ready");
    assert!(layout.folder.join("own").exists(), "the program was still at work in its mount");
    drop(builder);
    assert_clean(sandbox.folder());
}

#[test]
fn a_program_that_never_says_it_is_ready_is_told_in_its_words_and_leaves_nothing() {
    if !can_serve() {
        return;
    }
    let (sandbox, layout) = place("never");
    let mut builder = volume_builder::VolumeBuilder::new(layout.clone(), sandbox.folder()).expect("a place");
    builder.make_folder(&layout.folder).expect("a folder");
    let at = layout.folder.display();
    let script = format!("mount -t tmpfs -o size=64k none {at}; echo no such cipher; exit 3");
    let fault = builder.serve("sh", &["-c", &script], &layout.folder, "now ready").expect_err("it never says so");
    assert!(fault.to_string().ends_with("its log ends with: no such cipher"), "{fault}");
    drop(builder);
    assert_clean(sandbox.folder());
}

/// How long a clean-up may take although nothing answers. A clean-up that waits for an answer takes 40 s even on an
/// idle machine, or for ever.
const CLEAN_WITHIN_S: u64 = 39;

#[test]
fn a_volume_whose_program_is_paused_is_taken_away_from_under_who_waits_for_it() {
    if !possible("volume-gocryptfs") {
        return;
    }
    let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let place = sandbox.place("arm").expect("a place");
    let asked = setup("volume-gocryptfs", true).volume.expect("a volume");
    let mounted = set_up(&asked, &place.folder, &sandbox).expect("a volume");
    let served = mounted.process().expect("gocryptfs");
    signal(served, Signal::STOP).expect("it runs");
    await_state(served, &["T"]);
    let script = format!("echo here; echo x > {}/file", place.folder.display());
    let mut command = Command::new("sh");
    let mut waiting = command.args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("a shell");
    // After its output it can sleep only for the file.
    let said = waiting.stdout.take().expect("what it says").read_exact(&mut [0; 5]);
    said.expect("a word");
    await_state(waiting.id() as i32, &["S", "D"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(waiting.try_wait().expect("a state"), None, "nobody waits for it, so nothing is tested");
    let begun = Instant::now();
    drop(mounted);
    assert!(begun.elapsed().as_secs() < CLEAN_WITHIN_S, "it took {:?}", begun.elapsed());
    assert!(!waiting.wait().expect("it ends").success(), "nothing was written");
    assert_eq!(state(served), "gone");
    let folder = sandbox.folder().to_owned();
    assert_clean(&folder);
    drop(sandbox);
    assert!(!folder.exists());
}

/// A file system in user space that answers the kernel's first request and then nothing (fuse(4), `linux/fuse.h`).
struct Mute {
    device: fs::File,
}

impl Mute {
    fn mount(at: &Path) -> Self {
        use std::os::fd::AsRawFd;
        let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = CString::new(options).expect("no zero byte");
        mount("mute", at, "fuse", MountFlags::empty(), options.as_c_str()).expect("mounted");
        Self { device }
    }

    /// Reads the next request; its operation and its number.
    fn take(&mut self) -> (u32, u64) {
        let mut request = vec![0; 64 * 1024];
        let length = self.device.read(&mut request).expect("a request");
        assert!(length >= 40, "a head of 40 bytes");
        let number = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().expect("8 bytes"));
        ((number(0) >> 32) as u32, number(8))
    }

    /// Answers the first request, `FUSE_INIT`: version 7.23, no features.
    fn greet(&mut self) {
        use std::io::Write;
        let (operation, number) = self.take();
        assert_eq!(operation, 26, "FUSE_INIT");
        let mut answer = Vec::new();
        answer.extend(80_u32.to_le_bytes());
        answer.extend(0_i32.to_le_bytes());
        answer.extend(number.to_le_bytes());
        for word in [7_u32, 23, 0, 0, 0, 4096] {
            answer.extend(word.to_le_bytes());
        }
        answer.resize(80, 0);
        self.device.write_all(&answer).expect("answered");
    }
}

/// Set for [`stuck`]: the folder of its sandbox's parent.
const STUCK: &str = "TITHE_TEST_VOLUMES_STUCK";

/// The process of the next test: requests a file of a file system that does not answer, and is killed meanwhile.
#[test]
fn stuck() {
    let Some(parent) = std::env::var_os(STUCK) else { return };
    let parent = Path::new(&parent);
    let mut sandbox = Sandbox::new(parent).expect("a sandbox");
    let place = sandbox.place("arm").expect("a place");
    let mut journal = journal::Journal::open(sandbox.folder()).expect("a journal");
    journal.note(journal::JournalEntry::Mount { at: place.folder.clone() }).expect("noted");
    report_place(parent, &place.folder);
    let is_mounted = || mounts::mount_points().contains(&place.folder);
    soon("the file system that does not answer", || if is_mounted() { Ok(()) } else { Err("it is not mounted") });
    let _ = fs::metadata(place.folder.join("file"));
}

/// A process that waits for an answer of a file system in user space cannot be killed: its sandbox's lock stays taken.
#[test]
fn the_next_start_frees_a_killed_process_that_waits_for_a_mount_that_does_not_answer() {
    if !can_serve() {
        return;
    }
    let parent = std::env::temp_dir().join(format!("tithe-test-stuck-{}", std::process::id()));
    fs::create_dir_all(&parent).expect("a folder");
    let mut victim = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "volumes::tests::installed::stuck", "--nocapture"])
        .env(STUCK, &parent)
        .spawn()
        .expect("the victim starts");
    let at = await_place(&parent);
    let abandoned = at.parent().expect("a sandbox").to_owned();
    let mut mute = Mute::mount(&at);
    mute.greet();
    mute.take();
    victim.kill().expect("killed");
    let killed = victim.id() as i32;
    let stays = |process: i32| {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        tasks.filter_map(|task| task.file_name().to_string_lossy().parse().ok()).any(|task: i32| state(task) == "D")
    };
    // Another test's start may free it first: then its mount is gone.
    let is_stuck = || stays(killed) || !mounts::mount_points().contains(&at);
    soon("a killed process that waits", || if is_stuck() { Ok(()) } else { Err("it died, so nothing is tested") });
    let begun = Instant::now();
    drop(Sandbox::new(&parent).expect("the next start"));
    assert!(begun.elapsed().as_secs() < CLEAN_WITHIN_S, "it took {:?}", begun.elapsed());
    soon("its end", || victim.try_wait().expect("a state").ok_or("it still waits"));
    assert_clean(&abandoned);
    assert_removed(&abandoned);
    drop(mute);
    fs::remove_dir_all(&parent).expect("removed");
}
