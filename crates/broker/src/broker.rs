//! The link itself: every call is work for the engine's thread, with a time limit.

use std::{sync::Arc, time::Duration};

use tithe_harness::agents::link::{Answer, Exchange, Link, MESSAGE_BYTES_MAX, Subscription};
use tithe_machine::fault::Fault;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    access::Access,
    address::BrokerUrl,
    engine::{Engine, Task},
    line::{Line, is_nobody, now_ns},
    pending::Expected,
    subscription::BrokerSubscription,
    times, words,
};

/// Maximum total size of all answers to one question, bytes.
const ANSWERS_BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;

/// Longest subject.
const SUBJECT_LENGTH_MAX: usize = 255;

/// A connection to a broker, usable from any thread. It is closed when dropped, and its subscriptions then receive
/// nothing more.
pub struct Broker {
    // The order matters: the engine's thread must end last.
    line: Arc<Line>,
    engine: Engine,
    /// Timeout of calls that have none of their own.
    timeout: Duration,
}

impl Broker {
    /// Connects to the broker `at` with `access`. `within` is also the timeout of each later [`Link::publish`],
    /// [`Link::subscribe`] and [`Link::tell_time`].
    ///
    /// # Errors
    /// [`Fault::Refused`], if the address is unencrypted and not on this machine, if the broker has no trusted
    /// certificate or no TLS at all, if it rejects this account, or gives it no right to its inbox
    /// (`tithe.inbox.NAME.>`). [`Fault::Connection`], if it is not there or does not answer. [`Fault::Machine`], if a
    /// certificate file cannot be used.
    pub fn connect(at: &BrokerUrl, access: &Access, within: Duration) -> Result<Self, Fault> {
        let engine = Engine::start()?;
        let (called, access) = (at.clone(), access.clone());
        let opened = async move {
            match timeout(within, Line::open(&called, &access, within)).await {
                Ok(line) => line,
                Err(_) => Err(words::silent(&called)),
            }
        };
        let line = engine.call(at, within, opened)?;
        Ok(Self { line, engine, timeout: within })
    }

    /// The result of `work` on the line about `subject`, within the timeout of this link.
    fn patiently<T: Send + 'static, W>(
        &self,
        subject: &str,
        work: impl FnOnce(Arc<Line>, String) -> W,
    ) -> Result<T, Fault>
    where
        W: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let (timeout, at) = (self.timeout, self.line.pending.at());
        let work = work(Arc::clone(&self.line), subject.to_owned());
        let late = words::silent(at);
        self.engine.call(at, timeout, async move { tokio::time::timeout(timeout, work).await.unwrap_or(Err(late)) })
    }

    /// The result of `work`, which keeps the deadline itself.
    fn until<T: Send + 'static, W>(
        &self,
        within: Duration,
        work: impl FnOnce(Arc<Line>, Instant) -> W,
    ) -> Result<T, Fault>
    where
        W: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        // "For ever" means a day.
        let within = within.min(Duration::from_secs(86_400));
        let work = work(Arc::clone(&self.line), Instant::now() + within);
        self.engine.call(self.line.pending.at(), within, work)
    }
}

impl Link for Broker {
    fn publish(&self, subject: &str, message: &[u8]) -> Result<(), Fault> {
        one(subject)?;
        let message = message.to_vec();
        self.patiently(subject, |line, subject| async move {
            let sent = async {
                line.send(&subject, None, &message).await?;
                line.echo().await
            };
            line.about(&subject, sent).await
        })
    }

    fn request(&self, subject: &str, message: &[u8], within: Duration) -> Result<Answer, Fault> {
        one(subject)?;
        let (subject, message) = (subject.to_owned(), message.to_vec());
        self.until(within, |line, deadline| async move {
            let mut question = Question { own: line.pending.own_subject(), line: &line, deadline };
            line.about(&subject, question.first_answer(&subject, &message)).await
        })
    }

    fn request_all(&self, subject: &str, message: &[u8], within: Duration) -> Result<Vec<Vec<u8>>, Fault> {
        one(subject)?;
        let (subject, message) = (subject.to_owned(), message.to_vec());
        self.until(within, |line, deadline| async move {
            let mut question = Question { own: line.pending.own_subject(), line: &line, deadline };
            line.about(&subject, question.all_answers(&subject, &message)).await
        })
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, Fault> {
        several(subject)?;
        let letters =
            self.patiently(subject, |line, subject| async move { BrokerSubscription::of(line, &subject).await })?;
        Ok(Box::new(letters))
    }

    fn tell_time(&self, subject: &str) -> Result<Box<dyn Send + Sync>, Fault> {
        several(subject)?;
        let telling = self.patiently(subject, |line, subject| async move {
            let asked = line.subscribe(&subject).await?;
            Ok(Task::begin(times::answer(line, asked)))
        })?;
        Ok(Box::new(telling))
    }

    fn ask_time(&self, subject: &str, within: Duration) -> Result<Option<Exchange>, Fault> {
        one(subject)?;
        let subject = subject.to_owned();
        self.until(within, |line, deadline| async move {
            let mut question = Question { own: line.pending.own_subject(), line: &line, deadline };
            line.about(&subject, question.time(&subject)).await
        })
    }
}

/// A pending question.
struct Question<'a> {
    own: Expected,
    line: &'a Line,
    deadline: Instant,
}

