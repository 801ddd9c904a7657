//! MySQL's table of accounts.

use tithe_machine::fault::Fault;
use tithe_plugin::session::SqlSession as _;

use crate::mysql_family::{
    accounts::{Account, by_network},
    session::WireSession,
};

/// Accounts that may log in; roles are accounts that are locked. What their proofs are made of never leaves the server.
///
/// # Errors
/// The server's error: administrators may read them, and others only where they were granted it.
pub fn read(session: &mut WireSession) -> Result<Vec<Account>, Fault> {
    let sql = "SELECT User, Host, plugin NOT IN ('mysql_native_password', 'caching_sha2_password', 'sha256_password') \
               OR authentication_string <> '', ssl_type <> '', Select_priv = 'Y' AND Insert_priv = 'Y' \
               AND Update_priv = 'Y' AND Delete_priv = 'Y' AND Create_user_priv = 'Y', plugin \
               FROM mysql.user WHERE account_locked = 'N' ORDER BY User, Host";
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 6]>::try_from(row).unwrap_or_default());
    Ok(rows.map(|row| account(row.map(Option::unwrap_or_default))).collect())
}

fn account([user, host, proves, speaks_tls, unlimited, plugin]: [String; 6]) -> Account {
    let [proves, speaks_tls, unlimited] = [proves, speaks_tls, unlimited].map(|value| value == "1");
    Account { user, host, proves, by_network: by_network(&plugin), speaks_tls, unlimited }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_a_socket_do_not_come_by_network() {
        let by_network =
            |plugin: &str| account(["root", "localhost", "1", "0", "1", plugin].map(str::to_owned)).by_network;
        assert!(by_network("caching_sha2_password") && by_network("sha256_password"));
        assert!(!by_network("auth_socket") && !by_network("mysql_no_login"));
    }
}
