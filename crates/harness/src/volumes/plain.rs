//! The volume without encryption that encrypted ones are compared with.

use tithe_machine::{
    fault::Fault,
    sandbox::site::{Layout, Site},
    sight::Sight,
};
use tithe_plugin::volume::{Asked, Volume};

/// An ext4 file system in an image file.
#[derive(Debug)]
pub struct Plain;

impl Volume for Plain {
    fn layers(&self, asked: &Asked) -> Vec<String> {
        vec![super::image_in_words(asked), "ext4".to_owned()]
    }

    fn raise(&self, _asked: &Asked, site: &mut Site<'_>) -> Result<(), Fault> {
        let device = site.loop_device()?;
        site.make_ext4(&device, &[])?;
        let folder = site.layout.folder.clone();
        site.mount_ext4(&device, &folder)?;
        site.release_loop(&device)
    }

    fn kernel_cipher(&self, _asked: &Asked) -> Option<String> {
        None
    }

    fn header(&self, _asked: &Asked, _layout: &Layout) -> Result<Sight, Fault> {
        Ok(Sight::Exposed("the plain volume has no key".to_owned()))
    }

    fn wrong_key(&self, _asked: &Asked, _layout: &Layout) -> Result<Sight, Fault> {
        Ok(Sight::Exposed("the plain volume has no key".to_owned()))
    }
}
