//! The link between a coordinator and its agents over NATS: the only crate with an asynchronous runtime of its own, and
//! in no build without the feature `agents`.
//!
//! ```text
//! coordinator ── tls://broker:4222 ── nats-server ── tls://broker:4222 ── agent
//! ```
//!
//! Both sides only call out. [`Broker::connect`] connects and shows who it is ([`Access`]); from then on a [`Broker`]
//! is a [`Link`](tithe_harness::agents::link::Link). A thread of its own, `broker`, has the runtime and the socket:
//! other threads hand it work and wait no longer than they said. It computes nothing but hashes, and sleeps while
//! nothing comes.
//!
//! * **Addresses** ([`BrokerUrl`]): `tls://` everywhere, `nats://` only where every address of the name is a loopback
//!   one. TLS asked for and not obtained is an error. Servers that a broker recommends are never called: what
//!   recommends them can be said by anybody who stands between, before TLS begins.
//! * **Access** comes from files that nobody but their owner may read. Nothing of it is in an error or a `Debug`.
//! * **Messages** go in parts ([`fragments`]) with a hash over the whole, and come out whole, once, or not at all.
//! * **Answers** come to `tithe.inbox.NAME.ID.…`, NAME being the account's ([`Access::read`]) and ID drawn when it
//!   connects. Nothing outside of `tithe.inbox.` is ever answered, whatever a question asks for.
//! * **Rights**: every call that sends waits until the broker has read what it sent, which it tells by a message to its
//!   own inbox. What the broker refuses is therefore an error of the call that caused it.
//! * **A broker that goes away** ends every call under way with an error, and is connected to again for ever, with all
//!   subscriptions. A call that failed so may still arrive later: what must not happen twice says in its message what
//!   it belongs to.
//!
//! How a broker is started safely is in `docs/agents.md`. Left out: what the messages say (`tithe_harness::agents`),
//! anything that a broker stores, clusters of brokers.

#![forbid(unsafe_code)]

mod access;
mod address;
mod broker;
mod engine;
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
