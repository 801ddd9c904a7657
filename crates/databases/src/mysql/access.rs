//! How sessions connect to MySQL.

use crate::mysql_family::{access::Access, target::product};

/// Name in reports and errors.
pub const TITLE: &str = "MySQL";

/// MySQL, as its sessions know it.
pub static ACCESS: Access = Access {
    product: product(TITLE),
    is_own: |version| !version.contains("MariaDB"),
    otherwise: "for MariaDB write `database = \"mariadb\"` and mariadb://",
    thread: "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()",
};
