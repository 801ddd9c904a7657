//! Do the pages on disk have checksums, and are they correct?

use std::path::PathBuf;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::key_value,
    evidence::{Check, CheckContext, CheckEntry},
    session::{Discard, Request},
};

use crate::{
    evidence::marked::marker,
    postgres::schema::{YCSB_DIALECT, administrator, quiesce},
};

/// Size of a page, bytes: PostgreSQL's default, which every packaged server has.
const PAGE: usize = 8192;

/// Asks the server (`data_checksums`) and its control file, then computes the checksum of every page in the first file
/// of the measured table and compares it with the one in the page's header.
pub struct ChecksumsOn;

impl Check for ChecksumsOn {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("checksums-on")
    }

    fn claim(&self) -> String {
        "the server reports that pages have checksums, and every page of the table has the right one".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        // A page at least must have been written.
        let mut records = key_value(context.connect()?)?;
        let key = marker(context);
        let values: Vec<(usize, &[u8])> = (0..context.table.fields).map(|field| (field, &b"checksum"[..])).collect();
        records.call(&Request::Insert { key: key.as_bytes(), values: &values }, &mut Discard)?;
        quiesce(context.server, context.setup, context.table)?;
        let mut session = administrator(context.server, context.setup)?;
        let setting = session.value("SHOW data_checksums")?;
        let control = session.value("SELECT data_page_checksum_version FROM pg_control_init()")?;
        let table = YCSB_DIALECT.qualified(&context.setup.space, context.table);
        let file = session.value(&format!("SELECT pg_relation_filepath('{table}')"))?;
        let pages = pages(context, &file);
        records.call(&Request::Delete { key: key.as_bytes() }, &mut Discard)?;
        let pages = pages?;
        Ok(judged(&setting, &control, &file, &pages))
    }
}

/// What the setting, the version in the control file and the `pages` of `file` show: only all of them together protect.
fn judged(setting: &str, control: &str, file: &str, pages: &[Page]) -> Observation {
    let (blank, right) = (count(pages, |page| page.stored == 0), count(pages, |page| page.stored == page.computed));
    let quotation = format!(
        "data_checksums = {setting}; version in the control file: {control}; of {} pages of {file}, {right} have the \
         right checksum and {blank} none",
        pages.len()
    );
    let protected = setting == "on" && control != "0" && !pages.is_empty() && right == pages.len();
    if protected { Observation::Protected(quotation) } else { Observation::Exposed(quotation) }
}

fn count(pages: &[Page], which: impl Fn(&Page) -> bool) -> usize {
    pages.iter().filter(|page| which(page)).count()
}

/// The checksum in a page, and the correct one.
struct Page {
    stored: u16,
    computed: u16,
}

/// The pages of the relation at the path `file` below the data folder.
fn pages(context: &CheckContext<'_>, file: &str) -> Result<Vec<Page>, Fault> {
    let base = context.server.paths.data.iter().find(|path| path.ends_with("base"));
    let path: PathBuf = match base.and_then(|base| base.parent()) {
        Some(data) => data.join(file),
        None => return Err(Fault::machine(file, "the server's files are not on this machine")),
    };
    Ok(pages_in(&std::fs::read(&path).map_err(|error| Fault::machine(path.display(), error))?))
}

/// The pages in the `bytes` of a file. New pages are left out: they are all zero and have no checksum by design.
fn pages_in(bytes: &[u8]) -> Vec<Page> {
    let pages = bytes.chunks_exact(PAGE).zip(0..).filter(|(page, _)| page.iter().any(|byte| *byte != 0));
    let page = |(page, number): (&[u8], u32)| Page {
        stored: u16::from_le_bytes([page[CHECKSUM_AT], page[CHECKSUM_AT + 1]]),
        computed: checksum(page, number),
    };
    pages.map(page).collect()
}

/// Where the page header holds the checksum (`PageHeaderData.pd_checksum`).
const CHECKSUM_AT: usize = 8;

