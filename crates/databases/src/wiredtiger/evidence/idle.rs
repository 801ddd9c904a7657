//! Was the encryptor there, and left everything as it was?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::Source,
    evidence::{Check, CheckContext, CheckEntry},
};

use super::{PageHead, Probe, documents, each_unit};

/// For the cipher `none`, which prices the hook alone: the engine gave the pages to the encryptor, and what is written
/// stands in them as it was. Id `encryptor-idle`.
pub struct EncryptorIdle;

/// Random text that no page holds by accident, bytes.
const TOKEN: usize = 32;

impl Check for EncryptorIdle {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryptor-idle")
    }

    fn claim(&self) -> String {
        "the encryptor is called for every page and encrypts nothing".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let token = Source::new(context, self.id()).text(TOKEN);
        let probe = [Probe::new(context, self.id(), 0, vec![token.clone(); context.table.fields])];
        let changed = Probe::write(&probe, context)?;
        let (mut pages, mut encrypted, mut found) = (0, 0, 0);
        each_unit(&documents(context)?, |number, unit| {
            if changed.binary_search(&number).is_err() {
                return;
            }
            if let Some(head) = PageHead::of(unit).filter(|head| !head.list) {
                pages += 1;
                encrypted += usize::from(head.encrypted);
            }
            found += unit.windows(TOKEN).filter(|window| *window == token).count();
        })?;
        Probe::remove(&probe, context)?;
        let seen = format!(
            "{encrypted} of {pages} changed pages went through the encryptor; a value that was written stands there \
             {found} times"
        );
        Ok(if pages > 0 && encrypted == pages && found > 0 {
            Observation::Protected(seen)
        } else {
            Observation::Exposed(seen)
        })
    }
}
