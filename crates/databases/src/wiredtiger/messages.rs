//! An engine's messages about errors, kept for the error that they lead to.

use std::sync::{Mutex, PoisonError};

/// The last messages, oldest first.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Vec<String>>);

/// How many messages are kept: the first name the cause, the later ones the consequences.
const KEPT: usize = 2;

/// The function of the engine that prints pages.
const DUMP: &str = "__wt_bm_corrupt_dump";

impl Messages {
    /// Keeps `text`, unless there are enough. The engine's dump of a damaged page is not kept: it can hold values.
    pub fn add(&self, text: String) {
        if text.contains(DUMP) {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(text);
        }
    }

    /// All messages since the last call, as one text; empty if there were none.
    pub fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_are_kept_and_no_page_is() {
        let messages = Messages::default();
        messages.add("file:a.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, 85: {0: 4096}: 61 62 63".to_owned());
        (0..9).for_each(|number| messages.add(number.to_string()));
        assert_eq!(messages.take(), "0; 1");
        assert_eq!(messages.take(), "");
    }
}
