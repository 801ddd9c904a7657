//! What lies under the data folder of a launched server: a file system of its own in an image file, encrypted or not.
//!
//! Volumes are protections of every database that Tithe launches ([`protections`]): the disk is encrypted and the
//! database does not know. As soon as one arm of an experiment has one, every other arm gets the [`plain`] one of the same
//! size, so that like is compared with like. A kind of volume is one file here and one line in `PROTECTIONS`.
//!
//! Everything is made as root with the system's own tools, and everything made is in a [`journal`] before it is made, so
//! that the next start undoes what a killed one left behind. Keys are in memory, or in files of mode 0600 that only root
//! reads; never in arguments.

mod cipher;
mod evidence;
mod fscrypt;
mod gocryptfs;
pub mod journal;
mod kernel;
mod luks2;
mod luks_header;
mod machine;
pub mod mounts;
mod plain;
mod reencryption;
mod site;
pub mod swap;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment::{Arm, Protection as Chosen},
};

use crate::{
    database::Database,
    evidence::{Evidence, Sight, key_apart::KeyApart},
    fault::Fault,
    protection::{Protection, Setup},
    rotation::Rotator,
    sandbox::companion::Companion,
    secret::Secret,
};

pub use site::{Mounted, raise};

/// A kind of volume.
pub trait Volume: Sync + std::fmt::Debug {
    /// What it consists of, one line each, from the image up to the folder. Pure.
    fn layers(&self, asked: &Asked) -> Vec<String>;

    /// Makes it: from the empty image of `site` to a file system at its folder.
    ///
    /// # Errors
    /// The first step that failed, in the words of its tool.
    fn raise(&self, asked: &Asked, site: &mut site::Site<'_>) -> Result<(), Fault>;

    /// The name in `/proc/crypto` of what the kernel encrypts with: `xts(aes)`. `None` where the kernel encrypts nothing.
    fn kernel_cipher(&self, asked: &Asked) -> Option<String>;

    /// Looks whether what stands on the disk says that it is encrypted as asked for.
    ///
    /// # Errors
    /// When it cannot be read.
    fn header(&self, asked: &Asked, layout: &Layout) -> Result<Sight, Fault>;

    /// Looks whether a wrong key is refused, and whether the right one is not.
    ///
    /// # Errors
    /// When it could not be tried.
    fn wrong_key(&self, asked: &Asked, layout: &Layout) -> Result<Sight, Fault>;

    /// What encrypts the mounted volume with another key, by programs that `companion` runs.
    ///
    /// # Errors
    /// [`Fault::Refused`] where this kind cannot.
    fn rotator(&self, _layout: &Layout, _companion: Companion) -> Result<Box<dyn Rotator>, Fault> {
        Err(Fault::Refused("this kind of volume does not change its key while it is in use".to_owned()))
    }
}

/// The kinds that can be asked for, in the order of `tithe ls`.
pub static PROTECTIONS: &[&dyn Protection] = &[&luks2::Luks2, &fscrypt::Fscrypt, &gocryptfs::Gocryptfs];

/// Volumes for `database`: none for a simulated one, which writes nothing.
pub fn protections(database: &dyn Database) -> &'static [&'static dyn Protection] {
    if database.simulated() { &[] } else { PROTECTIONS }
}

/// The volume that an arm is to have.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its kind.
    pub kind: &'static dyn Volume,
    /// The protection that asked for it; `None` for the plain volume of an arm that is compared with one that asked.
    pub chosen: Option<Chosen>,
    /// Size of the image, bytes.
    pub bytes: u64,
    /// The key of the volume, 32 bytes.
    pub key: Secret,
    /// It is encrypted with another key, again and again, while it is measured.
    pub rotates: bool,
}

impl Asked {
    /// What `chosen` asks for.
    fn of(kind: &'static dyn Volume, chosen: &Chosen, key: &Secret) -> Self {
        Self { kind, chosen: Some(chosen.clone()), bytes: bytes(chosen), key: key.clone(), rotates: false }
    }

