//! TLS between client and server.

use crate::{postgres::evidence::PROBES, tls::Tls};

/// TLS by PostgreSQL's own `ssl = on`; `hostssl` lines alone refuse plaintext.
pub static TLS: Tls = Tls::of(&PROBES);
