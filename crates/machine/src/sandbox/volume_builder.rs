//! Builds one volume: the steps that several kinds share, each recorded in the journal before it is done.

use std::{
    ffi::CStr,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    mount::{MountFlags, mount, mount_bind},
    process::Signal,
};

use super::{
    account::Account,
    journal::{Journal, JournalEntry},
    process, stalled,
    tools::tool,
};
use crate::{fault::Fault, launch::Command};

/// Time that a file system in user space gets to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A volume under construction; if it is dropped unfinished, all steps are undone.
pub struct VolumeBuilder<'a> {
    /// Paths of its parts.
    pub layout: Layout,
    sandbox: &'a Path,
    journal: Journal,
}

impl<'a> VolumeBuilder<'a> {
    /// For the volume of `layout`, which lies in `sandbox`.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn new(layout: Layout, sandbox: &'a Path) -> Result<Self, Fault> {
        Ok(Self { layout, sandbox, journal: Journal::open(sandbox)? })
    }

    /// Makes the empty image: a sparse file, readable by root alone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_image(&self, bytes: u64) -> Result<(), Fault> {
        let make = |image: &Path| new_image(image)?.set_len(bytes);
        make(&self.layout.image()).map_err(|error| failed(&self.layout.image(), &error))
    }

    /// Makes an image whose space is allocated on the disk: swapping must not have to allocate it.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn allocate_image(&self, bytes: u64) -> Result<(), Fault> {
        let make = |image: &Path| Ok(fallocate(new_image(image)?, FallocateFlags::empty(), 0, bytes)?);
        make(&self.layout.image()).map_err(|error| failed(&self.layout.image(), &error))
    }

    /// A loop device of the image.
    ///
    /// # Errors
    /// When none is free.
    pub fn loop_device(&mut self) -> Result<PathBuf, Fault> {
        self.attach(&["--direct-io=on"])
    }

    /// A second, read-only loop device of the image.
    ///
    /// # Errors
    /// When none is free.
    pub fn read_only_loop_device(&mut self) -> Result<PathBuf, Fault> {
        self.attach(&["--read-only"])
    }

    fn attach(&mut self, options: &[&str]) -> Result<PathBuf, Fault> {
        let image = self.layout.image();
        self.journal.note(JournalEntry::Loop { image: image.clone() })?;
        let image = text(&image);
        // Direct I/O: otherwise every page would be cached twice, once in memory outside of the server's limit.
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(&image);
        Ok(PathBuf::from(self.run("losetup", &arguments)?.trim()))
    }

    /// Releases the loop device together with its last user, so that no mount can leave one behind.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn release_loop(&self, device: &Path) -> Result<(), Fault> {
        self.run("losetup", &["--detach", &text(device)]).map(drop)
    }

    /// Makes an ext4 file system on `device`. Nothing is left for the kernel to initialise later, during measurement.
    ///
    /// # Errors
    /// When the tool fails.
    pub fn make_ext4(&self, device: &Path, further: &[&str]) -> Result<(), Fault> {
        let device = text(device);
        let mut arguments = vec!["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        arguments.extend(further);
        arguments.push(&device);
        self.run("mkfs.ext4", &arguments).map(drop)
    }

    /// Mounts the ext4 file system on `device` at `at`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn mount_ext4(&mut self, device: &Path, at: &Path) -> Result<(), Fault> {
        self.mount(device, at, MountFlags::empty(), c"")
    }

    /// Mounts it read-only, without the journal, which another mount writes.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn mount_ext4_read_only(&mut self, device: &Path, at: &Path) -> Result<(), Fault> {
        self.mount(device, at, MountFlags::RDONLY, c"noload")
    }

    fn mount(&mut self, device: &Path, at: &Path, flags: MountFlags, options: &CStr) -> Result<(), Fault> {
        self.journal.note(JournalEntry::Mount { at: at.to_owned() })?;
        mount(device, at, "ext4", flags | MountFlags::NODEV | MountFlags::NOSUID, options).map_err(|error| {
            Fault::machine(format!("cannot mount {} at {}", device.display(), at.display()), io::Error::from(error))
        })
    }

    /// Bind-mounts the folder `from` at `at`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn bind(&mut self, from: &Path, at: &Path) -> Result<(), Fault> {
        self.journal.note(JournalEntry::Mount { at: at.to_owned() })?;
        mount_bind(from, at).map_err(|error| failed(at, &error.into()))
    }

    /// Notes a mapping called `name` over the image.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn note_mapping(&mut self, name: &str) -> Result<(), Fault> {
        self.journal.note(JournalEntry::Mapping { name: name.to_owned(), image: self.layout.image() })
    }

    /// Swaps to `device`, the mapping called `name` over the image, with the highest priority, so it is used first.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn swap_on(&mut self, name: &str, device: &Path) -> Result<(), Fault> {
        self.journal.note(JournalEntry::Swap { name: name.to_owned(), image: self.layout.image() })?;
        self.run("swapon", &["--priority", "32767", &text(device)]).map(drop)
    }

    /// The journal of these steps; dropping it undoes them.
    pub fn into_journal(self) -> Journal {
        self.journal
    }

    /// Starts a program that mounts a file system at `at` and serves it until it is unmounted. Waits until it has
    /// written `ready`. An existing mount is not enough: the program may still be working inside it, and a process that
    /// comes too early and the program could wait for each other.
    ///
    /// # Errors
    /// Its last words if it ends before, or does not become ready in time.
    pub fn serve(&mut self, program: &str, arguments: &[&str], at: &Path, ready: &str) -> Result<(), Fault> {
        self.journal.note(JournalEntry::Mount { at: at.to_owned() })?;
        let log = self.layout.log();
        File::create(&log).map_err(|error| failed(&log, &error))?;
        let running = process::start(&command(program, arguments)?, None, None, &log, Signal::TERM)?;
        let process = running.process();
        self.journal.serve(at.to_owned(), running);
        stalled::watch(process, program)?;
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let said = fs::read(&log).map_err(|error| failed(&log, &error))?;
            let said = String::from_utf8_lossy(&said);
            if said.contains(ready) {
                return Ok(());
            }
            if let Some(words) = self.journal.ended() {
                return Err(Fault::Refused(words));
            }
            if Instant::now() > deadline {
                let (at, waited, said) = (at.display(), READY_TIMEOUT.as_secs(), process::tail(&said));
                return Err(Fault::Machine(format!(
                    "{program} did not print `{ready}` for {at} within {waited} s; it printed: {said}"
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes a folder that only root can enter.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_folder(&self, path: &Path) -> Result<(), Fault> {
        let made = fs::create_dir(path).and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700)));
        made.map_err(|error| failed(path, &error))
    }

    /// Writes a key in hexadecimal, one line, to a file that only root can read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_key(&self, path: &Path, key: &crate::secret::Secret) -> Result<(), Fault> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(key.expose_hex().as_bytes())).map_err(|error| failed(path, &error))
    }

    /// Runs one of the system's tools to its end; returns its output.
    ///
    /// # Errors
    /// When it is missing or fails, with its own words.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Fault> {
        process::output(&command(program, arguments)?, None::<&Account>, self.sandbox)
    }

    /// Undoes all steps so far, so that they can be repeated.
    pub fn undo(&mut self) {
        self.journal.undo();
    }
}

