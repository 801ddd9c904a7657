//! A LUKS2 volume that is encrypted with another key while its file system is in use, and the check whether it was.
//!
//! `cryptsetup reencrypt` makes a new volume key, re-encrypts the volume one stretch after the other, and drops the old
//! key at the end (cryptsetup-reencrypt(8)). A stretch cannot be used while it is being written, so it is kept short.
//! It is also the amount that the kernel may still have to write when the program is paused. The passphrase stays the
//! same: it opens the key slot of the volume's current key.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use tithe_machine::{
    fault::Fault,
    observation::Observation,
    sandbox::{
        copy, mounts,
        sidecar::Sidecar,
        volume_builder::{self, Layout},
    },
};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    rotation::Rotator,
};

use super::luks_header::Header;

/// How it is done. Checksums of the current stretch allow recovery from a crash, as by default in cryptsetup; new key
/// slots are made like the first one.
pub const HOW: &str = "--resilience checksum --hotzone-size 1M --pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// Changes the key of one open volume.
pub struct Reencryption {
    layout: Layout,
    sidecar: Sidecar,
}

impl Reencryption {
    /// For the volume of `layout`, by programs that `sidecar` runs.
    pub fn new(layout: Layout, sidecar: Sidecar) -> Self {
        Self { layout, sidecar }
    }

    /// The arguments of the program, for the volume on `device`.
    fn arguments(&self, device: &Path) -> Vec<String> {
        let (key, name) = (self.layout.key().display().to_string(), self.layout.mapping());
        let mut arguments = vec!["reencrypt".to_owned()];
        arguments.extend(HOW.split(' ').map(str::to_owned));
        arguments.extend(["--batch-mode", "--active-name", &name, "--key-file", &key].map(str::to_owned));
        arguments.push(device.display().to_string());
        arguments
    }
}

impl Rotator for Reencryption {
    /// Encrypts the whole volume with a new key, and checks whether the header confirms it.
    fn rotate(&mut self) -> Result<(), Fault> {
        let image = self.layout.image();
        let before = Header::read(&image)?;
        let device = mounts::loops().into_iter().find(|device| device.image == image);
        let device = device.ok_or_else(|| Fault::Machine(format!("{} has no loop device", image.display())))?;
        let arguments = self.arguments(&device.device);
        let command = volume_builder::command("cryptsetup", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        let folder = self.layout.folder.parent().unwrap_or(Path::new("/"));
        self.sidecar.run(&command, folder, &self.layout.log())?;
        match Header::read(&image)?.digest == before.digest {
            true => Err(Fault::Wrong("the volume still has the key that it had".to_owned())),
            false => Ok(()),
        }
    }
}

/// Changes the key once, as it is changed during the measurement. Before and afterwards it reads the digest of the
/// volume key in the header, and blocks all over the volume: blocks with the same text in the mapping must differ on
/// the disk. The control are those blocks themselves: one key always encrypts a text in the same way. Id
/// `volume-key-rotated`.
pub struct VolumeKeyRotated;

impl Check for VolumeKeyRotated {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("volume-key-rotated").own_control()
    }

    fn claim(&self) -> String {
        "all of the volume is encrypted with another key, and its content stays the same".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if !context.setup.rotates_volume() {
            return Ok(Observation::Exposed("the volume has no key that is changed".to_owned()));
        }
        let layout = Layout::of(&context.server.folder);
        let before = VolumeSnapshot::of(&layout)?;
        Reencryption::new(layout.clone(), Sidecar::default()).rotate()?;
        Ok(VolumeSnapshot::of(&layout)?.judge(&before))
    }
}

/// Number of blocks that are checked, evenly spread.
const BLOCKS: u64 = 64;

/// Length of a block, bytes: the alignment of reads that bypass the page cache.
const BLOCK_BYTES: usize = 4096;

/// A volume at one moment.
struct VolumeSnapshot {
    digest: String,
    /// Each block in the mapping, and on the disk.
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
}

impl VolumeSnapshot {
    fn of(layout: &Layout) -> Result<Self, Fault> {
        copy::sync(&layout.folder).map_err(|error| Fault::machine("cannot sync the volume", error))?;
        let header = Header::read(&layout.image())?;
        let mapping = Path::new("/dev/mapper").join(layout.mapping());
        let blocks = blocks(&mapping, &layout.image(), header.data_offset)
            .map_err(|error| Fault::machine("cannot read the volume", error))?;
        Ok(Self { digest: header.digest, blocks })
    }

