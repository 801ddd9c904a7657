//! Checks that only MySQL has: one file each.

pub mod encryption_in_force;
pub mod keyring_apart;
pub mod parts;

use super::{accounts, flavour::FLAVOUR};
use crate::{
    evidence::{Doors, marked::Log},
    mysql_family::{
        evidence::{logs_free::plant, others},
        schema::tls_of,
    },
};

/// How the shared checks reach MySQL.
pub static DOORS: Doors = Doors {
    target: |scene| FLAVOUR.product.target(scene.server, scene.setup),
    open: |_, target| Ok(FLAVOUR.open(target)?.method().to_owned()),
    tls_of_server: |_, target| tls_of(&mut FLAVOUR.open(target)?),
    tls_source: "SHOW SESSION STATUS of a client's session",
    others: |scene| others(&FLAVOUR, scene, accounts::read),
};

/// MySQL's logs. A server does not show them to its clients.
pub static LOG: Log = Log { plant: |scene, token| plant(&FLAVOUR, scene, token), served: |_| None };
