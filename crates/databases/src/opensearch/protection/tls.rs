//! TLS between client and server.

use tithe_model::catalogue::ProtectionEntry;

use crate::{
    opensearch::{evidence::PROBES, install::needs_plugin},
    tls::{self, Tls},
};

/// TLS of the security plugin on the server's only listener for clients: there is no listener for plaintext.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "data in the server's memory and files, which OpenSearch does not encrypt; traffic between nodes; when \
                      and how much is sent.",
        options: &tls::options(tls::VERSION, "The server demands a client certificate (clientauth_mode)."),
        ..tls::ENTRY
    },
    needs: needs_plugin,
    ..Tls::of(&PROBES)
};
