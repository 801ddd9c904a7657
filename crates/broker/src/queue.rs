//! What came for somebody and was not fetched yet, with a bound on what it may hold.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc::{self, Receiver, RecvTimeoutError},
};
use std::time::Duration;

use tithe_harness::agents::link::{Letter, MESSAGE_BYTES_MAX};
use tithe_machine::fault::Fault;

/// Most that waits to be fetched, bytes.
const BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;

/// What a letter or a fault takes beside its bytes.
const OVERHEAD_BYTES: usize = 512;

type Item = Result<Letter, Fault>;

/// Where letters are put in.
pub(crate) struct Queue {
    items: mpsc::Sender<Item>,
    bytes: Arc<AtomicUsize>,
}

/// Where they are taken out.
pub(crate) struct Outlet {
    items: Receiver<Item>,
    bytes: Arc<AtomicUsize>,
}

/// Both ends of an empty queue.
pub(crate) fn queue() -> (Queue, Outlet) {
    let (sender, items) = mpsc::channel();
    let bytes = Arc::new(AtomicUsize::new(0));
    (Queue { items: sender, bytes: Arc::clone(&bytes) }, Outlet { items, bytes })
}

impl Queue {
    /// Puts `item` in, or a fault where there is no room for it: whoever fetches learns that something is missing.
    pub fn put(&self, item: Item) {
        let has_room = |bytes: usize| self.bytes.load(Ordering::Relaxed) + bytes <= BYTES_MAX;
        if has_room(cost(&item)) {
            self.add(item);
        } else if has_room(OVERHEAD_BYTES) {
            self.add(Err(Fault::Protocol("more messages came than are kept: some are lost".to_owned())));
        }
    }

    fn add(&self, item: Item) {
        self.bytes.fetch_add(cost(&item), Ordering::Relaxed);
        // Nobody may be there to fetch it any more.
        let _ = self.items.send(item);
    }
}

impl Outlet {
    /// The next item; `None` when none came `within` that time.
    ///
    /// # Errors
    /// When none will come any more.
    pub fn next(&self, within: Duration) -> Result<Option<Item>, Ended> {
        match self.items.recv_timeout(within) {
            Ok(item) => {
                self.bytes.fetch_sub(cost(&item), Ordering::Relaxed);
                Ok(Some(item))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Ended),
        }
    }
}

/// Nobody puts anything in any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended;

fn cost(item: &Item) -> usize {
    OVERHEAD_BYTES + item.as_ref().map_or(0, |letter| letter.body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(length: usize) -> Item {
        Ok(Letter { body: vec![0; length], reply_to: None })
    }

    /// Lengths of all letters that are there, and words of faults.
    fn all(outlet: &Outlet) -> Vec<String> {
        let next = || outlet.next(Duration::ZERO).ok().flatten();
        let say = |item: Item| item.map_or_else(|fault| fault.to_string(), |letter| letter.body.len().to_string());
        std::iter::from_fn(next).map(say).collect()
    }

    #[test]
    fn what_is_not_fetched_is_bounded_and_its_loss_is_told() {
        let (queue, outlet) = queue();
        let length = BYTES_MAX / 2 - OVERHEAD_BYTES - 1000;
        (0..5).for_each(|_| queue.put(letter(length)));
        let lost = "protocol: more messages came than are kept: some are lost";
        assert_eq!(all(&outlet), [length.to_string(), length.to_string(), lost.into(), lost.into(), lost.into()]);
        queue.put(letter(1));
        assert_eq!(all(&outlet), ["1"]);
        drop(queue);
        assert!(matches!(outlet.next(Duration::ZERO), Err(Ended)));
    }
}
