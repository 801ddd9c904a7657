//! Do equal values look equal on disk?

use std::collections::HashSet;

use tithe_harness::{
    evidence::{Evidence, Scene, Sight, canary::Source},
    fault::Fault,
};

use super::{Probe, documents, each_unit};
use crate::wiredtiger::FILE_UNIT;

/// Writes equal values of many equal blocks into several documents, and looks for equal blocks in what this changed in
/// the documents' file. Id `no-repeated-ciphertext`.
///
/// A compressor leaves less of the repetition but not nothing: what it writes for it repeats too. The engine's lists of
/// free places in the file hold offsets and lengths; they are never encrypted, and not looked at.
pub struct NoRepeats;

/// Block length of AES, bytes.
const BLOCK: usize = 16;
/// Equal blocks in one value.
const BLOCKS: usize = 400;
/// Equal documents.
const DOCUMENTS: usize = 8;

impl NoRepeats {
    fn try_look(&self, scene: &Scene<'_>) -> Result<Sight, Fault> {
        let value = Source::new(scene, self.id()).text(BLOCK).repeat(BLOCKS);
        let values = vec![value; scene.table.fields];
        let probes: Vec<_> =
            (0..DOCUMENTS).map(|number| Probe::new(scene, self.id(), number, values.clone())).collect();
        let changed = Probe::write(&probes, scene)?;
        let (mut blocks, mut repeated, mut seen) = (0, 0, HashSet::new());
        let mut list_end = 0;
        each_unit(&documents(scene)?, |number, unit| {
            list_end = list_end.max(number + units_of_list(unit));
            if number >= list_end && changed.binary_search(&number).is_ok() {
                // What fills a page up to the end of its last unit is zeros, which the probe does not hold.
                for block in unit.chunks_exact(BLOCK).filter(|block| block.iter().any(|byte| *byte != 0)) {
                    blocks += 1;
                    repeated += usize::from(!seen.insert(<[u8; BLOCK]>::try_from(block).unwrap_or_default()));
                }
            }
        })?;
        Probe::remove(&probes, scene)?;
        let quotation = format!("{repeated} of {blocks} blocks in {} changed units", changed.len());
        Ok(if repeated > 0 {
            Sight::Exposed(format!("{quotation} repeat an earlier one"))
        } else if blocks == 0 {
            Sight::Unknown("nothing was changed in the documents' file".to_owned())
        } else {
            Sight::Protected(format!("{quotation} repeat an earlier one"))
        })
    }
}

/// Over how many units a list of free places goes that begins with `unit`; 0 when none does.
///
/// A page begins with `WT_PAGE_HEADER` and `WT_BLOCK_HEADER` (`src/include/btmem.h` and `block.h` of WiredTiger 3.2): its
/// type is byte 24, bytes 26 and 27 are zero, and bytes 28 to 31 are its length on disk.
fn units_of_list(unit: &[u8]) -> usize {
    const BLOCK_MANAGER: u8 = 1;
    let Some(length) = unit.get(28..32).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes) else {
        return 0;
    };
    let length = length as usize;
    let is_list =
        unit[24] == BLOCK_MANAGER && unit[26..28] == [0, 0] && length != 0 && length.is_multiple_of(FILE_UNIT);
    // In the middle of an encrypted page nothing looks like this, but by an accident of one in 2^36.
    if is_list { length / FILE_UNIT } else { 0 }
}

impl Evidence for NoRepeats {
    fn id(&self) -> &'static str {
        "no-repeated-ciphertext"
    }

    fn claim(&self) -> String {
        format!("equal values leave no equal blocks of {BLOCK} bytes in the documents' file")
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        self.try_look(scene).unwrap_or_else(Sight::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_from_pages() {
        let mut unit = vec![0; FILE_UNIT];
        assert_eq!(units_of_list(&unit), 0);
        unit[24] = 1;
        unit[29] = 0x20;
        assert_eq!(units_of_list(&unit), 2);
        unit[24] = 7;
        assert_eq!(units_of_list(&unit), 0);
        assert_eq!(units_of_list(&[1; 10]), 0);
    }
}
