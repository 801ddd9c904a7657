//! Was the encryptor there, and left everything as it was?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::Source,
    evidence::{Check, CheckContext, CheckEntry},
};

use super::{PageHead, Probe, documents, each_unit};

/// For the cipher `none`, which measures the cost of the hook alone: the engine gave the pages to the encryptor, and
/// written data is unchanged in them. Id `encryptor-idle`.
pub struct EncryptorIdle;

/// Random text that no page holds by accident, bytes.
const TOKEN: usize = 32;

/// How many documents are written; each of their fields has its own text. The engine compresses a page before it
/// encrypts it. If four characters of a text occur elsewhere on the page, the text is split: about one in twenty.
const DOCUMENTS: usize = 4;

impl Check for EncryptorIdle {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryptor-idle")
    }

    fn claim(&self) -> String {
        "the encryptor is called for every page and encrypts nothing".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut source = Source::new(context, self.id());
        let mut texts = || (0..context.table.fields).map(|_| source.text(TOKEN)).collect::<Vec<_>>();
        let probes: Vec<Probe> = (0..DOCUMENTS).map(|number| Probe::new(context, self.id(), number, texts())).collect();
        let changed = Probe::write(&probes, context)?;
        let (mut pages, mut encrypted, mut found) = (0, 0, 0);
        each_unit(&documents(context)?, |number, unit| {
            if changed.binary_search(&number).is_err() {
                return;
            }
            if let Some(head) = PageHead::of(unit).filter(|head| !head.list) {
                pages += 1;
                encrypted += usize::from(head.encrypted);
            }
            let texts = || probes.iter().flat_map(|probe| &probe.values);
            found += unit.windows(TOKEN).filter(|window| texts().any(|text| text == window)).count();
        })?;
        Probe::remove(&probes, context)?;
        Ok(judged((encrypted, pages), found))
    }
}

/// What it shows that so many of the changed pages went through the encryptor, and that written values were `found` in
/// them so often.
fn judged((encrypted, pages): (usize, usize), found: usize) -> Observation {
    let seen = format!(
        "{encrypted} of {pages} changed pages went through the encryptor; written values occur there {found} times"
    );
    if pages > 0 && encrypted == pages && found > 0 { Observation::Protected(seen) } else { Observation::Exposed(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_encryptor_gets_every_page_and_leaves_the_values() {
        for (pages, found) in [((1, 1), 1), ((3, 3), 7)] {
            assert!(matches!(judged(pages, found), Observation::Protected(_)), "{pages:?} {found}");
        }
        for (pages, found) in [((0, 0), 1), ((0, 3), 1), ((2, 3), 1), ((3, 3), 0)] {
            assert!(matches!(judged(pages, found), Observation::Exposed(_)), "{pages:?} {found}");
        }
    }
}
