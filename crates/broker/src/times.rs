//! Clock readings in messages: `TTC1`, then the times at which a question arrived and was answered, ns, eight bytes
//! each in network order. A question is the first four bytes alone.
//!
//! The clock is read in the thread of the socket, directly before or after the library's own hand-over: no other thread
//! has to wake up between a reading and its message.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;

use crate::{
    line::{Line, now_ns},
    pending::INBOXES,
};

/// The message that asks for the time.
pub(crate) const QUESTION: [u8; 4] = *b"TTC1";

/// Answers every question until dropped.
pub(crate) async fn answer(line: Arc<Line>, mut asked: Subscriber) {
    while let Some(question) = asked.next().await {
        let arrived_ns = now_ns();
        let reply = question.reply.filter(|reply| reply.starts_with(INBOXES));
        if let Some(reply) = reply.filter(|_| *question.payload == QUESTION) {
            // If the answer is lost, the other side asks again.
            let _ = line.publish(&reply, None, written(arrived_ns, now_ns())).await;
        }
    }
}

fn written(arrived_ns: u64, answered_ns: u64) -> Vec<u8> {
    [&QUESTION[..], &arrived_ns.to_be_bytes(), &answered_ns.to_be_bytes()].concat()
}

/// When the question arrived and when it was answered, ns; `None` if `answer` is not an answer.
pub(crate) fn read(answer: &[u8]) -> Option<(u64, u64)> {
    let rest = answer.strip_prefix(&QUESTION)?;
    let (arrived, answered) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*arrived), u64::from_be_bytes(answered.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn readings_are_read_back_and_nothing_else_is(arrived: u64, answered: u64, other in "TTC1\\PC{0,20}") {
            let bytes = written(arrived, answered);
            prop_assert_eq!(read(&bytes), Some((arrived, answered)));
            prop_assert_eq!(read(&bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(read(other.as_bytes()).is_some(), other.len() == 20);
        }
    }
}
