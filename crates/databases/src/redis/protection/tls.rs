//! TLS between client and server.

use tithe_harness::{
    database::{Install, Missing},
    evidence::{Evidence, canary::Targets, wire_canary::WireCanary},
    protection::{Protection, Setup, TlsVersion, Transport},
};
use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use crate::{
    evidence::tls_negotiated::TlsNegotiated,
    redis::{evidence::DOORS, install::TLS},
};

/// TLS on the only port that the server has: plaintext has none to go to.
pub struct Tls;

impl Protection for Tls {
    fn id(&self) -> &'static str {
        "tls"
    }

    fn title(&self) -> &'static str {
        "TLS"
    }

    fn guards_against(&self) -> &'static str {
        "whoever reads or changes what travels between client and server, or poses as the server."
    }

    fn leaves_open(&self) -> &'static str {
        "data in the server's memory and files; when and how much is sent."
    }

    fn options(&self) -> &'static [OptionEntry] {
        &[
            OptionEntry {
                name: "version",
                kind: OptionKind::Choice(&["1.3", "1.2"]),
                default: Some(Default::Text("1.3")),
                help: "The only protocol version that either side allows.",
            },
            OptionEntry {
                name: "mutual",
                kind: OptionKind::Flag,
                default: Some(Default::Flag(false)),
                help: "The server demands a client certificate.",
            },
        ]
    }

    fn attachable(&self) -> bool {
        true
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        if install.facts.get(TLS).is_some_and(|built| built == "yes") {
            return Ok(());
        }
        Err(Missing {
            what: "a Redis or Valkey server that was built with TLS (BUILD_TLS=yes)".to_owned(),
            looked_in: vec![format!("{} ({})", install.programs.display(), install.version)],
            how_to_install: vec!["Debian, Ubuntu: apt-get install redis-server".to_owned()],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.transport = transport(chosen);
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(TlsNegotiated::new(&DOORS, transport(chosen))), Box::new(WireCanary::new(Targets::Everything))]
    }
}

fn transport(chosen: &experiment::Protection) -> Transport {
    let version = if chosen.text("version") == "1.2" { TlsVersion::V1_2 } else { TlsVersion::V1_3 };
    Transport::Tls { version, mutual: chosen.flag("mutual") }
}
