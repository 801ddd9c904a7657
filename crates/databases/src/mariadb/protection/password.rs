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
    mariadb::{evidence::PROBES, install::needs_plugin, launch::load_plugin},
    mysql_family::proof::{ED25519, NATIVE},
};

/// A password by one of MariaDB's proofs. It costs at connecting, not afterwards.
pub struct Password;

impl Protection for Password {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "password",
            title: "password authentication",
            protects_against: "clients that do not know the password.",
            leaves_open: "everything after the login; with mysql_native_password, attackers who read the accounts' table \
                          and overhear one login can log in, and the server proves \
                          nothing.",
            options: &[OptionEntry {
                name: "plugin",
                kind: OptionKind::Choice(&["mysql_native_password", "ed25519"]),
                default: Some(DefaultValue::Text("mysql_native_password")),
                help: "How the client proves that it knows the password.",
            }],
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        if chosen.text("plugin") == "ed25519" {
            needs_plugin(install, "auth_ed25519", "mariadb-server")
        } else {
            Ok(())
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let mechanism = if chosen.text("plugin") == "ed25519" {
            load_plugin(setup, "auth_ed25519");
            ED25519
        } else {
            NATIVE
        };
        setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(Recorders(Sent::Passwords))]
    }
}