    fn judge(&self, before: &Self) -> Observation {
        let pairs = before.blocks.iter().zip(&self.blocks);
        let same: Vec<_> = pairs.filter(|(before, after)| before.0 == after.0).collect();
        let rewritten = same.iter().filter(|(before, after)| before.1 != after.1).count();
        let short = |digest: &str| digest.chars().take(8).collect::<String>();
        let told = format!(
            "digest of the volume key {}…, then {}…; of {} blocks {} have the same content before and after, and \
             {rewritten} of these are stored differently",
            short(&before.digest),
            short(&self.digest),
            before.blocks.len(),
            same.len()
        );
        // A volume that is written everywhere proves nothing.
        if 2 * same.len() < before.blocks.len() || same.is_empty() {
            return Observation::Unknown(told);
        }
        if rewritten == same.len() && self.digest != before.digest {
            Observation::Protected(told)
        } else {
            Observation::Exposed(told)
        }
    }
}

/// Blocks of `mapping`, and the same blocks in `image`, whose data begin at `offset`.
fn blocks(mapping: &PathBuf, image: &Path, offset: u64) -> std::io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    // Bypasses the page cache, which would return the data of the last read.
    let mut mapping = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(mapping)?;
    let image = File::open(image)?;
    let length = mapping.seek(SeekFrom::End(0))? / BLOCK_BYTES as u64;
    let mut room = vec![0; 2 * BLOCK_BYTES];
    let start = room.as_ptr().align_offset(BLOCK_BYTES);
    let mut seen = Vec::new();
    for number in 0..BLOCKS.min(length) {
        let at = number * length / BLOCKS * BLOCK_BYTES as u64;
        let aligned = &mut room[start..start + BLOCK_BYTES];
        mapping.seek(SeekFrom::Start(at))?;
        mapping.read_exact(aligned)?;
        let mut written = vec![0; BLOCK_BYTES];
        image.read_exact_at(&mut written, offset + at)?;
        seen.push((aligned.to_vec(), written));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn the_program_is_told_everything_but_the_key() {
        let layout = Layout { folder: "/var/tmp/tithe-sandbox-1-2/02-luks".into() };
        let arguments = Reencryption::new(layout, Sidecar::default()).arguments(Path::new("/dev/loop3"));
        expect!["reencrypt --resilience checksum --hotzone-size 1M --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --batch-mode --active-name tithe-sandbox-1-2-02-luks --key-file /var/tmp/tithe-sandbox-1-2/02-luks.key /dev/loop3"].assert_eq(&arguments.join(" "));
    }

    fn check(digests: [&str; 2], blocks: &[[(&str, &str); 2]], expect: Expect) {
        let seen = |moment: usize| VolumeSnapshot {
            digest: digests[moment].to_owned(),
            blocks: blocks.iter().map(|block| (block[moment].0.into(), block[moment].1.into())).collect(),
        };
        expect.assert_eq(&format!("{:?}", seen(1).judge(&seen(0))));
    }

    #[test]
    fn a_key_was_changed_where_the_same_is_written_differently() {
        let (rewritten, kept, written) = ([("a", "1"), ("a", "2")], [("b", "3"), ("b", "3")], [("c", "4"), ("d", "5")]);
        check(
            ["one", "two"],
            &[rewritten, rewritten, written],
            expect![[
                r#"Protected("digest of the volume key one…, then two…; of 3 blocks 2 have the same content before and after, and 2 of these are stored differently")"#
            ]],
        );
        check(
            ["one", "one"],
            &[rewritten, rewritten, written],
            expect![[
                r#"Exposed("digest of the volume key one…, then one…; of 3 blocks 2 have the same content before and after, and 2 of these are stored differently")"#
            ]],
        );
        check(
            ["one", "two"],
            &[rewritten, kept, written],
            expect![[
                r#"Exposed("digest of the volume key one…, then two…; of 3 blocks 2 have the same content before and after, and 1 of these are stored differently")"#
            ]],
        );
        check(
            ["one", "two"],
            &[rewritten, written, written],
            expect![[
                r#"Unknown("digest of the volume key one…, then two…; of 3 blocks 1 have the same content before and after, and 1 of these are stored differently")"#
            ]],
        );
        check(
            ["one", "two"],
            &[],
            expect![[
                r#"Unknown("digest of the volume key one…, then two…; of 0 blocks 0 have the same content before and after, and 0 of these are stored differently")"#
            ]],
        );
    }
}
