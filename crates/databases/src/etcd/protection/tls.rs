//! TLS between client and server.

use tithe_model::catalogue::{OptionEntry, OptionKind, ProtectionEntry};

use crate::{
    etcd::evidence::PROBES,
    tls::{self, Tls},
};

/// A server of 3.4 has no setting for versions: what rules out 1.2 there does not rule out 1.3.
static OPTIONS: [OptionEntry; 6] = {
    let mut options = tls::options("The only protocol version that either side allows.", tls::MUTUAL);
    options[0].kind = OptionKind::Choice(&["1.3"]);
    options
};

/// TLS on the only listener for clients that the server has: plaintext has none to go to.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "data in the server's memory and files, which etcd does not encrypt; traffic between members; when and \
                      how much is sent.",
        options: &OPTIONS,
        ..tls::ENTRY
    },
    ..Tls::of(&PROBES)
};
