//! Passwords and rights, with and without cached lookups.

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    cassandra::evidence::{
        PROBES,
        accounts::Accounts,
        caching::{Caching, VALIDITIES},
    },
    evidence::password_asked::PasswordAsked,
};

/// `PasswordAuthenticator` with `CassandraAuthorizer`: each connection is checked once, each request for its rights.
pub struct Password;

impl Protection for Password {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "password",
            title: "passwords and rights (PasswordAuthenticator, CassandraAuthorizer)",
            protects_against: "clients that do not know a password, and accounts that reach for other tables or manage \
                             the cluster.",
            leaves_open: "the password itself, which travels in the clear without TLS; with caching, rights that were \
                          taken away hold for up to two seconds more.",
            options: &[OptionEntry {
                name: "caching",
                kind: OptionKind::Flag,
                default: Some(DefaultValue::Flag(true)),
                help: "Passwords, roles and rights are cached for two seconds, the product's default; without it \
                    each request looks them up.",
            }],
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: "PasswordAuthenticator".to_owned() };
        if !chosen.flag("caching") {
            setup.settings.extend(VALIDITIES.map(|name| (name.to_owned(), "0ms".to_owned())));
        }
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(Accounts), Box::new(Caching { asked: chosen.flag("caching") })]
    }
}