/// What arrived for a question.
enum Came {
    /// A whole answer.
    Answer(Vec<u8>),
    /// A part of an answer.
    Part,
    /// The broker reports that there is no subscriber.
    Nobody,
    /// Nothing more before the deadline.
    Nothing,
}

impl Question<'_> {
    async fn first_answer(&mut self, subject: &str, message: &[u8]) -> Result<Answer, Fault> {
        self.send(subject, message).await?;
        let mut torn = None;
        loop {
            match self.next().await {
                Ok(Came::Answer(answer)) => return Ok(Answer::Reply(answer)),
                Ok(Came::Nobody) => return Ok(Answer::NoResponders),
                Ok(Came::Nothing) => return torn.map_or(Ok(Answer::TimedOut), Err),
                Ok(Came::Part) => {}
                Err(fault @ Fault::Protocol(_)) => torn = Some(fault),
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn all_answers(&mut self, subject: &str, message: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        self.send(subject, message).await?;
        let (mut answers, mut bytes) = (Vec::new(), 0);
        loop {
            match self.next().await {
                Ok(Came::Answer(answer)) => {
                    bytes += answer.len();
                    answers.push(answer);
                }
                Ok(Came::Nobody | Came::Nothing) => return Ok(answers),
                // A torn answer does not count: its sender is missing from the answers.
                Ok(Came::Part) | Err(Fault::Protocol(_)) => {}
                Err(fault) => return Err(fault),
            }
            if bytes > ANSWERS_BYTES_MAX {
                return Err(Fault::Protocol(format!("the answers are more than {ANSWERS_BYTES_MAX} bytes")));
            }
        }
    }

    async fn time(&mut self, subject: &str) -> Result<Option<Exchange>, Fault> {
        let asked_ns = now_ns();
        self.line.publish(subject, Some(&self.own.subject), times::QUESTION.to_vec()).await?;
        let Ok(arrival) = timeout_at(self.deadline, self.own.next()).await else { return Ok(None) };
        let arrival = arrival?;
        if is_nobody(&arrival) {
            return Ok(None);
        }
        let readings = times::read(&arrival.message.payload);
        let (arrived_ns, answered_ns) =
            readings.ok_or_else(|| Fault::Protocol("the answer is not a clock reading".to_owned()))?;
        Ok(Some(Exchange { asked_ns, arrived_ns, answered_ns, heard_ns: arrival.at_ns }))
    }

    async fn send(&self, subject: &str, message: &[u8]) -> Result<(), Fault> {
        let sent = timeout_at(self.deadline, self.line.send(subject, Some(&self.own.subject), message)).await;
        sent.unwrap_or_else(|_| Err(words::silent(self.line.pending.at())))
    }

    /// [`Fault::Protocol`] if a message is torn: others may still come.
    async fn next(&mut self) -> Result<Came, Fault> {
        let Ok(arrival) = timeout_at(self.deadline, self.own.next()).await else { return Ok(Came::Nothing) };
        let arrival = arrival?;
        if is_nobody(&arrival) {
            return Ok(Came::Nobody);
        }
        Ok(self.line.join(&arrival)?.map_or(Came::Part, Came::Answer))
    }
}

/// Refuses a `subject` that is not valid for sending.
fn one(subject: &str) -> Result<(), Fault> {
    well_formed(subject, |part| !part.contains(['*', '>']))
}

/// Refuses a `subject` that is not valid for a subscription: `*` may replace one part, `>` at the end all further
/// parts.
fn several(subject: &str) -> Result<(), Fault> {
    well_formed(subject.strip_suffix(".>").unwrap_or(subject), |part| part == "*" || !part.contains(['*', '>']))
}

fn well_formed(subject: &str, is_part: impl Fn(&str) -> bool) -> Result<(), Fault> {
    let is_well = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic()) && is_part(part);
    if subject.len() <= SUBJECT_LENGTH_MAX && subject.split('.').all(is_well) {
        return Ok(());
    }
    Err(Fault::Protocol(format!("`{}` is not a subject for that", words::quoted(subject))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_names_with_points() {
        for good in ["tithe", "tithe.agent.3f2a", "tithe.inbox.rack-7_b.0f"] {
            assert_eq!((one(good), several(good)), (Ok(()), Ok(())), "{good}");
        }
        for wide in ["tithe.>", "tithe.*.go"] {
            assert!(one(wide).is_err() && several(wide).is_ok(), "{wide}");
        }
        let long = "x".repeat(256);
        for wrong in ["", ".", ">", "a.", "a..b", "a b", "a\r\nPUB b", "\u{e4}", "a.>.b", "a*", "a.b>", long.as_str()] {
            assert!(one(wrong).is_err() && several(wrong).is_err(), "{wrong}");
        }
    }
}
