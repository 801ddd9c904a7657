//! Operations by the names under which workloads record them, and the note with one kind's share of all operations.

/// YCSB's operation that fetches a record.
pub const READ: &str = "READ";

/// TPC-C's transaction whose rate is the throughput.
pub const NEW_ORDER: &str = "NEW-ORDER";

/// TPC-C's transactions. What is recorded besides is part of one of them.
pub const TPCC_TRANSACTIONS: [&str; 5] = [NEW_ORDER, "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL"];

/// The share of one kind of operation: the note `READ`, `50 %`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share<'a> {
    /// Name of the operation, in capitals.
    pub operation: &'a str,
    /// Percent of all operations.
    pub percent: f64,
}

impl<'a> Share<'a> {
    /// The note with this share.
    pub fn note(&self) -> (String, String) {
        (self.operation.to_owned(), format!("{} %", self.percent))
    }

    /// The share in a note; `None` if it is no share, or a share of nothing.
    pub fn of_note(name: &'a str, value: &str) -> Option<Self> {
        let is_operation = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let percent = value.strip_suffix(" %")?.parse::<f64>().ok()?;
        (is_operation && percent > 0.0 && percent <= 100.0).then_some(Self { operation: name, percent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_share_that_was_told_is_read_back(operation in "[A-Z-]{1,20}", hundredths in 1u32..=10_000) {
            let share = Share { operation: &operation, percent: f64::from(hundredths) / 100.0 };
            let (name, value) = share.note();
            prop_assert_eq!(Share::of_note(&name, &value), Some(share));
        }
    }

    #[test]
    fn other_notes_are_no_shares() {
        assert_eq!(Share { operation: READ, percent: 62.5 }.note(), ("READ".to_owned(), "62.5 %".to_owned()));
        let others =
            [("requestdistribution", "50 %"), ("", "50 %"), ("READ", "zipfian"), ("READ", "0 %"), ("READ", "50")];
        for (name, value) in others {
            assert_eq!(Share::of_note(name, value), None, "{name} {value}");
        }
    }
}
