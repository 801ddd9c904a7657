//! The file system under the data folder of a launched server, in an image file of its own, encrypted or not.
//!
//! Volumes are protections of every database that Tithe launches ([`protections`]): the disk is encrypted without the
//! database's knowledge. If one arm of an experiment has a volume, every other arm gets the [`plain`] one of the same
//! size, so that the comparison is fair. A kind of volume is one file here and one line in `PROTECTIONS`.
//!
//! Everything is made as root with the system's own tools. Everything is entered in a
//! [journal](tithe_machine::sandbox::journal) before it is made, so that the next start removes what a killed one left
//! behind. Keys are in memory, or in files of mode 0600 that only root reads; never in arguments.

mod cipher;
mod evidence;
#[doc(hidden)]
pub mod foreign;
mod fscrypt;
mod gocryptfs;
mod luks2;
mod luks_header;
mod machine;
pub mod own_swap;
mod plain;
mod reencryption;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use tithe_machine::{
    fault::Fault,
    sandbox::{
        Sandbox,
        journal::Journal,
        mounts,
        volume_builder::{Layout, VolumeBuilder},
    },
};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind},
    experiment::{Arm, Protection as Chosen},
    fact::Fact,
};
use tithe_plugin::{
    checks::key_apart::KeyApart, database::Database, evidence::Check, protection::Protection, setup::Setup,
    volume::VolumeSpec,
};

/// The kinds that can be asked for, in the order of `tithe ls`.
pub static PROTECTIONS: &[&dyn Protection] = &[&luks2::Luks2, &fscrypt::Fscrypt, &gocryptfs::Gocryptfs];

/// Volumes for `database`: none for a simulated one, which writes nothing.
pub fn protections(database: &dyn Database) -> &'static [&'static dyn Protection] {
    if database.simulated() { &[] } else { PROTECTIONS }
}

/// Size of the volumes of `arms`, bytes: the largest that any of them asks for; `None` if none asks.
pub fn bytes_of(arms: &[Arm]) -> Option<u64> {
    let is_volume = |chosen: &&Chosen| PROTECTIONS.iter().any(|protection| protection.entry().id == chosen.id);
    arms.iter().flat_map(|arm| &arm.protections).filter(is_volume).map(bytes).max()
}

/// Gives `setup` the volume that its arm needs for a fair comparison with `arms`: all volumes of an experiment have the
/// same size, and either all arms have one or none. Applied after the protections.
pub fn equalise(arms: &[Arm], setup: &mut Setup) {
    let Some(bytes) = bytes_of(arms) else { return };
    let plain =
        || VolumeSpec { kind: &plain::Plain, chosen: None, bytes, key: setup.credentials.key.clone(), rotates: false };
    let spec = setup.volume.take().unwrap_or_else(plain);
    setup.volume = Some(VolumeSpec { bytes, ..spec });
}

fn bytes(chosen: &Chosen) -> u64 {
    // A whole number of megabytes within the bounds of the option.
    chosen.number(SIZE.name) as u64 * 1_000_000
}

/// The option that all kinds have.
const SIZE: OptionEntry = OptionEntry {
    name: "size_mb",
    kind: OptionKind::Number { low: 64.0, high: 10_000_000.0 },
    default: Some(DefaultValue::Number(4000.0)),
    help: "Size of the file system, MB; the image file is sparse and takes what is written. All volumes of an \
           experiment get the largest size that one of them asks for.",
};

/// The checks that every kind has.
fn checks(kernel: bool) -> Vec<Box<dyn Check>> {
    let mut checks: Vec<Box<dyn Check>> = vec![
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

/// The report's facts about the volume at `folder`: its layers, and the driver that the kernel encrypts with.
pub fn facts(spec: &VolumeSpec, folder: &Path) -> Vec<(Fact, String)> {
    let layout = Layout::of(folder);
    let mut facts = vec![(Fact::Volume, spec.kind.layers(spec).join(", "))];
    if let Some(name) = spec.kind.kernel_cipher(spec) {
        let driver =
            cipher::driver(&name).map_or_else(|| "not listed by /proc/crypto".to_owned(), |driver| driver.in_words());
        facts.push((Fact::VolumeCipherDriver, driver));
    }
    let direct = mounts::loops().into_iter().find(|device| device.image == layout.image());
    if let Some(device) = direct {
        let how = if device.direct { "yes" } else { "no: pages are cached twice" };
        facts.push((Fact::VolumeDirectIo, how.to_owned()));
    }
    facts
}

/// A volume in use; unmounted and released when dropped. Drop it after the server on it has stopped.
pub struct Mounted {
    journal: Journal,
}

impl Mounted {
    /// The process that serves the file system, if there is one.
    pub fn process(&self) -> Option<i32> {
        self.journal.process()
    }
}

/// Makes the volume that is `asked` for and mounts it at `folder`, an empty folder in `sandbox` for one server.
///
/// # Errors
/// The first step that failed, with the output of its tool. What was made before it is removed.
pub fn set_up(spec: &VolumeSpec, folder: &Path, sandbox: &Sandbox) -> Result<Mounted, Fault> {
    let mut builder = VolumeBuilder::new(Layout::of(folder), sandbox.folder())?;
    builder.make_image(spec.bytes)?;
    spec.kind.set_up(spec, &mut builder)?;
    // The root folder of a fresh file system belongs to root.
    sandbox.give(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
        .map_err(|error| Fault::machine(folder.display(), error))?;
    Ok(Mounted { journal: builder.into_journal() })
}

/// `image file of 4000 MB, loop device`.
pub fn image_in_words(spec: &VolumeSpec) -> String {
    format!("image file of {} MB, loop device with direct I/O", spec.bytes / 1_000_000)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests;
