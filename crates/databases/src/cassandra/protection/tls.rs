//! TLS between client and node.

use tithe_model::catalogue::ProtectionEntry;

use crate::{
    cassandra::evidence::PROBES,
    tls::{self, Tls},
};

/// `client_encryption_options`, with plaintext refused (`optional: false`).
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        title: "TLS between client and node",
        leaves_open: "what travels between the nodes of a cluster; data in the server's memory, files and logs; when \
                      and how much is sent.",
        options: &tls::options(tls::VERSION, "The server demands a client certificate (require_client_auth)."),
        ..tls::ENTRY
    },
    ..Tls::of(&PROBES)
};
