//! A subscription to one subject, for its reader.

use std::{sync::Arc, time::Duration};

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use tithe_harness::agents::link::{Delivery, Subscription};
use tithe_machine::fault::Fault;

use crate::{
    engine::Task,
    fragments::{Limits, Reassembler},
    line::{Line, now_ns},
    pending::INBOXES,
    queue::{Ended, QueueReceiver, QueueSender, queue},
    words,
};

/// Interval of the check for incomplete messages that have timed out, while there are any.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Longer than any wait.
const LONG: Duration = Duration::from_secs(86_400);

/// A subscription of a broker. It ends when dropped.
pub(crate) struct BrokerSubscription {
    receiver: QueueReceiver,
    line: Arc<Line>,
    _collecting: Task,
}

impl BrokerSubscription {
    /// Subscribes to `subject`; messages are received from the moment this returns.
    pub async fn of(line: Arc<Line>, subject: &str) -> Result<Self, Fault> {
        let told = line.subscribe(subject).await?;
        let (queue, receiver) = queue();
        let queue = Arc::new(queue);
        line.pending.add(&queue);
        Ok(Self { receiver, line, _collecting: Task::begin(collect(told, queue)) })
    }
}

impl Subscription for BrokerSubscription {
    /// These are also errors, once each: a message that was torn, came twice or does not come from Tithe; lost
    /// messages.
    fn next(&mut self, within: Duration) -> Result<Option<Delivery>, Fault> {
        match self.receiver.next(within) {
            Ok(Some(item)) => item.map(Some),
            Ok(None) if self.line.is_there() => Ok(None),
            Ok(None) => Err(self.line.pending.lost()),
            Err(Ended) => Err(words::closed(self.line.pending.at())),
        }
    }
}

async fn collect(mut told: Subscriber, queue: Arc<QueueSender>) {
    let mut reassembler = Reassembler::new(Limits::USUAL);
    loop {
        let timeout = if reassembler.is_idle() { LONG } else { EXPIRY_INTERVAL };
        match tokio::time::timeout(timeout, told.next()).await {
            Err(_) => {}
            Ok(None) => return,
            Ok(Some(message)) => {
                if let Some(item) = delivery(&mut reassembler, &message, now_ns()).transpose() {
                    queue.put(item);
                }
            }
        }
        reassembler.expire(now_ns()).into_iter().for_each(|torn| queue.put(Err(torn)));
    }
}

/// The delivery that `message` completes, if any.
fn delivery(reassembler: &mut Reassembler, message: &Message, now_ns: u64) -> Result<Option<Delivery>, Fault> {
    let reply_to = message.reply.as_ref().map(ToString::to_string);
    // Otherwise any account that may ask could make this account, which has more rights, publish to any subject.
    if let Some(elsewhere) = reply_to.as_deref().filter(|subject| !subject.starts_with(INBOXES)) {
        let words = format!("a message wants its answer at {}, which is not an inbox", words::quoted(elsewhere));
        return Err(Fault::Protocol(words));
    }
    Ok(reassembler.take(&message.payload, now_ns)?.map(|body| Delivery { body, reply_to }))
}
