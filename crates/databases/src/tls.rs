//! TLS as a protection of any server with a network client: the shared part. The server's side is in its launch, the
//! client's side is in [`crate::target`].

use tithe_machine::{
    credentials::KeyType,
    fault::Fault,
    launch::{Install, Missing},
    sandbox::{OPENSSL, tools::tool},
};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::{canary::Targets, program_wire::ProgramWire, wire_canary::WireCanary},
    evidence::Check,
    protection::Protection,
    setup::{Setup, Suite, TlsVersion, Transport},
    workload::Workload,
};

use crate::evidence::{
    ConnectionProbes,
    tls_negotiated::{TlsEnforced, TlsNegotiated, TlsSpoken},
    tls_resumed::TlsResumed,
};

/// The protection `tls` of one product. It starts as [`Tls::of`]; a product sets its differences.
pub struct Tls {
    /// How its checks connect to the server.
    pub probes: &'static ConnectionProbes,
    /// Its entry: [`ENTRY`], or a changed one.
    pub entry: &'static ProtectionEntry,
    /// What an installation lacks for it.
    pub needs: fn(&Install) -> Result<(), Missing>,
}

/// The entry of TLS between the nodes of a cluster.
pub static BETWEEN_NODES_ENTRY: ProtectionEntry = ProtectionEntry {
    id: "internode-tls",
    title: "TLS between nodes",
    protects_against: "attackers who read or change traffic between the nodes of a cluster, or pose as a node.",
    leaves_open: "what travels between clients and nodes; data in the servers' memory, files and logs. With one node \
                  nothing travels, and nothing is measured.",
    ..ProtectionEntry::BARE
};

/// What the option `version` does, if both sides follow it.
pub const VERSION: &str = "The only protocol version that either side allows.";

/// What the option `mutual` does.
pub const MUTUAL: &str = "The server demands a client certificate.";

/// The value of an option that requests nothing.
const ANY: &str = "any";

/// The options of any product, with the texts for `version` and `mutual`.
pub const fn options_of_any(version: &'static str, mutual: &'static str) -> [OptionEntry; 4] {
    [
        OptionEntry {
            name: "version",
            kind: OptionKind::Choice(&["1.3", "1.2"]),
            default: Some(DefaultValue::Text("1.3")),
            help: version,
        },
        OptionEntry { name: "mutual", kind: OptionKind::Flag, default: Some(DefaultValue::Flag(false)), help: mutual },
        OptionEntry {
            name: "key",
            kind: OptionKind::Choice(&[ANY, "ecdsa-p256", "rsa-2048", "rsa-4096", "ed25519"]),
            default: Some(DefaultValue::Text(ANY)),
            help: "The server's key. `any`: ECDSA P-256, or what a running server has.",
        },
        OptionEntry {
            name: "chain",
            kind: OptionKind::Choice(&[ANY, "1", "2", "3"]),
            default: Some(DefaultValue::Text(ANY)),
            help: "Certificates that the server sends. `any`: one, or what a running server has.",
        },
    ]
}

/// The options of a product with a client of Tithe's own, with the texts for `version` and `mutual`.
pub const fn options(version: &'static str, mutual: &'static str) -> [OptionEntry; 6] {
    let [version, mutual, key, chain] = options_of_any(version, mutual);
    let suite = OptionEntry {
        name: "suite",
        kind: OptionKind::Choice(&[ANY, "aes-256-gcm", "aes-128-gcm", "chacha20-poly1305"]),
        default: Some(DefaultValue::Text(ANY)),
        help: "The only cipher that clients offer.",
    };
    let resumption = OptionEntry {
        name: "resumption",
        kind: OptionKind::Flag,
        default: Some(DefaultValue::Flag(false)),
        help: "New connections resume an earlier TLS session, as far as the server lets them (with `reconnect_every`).",
    };
    [version, mutual, resumption, suite, key, chain]
}

/// TLS of a product with nothing particular about it.
pub const ENTRY: ProtectionEntry = ProtectionEntry {
    id: "tls",
    title: "TLS",
    protects_against: "attackers who read or change traffic between client and server, or pose as the server.",
    leaves_open: "data in the server's memory, files and logs; when and how much is sent.",
    options: &options(VERSION, MUTUAL),
    attachable: true,
    by_url: true,
    ..ProtectionEntry::BARE
};