/// The checksum of page `number` of a file, on a little-endian machine: 32 interleaved FNV-1a hashes with a modified
/// step, folded together. Algorithm and start values: PostgreSQL's source, `src/include/storage/checksum_impl.h`.
fn checksum(page: &[u8], number: u32) -> u16 {
    const PRIME: u32 = 16_777_619;
    #[rustfmt::skip]
    let mut sums: [u32; 32] = [
        0x5B1F_36E9, 0xB852_5960, 0x02AB_50AA, 0x1DE6_6D2A, 0x79FF_467A, 0x9BB9_F8A3, 0x217E_7CD2, 0x83E1_3D2C,
        0xF8D4_474F, 0xE39E_B970, 0x42C6_AE16, 0x9932_16FA, 0x7B09_3B5D, 0x98DA_FF3C, 0xF718_902A, 0x0B1C_9CDB,
        0xE58F_764B, 0x1876_36BC, 0x5D7B_3BB1, 0xE73D_E7DE, 0x92BE_C979, 0xCCA6_C0B2, 0x304A_0979, 0x85AA_43D4,
        0x7831_25BB, 0x6CA8_EAA2, 0xE407_EAC6, 0x4B5C_FC3E, 0x9FBF_8C76, 0x15CA_20BE, 0xF2CA_9FD3, 0x959B_D756,
    ];
    let step = |sum: u32, word: u32| {
        let mixed = sum ^ word;
        mixed.wrapping_mul(PRIME) ^ (mixed >> 17)
    };
    for (index, word) in page.chunks_exact(4).enumerate() {
        // The checksum field counts as zero in the sum; it is the lower half of its word.
        let mut word = [word[0], word[1], word[2], word[3]];
        if index == CHECKSUM_AT / 4 {
            word[..2].fill(0);
        }
        let sum = &mut sums[index % 32];
        *sum = step(*sum, u32::from_le_bytes(word));
    }
    for _ in 0..2 {
        sums.iter_mut().for_each(|sum| *sum = step(*sum, 0));
    }
    let folded = sums.iter().fold(0, |all, sum| all ^ sum) ^ number;
    // Never zero, which means "no checksum".
    (folded % 65_535 + 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with varying bytes.
    fn page() -> Vec<u8> {
        (0..PAGE).map(|at| (at * at + 7 * at + at / 256) as u8).collect()
    }

    /// Computed by PostgreSQL 15: `SELECT page_checksum(page, n) & 65535` of its extension pageinspect, for a page
    /// whose byte i is (i * i + 7 * i + i / 256) % 256.
    #[test]
    fn checksums_are_those_of_the_server() {
        let of = |number: u32| checksum(&page(), number);
        assert_eq!([0, 1, 7, 131_071].map(of), [64_498, 64_497, 64_503, 31_681]);
    }

    #[test]
    fn pages_are_numbered_and_new_ones_left_out() {
        let mut bytes = [page(), vec![0; PAGE], page(), vec![1; PAGE / 2]].concat();
        let right = checksum(&page(), 2).to_le_bytes();
        bytes[2 * PAGE + CHECKSUM_AT..][..2].copy_from_slice(&right);
        let found = pages_in(&bytes);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].stored, u16::from_le_bytes([page()[CHECKSUM_AT], page()[CHECKSUM_AT + 1]]));
        assert_eq!([found[0].computed, found[1].computed], [checksum(&page(), 0), checksum(&page(), 2)]);
        assert!(found[0].stored != found[0].computed && found[1].stored == found[1].computed);
    }

    #[test]
    fn only_setting_control_file_and_every_page_together_protect() {
        let (right, wrong, blank) = ((7, 7), (8, 7), (0, 7));
        let judged = |setting: &str, control: &str, pages: &[(u16, u16)]| {
            let pages: Vec<Page> = pages.iter().map(|&(stored, computed)| Page { stored, computed }).collect();
            judged(setting, control, "base/5/1", &pages)
        };
        let protects = |setting: &str, control: &str, pages: &[(u16, u16)]| {
            matches!(judged(setting, control, pages), Observation::Protected(_))
        };
        assert!(protects("on", "1", &[right, right]));
        assert!(!protects("off", "1", &[right, right]));
        assert!(!protects("on", "0", &[right, right]));
        assert!(!protects("on", "1", &[]));
        assert!(!protects("on", "1", &[right, wrong]));
        assert!(!protects("on", "1", &[right, blank]));
        let words = "data_checksums = on; version in the control file: 1; of 4 pages of base/5/1, 1 have the right \
                     checksum and 2 none";
        assert_eq!(judged("on", "1", &[right, wrong, blank, blank]), Observation::Exposed(words.to_owned()));
    }
}
