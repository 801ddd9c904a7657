//! The limit of answers that are kept in memory: those to questions of Tithe's own, which are short. What the load
//! receives is handed over as it arrives, and has no such limit.

use tithe_machine::fault::Fault;

/// Most memory that an answer may take, bytes.
pub const MOST: usize = 24 << 20;
/// What a value takes in memory beside its bytes: its place in a row, and the allocator's part.
const VALUE: usize = 64;

/// What is kept of one answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kept(usize);

impl Kept {
    /// Counts so many more `values` with so many `bytes`.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if they are more than a question of Tithe's can have for an answer.
    #[inline]
    pub fn add(&mut self, values: usize, bytes: usize) -> Result<(), Fault> {
        self.0 = self.0.saturating_add(values.saturating_mul(VALUE)).saturating_add(bytes);
        if self.0 > MOST { Err(too_much("an answer", MOST)) } else { Ok(()) }
    }

    /// Counts one more `row`.
    ///
    /// # Errors
    /// As [`Kept::add`].
    pub fn add_row(&mut self, row: &[Option<String>]) -> Result<(), Fault> {
        self.add(1 + row.len(), row.iter().flatten().map(String::len).sum())
    }
}

/// The fault of a server that sends `what` beyond `most` bytes of memory.
pub fn too_much(what: &str, most: usize) -> Fault {
    Fault::Protocol(format!("the server sends {what} that takes more than {} MiB of memory", most >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_up_to_its_limit_and_no_byte_more() {
        let too_much = Fault::Protocol("the server sends an answer that takes more than 24 MiB of memory".to_owned());
        let mut kept = Kept::default();
        assert_eq!([kept.add(0, MOST - 1), kept.add(0, 1)], [Ok(()), Ok(())]);
        assert_eq!(kept.add(0, 1), Err(too_much.clone()));
        assert_eq!(Kept::default().add(usize::MAX, usize::MAX), Err(too_much));
    }

    #[test]
    fn each_value_and_each_row_takes_its_place_besides_its_bytes() {
        // A row of two values, one of them NULL: three places and four bytes.
        let row = [Some("four".to_owned()), None];
        let takes = 3 * VALUE + 4;
        let after = |bytes: usize| {
            let mut kept = Kept::default();
            kept.add(0, bytes).and_then(|()| kept.add_row(&row))
        };
        assert_eq!(after(MOST - takes), Ok(()));
        assert!(after(MOST - takes + 1).is_err());
        // An endless number of empty values is no short answer.
        let mut kept = Kept::default();
        let rows = (0..).take_while(|_| kept.add_row(&[]).is_ok()).count();
        assert_eq!(rows, MOST / VALUE);
    }
}
