//! Checks that only MySQL has: one file each.

pub mod encryption_in_force;
pub mod keyring_apart;
pub mod parts;

use super::flavour::FLAVOUR;
use crate::{
    evidence::{Doors, marked::Log},
    mysql_family::{
        evidence::{logs_free::plant, others},
        schema::tls_of,
    },
};

/// Asks for the rows of the shared check. It needs the right to read the table: a client's account has none. Roles are accounts
/// that are locked.
const ACCOUNTS: &str =
    "SELECT User, Host, ssl_type, account_locked, '0', plugin, '0', '' FROM mysql.user ORDER BY 1, 2";

/// How the shared checks reach MySQL.
pub static DOORS: Doors = Doors {
    target: |scene| FLAVOUR.product.target(scene.server, scene.setup),
    open: |_, target| Ok(FLAVOUR.open(target)?.method().to_owned()),
    tls_of_server: |_, target| tls_of(&mut FLAVOUR.open(target)?),
    tls_source: "SHOW SESSION STATUS of a client's session",
    others: |scene| others(&FLAVOUR, scene, ACCOUNTS),
};

/// MySQL's logs. A server does not show them to its clients.
pub static LOG: Log = Log { plant: |scene, token| plant(&FLAVOUR, scene, token), served: |_| None };
