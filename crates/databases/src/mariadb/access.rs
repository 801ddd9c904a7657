//! How sessions connect to MariaDB.

use crate::mysql_family::{access::Access, target::product};

/// Name in reports and errors.
pub const TITLE: &str = "MariaDB";

/// MariaDB, as its sessions know it.
pub static ACCESS: Access = Access {
    product: product(TITLE),
    is_own: |version| version.contains("MariaDB"),
    otherwise: "for MySQL write `database = \"mysql\"` and mysql://",
    thread: "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
};
