//! TLS between client and server.

use tithe_model::catalogue::{OptionEntry, OptionKind, ProtectionEntry};

use crate::{
    etcd::evidence::PROBES,
    tls::{self, Tls},
};

/// A server of 3.4 has no setting for versions: what excludes 1.2 there does not exclude 1.3.
static OPTIONS: [OptionEntry; 6] = {
    let mut options = tls::options("The only protocol version that either side allows.", tls::MUTUAL);
    options[0].kind = OptionKind::Choice(&["1.3"]);
    options
};

/// TLS on the server's only listener for clients: there is no listener for plaintext.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "data in the server's memory and files, which etcd does not encrypt; traffic between members; when and \
                      how much is sent.",
        options: &OPTIONS,
        ..tls::ENTRY
    },
    ..Tls::of(&PROBES)
};
