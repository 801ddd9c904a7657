//! The clients that PostgreSQL lists (documentation, "The Cumulative Statistics System", views `pg_stat_activity` and
//! `pg_stat_ssl`). For other accounts it shows only name and process, unless the reader is a member of
//! `pg_read_all_stats`.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    connections::{ClientConnection, ConnectionList, Spoken},
    session::SqlSession as _,
    setup::Setup,
};

use super::{
    schema::{administrator, hops_of},
    session::PostgresSession,
};
use crate::{evidence::marked::OWN, hops::seen_behind};

/// `pg_stat_activity`, read through a separate session.
pub struct Clients {
    session: PostgresSession,
    /// The account, as statements name it.
    account: String,
    /// What is in front of the server, such as a pooler: the list then holds the pooler's connections, not those of
    /// clients.
    between: Option<&'static str>,
}

impl Clients {
    /// Opens the session.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(server: &Server, setup: &Setup) -> Result<Self, Fault> {
        let mut session = administrator(server, setup)?;
        let account = session.value("SELECT quote_ident(current_user)")?;
        let between = hops_of(&mut session)?.between;
        Ok(Self { session, account, between })
    }

    /// A row of the list: process, start, account, port, whether it is this session, whether TLS, and its version and
    /// cipher.
    fn connection(&self, [process, begun, account, port, own, tls, version, cipher]: [String; 8]) -> ClientConnection {
        let spoken = match self.between {
            Some(between) => seen_behind(between),
            None => spoken_by([&begun, &port, &tls, &version, &cipher], &self.account),
        };
        let port = port.parse().ok();
        ClientConnection { id: format!("{process} {begun}"), account, port, spoken, is_own: own == "t" }
    }
}

impl ConnectionList for Clients {
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault> {
        let sql = format!(
            "{OWN} SELECT a.pid, a.backend_start, a.usename, a.client_port, a.pid = pg_backend_pid(), s.ssl, s.version, \
             s.cipher FROM pg_stat_activity a LEFT JOIN pg_stat_ssl s ON s.pid = a.pid WHERE a.usename IS NOT NULL AND \
             coalesce(a.backend_type, 'client backend') = 'client backend'"
        );
        let rows = self.session.run(&sql)?.into_iter().map(|row| <[_; 8]>::try_from(row).unwrap_or_default());
        Ok(rows.map(|row| self.connection(row.map(Option::unwrap_or_default))).collect())
    }
}

/// The transport of a connection, from its start, its port, whether it has TLS, and the version and cipher of that. The
/// server shows no start to an `account` without the privilege.
fn spoken_by([begun, port, tls, version, cipher]: [&str; 5], account: &str) -> Spoken {
    match (begun.is_empty(), port, tls) {
        (true, ..) => Spoken::Untold(format!("GRANT pg_read_all_stats TO {account}")),
        (_, _, "t") => Spoken::Tls(format!("{version} {cipher}")),
        (_, "-1", _) => Spoken::Local,
        _ => Spoken::Plaintext,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_by_tls_within_the_machine_or_in_plaintext_if_it_is_shown() {
        let seen = |begun: &str, port: &str, tls: &str| spoken_by([begun, port, tls, "TLSv1.3", "AES"], "ann");
        assert_eq!(seen("08:00", "4711", "t"), Spoken::Tls("TLSv1.3 AES".to_owned()));
        assert_eq!(seen("08:00", "4711", "f"), Spoken::Plaintext);
        assert_eq!(seen("08:00", "-1", "f"), Spoken::Local);
        let untold = Spoken::Untold("GRANT pg_read_all_stats TO ann".to_owned());
        assert_eq!([seen("", "", ""), seen("", "4711", "t")], [untold.clone(), untold]);
    }
}
