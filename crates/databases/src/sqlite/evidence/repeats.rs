//! Are equal values recognisable as equal on disk?

use std::collections::HashSet;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::{Probe, each_page, text};
use crate::sqlite::path;

/// Writes equal values of many equal blocks into several rows, and searches for equal blocks in the changed pages. Id
/// `no-repeated-ciphertext`.
///
/// A cipher that maps equal blocks to equal blocks hides every canary but still shows which rows are alike. Pages from
/// before the probe are not checked, so a file of any size can be checked.
pub struct NoRepeats;

/// Block length of AES, bytes; the same length is used for ciphers without blocks.
const BLOCK: usize = 16;
/// Equal blocks in one value.
const BLOCKS: usize = 40;
/// Equal rows.
const ROWS: usize = 8;

impl Check for NoRepeats {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("no-repeated-ciphertext")
    }

    fn claim(&self) -> String {
        format!("equal values leave no equal blocks of {BLOCK} bytes in the file")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let value = text(context, self.id(), BLOCK).repeat(BLOCKS);
        let values = vec![value; context.table.fields];
        let probes: Vec<_> = (0..ROWS).map(|row| Probe::new(context, self.id(), row, values.clone())).collect();
        let changed = Probe::write(&probes, context)?;
        let (mut blocks, mut repeated, mut seen) = (0, 0, HashSet::new());
        each_page(path(context.server)?, changed.page_size, |number, page| {
            if changed.pages.binary_search(&number).is_ok() {
                // A page that was never written is a hole of zeros; the probe has no zeros.
                for block in page.chunks_exact(BLOCK).filter(|block| block.iter().any(|byte| *byte != 0)) {
                    blocks += 1;
                    repeated += usize::from(!seen.insert(<[u8; BLOCK]>::try_from(block).unwrap_or_default()));
                }
            }
        })?;
        Probe::remove(&probes, context)?;
        let probe_bytes: usize = probes.iter().map(Probe::bytes).sum();
        Ok(judged((repeated, blocks), changed.pages.len(), probe_bytes))
    }
}

/// What `repeated` of `blocks` in changed `pages` show, if these hold all the bytes of the probe.
fn judged((repeated, blocks): (usize, usize), pages: usize, probe_bytes: usize) -> Observation {
    let quotation = format!("{repeated} of {blocks} blocks in {pages} changed pages");
    if repeated > 0 {
        Observation::Exposed(format!("{quotation} repeat an earlier one"))
    } else if blocks * BLOCK < probe_bytes {
        Observation::Unknown(format!("the probe of {probe_bytes} bytes is not in the file: {quotation} repeat"))
    } else {
        Observation::Protected(format!("{quotation} repeat an earlier one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_do_not_repeat_show_something_if_the_probe_is_among_them() {
        let seen = |repeated: usize, blocks: usize| judged((repeated, blocks), 2, 160);
        let words = |repeated: usize, blocks: usize| {
            format!("{repeated} of {blocks} blocks in 2 changed pages repeat an earlier one")
        };
        for blocks in [10, 11, 100] {
            assert_eq!(seen(0, blocks), Observation::Protected(words(0, blocks)));
        }
        for blocks in [1, 9, 10, 100] {
            assert_eq!(seen(1, blocks), Observation::Exposed(words(1, blocks)));
        }
        for blocks in [0, 9] {
            assert!(matches!(seen(0, blocks), Observation::Unknown(_)), "{blocks}");
        }
    }
}
