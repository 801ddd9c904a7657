//! TLS between client and server.

use crate::{mariadb::evidence::PROBES, tls::Tls};

/// TLS by MariaDB's own `ssl_cert`, with plaintext refused by the server (`require_secure_transport`) and by the
/// account.
pub static TLS: Tls = Tls::of(&PROBES);
