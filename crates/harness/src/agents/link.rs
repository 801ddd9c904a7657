//! How a coordinator and its agents talk, whatever carries it: subjects, messages, questions with answers, and clocks.
//!
//! A subject is a name with points in it (`tithe.roll-call`). Every subscriber gets what is published there
//! from then on; nothing is stored. Messages may be as long as [`MESSAGE_BYTES_MAX`]: a link splits what its engine
//! does not carry in one piece, puts it together again and hands over nothing that was torn or came twice. What they
//! say is [`message`](super::message)'s.

use std::time::Duration;

use tithe_machine::fault::Fault;

/// The longest message, bytes: the rows and histograms of a long frame are some megabytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How long an answer may take that is given without any work.
pub const PROMPT: Duration = Duration::from_secs(2);

/// True where somebody tells the time at `subject`.
///
/// # Errors
/// When the engine cannot be reached.
pub fn tells_time(link: &dyn Link, subject: &str) -> Result<bool, Fault> {
    // Twice, since a message may be lost with a connection that was not known to be.
    Ok(link.ask_time(subject, PROMPT)?.is_some() || link.ask_time(subject, PROMPT)?.is_some())
}

/// A connection to what carries messages. Every call is bounded by a time and may be made by any thread.
///
/// A link that has lost its engine connects again by itself. Meanwhile calls fail with [`Fault::Connection`], whose
/// words name the engine's address and never what was used to be let in.
pub trait Link: Send + Sync {
    /// Sends `message` to all subscribers of `subject`, if any.
    ///
    /// # Errors
    /// When the message is too long or the engine cannot be reached.
    fn publish(&self, subject: &str, message: &[u8]) -> Result<(), Fault>;

    /// Sends `message` to the subscribers of `subject`, and returns the first answer.
    ///
    /// # Errors
    /// As [`Link::publish`]. That nobody listens is no error: see [`Answer`].
    fn request(&self, subject: &str, message: &[u8], within: Duration) -> Result<Answer, Fault>;

    /// Sends `message` to the subscribers of `subject`, and returns all answers that come `within` that time.
    ///
    /// # Errors
    /// As [`Link::publish`].
    fn request_all(&self, subject: &str, message: &[u8], within: Duration) -> Result<Vec<Vec<u8>>, Fault>;

    /// Listens to `subject` from when this returns.
    ///
    /// # Errors
    /// When the engine cannot be reached or does not let this account listen there.
    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, Fault>;

    /// Answers who asks [`Link::ask_time`] at `subject`, for as long as what is returned is kept. No thread that
    /// measures has a part in it.
    ///
    /// # Errors
    /// As [`Link::subscribe`].
    fn tell_time(&self, subject: &str) -> Result<Box<dyn Send + Sync>, Fault>;

    /// One exchange of clock readings with the time source at `subject`; `None` where nobody does, or does not
    /// answer `within` that time.
    ///
    /// # Errors
    /// When the engine cannot be reached.
    fn ask_time(&self, subject: &str, within: Duration) -> Result<Option<Exchange>, Fault>;
}

/// What is published at one subject, in the order in which it came.
pub trait Subscription: Send {
    /// The next message; `None` when none came `within` that time.
    ///
    /// # Errors
    /// When the engine was lost: what was published meanwhile is lost too.
    fn next(&mut self, within: Duration) -> Result<Option<Delivery>, Fault>;
}

/// A message that came.
pub struct Delivery {
    /// What it says.
    pub body: Vec<u8>,
    /// Where its sender waits for an answer; `None` where it does not.
    pub reply_to: Option<String>,
}

/// What came of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// This answer.
    Reply(Vec<u8>),
    /// Nobody listens at that subject.
    NoResponders,
    /// Somebody may listen and has not answered in time.
    TimedOut,
}

/// Four readings of two clocks, as in NTP's on-wire protocol (RFC 5905, section 8): `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The asker's clock when it asked.
    pub asked_ns: u64,
    /// The other's clock when the question arrived.
    pub arrived_ns: u64,
    /// The other's clock when it answered.
    pub answered_ns: u64,
    /// The asker's clock when the answer arrived.
    pub heard_ns: u64,
}
