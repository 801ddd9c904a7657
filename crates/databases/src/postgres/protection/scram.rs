//! Passwords by SCRAM-SHA-256, compared with a server that accepts every user of the machine.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::recorders::Recorders,
    evidence::Check,
    protection::Protection,
    recording::Sent,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    postgres::{
        evidence::{PROBES, scram_iterations::ScramIterations},
        install::version_of,
        startup::BOUND,
    },
};

/// `scram-sha-256` in `pg_hba.conf`. It costs at connecting, not afterwards.
pub struct Scram;

/// The setting with the iterations of passwords that are set from now on.
const ITERATIONS: &str = "scram_iterations";

/// The oldest major version that has it.
const OLDEST: u32 = 16;

/// The iterations that `chosen` requests; `None` if the server's default is enough.
fn iterations(chosen: &experiment::Protection) -> Option<u32> {
    chosen.text("iterations").parse().ok()
}

impl Protection for Scram {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "scram",
            title: "password authentication (SCRAM-SHA-256)",
            protects_against: "clients that do not know the password, and servers that do not.",
            options: &[
                OptionEntry {
                    name: "channel_binding",
                    kind: OptionKind::Choice(&["disable", "require"]),
                    default: Some(DefaultValue::Text("disable")),
                    help: "Tie the login to the TLS connection that it goes over (SCRAM-SHA-256-PLUS); needs `tls` as well.",
                },
                OptionEntry {
                    name: "iterations",
                    kind: OptionKind::Choice(&["any", "1", "4096", "10000", "100000", "600000"]),
                    default: Some(DefaultValue::Text("any")),
                    help: "How often the password is hashed (scram_iterations, PostgreSQL 16). `any`: the server's \
                        setting, by default 4096.",
                },
            ],
            leaves_open: "everything after the login: what is sent is neither hidden nor protected from change.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        let major = version_of(&install.version).map_or(0, |(major, _)| major);
        if iterations(chosen).is_none() || major >= OLDEST {
            return Ok(());
        }
        Err(Missing {
            what: format!("the setting {ITERATIONS}, which PostgreSQL {major} does not have"),
            looked_in: vec![format!("{} ({})", install.programs.display(), install.version)],
            how_to_install: vec![
                format!("PostgreSQL {OLDEST} or newer: `tithe get postgres`, and its folder by --pg-bin"),
                "or leave `iterations` out: without it a password is hashed 4096 times".to_owned(),
            ],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let mechanism = if chosen.text("channel_binding") == "require" { BOUND } else { "scram-sha-256" };
        setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
        if let Some(iterations) = iterations(chosen) {
            // The account gets its password with the data folder.
            setup.create_arguments.extend(["-c".to_owned(), format!("{ITERATIONS}={iterations}")]);
            setup.settings.insert(ITERATIONS.to_owned(), iterations.to_string());
        }
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let mut checks: Vec<Box<dyn Check>> = vec![Box::new(PasswordAsked(&PROBES))];
        checks.extend(iterations(chosen).map(|count| Box::new(ScramIterations(count)) as Box<dyn Check>));
        checks.push(Box::new(Recorders(Sent::Passwords)));
        checks
    }
}
