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
/// A compressor leaves less of the repetition but not nothing: what it writes for it repeats too. The head of a page
/// (which repeats) and the engine's lists of free places in the file hold numbers and lengths; they are never encrypted,
/// and not looked at.
pub struct NoRepeats;

/// Block length of AES, bytes.
const BLOCK: usize = 16;
/// Bytes at the beginning of a page that are not encrypted (40) or the length of what is (4), in whole blocks.
const HEAD: usize = 48;
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
            let head = PageHead::of(unit);
            if let Some(PageHead { list: true, units }) = head {
                list_end = number + units;
            }
            if number < list_end || changed.binary_search(&number).is_err() {
                return;
            }
            let encrypted = &unit[if head.is_some() { HEAD } else { 0 }..];
            // What fills a page up to the end of its last unit is zeros, which the probe does not hold.
            for block in encrypted.chunks_exact(BLOCK).filter(|block| block.iter().any(|byte| *byte != 0)) {
                blocks += 1;
                repeated += usize::from(!seen.insert(<[u8; BLOCK]>::try_from(block).unwrap_or_default()));
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

/// The head of a page: `WT_PAGE_HEADER` and `WT_BLOCK_HEADER` (`src/include/btmem.h` and `block.h` of WiredTiger 3.2),
/// little-endian. Its type is byte 24, byte 26 is zero, byte 27 is its version, and bytes 28 to 31 are its length on disk.
struct PageHead {
    /// It is a list of free places.
    list: bool,
    /// Length of the page.
    units: usize,
}

impl PageHead {
    /// The head that `unit` begins with; `None` in the middle of a page, where nothing looks like one but by an accident
    /// of one in 2^30.
    fn of(unit: &[u8]) -> Option<Self> {
        /// `WT_PAGE_BLOCK_MANAGER`, the first of the types.
        const LIST: u8 = 1;
        /// `WT_PAGE_ROW_LEAF`, the last of them.
        const ROW_LEAF: u8 = 7;
        /// `WT_PAGE_VERSION_TS`, the highest: lists have it, pages of tables have 0.
        const VERSION: u8 = 1;
        let kind = *unit.get(24)?;
        let length = u32::from_le_bytes(unit.get(28..32)?.try_into().ok()?) as usize;
        let fits = length != 0 && length.is_multiple_of(FILE_UNIT) && unit[26] == 0 && unit[27] <= VERSION;
        (fits && (LIST..=ROW_LEAF).contains(&kind)).then_some(Self { list: kind == LIST, units: length / FILE_UNIT })
    }
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
    fn heads_are_told_from_the_middle_of_a_page() {
        let mut unit = vec![0; FILE_UNIT];
        let mut texts = Vec::new();
        let mut note = |unit: &[u8]| texts.push(PageHead::of(unit).map(|head| (head.list, head.units)));
        note(&unit);
        unit[24] = 1;
        unit[27] = 1;
        unit[29] = 0x20;
        note(&unit);
        unit[24] = 7;
        unit[27] = 0;
        note(&unit);
        unit[28] = 1;
        note(&unit);
        note(&[1; 10]);
        assert_eq!(texts, [None, Some((true, 2)), Some((false, 2)), None, None]);
    }
}