fn new_image(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// One of the system's tools with its arguments.
///
/// # Errors
/// When it is not installed.
pub fn command(program: &str, arguments: &[&str]) -> Result<Command, Fault> {
    let path = tool(program).ok_or_else(|| Fault::Machine(format!("{program} is not installed")))?;
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Ok(Command { program: path, arguments, ..Command::default() })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn failed(path: &Path, error: &io::Error) -> Fault {
    Fault::machine(path.display(), error)
}

/// Paths of the parts of a volume: next to the folder that it is mounted at, all below the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The folder of the server's data: [`crate::launch::Place::folder`].
    pub folder: PathBuf,
}

impl Layout {
    /// The parts of the volume at `folder`.
    pub fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The image file: the disk.
    pub fn image(&self) -> PathBuf {
        self.beside("img")
    }

    /// Where the image's file system is mounted if another layer lies between it and the folder.
    pub fn below(&self) -> PathBuf {
        self.beside("below")
    }

    /// The key, for tools that read it from a file.
    pub fn key(&self) -> PathBuf {
        self.beside("key")
    }

    /// A temporary wrong key.
    pub fn wrong_key(&self) -> PathBuf {
        self.beside("wrong-key")
    }

    /// A temporary second mount point.
    pub fn second(&self) -> PathBuf {
        self.beside("second")
    }

    /// Log of a tool that keeps running.
    pub fn log(&self) -> PathBuf {
        self.beside("log")
    }

    /// Name of the mapping over the image, below `/dev/mapper`; unique for each sandbox.
    pub fn mapping(&self) -> String {
        let name =
            |path: Option<&Path>| path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        format!("{}-{}", name(self.folder.parent()), name(Some(&self.folder)))
    }

    fn beside(&self, what: &str) -> PathBuf {
        let mut path = self.folder.clone().into_os_string();
        path.push(".");
        path.push(what);
        path.into()
    }
}
