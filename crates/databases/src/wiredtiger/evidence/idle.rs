//! Was the encryptor there, and left everything as it was?

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::{
    checks::canary::Source,
    evidence::{CheckEntry, Evidence, Scene},
};

use super::{PageHead, Probe, documents, each_unit};

/// For the cipher `none`, which prices the hook alone: the engine gave the pages to the encryptor, and what is written
/// stands in them as it was. Id `encryptor-idle`.
pub struct EncryptorIdle;

/// Random text that no page holds by accident, bytes.
const TOKEN: usize = 32;

impl Evidence for EncryptorIdle {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryptor-idle")
    }

    fn claim(&self) -> String {
        "the encryptor is called for every page and encrypts nothing".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        let token = Source::new(scene, self.id()).text(TOKEN);
        let probe = [Probe::new(scene, self.id(), 0, vec![token.clone(); scene.table.fields])];
        let changed = Probe::write(&probe, scene)?;
        let (mut pages, mut encrypted, mut found) = (0, 0, 0);
        each_unit(&documents(scene)?, |number, unit| {
            if changed.binary_search(&number).is_err() {
                return;
            }
            if let Some(head) = PageHead::of(unit).filter(|head| !head.list) {
                pages += 1;
                encrypted += usize::from(head.encrypted);
            }
            found += unit.windows(TOKEN).filter(|window| *window == token).count();
        })?;
        Probe::remove(&probe, scene)?;
        let seen = format!(
            "{encrypted} of {pages} changed pages went through the encryptor; a value that was written stands there \
             {found} times"
        );
        Ok(if pages > 0 && encrypted == pages && found > 0 { Sight::Protected(seen) } else { Sight::Exposed(seen) })
    }
}
