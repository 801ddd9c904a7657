//! One connection to a broker: sends messages in parts, and knows when the broker has read them.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::{Client, Event, StatusCode, Subscriber, connection::State};
use futures_util::StreamExt;
use tithe_machine::{
    clock::Clock,
    fault::Fault,
    secret::{Secret, hex},
};

use crate::{
    access::Access,
    address::BrokerUrl,
    fragments::{Limits, Reassembler, Sender},
    pending::{Arrival, PendingCalls, locked},
    words,
};

/// Longest part, bytes: the default limit of brokers.
const PART_BYTES_MAX: usize = 1 << 20;

/// Maximum data sent ahead of what the broker has read, bytes: it waits in memory.
const AHEAD_BYTES: usize = 4 << 20;

/// Interval of pings to a silent broker. After two without an answer, it counts as lost.
const PING: Duration = Duration::from_secs(5);

/// Longest pause before a new attempt to connect.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection that reconnects by itself.
pub(crate) struct Line {
    client: Client,
    /// Pending calls and answers.
    pub pending: Arc<PendingCalls>,
    sender: Sender,
    answers: Mutex<Reassembler>,
}

impl Line {
    /// Connects to `at`, and makes sure that this account may send to itself and receive it.
    ///
    /// # Errors
    /// Why the connection was refused, by the broker or by us.
    pub async fn open(at: &BrokerUrl, access: &Access, within: Duration) -> Result<Arc<Self>, Fault> {
        let mut id = [0; 16];
        id.copy_from_slice(Secret::random(16).expose());
        let pending = Arc::new(PendingCalls::new(at.clone(), access.name(), &hex(&id)));
        let client = connected(at, access, within, Arc::clone(&pending)).await?;
        let (sender, answers) = (Sender::new(id), Mutex::new(Reassembler::new(Limits::USUAL)));
        let line = Arc::new(Self { client, pending, sender, answers });
        let home = line.pending.home();
        let arriving = line.about(&home, async { line.listen_to(&home).await }).await?;
        tokio::spawn(deliver(arriving, Arc::clone(&line.pending)));
        line.about(&home, line.echo()).await?;
        Ok(line)
    }

    /// True while it is connected.
    pub fn is_there(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The result of `work`. Fails if it is about a `subject` to which this account has no right, or if the broker is
    /// lost.
    pub async fn about<T>(&self, subject: &str, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut watch = self.pending.watch(subject);
        if !self.is_there() {
            return Err(self.pending.lost());
        }
        tokio::select! {
            biased;
            fault = watch.failed() => Err(fault),
            done = work => done,
        }
    }

    /// Sends `message` in as many parts as it needs.
    pub async fn send(&self, subject: &str, reply: Option<&str>, message: &[u8]) -> Result<(), Fault> {
        let room = self.client.server_info().max_payload.min(PART_BYTES_MAX);
        let parts = self.sender.split(message, room).map_err(|fault| fault.of(words::broker(self.pending.at())))?;
        let mut ahead = 0;
        for part in parts {
            ahead += part.len();
            self.publish(subject, reply, part).await?;
            if ahead > AHEAD_BYTES {
                self.echo().await?;
                ahead = 0;
            }
        }
        Ok(())
    }

    /// Sends `payload` unchanged.
    pub async fn publish(&self, subject: &str, reply: Option<&str>, payload: Vec<u8>) -> Result<(), Fault> {
        let subject = subject.to_owned();
        let sent = match reply {
            None => self.client.publish(subject, payload.into()).await,
            Some(reply) => self.client.publish_with_reply(subject, reply.to_owned(), payload.into()).await,
        };
        sent.map_err(|error| self.failed(&error))
    }

    /// Returns once the broker has read everything that was sent before: it forwards messages in the order in which it
    /// reads.
    pub async fn echo(&self) -> Result<(), Fault> {
        let mut own = self.pending.own_subject();
        let subject = own.subject.clone();
        let round = async {
            self.publish(&subject, None, Vec::new()).await?;
            own.next().await.map(drop)
        };
        self.about(&subject, round).await
    }

    /// The messages published at `subject` from the moment this returns.
    pub async fn subscribe(&self, subject: &str) -> Result<Subscriber, Fault> {
        let subscribed = async {
            let told = self.listen_to(subject).await?;
            self.echo().await?;
            Ok(told)
        };
        self.about(subject, subscribed).await
    }

    /// The message that `arrival` completes, if any.
    pub fn join(&self, arrival: &Arrival) -> Result<Option<Vec<u8>>, Fault> {
        let mut answers = locked(&self.answers);
        // Callers that waited for a torn message have already had an error.
        answers.expire(arrival.at_ns);
        answers.take(&arrival.message.payload, arrival.at_ns)
    }

    async fn listen_to(&self, subject: &str) -> Result<Subscriber, Fault> {
        self.client.subscribe(subject.to_owned()).await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &dyn std::error::Error) -> Fault {
        Fault::Connection(words::quoted(&error.to_string())).of(words::broker(self.pending.at()))
    }
}

/// True if the broker itself reports that there is no subscriber.
pub(crate) fn is_nobody(arrival: &Arrival) -> bool {
    arrival.message.status == Some(StatusCode::NO_RESPONDERS)
}

/// CLOCK_MONOTONIC, ns: the clock of the lanes.
pub(crate) fn now_ns() -> u64 {
    Clock::Real.now()
}

async fn connected(
    at: &BrokerUrl,
    access: &Access,
    within: Duration,
    pending: Arc<PendingCalls>,
) -> Result<Client, Fault> {
    let options = access.options(at, within)?;
    let addresses = if at.has_tls() { Vec::new() } else { addresses(at).await? };
    at.heard_by_nobody(&addresses)?;
    options
        // Before TLS begins, an attacker could forge what the broker sends, including a list of other brokers.
        .ignore_discovered_servers()
        .max_reconnects(None::<usize>)
        .reconnect_delay_callback(|tries| PAUSE_MAX.min(Duration::from_millis(100) * tries.min(100) as u32))
        .ping_interval(PING)
        .event_callback(move |event| {
            let pending = Arc::clone(&pending);
            async move { pending.heard(event) }
        })
        .connect(at.servers(&addresses))
        .await
        .map_err(|error| words::not_connected(at, &error))
}

async fn addresses(at: &BrokerUrl) -> Result<Vec<SocketAddr>, Fault> {
    let found = tokio::net::lookup_host((at.host(), at.port())).await;
    let unknown = |error| Fault::Connection(format!("its name does not resolve here: {error}")).of(words::broker(at));
    found.map(Iterator::collect).map_err(unknown)
}

async fn deliver(mut arriving: Subscriber, pending: Arc<PendingCalls>) {
    while let Some(message) = arriving.next().await {
        pending.deliver(Arrival { at_ns: now_ns(), message });
    }
    // The library has given up reconnecting.
    pending.heard(Event::Closed);
}
