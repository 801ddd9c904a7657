//! TLS between client and server.

use crate::{mariadb::evidence::PROBES, tls::Tls};

/// TLS by MariaDB's own `ssl_cert`; the server (`require_secure_transport`) and the account refuse plaintext.
pub static TLS: Tls = Tls::of(&PROBES);
