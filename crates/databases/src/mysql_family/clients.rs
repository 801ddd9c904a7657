//! The clients that MariaDB and MySQL list. Their identity is in `information_schema.PROCESSLIST`, where an account
//! without the privilege PROCESS only sees its own connections. Their transport is in `performance_schema.threads`,
//! which MariaDB leaves empty by default.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    connections::{ClientConnection, ConnectionList, Spoken, port_of},
    session::SqlSession as _,
    setup::Setup,
};

use super::{access::Access, replication::is_since_start, schema::hops_of, session::WireSession};
use crate::{evidence::marked::OWN, hops::seen_behind};

/// The list of processes, read through a separate session.
pub struct Clients {
    session: WireSession,
    /// Used if a connection's transport is not reported: either all must use TLS, or the reason why it is unknown.
    otherwise: Spoken,
    /// What ends TLS before the server: the list then holds its connections, not those of clients.
    between: Option<&'static str>,
}

impl Clients {
    /// Opens the session.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(access: &Access, server: &Server, setup: &Setup) -> Result<Self, Fault> {
        let mut session = access.administrator(server, setup)?;
        let between = hops_of(&mut session)?.between;
        let mut on = |name: &str| session.shown("GLOBAL VARIABLES", name).map(|value| value.as_deref() == Some("ON"));
        let (required, schema) = (on("require_secure_transport")?, on("performance_schema")?);
        let account = session.account()?;
        let otherwise = match (required, schema) {
            (true, _) if is_since_start(&mut session) => {
                Spoken::Tls("TLS, as require_secure_transport = ON asks of all".to_owned())
            }
            (_, true) => Spoken::Untold(format!("GRANT SELECT ON performance_schema.threads TO {account}")),
            (_, false) => Spoken::Untold(format!(
                "start the server with performance_schema = ON, and GRANT SELECT ON performance_schema.threads TO {account}"
            )),
        };
        Ok(Self { session, otherwise, between })
    }

    /// The transport of each connection, by its number, as far as this account can see it.
    fn spoken(&mut self) -> BTreeMap<String, String> {
        let sql = format!(
            "{OWN} SELECT PROCESSLIST_ID, CONNECTION_TYPE FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL"
        );
        let rows = self.session.run(&sql).unwrap_or_default().into_iter();
        let pairs = rows.filter_map(|row| <[Option<String>; 2]>::try_from(row).ok());
        pairs.filter_map(|[number, kind]| Some((number?, kind?))).collect()
    }
}

impl ConnectionList for Clients {
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault> {
        let sql = format!(
            "{OWN} SELECT ID, USER, HOST, ID = CONNECTION_ID() FROM information_schema.PROCESSLIST \
             WHERE USER NOT IN ('system user', 'event_scheduler', 'unauthenticated user')"
        );
        let rows = self.session.run(&sql)?.into_iter().map(|row| <[_; 4]>::try_from(row).unwrap_or_default());
        let rows: Vec<[String; 4]> = rows.map(|row| row.map(Option::unwrap_or_default)).collect();
        let spoken = self.spoken();
        let connection = |[id, account, host, own]: [String; 4]| {
            let port = port_of(&host);
            let kind = spoken.get(&id).map(String::as_str);
            let spoken = match self.between {
                Some(between) => seen_behind(between),
                None => spoken_by(kind, port.is_some(), &self.otherwise),
            };
            ClientConnection { id, account, port, spoken, is_own: own == "1" }
        };
        Ok(rows.into_iter().map(connection).collect())
    }
}

/// The transport of a connection for which the server reports this `kind`; `otherwise` if it reports none.
fn spoken_by(kind: Option<&str>, by_network: bool, otherwise: &Spoken) -> Spoken {
    match kind {
        Some("SSL/TLS") => Spoken::Tls("TLS".to_owned()),
        Some("TCP/IP") => Spoken::Plaintext,
        _ if !by_network => Spoken::Local,
        _ => otherwise.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_not_taken_for_plaintext() {
        let untold = Spoken::Untold("a right".to_owned());
        assert_eq!(spoken_by(Some("SSL/TLS"), true, &untold), Spoken::Tls("TLS".to_owned()));
        assert_eq!(spoken_by(Some("TCP/IP"), true, &untold), Spoken::Plaintext);
        assert_eq!(spoken_by(None, true, &untold), untold);
        assert_eq!(spoken_by(None, false, &untold), Spoken::Local);
        assert_eq!(spoken_by(Some("Socket"), false, &untold), Spoken::Local);
    }
}
