//! The link between a coordinator and its agents over NATS: the only crate with an asynchronous runtime of its own.
//! Only builds with the feature `agents` contain it.
//!
//! ```text
//! coordinator ── tls://broker:4222 ── nats-server ── tls://broker:4222 ── agent
//! ```
//!
//! Both sides only make outgoing connections. [`Broker::connect`] connects and authenticates ([`Access`]); from then on
//! a [`Broker`] is a [`Link`](tithe_harness::agents::link::Link). A thread `broker` has the runtime and the socket:
//! other threads hand it work and wait for a bounded time. It computes nothing but hashes, and sleeps while nothing
//! arrives.
//!
//! * **Addresses** ([`BrokerUrl`]): `tls://` everywhere; `nats://` only if every address of the name is a loopback one.
//!   If TLS is requested and not available, that is an error. Servers that a broker recommends are never used: the
//!   recommendation comes before TLS begins, so an attacker on the network could forge it.
//! * **Access** comes from files that only their owner may read. No error and no `Debug` output contains any of it.
//! * **Messages** are sent in parts ([`fragments`]) with a hash over the whole. They are delivered whole and once, or
//!   not at all.
//! * **Answers** arrive at `tithe.inbox.NAME.ID.…`, where NAME is the account's ([`Access::read`]) and ID is random for
//!   each connection. Answers are never sent to a subject outside of `tithe.inbox.`, whatever a question asks for.
//! * **Rights**: every call that sends waits until the broker has read everything; a message to the caller's own inbox
//!   shows that. So if the broker refuses something, the call that caused it fails.
//! * **A broker that goes away** ends every pending call with an error. The client then reconnects without limit and
//!   restores all subscriptions. A message of a failed call may still arrive later: messages that must not take effect
//!   twice have to name what they belong to.
//!
//! See `docs/agents.md` for starting a broker safely. Not in this crate: the contents of messages
//! (`tithe_harness::agents`), storage in a broker, clusters of brokers.

#![forbid(unsafe_code)]

mod access;
mod address;
mod broker;
mod engine;
#[doc(hidden)]
pub mod foreign;
pub mod fragments;
mod line;
mod pending;
mod queue;
mod subscription;
mod times;
mod words;

pub use access::{Access, AccessFiles};
pub use address::BrokerUrl;
pub use broker::Broker;