impl Tls {
    /// TLS of a product that is checked by `probes`, without differences.
    pub const fn of(probes: &'static ConnectionProbes) -> Self {
        Self { probes, entry: &ENTRY, needs: |_| Ok(()) }
    }
}

impl Protection for Tls {
    fn entry(&self) -> &'static ProtectionEntry {
        self.entry
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        (self.needs)(install)?;
        // The signing library creates these itself.
        if transport(chosen).identity().key == KeyType::EcdsaP256 || tool(OPENSSL).is_some() {
            return Ok(());
        }
        Err(Missing {
            what: format!("the program {OPENSSL}, which makes the server's key"),
            looked_in: vec!["PATH".to_owned()],
            how_to_install: vec!["Debian, Ubuntu, Fedora: install the package openssl".to_owned()],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.speak(transport(chosen));
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let transport = transport(chosen);
        let negotiated = TlsNegotiated::new(self.probes, transport);
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(negotiated),
            Box::new(TlsSpoken(negotiated)),
            Box::new(WireCanary::new(Targets::Everything)),
            Box::new(TlsEnforced(negotiated)),
        ];
        if matches!(transport, Transport::Tls { resumption: true, .. }) {
            checks.push(Box::new(TlsResumed::new(self.probes)));
        }
        checks
    }

    fn evidence_in<'a>(&self, chosen: &experiment::Protection, workload: &'a dyn Workload) -> Vec<Box<dyn Check + 'a>> {
        let mut all: Vec<Box<dyn Check + 'a>> = Vec::new();
        all.extend(self.evidence(chosen).into_iter().map(|check| check as Box<dyn Check + 'a>));
        all.extend(
            workload.offered_by().program().map(|program| Box::new(ProgramWire::new(program)) as Box<dyn Check + 'a>),
        );
        all
    }
}

fn transport(chosen: &experiment::Protection) -> Transport {
    let version = if chosen.text("version") == "1.2" { TlsVersion::V1_2 } else { TlsVersion::V1_3 };
    // A product with a foreign driver does not have this option.
    let resumption = chosen.options.get("resumption") == Some(&experiment::OptionValue::Flag(true));
    let named = |option: &str| match chosen.options.get(option) {
        Some(experiment::OptionValue::Text(name)) => name.as_str(),
        _ => ANY,
    };
    Transport::Tls {
        version,
        mutual: chosen.flag("mutual"),
        resumption,
        suite: Suite::ALL.into_iter().find(|suite| suite.name() == named("suite")),
        key: KeyType::ALL.into_iter().find(|key| key.name() == named("key")),
        chain: named("chain").parse().ok(),
    }
}

/// The refusal of a key that `product` cannot have, `why`.
///
/// # Errors
/// For a set-up that requests Ed25519.
pub fn without_ed25519(setup: &Setup, product: &str, why: &str) -> Result<(), Fault> {
    match setup.transport {
        Transport::Tls { key: Some(KeyType::Ed25519), .. } => {
            Err(Fault::Refused(format!("{product} cannot have a key of kind ed25519: {why}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_setup::plain;

    #[test]
    fn a_product_that_cannot_have_a_key_of_ed25519_refuses_it_alone() {
        let refused = |transport: Transport| {
            let setup = Setup { transport, ..plain() };
            without_ed25519(&setup, "Test", "its library has none").map_err(|fault| fault.to_string())
        };
        let with_key = |key: Option<KeyType>| {
            let Transport::Tls { version, mutual, resumption, suite, chain, .. } =
                Transport::tls(TlsVersion::V1_3, false)
            else {
                panic!("it is TLS")
            };
            Transport::Tls { version, mutual, resumption, suite, key, chain }
        };
        assert_eq!(refused(Transport::Plain), Ok(()));
        for key in [None, Some(KeyType::EcdsaP256), Some(KeyType::Rsa2048), Some(KeyType::Rsa4096)] {
            assert_eq!(refused(with_key(key)), Ok(()), "{key:?}");
        }
        let words = "refused: Test cannot have a key of kind ed25519: its library has none";
        assert_eq!(refused(with_key(Some(KeyType::Ed25519))), Err(words.to_owned()));
    }
}
