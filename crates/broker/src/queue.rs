//! Messages that arrived and were not fetched yet, with a bound on their size.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc::{self, Receiver, RecvTimeoutError},
};
use std::time::Duration;

use tithe_harness::agents::link::{Delivery, MESSAGE_BYTES_MAX};
use tithe_machine::fault::Fault;

/// Maximum size of the waiting messages, bytes.
const BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;

/// Memory of a message or a fault in addition to its bytes.
const OVERHEAD_BYTES: usize = 512;

type Item = Result<Delivery, Fault>;

/// The sending end.
pub(crate) struct QueueSender {
    items: mpsc::Sender<Item>,
    bytes: Arc<AtomicUsize>,
}

/// The receiving end.
pub(crate) struct QueueReceiver {
    items: Receiver<Item>,
    bytes: Arc<AtomicUsize>,
}

/// Both ends of an empty queue.
pub(crate) fn queue() -> (QueueSender, QueueReceiver) {
    let (sender, items) = mpsc::channel();
    let bytes = Arc::new(AtomicUsize::new(0));
    (QueueSender { items: sender, bytes: Arc::clone(&bytes) }, QueueReceiver { items, bytes })
}

impl QueueSender {
    /// Puts `item` in, or a fault if there is no room for it: the reader learns that something is missing.
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
        // The receiver may be gone.
        let _ = self.items.send(item);
    }
}

impl QueueReceiver {
    /// The next item; `None` if none came `within` that time.
    ///
    /// # Errors
    /// If no more will come.
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

/// The sender is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended;

fn cost(item: &Item) -> usize {
    OVERHEAD_BYTES + item.as_ref().map_or(0, |delivery| delivery.body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(length: usize) -> Item {
        Ok(Delivery { body: vec![0; length], reply_to: None })
    }

    /// Lengths of all messages in the queue, and texts of the faults.
    fn all(receiver: &QueueReceiver) -> Vec<String> {
        let next = || receiver.next(Duration::ZERO).ok().flatten();
        let say = |item: Item| item.map_or_else(|fault| fault.to_string(), |delivery| delivery.body.len().to_string());
        std::iter::from_fn(next).map(say).collect()
    }

    #[test]
    fn what_is_not_fetched_is_bounded_and_its_loss_is_told() {
        let (queue, receiver) = queue();
        let length = BYTES_MAX / 2 - OVERHEAD_BYTES - 1000;
        (0..5).for_each(|_| queue.put(delivery(length)));
        let lost = "protocol: more messages came than are kept: some are lost";
        assert_eq!(all(&receiver), [length.to_string(), length.to_string(), lost.into(), lost.into(), lost.into()]);
        queue.put(delivery(1));
        assert_eq!(all(&receiver), ["1"]);
        drop(queue);
        assert!(matches!(receiver.next(Duration::ZERO), Err(Ended)));
    }
}
