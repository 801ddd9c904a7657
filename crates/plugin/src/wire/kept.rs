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
