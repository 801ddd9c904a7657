//! gocryptfs: files and their names encrypted by a program, through FUSE, into files of a plain volume.

use std::{fs, path::Path};

use serde::Deserialize;
use tithe_machine::{
    fault::Fault,
    launch::{Install, Missing},
    observation::Observation,
    sandbox::volume_builder::{Layout, VolumeBuilder},
};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment::Protection as Chosen,
};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::Setup,
    volume::{Volume, VolumeSpec},
};

use super::{SIZE, evidence::keys_tried, machine};

/// The folders of the database encrypted by a program in user space.
#[derive(Debug)]
pub struct Gocryptfs;

/// In the plain volume, the folder of the encrypted files.
const CIPHER: &str = "cipher";

const AES: &str = "aes-gcm";
const XCHACHA: &str = "xchacha20-poly1305";

impl Protection for Gocryptfs {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "volume-gocryptfs",
            title: "Encrypted folder, gocryptfs",
            protects_against: "attackers who read the disk or the folder of encrypted files: a stolen disk, an image of it, a \
                             copy in foreign storage; changed ciphertext within a file is noticed.",
            leaves_open: "sizes, times and number of files, which are not encrypted; a file in the place of an older \
                          copy of itself; everyone who can read the files while it is mounted.",
            options: &[
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&[AES, XCHACHA]),
                    default: Some(DefaultValue::Text(AES)),
                    help: "Cipher of the contents; names are AES in EME mode.",
                },
                SIZE,
            ],
            at_rest: true,
            elsewhere: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, _install: &Install, _chosen: &Chosen) -> Result<(), Missing> {
        let tools = [
            machine::MKFS_EXT4,
            machine::Tool { program: "gocryptfs", package: "gocryptfs" },
            machine::Tool { program: "fusermount3", package: "fuse3" },
        ];
        machine::needs(self.entry().id, &tools, &[("FUSE", machine::fuse)])
    }

    fn apply(&self, chosen: &Chosen, setup: &mut Setup) {
        setup.volume = Some(VolumeSpec::of(&Gocryptfs, chosen, super::bytes(chosen), &setup.credentials.key));
    }

    fn evidence(&self, _chosen: &Chosen) -> Vec<Box<dyn Check>> {
        super::checks(false)
    }
}

impl Volume for Gocryptfs {
    fn layers(&self, spec: &VolumeSpec) -> Vec<String> {
        vec![
            super::image_in_words(spec),
            "ext4".to_owned(),
            format!("gocryptfs {}", init_arguments(spec).join(" ")),
            format!("gocryptfs {}", MOUNT.join(" ")),
        ]
    }

    fn set_up(&self, spec: &VolumeSpec, builder: &mut VolumeBuilder<'_>) -> Result<(), Fault> {
        let (below, key) = (builder.layout.below(), builder.layout.key());
        let cipher = below.join(CIPHER);
        builder.make_folder(&below)?;
        builder.write_key(&key, &spec.key)?;
        let device = builder.loop_device()?;
        builder.make_ext4(&device, &[])?;
        builder.mount_ext4(&device, &below)?;
        builder.release_loop(&device)?;
        builder.make_folder(&cipher)?;
        let (cipher, key) = (cipher.display().to_string(), key.display().to_string());
        let mut arguments = init_arguments(spec);
        arguments.extend(["-passfile", &key, &cipher]);
        builder.run("gocryptfs", &arguments)?;
        let folder = builder.layout.folder.clone();
        serve(builder, &[], &key, &cipher, &folder)
    }

    fn kernel_cipher(&self, _spec: &VolumeSpec) -> Option<String> {
        None
    }

    fn header(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let path = layout.below().join(CIPHER).join("gocryptfs.conf");
        let text = fs::read_to_string(&path).map_err(|error| Fault::machine(path.display(), error))?;
        let config: Config = serde_json::from_str(&text).map_err(|error| Fault::machine(path.display(), error))?;
        Ok(config.judge(spec.text("cipher")))
    }

