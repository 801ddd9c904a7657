//! Answers of scans, compared with the expected ones.

use tithe_machine::fault::Fault;
use tithe_plugin::session::Rows;

use super::{config::Query, rows::AllRows};

/// The received part of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// Rows so far.
    rows: u64,
    /// Sums of whole numbers, by column.
    sums: [u64; 3],
    /// Correct counts, sums and groups.
    right: u64,
    /// The values of the current row.
    values: Vec<Vec<u8>>,
}

/// Receives an answer to `query`.
pub struct Reading<'a> {
    /// The query.
    pub query: Query,
    /// Count and sum of each group.
    pub groups: &'a [(u64, u64)],
    /// The received part.
    pub answer: &'a mut Answer,
}

impl Rows for Reading<'_> {
    fn row(&mut self, _key: Option<&[u8]>) {
        self.answer.rows += 1;
        self.answer.values.clear();
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        let value = value.unwrap_or_default();
        match self.query {
            // The client discards the text.
            Query::Range if field < 2 => {
                self.answer.sums[field] = self.answer.sums[field].wrapping_add(number(value));
            }
            Query::Range => {}
            Query::Group => {
                self.answer.sums[field] = number(value);
                let [group, count, sum] = self.answer.sums;
                let expected = usize::try_from(group).ok().and_then(|group| self.groups.get(group));
                self.answer.right += u64::from(field == 2 && expected == Some(&(count, sum)));
            }
            Query::Aggregate | Query::Sort => self.answer.values.push(value.to_vec()),
        }
    }
}

/// By how much products round a mean: MySQL and MariaDB give four decimals, and of 1.99996 `2.0000`.
const ROUNDED: f64 = 0.0001;

/// A whole number in the products' forms, `12` or `12.0000`; the largest number for anything else.
fn number(text: &[u8]) -> u64 {
    let digits = text.split(|byte| *byte == b'.').next().unwrap_or_default();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)
}

impl Answer {
    /// Clears the received part.
    pub fn clear(&mut self) {
        (self.rows, self.sums, self.right) = (0, [0; 3], 0);
        self.values.clear();
    }

    /// Checks that all of it is correct: for `rows`, of which the scan has read `count` from `first` on, in this many
    /// `groups`.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with the incorrect part.
    pub fn check(&self, query: Query, rows: &AllRows, (first, count): (u64, u64), groups: usize) -> Result<(), Fault> {
        let ids = first..first + count;
        let (is, must_be) = match query {
            Query::Range => {
                let keys = count * (2 * first + count - 1) / 2;
                (format!("{} {:?}", self.rows, &self.sums[..2]), format!("{count} {:?}", [keys, rows.sum(ids)]))
            }
            Query::Group => (format!("{} of {}", self.right, self.rows), format!("{groups} of {groups}")),
            Query::Sort => (self.told(), rows.ends().2.to_string()),
            Query::Aggregate => {
                let (smallest, largest, _) = rows.ends();
                let sum = rows.sum(ids);
                let is = self.aggregated(sum as f64 / count as f64);
                (is, format!("{count} {sum} {} {smallest} {largest}", sum / count.max(1)))
            }
        };
        if is == must_be {
            Ok(())
        } else {
            Err(Fault::Wrong(format!("the scan `{}` returned {is}, but the rows give {must_be}", query.name())))
        }
    }

    fn told(&self) -> String {
        self.values.iter().map(|value| String::from_utf8_lossy(value)).collect::<Vec<_>>().join(" ")
    }

    /// Count, sum, the whole part of the `mean`, and the digits of the smallest and the largest text.
    fn aggregated(&self, mean: f64) -> String {
        let value = |at: usize| self.values.get(at).map_or(&[][..], Vec::as_slice);
        let digits = |at: usize| String::from_utf8_lossy(&value(at)[..value(at).len().min(16)]).into_owned();
        let [count, sum, whole] = [0, 1, 2].map(|at| number(value(at)));
        let told = std::str::from_utf8(value(2)).ok().and_then(|text| text.parse::<f64>().ok());
        let whole = if told.is_some_and(|told| (told - mean).abs() <= ROUNDED) { mean as u64 } else { whole };
        format!("{count} {sum} {whole} {} {}", digits(3), digits(4))
    }
}
