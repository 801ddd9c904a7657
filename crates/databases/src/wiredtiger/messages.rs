//! What an engine says about errors, kept for the error that it leads to.

use std::sync::{Mutex, PoisonError};

/// The last messages, oldest first.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Vec<String>>);

/// Messages that are kept: the first say what went wrong, the later ones what followed from it.
const KEPT: usize = 4;

impl Messages {
    /// Keeps `text`, unless there are enough.
    pub fn add(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(text);
        }
    }

    /// Everything since the last call, as one text; empty where nothing was said.
    pub fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).join("; ")
    }
}