    fn wrong_key(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let sandbox = layout.folder.parent().unwrap_or(Path::new("/"));
        let (second, wrong_key) = (layout.second(), layout.wrong_key());
        let cipher = layout.below().join(CIPHER).display().to_string();
        let mut builder = VolumeBuilder::new(layout.clone(), sandbox)?;
        if !second.exists() {
            builder.make_folder(&second)?;
        }
        builder.write_key(&wrong_key, &spec.wrong_key())?;
        let mut opens = |key: &Path| {
            let opened = serve(&mut builder, &["-ro"], &key.display().to_string(), &cipher, &second);
            builder.undo();
            opened
        };
        Ok(keys_tried(WRONG_PASSWORD, opens(&wrong_key), opens(&layout.key())))
    }
}

/// Exit status if the password is wrong: gocryptfs(1), "EXIT CODES".
const WRONG_PASSWORD: u8 = 12;

/// The program stays in the foreground and dies with Tithe; `-allow_other` gives the servers' account access. Not
/// `-quiet`, which would suppress [`READY`].
const MOUNT: [&str; 3] = ["-fg", "-nosyslog", "-allow_other"];

/// The line that gocryptfs writes when its mount may be used. Before that, the library below it, go-fuse, waits for the
/// mount, and opens and polls a file of its own in it (`.go-fuse-epoll-hack`). If another process creates a file before
/// that, it holds the folder. The library then waits for the folder, has no thread left to serve it, and both hang for
/// ever. gocryptfs has two other signs, after the same line, and neither can be used. With the first it goes to the
/// background, out of Tithe's control. With the second it sends SIGUSR1 to the process named by `-notifypid`, which
/// would be a signal for all of Tithe.
const READY: &str = "Filesystem mounted and ready.";

fn serve(builder: &mut VolumeBuilder<'_>, further: &[&str], key: &str, cipher: &str, at: &Path) -> Result<(), Fault> {
    let at_text = at.display().to_string();
    let mut arguments = MOUNT.to_vec();
    arguments.extend(further);
    arguments.extend(["-passfile", key, cipher, &at_text]);
    builder.serve("gocryptfs", &arguments, at, READY)
}

/// The password is a random key, so key stretching protects nothing and uses memory.
fn init_arguments(spec: &VolumeSpec) -> Vec<&'static str> {
    let mut arguments = vec!["-init", "-quiet", "-scryptn", "10"];
    if spec.text("cipher") == XCHACHA {
        arguments.push("-xchacha");
    }
    arguments
}

/// The part of `gocryptfs.conf` that describes how files are encrypted (gocryptfs, `internal/configfile`).
#[derive(Deserialize)]
struct Config {
    #[serde(rename = "Creator", default)]
    creator: String,
    #[serde(rename = "FeatureFlags")]
    flags: Vec<String>,
}

impl Config {
    fn judge(&self, wanted: &str) -> Observation {
        let has = |flag: &str| self.flags.iter().any(|found| found == flag);
        let cipher = match (has("XChaCha20Poly1305"), has("GCMIV128")) {
            (true, false) => XCHACHA,
            (false, true) => AES,
            _ => "a cipher that is neither",
        };
        let seen = format!("{}: contents {cipher}, flags {}", self.creator, self.flags.join(", "));
        if cipher != wanted || has("PlaintextNames") {
            return Observation::Exposed(format!("asked for {wanted}; {seen}"));
        }
        Observation::Protected(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(flags: &str, wanted: &str) -> Observation {
        let text = format!(r#"{{"Creator": "gocryptfs 2.3", "EncryptedKey": "x", "FeatureFlags": [{flags}]}}"#);
        serde_json::from_str::<Config>(&text).expect("a configuration").judge(wanted)
    }

    #[test]
    fn the_cipher_is_told_by_the_flags() {
        let names = r#""HKDF", "DirIV", "EMENames""#;
        assert!(matches!(judged(&format!(r#""GCMIV128", {names}"#), AES), Observation::Protected(_)));
        assert!(matches!(judged(&format!(r#""XChaCha20Poly1305", {names}"#), XCHACHA), Observation::Protected(_)));
        assert!(matches!(judged(&format!(r#""XChaCha20Poly1305", {names}"#), AES), Observation::Exposed(_)));
        assert!(matches!(judged(r#""GCMIV128", "PlaintextNames""#, AES), Observation::Exposed(_)));
        assert!(matches!(judged("", AES), Observation::Exposed(_)));
    }
}
