//! Passwords, compared with a server that accepts every user of the machine.

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
    mysql::{evidence::PROBES, install::version_of},
    mysql_family::proof::{CACHING_SHA2, NATIVE},
};

/// A password by one of MySQL's proofs. It costs at connecting, not afterwards.
pub struct Password;

impl Protection for Password {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "password",
            title: "password authentication",
            protects_against: "clients that do not know the password.",
            leaves_open: "everything after the login; with caching_sha2_password the first login after a start sends \
                          the password, encrypted by TLS or with a key that is not verified; with \
                          mysql_native_password, attackers who read the accounts' table and overhear one login can \
                          log in, and the server proves nothing.",
            options: &[OptionEntry {
                name: "plugin",
                kind: OptionKind::Choice(&[CACHING_SHA2, NATIVE]),
                default: Some(DefaultValue::Text(CACHING_SHA2)),
                help: "How the client proves that it knows the password.",
            }],
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        let later = version_of(&install.version).is_some_and(|version| version >= (8, 4, 0));
        if chosen.text("plugin") != NATIVE || !later {
            return Ok(());
        }
        Err(Missing {
            what: format!("{NATIVE}, which is off in MySQL 8.4 and gone from later ones"),
            looked_in: vec![install.version.clone()],
            how_to_install: vec![format!("take MySQL 8.0, or `plugin = \"{CACHING_SHA2}\"`")],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: chosen.text("plugin").to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(Recorders(Sent::Passwords))]
    }
}
