//! A link in memory, which can be lost. Each end has a clock of its own.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use tithe_machine::{clock::Clock, fault::Fault};

use crate::agents::{
    link::{Answer, Delivery, Exchange, Link, Subscription},
    message::{Report, read},
};

/// The hub that carries the messages.
#[derive(Clone, Default)]
pub struct Hub(Arc<State>);

#[derive(Default)]
struct State {
    listening: Mutex<BTreeMap<String, Vec<Sender<Delivery>>>>,
    /// The clocks at subjects, by how far they are ahead, ns.
    clocks: Mutex<BTreeMap<String, i64>>,
    /// How long the next exchanges of clock readings take on invented time, ns; `None` for one that is lost.
    ways: Mutex<VecDeque<Option<u64>>>,
    inboxes: AtomicU64,
    /// Names of agents whose reports are lost.
    deaf: Mutex<Vec<String>>,
    /// Agents' identities by their names, as in their subjects.
    names: Mutex<BTreeMap<String, String>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// An end whose clock is `ahead_ns` ahead of this process's.
    pub fn link(&self, ahead_ns: i64) -> LocalLink {
        LocalLink { hub: self.clone(), ahead_ns, lost: AtomicBool::new(false) }
    }

    /// Drops the reports and clock answers of the agent called `name`, or stops doing so.
    pub fn deafen_reports_of(&self, name: &str, deaf: bool) {
        let mut all = lock(&self.0.deaf);
        all.retain(|other| other != name);
        if deaf {
            all.push(name.to_owned());
        }
    }

    /// Lets the next exchanges of clock readings take these lengths of invented time, ns; `None` loses one.
    pub fn exchange_in(&self, ways: &[Option<u64>]) {
        lock(&self.0.ways).extend(ways);
    }

    /// True for a report of an agent whose reports are dropped.
    fn swallows(&self, body: &[u8]) -> bool {
        let Some(Report { agent, .. }) = read(body) else { return false };
        let names = lock(&self.0.names);
        names.get(&agent).is_some_and(|name| lock(&self.0.deaf).contains(name))
    }

    fn send(&self, subject: &str, body: &[u8], reply_to: Option<String>) -> bool {
        if self.swallows(body) {
            return true;
        }
        let mut listening = lock(&self.0.listening);
        let Some(ears) = listening.get_mut(subject) else { return false };
        ears.retain(|ear| ear.send(Delivery { body: body.to_vec(), reply_to: reply_to.clone() }).is_ok());
        !ears.is_empty()
    }
}

/// One end.
pub struct LocalLink {
    hub: Hub,
    ahead_ns: i64,
    lost: AtomicBool,
}

impl LocalLink {
    /// Loses the hub, or finds it again.
    pub fn lose(&self, lost: bool) {
        self.lost.store(lost, Ordering::SeqCst);
    }

    fn there(&self) -> Result<(), Fault> {
        let lost = self.lost.load(Ordering::SeqCst);
        if lost { Err(Fault::Connection("the hub is lost".to_owned())) } else { Ok(()) }
    }

    fn subscription(&self) -> Result<(String, Box<dyn Subscription>), Fault> {
        let subject = format!("inbox.{}", self.hub.0.inboxes.fetch_add(1, Ordering::Relaxed));
        let subscription = self.subscribe(&subject)?;
        Ok((subject, subscription))
    }
}

struct LocalSubscription(Receiver<Delivery>);

impl Subscription for LocalSubscription {
    fn next(&mut self, within: Duration) -> Result<Option<Delivery>, Fault> {
        Ok(self.0.recv_timeout(within).ok())
    }
}

/// A clock that answers until this is dropped.
struct Telling {
    hub: Hub,
    subject: String,
}

impl Drop for Telling {
    fn drop(&mut self) {
        lock(&self.hub.0.clocks).remove(&self.subject);
    }
}

impl Link for LocalLink {
    fn publish(&self, subject: &str, message: &[u8]) -> Result<(), Fault> {
        self.there()?;
        self.hub.send(subject, message, None);
        Ok(())
    }

    fn request(&self, subject: &str, message: &[u8], within: Duration) -> Result<Answer, Fault> {
        self.there()?;
        let (reply_to, mut subscription) = self.subscription()?;
        if !self.hub.send(subject, message, Some(reply_to)) {
            return Ok(Answer::NoResponders);
        }
        Ok(subscription.next(within)?.map_or(Answer::TimedOut, |delivery| Answer::Reply(delivery.body)))
    }

    fn request_all(&self, subject: &str, message: &[u8], within: Duration) -> Result<Vec<Vec<u8>>, Fault> {
        self.there()?;
        let (reply_to, mut subscription) = self.subscription()?;
        self.hub.send(subject, message, Some(reply_to));
        let (deadline, mut all) = (Instant::now() + within, Vec::new());
        while let Some(delivery) = subscription.next(deadline.saturating_duration_since(Instant::now()))? {
            all.push(delivery.body);
        }
        Ok(all)
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, Fault> {
        self.there()?;
        let (sender, receiver) = mpsc::channel();
        if let Some(rest) = subject.strip_prefix("tithe.agent.")
            && let Some((name, id)) = rest.split_once('.')
        {
            lock(&self.hub.0.names).insert(id.to_owned(), name.to_owned());
        }
        lock(&self.hub.0.listening).entry(subject.to_owned()).or_default().push(sender);
        Ok(Box::new(LocalSubscription(receiver)))
    }

    fn tell_time(&self, subject: &str) -> Result<Box<dyn Send + Sync>, Fault> {
        self.there()?;
        lock(&self.hub.0.clocks).insert(subject.to_owned(), self.ahead_ns);
        Ok(Box::new(Telling { hub: self.hub.clone(), subject: subject.to_owned() }))
    }

    fn ask_time(&self, subject: &str, _within: Duration) -> Result<Option<Exchange>, Fault> {
        self.there()?;
        if let Some(way_ns) = lock(&self.hub.0.ways).pop_front() {
            let exchange = |heard_ns: u64| {
                let there_ns = heard_ns / 2;
                Exchange { asked_ns: 0, arrived_ns: there_ns, answered_ns: there_ns, heard_ns }
            };
            return Ok(way_ns.map(exchange));
        }
        let name = subject.split('.').nth(2).unwrap_or_default();
        if lock(&self.hub.0.deaf).iter().any(|deaf| deaf == name) {
            return Ok(None);
        }
        let Some(ahead_ns) = lock(&self.hub.0.clocks).get(subject).copied() else { return Ok(None) };
        // Long after the clock's beginning, so that clocks that are behind do not become negative.
        const BEGUN_NS: i64 = 100 * 86_400_000_000_000;
        let now = |ahead: i64| Clock::Real.now().saturating_add_signed(BEGUN_NS + ahead);
        let asked_ns = now(self.ahead_ns);
        let arrived_ns = now(ahead_ns);
        let answered_ns = now(ahead_ns);
        Ok(Some(Exchange { asked_ns, arrived_ns, answered_ns, heard_ns: now(self.ahead_ns) }))
    }
}
