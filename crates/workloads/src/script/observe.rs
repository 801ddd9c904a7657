//! The answers of statements outside of the load: rows are reduced to a number, so that arms can be compared.

use tithe_plugin::{session::Rows, workload::Answered};

use super::{answer::Answer, random::murmur2};

/// Most characters of an answer in a message.
const SHOWN: usize = 120;

/// Reduces the rows of an answer to a number that does not depend on their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest {
    sum: u64,
    rows: u64,
    /// The current row.
    current: u64,
    /// The first row, for messages.
    first: String,
}

impl Digest {
    fn end_row(&mut self) {
        if self.rows > 0 {
            self.sum = self.sum.wrapping_add(murmur2(self.current as i64, 0) as u64);
        }
        self.current = 0;
    }

    fn field(&mut self, value: Option<&[u8]>) {
        let bytes = value.unwrap_or(b"\0NULL");
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        self.current = bytes.iter().fold(self.current.wrapping_mul(31).wrapping_add(7), mix);
        let left = SHOWN.saturating_sub(self.first.chars().count());
        if self.rows == 1 && left > 0 {
            let separator = if self.first.is_empty() { "" } else { ", " };
            let shown = value.map_or("NULL".into(), String::from_utf8_lossy);
            self.first += separator;
            self.first.extend(shown.chars().filter(|sign| !sign.is_control()).take(left));
        }
    }

    /// Its text in a message.
    fn words(&self) -> String {
        match self.rows {
            0 => "no row".to_owned(),
            1 => format!("({})", self.first),
            rows => format!("{rows} rows, first ({})", self.first),
        }
    }
}

/// The observations of a client outside of the load.
#[derive(Debug, Default)]
pub struct Observer {
    current: Digest,
    answers: Vec<Answered>,
}

impl Observer {
    /// The observations since the last call.
    pub fn take(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answers)
    }

    /// Records the error `words` with which a transaction was refused, under `operation`.
    pub fn refused(&mut self, operation: usize, words: String) {
        let mut digest = Digest { rows: 1, ..Digest::default() };
        digest.field(Some(words.as_bytes()));
        self.current = Digest::default();
        self.answers.push(Answered { operation, digest: digest.current, words, failed: true });
    }

    /// Records the complete answer to the statement of `operation`.
    pub fn answered(&mut self, operation: Option<usize>) {
        self.current.end_row();
        let digest = std::mem::take(&mut self.current);
        if let Some(operation) = operation {
            let digest_of = digest.sum.wrapping_add(digest.rows);
            self.answers.push(Answered { operation, digest: digest_of, words: digest.words(), failed: false });
        }
    }
}

/// Passes rows to a client and to its observer.
pub struct Observed<'a> {
    /// The client's.
    pub answer: &'a mut Answer,
    /// Its observer.
    pub observer: &'a mut Observer,
}

impl Rows for Observed<'_> {
    fn row(&mut self, key: Option<&[u8]>) {
        self.answer.row(key);
        self.observer.current.end_row();
        self.observer.current.rows += 1;
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        self.answer.field(field, value);
        self.observer.current.field(value);
    }

    fn enough(&self) -> Option<String> {
        self.answer.enough()
    }

    fn column(&mut self, column: usize, name: &[u8]) {
        self.answer.column(column, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'a> = &'a [Option<&'a str>];

    /// The number and the text of an answer with these `rows`.
    fn told(rows: &[Row<'_>]) -> (u64, String) {
        let (mut answer, mut observer) = (Answer::default(), Observer::default());
        let mut observed = Observed { answer: &mut answer, observer: &mut observer };
        for row in rows {
            observed.row(None);
            for (field, value) in row.iter().enumerate() {
                observed.field(field, value.map(str::as_bytes));
            }
        }
        observer.answered(Some(3));
        let all = observer.take();
        let [answered] = &all[..] else { panic!("one answer") };
        assert_eq!((answered.operation, answered.failed), (3, false));
        (answered.digest, answered.words.clone())
    }

    #[test]
    fn an_answer_is_told_by_its_first_row_and_the_number_of_rows() {
        let words = |rows: &[Row<'_>]| told(rows).1;
        assert_eq!(words(&[]), "no row");
        assert_eq!(words(&[&[Some("a\n"), None, Some("")]]), "(a, NULL, )");
        assert_eq!(words(&[&[Some("a")], &[Some("b")], &[Some("c")]]), "3 rows, first (a)");
        let long = "x".repeat(300);
        assert_eq!(words(&[&[Some(long.as_str()), Some("y")]]), format!("({})", "x".repeat(120)));
    }

    #[test]
    fn answers_are_equal_in_any_order_of_their_rows_and_in_no_other_case() {
        let digest = |rows: &[Row<'_>]| told(rows).0;
        let (one, two): (Row<'_>, Row<'_>) = (&[Some("1"), Some("a")], &[Some("2"), Some("b")]);
        assert_eq!(digest(&[one, two]), digest(&[two, one]));
        let others: [&[Row<'_>]; 9] = [
            &[],
            &[one],
            &[two],
            &[one, one],
            &[one, one, two],
            &[&[Some("1"), Some("b")], &[Some("2"), Some("a")]],
            &[&[Some("a"), Some("1")], two],
            &[&[Some("1a")], two],
            &[&[Some("1"), None], &[Some("2"), Some("")]],
        ];
        let mut all: Vec<u64> = others.iter().map(|rows| digest(rows)).chain([digest(&[one, two])]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10);
    }

    #[test]
    fn what_is_observed_is_told_once_and_a_refusal_is_an_answer() {
        let mut observer = Observer::default();
        observer.answered(None);
        assert!(observer.take().is_empty(), "no operation of the script");
        observer.refused(2, "no such table".to_owned());
        observer.refused(2, "no such column".to_owned());
        let refused = observer.take();
        assert!(refused.iter().all(|answered| answered.operation == 2 && answered.failed));
        assert_eq!(refused[0].words, "no such table");
        assert_ne!(refused[0].digest, refused[1].digest);
        assert!(observer.take().is_empty());
    }
}
