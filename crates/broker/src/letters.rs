//! What is told at one subject, for whoever fetches it.

use std::{sync::Arc, time::Duration};

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use tithe_harness::agents::link::{Inbox, Letter};
use tithe_machine::fault::Fault;

use crate::{
    engine::Task,
    line::{Line, now_ns},
    parcel::{Joiner, Limits},
    post::INBOXES,
    queue::{Ended, Outlet, Queue, queue},
    words,
};

/// Time between two looks for messages whose parts do not come any more, while there are any.
const LOOK: Duration = Duration::from_secs(1);

/// Longer than anybody waits.
const LONG: Duration = Duration::from_secs(86_400);

/// An inbox. It stops listening when dropped.
pub(crate) struct Letters {
    outlet: Outlet,
    line: Arc<Line>,
    _collecting: Task,
}

impl Letters {
    /// Listens to `subject` from when this returns.
    pub async fn of(line: Arc<Line>, subject: &str) -> Result<Self, Fault> {
        let told = line.subscribe(subject).await?;
        let (queue, outlet) = queue();
        let queue = Arc::new(queue);
        line.post.add(&queue);
        Ok(Self { outlet, line, _collecting: Task::begin(collect(told, queue)) })
    }
}

impl Inbox for Letters {
    /// Also told as an error, once each: a message that was torn, came twice or is none of Tithe's; that some were
    /// lost.
    fn next(&mut self, within: Duration) -> Result<Option<Letter>, Fault> {
        match self.outlet.next(within) {
            Ok(Some(item)) => item.map(Some),
            Ok(None) if self.line.is_there() => Ok(None),
            Ok(None) => Err(self.line.post.lost()),
            Err(Ended) => Err(words::closed(self.line.post.at())),
        }
    }
}

async fn collect(mut told: Subscriber, queue: Arc<Queue>) {
    let mut joiner = Joiner::new(Limits::USUAL);
    loop {
        let patience = if joiner.is_idle() { LONG } else { LOOK };
        match tokio::time::timeout(patience, told.next()).await {
            Err(_) => {}
            Ok(None) => return,
            Ok(Some(message)) => {
                if let Some(item) = letter(&mut joiner, &message, now_ns()).transpose() {
                    queue.put(item);
                }
            }
        }
        joiner.expire(now_ns()).into_iter().for_each(|torn| queue.put(Err(torn)));
    }
}

/// The letter that `message` completes, if any.
fn letter(joiner: &mut Joiner, message: &Message, now_ns: u64) -> Result<Option<Letter>, Fault> {
    let reply_to = message.reply.as_ref().map(ToString::to_string);
    // Else whoever may ask could have this account, which may do more, say something anywhere.
    if let Some(elsewhere) = reply_to.as_deref().filter(|subject| !subject.starts_with(INBOXES)) {
        let words = format!("a message wants its answer at {}, which is no inbox", words::quoted(elsewhere));
        return Err(Fault::Protocol(words));
    }
    Ok(joiner.take(&message.payload, now_ns)?.map(|body| Letter { body, reply_to }))
}
