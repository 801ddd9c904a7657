//! A kind of volume: the storage below the data folder of a launched server.

use tithe_machine::{
    fault::Fault,
    observation::Observation,
    sandbox::{
        sidecar::Sidecar,
        volume_builder::{Layout, VolumeBuilder},
    },
    secret::Secret,
};
use tithe_model::experiment::Protection as Chosen;

use crate::rotation::Rotator;

/// A kind of volume.
pub trait Volume: Sync + std::fmt::Debug {
    /// Its parts, one line each, from the image up to the folder. Pure.
    fn layers(&self, spec: &VolumeSpec) -> Vec<String>;

    /// Makes it: from the empty image of `site` to a file system at its folder.
    ///
    /// # Errors
    /// The first step that failed, in the words of its tool.
    fn set_up(&self, spec: &VolumeSpec, builder: &mut VolumeBuilder<'_>) -> Result<(), Fault>;

    /// The name in `/proc/crypto` of the kernel's cipher: `xts(aes)`. `None` if the kernel encrypts nothing.
    fn kernel_cipher(&self, spec: &VolumeSpec) -> Option<String>;

    /// Checks whether the header on the disk shows the requested encryption.
    ///
    /// # Errors
    /// If it cannot be read.
    fn header(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault>;

    /// Checks that a wrong key is refused, and that the right one is not.
    ///
    /// # Errors
    /// If it could not be tried.
    fn wrong_key(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault>;

    /// Re-encrypts the mounted volume with another key, by programs that `sidecar` runs.
    ///
    /// # Errors
    /// [`Fault::Refused`] if this kind cannot do it.
    fn rotator(&self, _layout: &Layout, _sidecar: Sidecar) -> Result<Box<dyn Rotator>, Fault> {
        Err(Fault::Refused("this kind of volume does not change its key while it is in use".to_owned()))
    }
}

/// The requested volume of an arm.
#[derive(Debug, Clone)]
pub struct VolumeSpec {
    /// Its kind.
    pub kind: &'static dyn Volume,
    /// The protection that requested it; `None` for the plain volume of an arm that is compared with such an arm.
    pub chosen: Option<Chosen>,
    /// Size of the image, bytes.
    pub bytes: u64,
    /// The key of the volume, 32 bytes.
    pub key: Secret,
    /// It is re-encrypted repeatedly during measurement.
    pub rotates: bool,
}

impl VolumeSpec {
    /// The volume for `chosen`: `bytes` under `key`.
    pub fn of(kind: &'static dyn Volume, chosen: &Chosen, bytes: u64, key: &Secret) -> Self {
        Self { kind, chosen: Some(chosen.clone()), bytes, key: key.clone(), rotates: false }
    }

    /// Option `name` of the protection that requested it; empty if none did.
    pub fn text(&self, name: &str) -> &str {
        self.chosen.as_ref().map_or("", |chosen| chosen.text(name))
    }

    /// The same for an option that is on or off; off if no protection requested it.
    pub fn flag(&self, name: &str) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.flag(name))
    }

    /// A key that is not the volume's.
    pub fn wrong_key(&self) -> Secret {
        Secret::new(self.key.expose().iter().map(|byte| !byte).collect::<Vec<u8>>())
    }
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::OptionValue;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl Volume for Nothing {
        fn layers(&self, _spec: &VolumeSpec) -> Vec<String> {
            Vec::new()
        }

        fn set_up(&self, _spec: &VolumeSpec, _builder: &mut VolumeBuilder<'_>) -> Result<(), Fault> {
            Ok(())
        }

        fn kernel_cipher(&self, _spec: &VolumeSpec) -> Option<String> {
            None
        }

        fn header(&self, _spec: &VolumeSpec, _layout: &Layout) -> Result<Observation, Fault> {
            Ok(Observation::Unknown(String::new()))
        }

        fn wrong_key(&self, _spec: &VolumeSpec, _layout: &Layout) -> Result<Observation, Fault> {
            Ok(Observation::Unknown(String::new()))
        }
    }

    #[test]
    fn a_wrong_key_differs_from_the_right_one_in_every_byte() {
        let right: Vec<u8> = (0..=255).collect();
        let spec = VolumeSpec::of(&Nothing, &Chosen::listed("volume", [].into()), 7, &Secret::new(right.clone()));
        let wrong = spec.wrong_key();
        assert_eq!(wrong.expose().len(), right.len());
        assert!(wrong.expose().iter().zip(&right).all(|(wrong, right)| wrong != right));
        assert_eq!(spec.wrong_key(), wrong, "it is the same in every attempt");
    }

    #[test]
    fn a_plain_volume_has_no_options() {
        let cipher = ("cipher".to_owned(), OptionValue::Text("aes".to_owned()));
        let chosen = Chosen::listed("volume", [cipher, ("trim".to_owned(), OptionValue::Flag(true))].into());
        let spec = VolumeSpec::of(&Nothing, &chosen, 7, &Secret::new([]));
        assert_eq!((spec.text("cipher"), spec.flag("trim"), spec.bytes, spec.rotates), ("aes", true, 7, false));
        let plain = VolumeSpec { chosen: None, ..spec };
        assert_eq!((plain.text("cipher"), plain.flag("trim")), ("", false));
    }
}
