//! TLS between client and server.

use tithe_harness::{
    evidence::{Evidence, canary::Targets, wire_canary::WireCanary},
    protection::{Protection, Setup, TlsVersion, Transport},
};
use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use crate::{evidence::tls_negotiated::TlsNegotiated, mongodb::evidence::DOORS};

/// `net.tls.mode: requireTLS`. The driver offers every version that it knows; the server allows one.
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
                help: "The only protocol version that the server allows.",
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
