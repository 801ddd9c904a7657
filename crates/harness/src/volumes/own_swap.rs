//! Encrypted swap that Tithe sets up for the servers of a run: a file, dm-crypt with a key that is not stored, swap.
//!
//! Its priority is above all other swap of the machine, so it takes what is swapped out until it is full; other swap
//! stays as it is. `cryptsetup` reads the key from the kernel's random numbers, and only the kernel has it: when the
//! mapping is closed, the file is unreadable.

use std::path::Path;

use tithe_machine::{
    fault::Fault,
    launch::Missing,
    sandbox::{
        Sandbox,
        journal::Journal,
        volume_builder::{Layout, VolumeBuilder},
    },
};
use tithe_model::quantity;

use super::machine;

/// The layer between the file and swap. Plain dm-crypt has no header, so the key is stored nowhere.
const OPEN: &str = "open --type plain --cipher aes-xts-plain64 --key-size 512 --key-file /dev/urandom";

/// Swap in use; switched off and released when dropped. Drop it after the servers have ended: otherwise their swapped
/// memory is read back first.
pub struct OwnSwap {
    _journal: Journal,
}

/// Its layers, from the file up. Pure.
pub fn layers(bytes: u64) -> String {
    let size = quantity::size(bytes);
    format!("file of {size}, loop device with direct I/O, cryptsetup {OPEN}, mkswap, swapon before all other swap")
}

/// Checks for what it needs on this machine.
///
/// # Errors
/// Everything that is missing, in one error.
pub fn needs() -> Result<(), Missing> {
    machine::needs(
        "encrypted_swap",
        &[machine::CRYPTSETUP, machine::MKSWAP, machine::SWAPON],
        &[("dm-crypt", machine::dm_crypt)],
    )
}

/// Sets up `bytes` of it in `sandbox`.
///
/// # Errors
/// The first step that failed, with the output of its tool. What was made before it is removed.
pub fn set_up(bytes: u64, sandbox: &Sandbox) -> Result<OwnSwap, Fault> {
    let layout = Layout::of(&sandbox.folder().join("swap"));
    let name = layout.mapping();
    let mut builder = VolumeBuilder::new(layout, sandbox.folder())?;
    builder.allocate_image(bytes)?;
    let device = builder.loop_device()?;
    builder.note_mapping(&name)?;
    let device_text = device.display().to_string();
    let arguments: Vec<&str> = OPEN.split(' ').chain([device_text.as_str(), &name]).collect();
    builder.run("cryptsetup", &arguments)?;
    builder.release_loop(&device)?;
    let mapped = Path::new("/dev/mapper").join(&name);
    builder.run("mkswap", &[&mapped.display().to_string()])?;
    builder.swap_on(&name, &mapped)?;
    Ok(OwnSwap { _journal: builder.into_journal() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    #[test]
    fn layers_are_what_a_reader_could_do_by_hand() {
        expect!["file of 536.9 MB, loop device with direct I/O, cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 512 --key-file /dev/urandom, mkswap, swapon before all other swap"].assert_eq(&super::layers(512 << 20));
    }
}
