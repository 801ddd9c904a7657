//! The volume without encryption that encrypted ones are compared with.

use tithe_machine::{
    fault::Fault,
    observation::Observation,
    sandbox::volume_builder::{Layout, VolumeBuilder},
};
use tithe_plugin::volume::{Volume, VolumeSpec};

/// An ext4 file system in an image file.
#[derive(Debug)]
pub struct Plain;

impl Volume for Plain {
    fn layers(&self, spec: &VolumeSpec) -> Vec<String> {
        vec![super::image_in_words(spec), "ext4".to_owned()]
    }

    fn set_up(&self, _spec: &VolumeSpec, builder: &mut VolumeBuilder<'_>) -> Result<(), Fault> {
        let device = builder.loop_device()?;
        builder.make_ext4(&device, &[])?;
        let folder = builder.layout.folder.clone();
        builder.mount_ext4(&device, &folder)?;
        builder.release_loop(&device)
    }

    fn kernel_cipher(&self, _spec: &VolumeSpec) -> Option<String> {
        None
    }

    fn header(&self, _spec: &VolumeSpec, _layout: &Layout) -> Result<Observation, Fault> {
        Ok(Observation::Exposed("the plain volume has no key".to_owned()))
    }

    fn wrong_key(&self, _spec: &VolumeSpec, _layout: &Layout) -> Result<Observation, Fault> {
        Ok(Observation::Exposed("the plain volume has no key".to_owned()))
    }
}
