//! TLS between client and server.

use tithe_machine::launch::{Install, Missing};
use tithe_model::catalogue::{OptionEntry, OptionKind, ProtectionEntry};

use crate::{
    memcached::{evidence::PROBES, install},
    tls::{self, Tls},
};

/// A server has a setting for the lowest version, but not for the highest: 1.2 cannot be its only one.
static OPTIONS: [OptionEntry; 6] = {
    let mut options = tls::options("The only protocol version that either side allows.", tls::MUTUAL);
    options[0].kind = OptionKind::Choice(&["1.3"]);
    options
};

/// TLS on the server's only listener: there is no listener for plaintext.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "items in the server's memory; when and how much is sent.",
        options: &OPTIONS,
        ..tls::ENTRY
    },
    needs: built_in,
    ..Tls::of(&PROBES)
};

fn built_in(install: &Install) -> Result<(), Missing> {
    if install.facts.get(install::TLS).is_some_and(|built| built == "yes") {
        return Ok(());
    }
    Err(Missing {
        what: "a memcached that was built with TLS (--enable-tls)".to_owned(),
        looked_in: vec![format!("{} ({})", install.programs.display(), install.version)],
        how_to_install: vec!["Debian, Ubuntu: apt-get install memcached".to_owned()],
    })
}
