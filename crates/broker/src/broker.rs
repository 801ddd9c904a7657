//! The link itself: every call is work for the engine's thread, with a bound on its time.

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

/// Most that all answers to one question may come to, bytes.
const ANSWERS_BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;

/// Longest subject.
const SUBJECT_LENGTH_MAX: usize = 255;

/// A connection to a broker, used by any thread. It is closed when dropped, and what listens by it hears nothing more.
pub struct Broker {
    // In this order: the engine's thread ends last.
    line: Arc<Line>,
    engine: Engine,
    /// How long calls may take that name no time.
    timeout: Duration,
}

impl Broker {
    /// Connects to the broker `at` with `access`. `within` also bounds each later [`Link::publish`],
    /// [`Link::subscribe`] and [`Link::tell_time`].
    ///
    /// # Errors
    /// [`Fault::Refused`], when the address is plain and leads off this machine, the broker shows no certificate that
    /// is trusted here or no TLS at all, it does not let this account in, or gives it no right to its inbox
    /// (`tithe.inbox.NAME.>`); [`Fault::Connection`], when it is not there or does not answer; [`Fault::Machine`], when
    /// a file of certificates cannot be used.
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

    /// What comes of `work` on the line about `subject`, within the timeout of this link.
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

    /// What comes of `work`, which keeps the deadline itself.
    fn until<T: Send + 'static, W>(
        &self,
        within: Duration,
        work: impl FnOnce(Arc<Line>, Instant) -> W,
    ) -> Result<T, Fault>
    where
        W: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        // A caller that waits for ever waits for a day.
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

/// A question under way.
struct Question<'a> {
    own: Expected,
    line: &'a Line,
    deadline: Instant,
}

/// What came to a question.
enum Came {
    /// A whole answer.
    Answer(Vec<u8>),
    /// A part of one.
    Part,
    /// That nobody listens.
    Nobody,
    /// Nothing more in time.
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
                // A torn answer is none; who gave it is missing among those who answered.
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

    /// [`Fault::Protocol`] where what came is torn: something else may come.
    async fn next(&mut self) -> Result<Came, Fault> {
        let Ok(arrival) = timeout_at(self.deadline, self.own.next()).await else { return Ok(Came::Nothing) };
        let arrival = arrival?;
        if is_nobody(&arrival) {
            return Ok(Came::Nobody);
        }
        Ok(self.line.join(&arrival)?.map_or(Came::Part, Came::Answer))
    }
}

/// Refuses a `subject` to which nothing can be sent.
fn one(subject: &str) -> Result<(), Fault> {
    well_formed(subject, |part| !part.contains(['*', '>']))
}

/// Refuses a `subject` to which nobody can listen: `*` may stand for one part, `>` at its end for all that are left.
fn several(subject: &str) -> Result<(), Fault> {
    well_formed(subject.strip_suffix(".>").unwrap_or(subject), |part| part == "*" || !part.contains(['*', '>']))
}

fn well_formed(subject: &str, is_part: impl Fn(&str) -> bool) -> Result<(), Fault> {
    let is_well = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic()) && is_part(part);
    if subject.len() <= SUBJECT_LENGTH_MAX && subject.split('.').all(is_well) {
        return Ok(());
    }
    Err(Fault::Protocol(format!("`{}` is no subject for that", words::quoted(subject))))
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
