//! TLS between client and server.

use crate::{postgres::evidence::PROBES, tls::Tls};

/// TLS by PostgreSQL's own `ssl = on`, with plaintext refused by `hostssl` lines alone.
pub static TLS: Tls = Tls::of(&PROBES);
