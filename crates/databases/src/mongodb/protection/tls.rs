//! TLS between client and server.

use tithe_model::catalogue::ProtectionEntry;

use crate::{
    mongodb::evidence::PROBES,
    tls::{self, Tls},
};

/// `net.tls.mode: requireTLS`. The driver offers every version that it knows; the server allows one.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "data in the server's memory and files; when and how much is sent.",
        options: &tls::options_of_any("The only protocol version that the server allows.", tls::MUTUAL),
        ..tls::ENTRY
    },
    ..Tls::of(&PROBES)
};
