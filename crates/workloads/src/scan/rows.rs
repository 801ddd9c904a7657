//! The rows that are scanned, and the expected answers of scans.

use std::ops::Range;

use tithe_model::schedule::SplitMix64;
use tithe_plugin::sql::{Column, ColumnType, Sensitivity, SqlTable};

use super::config::Config;
use crate::random_text::RandomText;

/// The table.
pub const TABLE: &str = "scan";
/// Digits at the beginning of a text, unique to its row.
const DIGITS: usize = 16;

/// Rows between two stored sums.
const STEP: u64 = 1024;

/// The table of `config`, with the program's lifetime, as all descriptions of tables.
pub fn tables(config: &Config) -> &'static [SqlTable] {
    let columns = vec![
        Column::new("s_id", ColumnType::Long, Sensitivity::Identifier),
        Column::new("s_group", ColumnType::Integer, Sensitivity::Identifier),
        Column::new("s_number", ColumnType::Long, Sensitivity::Figure),
        Column::new("s_text", ColumnType::Text(config.length), Sensitivity::Remark),
    ];
    vec![SqlTable { name: TABLE, columns: columns.leak(), key: &["s_id"], indexes: &[] }].leak()
}

/// All rows.
pub struct AllRows {
    count: u64,
    groups: u64,
    seed: u64,
    padding: RandomText,
    /// For each row whose number [`STEP`] divides, the sum of the numbers of all rows before it.
    sums: Vec<u64>,
    /// Smallest and largest text by its digits, and the row of the latter.
    ends: (u64, u64, u64),
}

impl AllRows {
    /// This many rows of `config`, determined by `seed`.
    pub fn new(config: &Config, count: u64, seed: u64) -> Self {
        let padding = RandomText::new(seed, config.length - DIGITS);
        let mut rows = Self { count, groups: config.groups, seed, padding, sums: Vec::new(), ends: (u64::MAX, 0, 0) };
        let mut sum = 0;
        for id in 0..count {
            if id.is_multiple_of(STEP) {
                rows.sums.push(sum);
            }
            sum += rows.number(id);
            let digits = rows.digits(id);
            rows.ends.0 = rows.ends.0.min(digits);
            if digits >= rows.ends.1 {
                (rows.ends.1, rows.ends.2) = (digits, id);
            }
        }
        rows
    }

    /// The number of rows.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The group of row `id`.
    pub fn group(&self, id: u64) -> u64 {
        id % self.groups
    }

    /// The number of row `id`.
    pub fn number(&self, id: u64) -> u64 {
        self.digits(id) % 1_000_000
    }

    /// Writes the text of row `id`.
    pub fn text(&self, id: u64, out: &mut Vec<u8>) {
        let digits = self.digits(id);
        out.extend_from_slice(spelt(digits).as_bytes());
        out.extend_from_slice(self.padding.of(digits));
    }

    /// The digits at the beginning of row `id`'s text. The generator's step is a permutation, so they are unique to the
    /// row.
    fn digits(&self, id: u64) -> u64 {
        SplitMix64::new(self.seed.wrapping_add(id)).next_u64()
    }

    /// The sum of the numbers of rows in `ids`.
    pub fn sum(&self, ids: Range<u64>) -> u64 {
        self.before(ids.end) - self.before(ids.start)
    }

    /// The sum of the numbers of all rows before `id`.
    fn before(&self, id: u64) -> u64 {
        let step = (id / STEP).min((self.sums.len() as u64).saturating_sub(1));
        let kept = self.sums.get(step as usize).copied().unwrap_or_default();
        kept + (step * STEP..id).map(|id| self.number(id)).sum::<u64>()
    }

    /// The beginnings of the smallest and the largest text, and the row of the latter.
    pub fn ends(&self) -> (String, String, u64) {
        (spelt(self.ends.0), spelt(self.ends.1), self.ends.2)
    }

    /// Count and sum of each group.
    pub fn by_group(&self) -> Vec<(u64, u64)> {
        let mut groups = vec![(0, 0); self.groups as usize];
        for id in 0..self.count {
            let (count, sum) = &mut groups[self.group(id) as usize];
            *count += 1;
            *sum += self.number(id);
        }
        groups.retain(|(count, _)| *count > 0);
        groups
    }
}

/// Digits that sort like the number in every product's order.
fn spelt(digits: u64) -> String {
    format!("{digits:016x}")
}
