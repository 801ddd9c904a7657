//! What prevents Tithe from measuring a node that it did not start, or from proving a protection there.

use std::os::fd::AsFd as _;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Lack, Remedy, Without},
    setup::Setup,
};

use super::{
    ENTRY,
    connection::{CqlConnection, grant},
    inspect::speaks_no_tls,
    store::{administrator, settings},
};
use crate::attached::unseen_process;

/// Would create a keyspace if there were such a strategy: rights are checked first.
const CREATES: &str =
    "CREATE KEYSPACE tithe_is_not_here_and_tries_its_rights WITH replication = {'class': 'NoStrategy'}";

/// Tables that are read, the purpose, and what is missing without them.
const READ: [(&str, &str, Without); 2] = [
    (
        "system_views.clients",
        "the node reports which connections are encrypted, and the account may not read that",
        Without::Proof(&["tls"]),
    ),
    (
        "system_views.settings",
        "the settings say whether other clients may connect without TLS, and the account may not read them",
        Without::Figures("information on other clients in the proof of tls, nor on the node's settings"),
    ),
];

/// Everything that `server` and the account lack.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut connection = administrator(server, setup)?;
    let mut all = Vec::new();
    let mut lack = |why: &str, remedy, without| all.push(Lack { why: why.to_owned(), remedy, without });
    if let Some(remedy) = missing(&mut connection, CREATES)? {
        lack("Tithe works in keyspaces of its own, and the account may not make them", remedy, Without::Measurement);
    }
    for (table, why, without) in READ {
        if let Some(remedy) = missing(&mut connection, &format!("SELECT * FROM {table} LIMIT 1"))? {
            lack(why, remedy, without);
        }
    }
    let settings = settings(&mut connection).unwrap_or_default();
    if speaks_no_tls(&settings) {
        let remedy = "give it a certificate (client_encryption_options in cassandra.yaml, enabled and optional) and \
                      restart it";
        lack("the node speaks no TLS with clients", Remedy::Words(remedy.to_owned()), Without::Proof(&["tls"]));
    }
    all.extend(unseen_process(connection.into_wire().as_fd(), ENTRY.server_programs, None));
    Ok(all)
}

/// The statement that gives the account the right that it lacks for `statement`.
fn missing(connection: &mut CqlConnection, statement: &str) -> Result<Option<Remedy>, Fault> {
    match connection.run(statement) {
        Err(Fault::Refused(words)) => {
            Ok(Some(grant(&words).map_or_else(|| Remedy::Words(words.clone()), Remedy::Statement)))
        }
        Ok(_) | Err(Fault::Server(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cassandra::told::tight, test_setup::plain, told::Told};

    #[test]
    fn what_a_node_lacks_is_named_with_what_is_impossible_without_it() {
        let lacking = |told: Told| {
            let all = told.seen(|server| lacks(server, &plain()).expect("an answer")).into_iter();
            // Its process is that of the test.
            let all = all.filter(|lack| !lack.why.starts_with("the processor time of the server"));
            all.map(|lack| (lack.remedy, lack.without)).collect::<Vec<_>>()
        };
        let denied = || Remedy::Words("0x2100: denied to this account".to_owned());
        let tls = Without::Proof(&["tls"]);
        assert!(lacking(tight()).is_empty());
        assert_eq!(lacking(tight().refusing("CREATE KEYSPACE")), [(denied(), Without::Measurement)]);
        let clients = lacking(tight().refusing("FROM system_views.clients"));
        assert_eq!(clients, [(denied(), tls)]);
        let settings = lacking(tight().refusing("FROM system_views.settings"));
        assert!(matches!(settings[..], [(_, Without::Figures(_))]), "{settings:?}");
        let without_tls = lacking(tight().with("client_encryption_options_enabled", "false"));
        assert!(matches!(without_tls[..], [(Remedy::Words(_), without)] if without == tls), "{without_tls:?}");
        // If the server names the right, the remedy is the statement that grants it.
        let words = "User ann has no CREATE permission on <all keyspaces> or any of its parents";
        let named = lacking(tight().failing("CREATE KEYSPACE", ("2100", words)));
        let statement = Remedy::Statement("GRANT CREATE ON ALL KEYSPACES TO ann".to_owned());
        assert_eq!(named, [(statement, Without::Measurement)]);
    }
}