    /// Option `name` of the protection that asked for it.
    fn text(&self, name: &str) -> &str {
        self.chosen.as_ref().map_or("", |chosen| chosen.text(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.flag(name))
    }

    /// A key that is not the volume's.
    fn stranger(&self) -> Secret {
        Secret::new(self.key.expose().iter().map(|byte| !byte).collect::<Vec<u8>>())
    }
}

/// Size of the volumes of `arms`, bytes: the largest that one of them asks for; `None` where none asks.
pub fn bytes_of(arms: &[Arm]) -> Option<u64> {
    let is_volume = |chosen: &&Chosen| PROTECTIONS.iter().any(|protection| protection.id() == chosen.id);
    arms.iter().flat_map(|arm| &arm.protections).filter(is_volume).map(bytes).max()
}

/// Gives `setup` the volume that its arm must have beside `arms`: all volumes of an experiment are of the same size, and
/// no arm is without one where another has one. Applied after the protections.
pub fn level(arms: &[Arm], setup: &mut Setup) {
    let Some(bytes) = bytes_of(arms) else { return };
    let plain = || Asked { kind: &plain::Plain, chosen: None, bytes, key: setup.materials.key.clone(), rotates: false };
    let asked = setup.volume.take().unwrap_or_else(plain);
    setup.volume = Some(Asked { bytes, ..asked });
}

fn bytes(chosen: &Chosen) -> u64 {
    // A whole number of megabytes within the bounds of the option.
    chosen.number(SIZE.name) as u64 * 1_000_000
}

/// The option that all kinds have.
const SIZE: OptionEntry = OptionEntry {
    name: "size_mb",
    kind: OptionKind::Number { low: 64.0, high: 10_000_000.0 },
    default: Some(Default::Number(4000.0)),
    help: "Size of the file system, MB; the image file is sparse and takes what is written. All volumes of an \
           experiment get the largest size that one of them asks for.",
};

/// The checks that every kind has.
fn checks(kernel: bool) -> Vec<Box<dyn Evidence>> {
    let mut checks: Vec<Box<dyn Evidence>> = vec![
        Box::new(evidence::RawImage),
        Box::new(evidence::Header),
        Box::new(evidence::WrongKey),
        Box::new(KeyApart),
    ];
    if kernel {
        checks.push(Box::new(evidence::CipherDriver));
    }
    checks
}

/// Where the parts of a volume are: beside the folder that it is mounted at, all below the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Where the server finds its data: [`crate::database::Place::folder`].
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

    /// Where the file system of the image is mounted when something lies between it and the folder.
    pub fn below(&self) -> PathBuf {
        self.beside("below")
    }

    /// The key, for tools that read it from a file.
    fn key(&self) -> PathBuf {
        self.beside("key")
    }

    /// A wrong key, for a moment.
    fn stranger(&self) -> PathBuf {
        self.beside("stranger")
    }

    /// Where a second look is mounted, for a moment.
    fn second(&self) -> PathBuf {
        self.beside("second")
    }

    /// What a tool that stays says.
    fn log(&self) -> PathBuf {
        self.beside("log")
    }

    /// Name of the mapping over the image, below `/dev/mapper`: no two sandboxes share a name.
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

/// What the report says about the volume at `folder`: its layers, and the driver that the kernel encrypts with.
pub fn facts(asked: &Asked, folder: &Path) -> BTreeMap<String, String> {
    let layout = Layout::of(folder);
    let mut facts = BTreeMap::from([("volume".to_owned(), asked.kind.layers(asked).join(", "))]);
    if let Some(name) = asked.kind.kernel_cipher(asked) {
        let driver =
            cipher::driver(&name).map_or_else(|| "not listed by /proc/crypto".to_owned(), |driver| driver.in_words());
        facts.insert("volume cipher driver".to_owned(), driver);
    }
    let direct = mounts::loops().into_iter().find(|device| device.image == layout.image());
    if let Some(device) = direct {
        facts.insert(
            "volume direct I/O".to_owned(),
            if device.direct { "yes" } else { "no: pages are cached twice" }.to_owned(),
        );
    }
    facts
}

#[cfg(test)]
mod tests;
