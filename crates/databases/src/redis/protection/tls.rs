//! TLS between client and server.

use tithe_machine::launch::{Install, Missing};
use tithe_model::catalogue::ProtectionEntry;

use crate::{
    redis::{evidence::PROBES, install},
    tls::{self, Tls},
};

/// TLS on the server's only port: there is no port for plaintext.
pub static TLS: Tls = Tls {
    entry: &ProtectionEntry {
        leaves_open: "data in the server's memory and files; when and how much is sent.",
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
        what: "a Redis or Valkey server that was built with TLS (BUILD_TLS=yes)".to_owned(),
        looked_in: vec![format!("{} ({})", install.programs.display(), install.version)],
        how_to_install: vec!["Debian, Ubuntu: apt-get install redis-server".to_owned()],
    })
}
