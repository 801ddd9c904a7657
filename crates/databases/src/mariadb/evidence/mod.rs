//! Checks that only MariaDB has: one file each.

pub mod audit_complete;
pub mod encryption_in_force;
pub mod innodb_file;
pub mod key_rotated;

use tithe_plugin::claim::Probes;

use super::{access::ACCESS, accounts};
use crate::{
    evidence::{
        ConnectionProbes,
        marked::{Log, lines_like},
        password_asked::PasswordAsked,
    },
    mysql_family::{
        evidence::{logs_free::plant, others, served::general_log},
        schema::hops_of,
    },
};

/// How the shared checks reach MariaDB.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| ACCESS.product.target(context.server, context.setup),
    open: |_, target| Ok(ACCESS.open(target)?.method().to_owned()),
    names_mechanism: true,
    plaintext: |target| ACCESS.plaintext(target),
    tls_of_server: |_, target| Ok(hops_of(&mut ACCESS.open(target)?)?.words()),
    tls_source: "SHOW SESSION STATUS of a client's session",
    others: |context| others(&ACCESS, context, accounts::read),
};

/// MariaDB's logs; of an attached server the general log.
pub static LOG: Log =
    Log { plant: |context, token| plant(&ACCESS, context, token), served: |context| general_log(&ACCESS, context) };

/// How MariaDB answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes {
    password: Some(|| Box::new(PasswordAsked(&PROBES))),
    count_in_log: Some(|context, pattern| lines_like(context, &LOG, pattern)),
};
