//! Are equal values recognisable as equal on disk?

use std::collections::HashSet;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::Source,
    evidence::{Check, CheckContext, CheckEntry},
};

use super::{PageHead, Probe, documents, each_unit};

/// Writes equal values of many equal blocks into several documents, and searches for equal blocks in the changed parts
/// of the documents' file. Id `no-repeated-ciphertext`.
///
/// A compressor removes most of the repetition but not all: its output for it repeats too. The header of a page (which
/// repeats) and the engine's free lists in the file hold numbers and lengths; they are never encrypted, and not
/// checked.
pub struct NoRepeats;

/// Block length of AES, bytes.
const BLOCK: usize = 16;
/// Bytes at the beginning of a page that are unencrypted (40) or the length of the encrypted part (4), in whole blocks.
const HEAD: usize = 48;
/// Equal blocks in one value.
const BLOCKS: usize = 400;
/// Equal documents.
const DOCUMENTS: usize = 8;

impl Check for NoRepeats {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("no-repeated-ciphertext")
    }

    fn claim(&self) -> String {
        format!("equal values leave no equal blocks of {BLOCK} bytes in the documents' file")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let value = Source::new(context, self.id()).text(BLOCK).repeat(BLOCKS);
        let values = vec![value; context.table.fields];
        let probes: Vec<_> =
            (0..DOCUMENTS).map(|number| Probe::new(context, self.id(), number, values.clone())).collect();
        let changed = Probe::write(&probes, context)?;
        let (mut blocks, mut repeated, mut seen) = (0, 0, HashSet::new());
        let mut list_end = 0;
        each_unit(&documents(context)?, |number, unit| {
            let head = PageHead::of(unit);
            if let Some(PageHead { list: true, units, .. }) = head {
                list_end = number + units;
            }
            if number < list_end || changed.binary_search(&number).is_err() {
                return;
            }
            let encrypted = &unit[if head.is_some() { HEAD } else { 0 }..];
            // The padding of a page's last unit is zeros; the probe has no zeros.
            for block in encrypted.chunks_exact(BLOCK).filter(|block| block.iter().any(|byte| *byte != 0)) {
                blocks += 1;
                repeated += usize::from(!seen.insert(<[u8; BLOCK]>::try_from(block).unwrap_or_default()));
            }
        })?;
        Probe::remove(&probes, context)?;
        Ok(judged((repeated, blocks), changed.len()))
    }
}

/// What `repeated` of `blocks` in so many changed units show.
fn judged((repeated, blocks): (usize, usize), units: usize) -> Observation {
    let quotation = format!("{repeated} of {blocks} blocks in {units} changed units");
    if repeated > 0 {
        Observation::Exposed(format!("{quotation} repeat an earlier one"))
    } else if blocks == 0 {
        Observation::Unknown("nothing was changed in the documents' file".to_owned())
    } else {
        Observation::Protected(format!("{quotation} repeat an earlier one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_that_repeats_is_one_too_many_and_none_at_all_shows_nothing() {
        let words = |repeated: usize| format!("{repeated} of 10 blocks in 2 changed units repeat an earlier one");
        assert_eq!(judged((0, 10), 2), Observation::Protected(words(0)));
        for repeated in [1, 9] {
            assert_eq!(judged((repeated, 10), 2), Observation::Exposed(words(repeated)));
        }
        assert!(matches!(judged((0, 0), 0), Observation::Unknown(_)));
    }
}
