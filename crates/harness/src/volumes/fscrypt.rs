//! fscrypt: files and their names encrypted by ext4 itself.
//!
//! Set up through the kernel directly, without the tool of the same name, which keeps a configuration in `/etc`. The
//! folder of the server lies in an encrypted folder, together with a probe: a file that shows, through a second mount
//! of the disk, whether a key opens it.

use std::{fs, io::ErrorKind, path::Path};

use rustix::io::Errno;
use tithe_machine::{
    fault::Fault,
    launch::{Install, Missing},
    observation::Observation,
    sandbox::{
        fscrypt::{self, AES_256_CTS, AES_256_XTS},
        volume_builder::{Layout, VolumeBuilder},
    },
    secret::Secret,
};
use tithe_model::{catalogue::ProtectionEntry, experiment::Protection as Chosen};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::Setup,
    volume::{Volume, VolumeSpec},
};

use super::{SIZE, machine};

/// The folders of the database encrypted by the file system.
#[derive(Debug)]
pub struct Fscrypt;

/// The encrypted folder in the file system.
const ENCRYPTED: &str = "encrypted";
/// In it, the folder of the server.
const SERVER: &str = "server";
/// In it, the file that shows through a second mount whether it can be read.
const PROBE: &str = "probe";
/// Content of the probe.
const PROBE_TEXT: &str = "readable";

impl Protection for Fscrypt {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "volume-fscrypt",
            title: "Encrypted folder, fscrypt",
            protects_against: "attackers who read the disk, or the folder without its key: a stolen disk, an image of it, an \
                             administrator before the key was given.",
            leaves_open: "sizes, times, owners and number of files, which are not encrypted; everyone who can read the \
                          files while the key is given; undetected changes of the ciphertext.",
            options: &[SIZE],
            at_rest: true,
            elsewhere: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, _install: &Install, _chosen: &Chosen) -> Result<(), Missing> {
        machine::needs(self.entry().id, &[machine::MKFS_EXT4], &[("file encryption of ext4", machine::ext4_encryption)])
    }

    fn apply(&self, chosen: &Chosen, setup: &mut Setup) {
        setup.volume = Some(VolumeSpec::of(&Fscrypt, chosen, super::bytes(chosen), &setup.credentials.key));
    }

    fn evidence(&self, _chosen: &Chosen) -> Vec<Box<dyn Check>> {
        super::checks(true)
    }
}

impl Volume for Fscrypt {
    fn layers(&self, spec: &VolumeSpec) -> Vec<String> {
        vec![
            super::image_in_words(spec),
            "ext4 with -O encrypt".to_owned(),
            "fscrypt policy of version 2: contents AES-256-XTS, names AES-256-CTS".to_owned(),
        ]
    }

    fn set_up(&self, spec: &VolumeSpec, builder: &mut VolumeBuilder<'_>) -> Result<(), Fault> {
        let below = builder.layout.below();
        builder.make_folder(&below)?;
        let device = builder.loop_device()?;
        builder.make_ext4(&device, &["-O", "encrypt"])?;
        builder.mount_ext4(&device, &below)?;
        self.populate(spec, builder, &below)?;
        // Unmounting writes the file system's journal back, so that a second mount finds all of this.
        builder.undo();
        let device = builder.loop_device()?;
        builder.mount_ext4(&device, &below)?;
        fscrypt::add_key(&below, &spec.key).map_err(|error| failed(&below, &error))?;
        let folder = builder.layout.folder.clone();
        builder.bind(&below.join(ENCRYPTED).join(SERVER), &folder)?;
        builder.release_loop(&device)
    }

    fn kernel_cipher(&self, _spec: &VolumeSpec) -> Option<String> {
        Some("xts(aes)".to_owned())
    }

    fn header(&self, _spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let of = |path: &Path| fscrypt::policy(path).map_err(|error| failed(path, &error));
        Ok(match (of(&layout.folder)?, of(&layout.below())?) {
            (Some((AES_256_XTS, AES_256_CTS)), None) => Observation::Protected(
                "policy of the folder: contents AES_256_XTS, names AES_256_CTS; of the folder above: none".to_owned(),
            ),
            (Some((contents, names)), None) => Observation::Exposed(format!(
                "the policy of the folder has mode {contents} for contents and {names} for names"
            )),
            (None, _) => Observation::Exposed("the folder has no policy".to_owned()),
            (_, Some(_)) => Observation::Unknown("the folder above has a policy as well".to_owned()),
        })
    }

    /// A second, read-only mount of the disk has a keyring of its own: no key in it, then a wrong one, then its own.
    fn wrong_key(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let sandbox = layout.folder.parent().unwrap_or(Path::new("/"));
        let second = layout.second();
        let mut builder = VolumeBuilder::new(layout.clone(), sandbox)?;
        if !second.exists() {
            builder.make_folder(&second)?;
        }
        let device = builder.read_only_loop_device()?;
        builder.mount_ext4_read_only(&device, &second)?;
        let readable_with = |key: Option<&Secret>| {
            let given = key.map_or(Ok(()), |key| fscrypt::add_key(&second, key).map(drop));
            given.map_err(|error| failed(&second, &error))?;
            readable(&second.join(ENCRYPTED).join(PROBE))
        };
        let without = readable_with(None)?;
        let wrong = readable_with(Some(&spec.wrong_key()))?;
        let right = readable_with(Some(&spec.key))?;
        Ok(match (without, wrong, right) {
            (true, _, _) => Observation::Exposed("files are readable without a key".to_owned()),
            (_, true, _) => Observation::Exposed("files are readable with a wrong key".to_owned()),
            (false, false, true) => Observation::Protected(
                "on a second mount of the disk a file is not found without a key, nor with a wrong one, and is read with \
                 its own"
                    .to_owned(),
            ),
            (false, false, false) => Observation::Unknown("not readable with its own key either".to_owned()),
        })
    }
}

impl Fscrypt {
    fn populate(&self, spec: &VolumeSpec, builder: &VolumeBuilder<'_>, below: &Path) -> Result<(), Fault> {
        let encrypted = below.join(ENCRYPTED);
        builder.make_folder(&encrypted)?;
        let key = fscrypt::add_key(below, &spec.key).map_err(|error| failed(below, &error))?;
        fscrypt::set_policy(&encrypted, key).map_err(|error| failed(&encrypted, &error))?;
        builder.make_folder(&encrypted.join(SERVER))?;
        let probe = encrypted.join(PROBE);
        fs::write(&probe, PROBE_TEXT).map_err(|error| failed(&probe, &error))
    }
}

/// True when the probe is found by its name and can be read. Without its key it has another name, and opening it is
/// refused.
fn readable(probe: &Path) -> Result<bool, Fault> {
    match fs::read_to_string(probe) {
        Ok(text) => Ok(text == PROBE_TEXT),
        Err(error) if error.kind() == ErrorKind::NotFound || Errno::from_io_error(&error) == Some(Errno::NOKEY) => {
            Ok(false)
        }
        Err(error) => Err(failed(probe, &error)),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Fault {
    Fault::machine(path.display(), error)
}
