//! Pending calls, answers and queues. Errors and events of the broker's connection reach them from here.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use async_nats::{ClientError, Event, Message, ServerError};
use tithe_machine::fault::Fault;
use tokio::sync::{mpsc, oneshot};

use crate::{address::BrokerUrl, queue::QueueSender, words};

/// Prefix of all subjects to which answers may be sent.
pub(crate) const INBOXES: &str = "tithe.inbox.";

/// A message for a call, with its time of arrival.
pub(crate) struct Arrival {
    /// CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    /// The message.
    pub message: Message,
}

/// The registry of one connection.
pub(crate) struct PendingCalls {
    at: BrokerUrl,
    /// Prefix of the subjects for answers: `tithe.inbox.NAME.ID`.
    home: String,
    number: AtomicU64,
    calls: Mutex<HashMap<u64, Call>>,
    answers: Mutex<HashMap<String, mpsc::UnboundedSender<Arrival>>>,
    queues: Mutex<Vec<Weak<QueueSender>>>,
    trouble: Mutex<Option<String>>,
}

struct Call {
    subject: String,
    failed: oneshot::Sender<Fault>,
}

impl PendingCalls {
    /// For the connection of the account `name` to `at`; `id` is random.
    pub fn new(at: BrokerUrl, name: &str, id: &str) -> Self {
        Self {
            at,
            home: format!("{INBOXES}{name}.{id}"),
            number: AtomicU64::new(0),
            calls: Mutex::default(),
            answers: Mutex::default(),
            queues: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// The broker's address.
    pub fn at(&self) -> &BrokerUrl {
        &self.at
    }

    /// The subject of all answers.
    pub fn home(&self) -> String {
        format!("{}.*", self.home)
    }

    /// The fault of a lost connection.
    pub fn lost(&self) -> Fault {
        words::lost(&self.at, locked(&self.trouble).as_deref())
    }

    /// Registers a call about `subject`, which fails if the broker reports an error about it.
    pub fn watch(self: &Arc<Self>, subject: &str) -> Watch {
        let (failed, fault) = oneshot::channel();
        let number = self.next();
        locked(&self.calls).insert(number, Call { subject: subject.to_owned(), failed });
        Watch { number, fault, pending: Arc::clone(self) }
    }

    /// A new subject and the messages that arrive at it.
    pub fn own_subject(self: &Arc<Self>) -> Expected {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let subject = format!("{}.{}", self.home, self.next());
        locked(&self.answers).insert(subject.clone(), sender);
        Expected { subject, arrivals, pending: Arc::clone(self) }
    }

    /// From now on `queue` receives a fault when messages may have been lost.
    pub fn add(&self, queue: &Arc<QueueSender>) {
        let mut queues = locked(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Hands `arrival` to the call that expects it, if it is still there.
    pub fn deliver(&self, arrival: Arrival) {
        let sender = locked(&self.answers).get(&*arrival.message.subject).cloned();
        if let Some(sender) = sender {
            let _ = sender.send(arrival);
        }
    }

    /// Handles an event of the client's connection.
    pub fn heard(&self, event: Event) {
        match event {
            Event::Connected => *locked(&self.trouble) = None,
            Event::Disconnected | Event::Closed => self.all_fail(),
            Event::SlowConsumer(_) => {
                let words = "messages came faster than they were taken, and some are lost";
                self.tell_queues(&Fault::Protocol(words.to_owned()));
            }
            Event::ServerError(ServerError::Other(words)) => self.refused(&words),
            Event::ClientError(ClientError::Other(words)) => *locked(&self.trouble) = Some(words),
            _ => {}
        }
    }

    fn all_fail(&self) {
        let calls: Vec<Call> = locked(&self.calls).drain().map(|(_, call)| call).collect();
        for call in calls {
            let _ = call.failed.send(self.lost());
        }
        self.tell_queues(&self.lost());
    }

    fn tell_queues(&self, fault: &Fault) {
        let queues: Vec<Arc<QueueSender>> = locked(&self.queues).iter().filter_map(Weak::upgrade).collect();
        queues.iter().for_each(|queue| queue.put(Err(fault.clone())));
    }

    fn refused(&self, words: &str) {
        let Some((right, subject)) = missing_right(words) else {
            *locked(&self.trouble) = Some(words.to_owned());
            return;
        };
        let mut calls = locked(&self.calls);
        let about: Vec<u64> =
            calls.iter().filter(|(_, call)| call.subject == subject).map(|(number, _)| *number).collect();
        for call in about.iter().filter_map(|number| calls.remove(number)) {
            let _ = call.failed.send(words::no_right(&self.at, right, &words::quoted(subject)));
        }
    }

    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }
}

/// The missing right and its subject in a message of nats-server, such as `Permissions Violation for Publish to
/// "tithe.go"`.
pub(crate) fn missing_right(words: &str) -> Option<(&'static str, &str)> {
    let rest = words.strip_prefix("Permissions Violation for ")?;
    let (right, rest) = match rest.split_once(" to \"")? {
        ("Publish", rest) => ("publish", rest),
        ("Subscription", rest) => ("subscribe", rest),
        _ => return None,
    };
    Some((right, rest.split_once('"')?.0))
}

/// A pending call.
pub(crate) struct Watch {
    number: u64,
    fault: oneshot::Receiver<Fault>,
    pending: Arc<PendingCalls>,
}

impl Watch {
    /// Waits until the call fails, and returns why.
    pub async fn failed(&mut self) -> Fault {
        match (&mut self.fault).await {
            Ok(fault) => fault,
            Err(_) => self.pending.lost(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        locked(&self.pending.calls).remove(&self.number);
    }
}

/// The messages that arrive at one call's own subject.
pub(crate) struct Expected {
    /// The subject.
    pub subject: String,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    pending: Arc<PendingCalls>,
}

impl Expected {
    /// The next message.
    pub async fn next(&mut self) -> Result<Arrival, Fault> {
        self.arrivals.recv().await.ok_or_else(|| self.pending.lost())
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        locked(&self.pending.answers).remove(&self.subject);
    }
}

/// Locks `mutex`, even if a thread panicked while it held the lock: each change is one step.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_right_is_read_as_servers_say_it() {
        let queue = r#"Permissions Violation for Subscription to "tithe.>" using queue "q""#;
        assert_eq!(missing_right(queue), Some(("subscribe", "tithe.>")));
        let publish = r#"Permissions Violation for Publish to "tithe.go""#;
        assert_eq!(missing_right(publish), Some(("publish", "tithe.go")));
        for other in
            ["", "Permissions Violation for Publish to ", r#"Permissions Violation for Fun to "a""#, "Stale Connection"]
        {
            assert_eq!(missing_right(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_call_that_is_about_the_subject_fails() {
        let pending = Arc::new(PendingCalls::new("tls://broker".parse().unwrap(), "rack7", "1"));
        let (mut go, mut other) = (pending.watch("tithe.go"), pending.watch("tithe.other"));
        pending.heard(Event::ServerError(ServerError::Other(
            r#"Permissions Violation for Publish to "tithe.go""#.to_owned(),
        )));
        let words = "broker tls://broker:4222: this account has no right to publish tithe.go: its permissions are in the \
                     broker's configuration";
        assert_eq!(go.fault.try_recv(), Ok(Fault::Refused(words.to_owned())));
        assert!(other.fault.try_recv().is_err());
        pending.heard(Event::ClientError(ClientError::Other("IO error".to_owned())));
        pending.heard(Event::Disconnected);
        let words = "broker tls://broker:4222: the connection was lost and is being opened again; last try: IO error";
        assert_eq!(other.fault.try_recv(), Ok(Fault::Connection(words.to_owned())));
        drop((go, other));
        assert!(locked(&pending.calls).is_empty());
    }

    proptest! {
        #[test]
        fn no_words_of_a_broker_make_it_panic(words in "(Permissions Violation for )?(Publish|Subscription)?( to \")?\\PC{0,20}\"?") {
            let pending = Arc::new(PendingCalls::new("tls://broker".parse().unwrap(), "rack7", "1"));
            let _watch = pending.watch("tithe.go");
            pending.heard(Event::ServerError(ServerError::Other(words)));
        }
    }
}
