//! How a coordinator and its agents communicate over any transport: subjects, messages, requests with answers, and
//! clocks.
//!
//! A subject is a name with points in it (`tithe.roll-call`). Every subscriber gets what is published there from then
//! on; nothing is stored. Messages may be as long as [`MESSAGE_BYTES_MAX`]: a link splits messages that its engine
//! cannot carry in one piece and joins them again. It never delivers an incomplete message or the same one twice.
//! [`message`](super::message) defines their content.

use std::time::Duration;

use tithe_machine::fault::Fault;

/// The longest message, bytes: the rows and histograms of a long frame are some megabytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How long an answer may take that needs no work.
pub const PROMPT: Duration = Duration::from_secs(2);

/// True if clock requests at `subject` are answered.
///
/// # Errors
/// When the engine cannot be reached.
pub fn tells_time(link: &dyn Link, subject: &str) -> Result<bool, Fault> {
    // Twice, since a message may be lost with a connection that was broken unnoticed.
    Ok(link.ask_time(subject, PROMPT)?.is_some() || link.ask_time(subject, PROMPT)?.is_some())
}

/// A connection to the engine that carries messages. Every call has a time limit and may be made by any thread.
///
/// A link that has lost its engine connects again by itself. Meanwhile calls fail with [`Fault::Connection`], which
/// names the engine's address and never its credentials.
pub trait Link: Send + Sync {
    /// Sends `message` to all subscribers of `subject`, if any.
    ///
    /// # Errors
    /// When the message is too long or the engine cannot be reached.
    fn publish(&self, subject: &str, message: &[u8]) -> Result<(), Fault>;

    /// Sends `message` to the subscribers of `subject`, and returns the first answer.
    ///
    /// # Errors
    /// As [`Link::publish`]. A subject without listeners is no error: see [`Answer`].
    fn request(&self, subject: &str, message: &[u8], within: Duration) -> Result<Answer, Fault>;

    /// Sends `message` to the subscribers of `subject`, and returns all answers that come `within` that time.
    ///
    /// # Errors
    /// As [`Link::publish`].
    fn request_all(&self, subject: &str, message: &[u8], within: Duration) -> Result<Vec<Vec<u8>>, Fault>;

    /// Listens to `subject` from the moment that this returns.
    ///
    /// # Errors
    /// When the engine cannot be reached or does not let this account listen there.
    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, Fault>;

    /// Answers [`Link::ask_time`] at `subject`, until the returned value is dropped. No thread that measures takes
    /// part.
    ///
    /// # Errors
    /// As [`Link::subscribe`].
    fn tell_time(&self, subject: &str) -> Result<Box<dyn Send + Sync>, Fault>;

    /// One exchange of clock readings with the time source at `subject`; `None` if there is none, or it does not answer
    /// `within` that time.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    fn ask_time(&self, subject: &str, within: Duration) -> Result<Option<Exchange>, Fault>;
}

/// The messages that are published at one subject, in the order of their arrival.
pub trait Subscription: Send {
    /// The next message; `None` when none came `within` that time.
    ///
    /// # Errors
    /// When the engine was lost: what was published meanwhile is lost too.
    fn next(&mut self, within: Duration) -> Result<Option<Delivery>, Fault>;
}

/// A message that was received.
pub struct Delivery {
    /// Its content.
    pub body: Vec<u8>,
    /// The subject at which its sender waits for an answer; `None` if it waits for none.
    pub reply_to: Option<String>,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// This answer.
    Reply(Vec<u8>),
    /// The subject has no listeners.
    NoResponders,
    /// There may be a listener, but it has not answered in time.
    TimedOut,
}

/// Four readings of two clocks, as in NTP's on-wire protocol (RFC 5905, section 8): `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The requester's clock when it sent the request.
    pub asked_ns: u64,
    /// The other clock when the request arrived.
    pub arrived_ns: u64,
    /// The other clock when it answered.
    pub answered_ns: u64,
    /// The requester's clock when the answer arrived.
    pub heard_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::tests::local::Hub;

    #[test]
    fn one_answer_of_a_clock_may_be_lost() {
        for (answers, tells) in [(vec![Some(0)], true), (vec![None, Some(0)], true), (vec![None, None], false)] {
            let hub = Hub::default();
            hub.exchange_in(&answers);
            assert_eq!(tells_time(&hub.link(0), "tithe.clock.a.1"), Ok(tells), "{answers:?}");
        }
    }
}
