//! Checks that only Cassandra has: one file each.

pub mod accounts;
pub mod audit_complete;
pub mod caching;
pub mod commitlog;
pub mod data_files;
pub mod internode;
pub mod logs_free;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{claim::Probes, evidence::CheckContext, wire::Wire};

use super::{
    connection::{CqlConnection, named},
    store::{administrator, tls_of_clients},
    target::of_clients,
};
use crate::{
    evidence::{
        ConnectionProbes,
        password_asked::PasswordAsked,
        whole::{Exception, Whole},
    },
    inspect::counted,
    target::Target,
};

/// How the shared checks reach Cassandra.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| open(target),
    names_mechanism: false,
    plaintext,
    tls_of_server: |context, _| tls_of_clients(context.server, context.setup).map_err(named),
    tls_source: "system_views.clients",
    others: |context| others(context).map_err(named),
};

/// How Cassandra answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes { password: Some(|| Box::new(PasswordAsked(&PROBES))), count_in_log: None };

/// The plaintext port, in addition to one for TLS alone, from the server's settings `native_transport_port` and
/// `native_transport_port_ssl`. `?` if the first is not reported; `None` if there is only one port.
pub fn plaintext_port<'a>(plain: Option<&'a str>, tls: Option<&str>) -> Option<&'a str> {
    let set = |port: &&str| !matches!(*port, "" | "null");
    let (plain, tls) = (plain.filter(set), tls.filter(set)?);
    (plain != Some(tls)).then_some(plain.unwrap_or("?"))
}

/// Clients that the server lets in without TLS.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let mut session = administrator(context.server, context.setup)?;
    let whole = Whole::of("system_views.settings", beside(&mut session)?);
    Ok(Whole { doubts: other_nodes(&mut session, context.server), ..whole })
}

/// Why the settings of the node that was asked are not those of all; nothing for a single node. Nodes that Tithe
/// launched have the same settings.
pub fn other_nodes(session: &mut CqlConnection, server: &Server) -> Vec<String> {
    if !server.address.is_attached() {
        return Vec::new();
    }
    match session.run("SELECT peer FROM system.peers_v2") {
        Ok(peers) => unseen_nodes(peers.len()),
        Err(fault) => vec![format!("other nodes ({fault})")],
    }
}

fn unseen_nodes(count: usize) -> Vec<String> {
    let doubt = || format!("{} (each has settings of its own)", counted(count, "other node"));
    (count > 0).then(doubt).into_iter().collect()
}

/// A port for plaintext in addition to one for TLS. With one port the server requires TLS before any login.
fn beside(session: &mut CqlConnection) -> Result<Vec<Exception>, Fault> {
    let mut setting = |name: &str| -> Result<Option<String>, Fault> {
        let rows = session.run(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"))?;
        let value = rows.into_iter().flatten().flatten().next();
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    };
    let (plain, tls) = (setting("native_transport_port")?, setting("native_transport_port_ssl")?);
    let port = plaintext_port(plain.as_deref(), tls.as_deref());
    let exception = |port: &str| Exception { text: format!("native_transport_port {port}"), loopback: false };
    Ok(port.map(exception).into_iter().collect())
}

/// Opens and closes one connection, with a read in between; returns the method of authentication.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target) -> Result<String, Fault> {
    let mut connection = CqlConnection::open(target)?;
    connection.run("SELECT key FROM system.local")?;
    Ok(connection.method().to_owned())
}

/// A connection that leads to the process of the node.
///
/// # Errors
/// As [`open`].
fn dial(context: &CheckContext<'_>) -> Result<Wire, Fault> {
    Ok(CqlConnection::open(&of_clients(context.server, context.setup)?)?.into_wire())
}

/// As [`open`], [`Target::in_plaintext`].
///
/// # Errors
/// As [`open`].
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    open(&target.in_plaintext())
}

/// The table's name as written in the audit log.
fn audited(context: &CheckContext<'_>) -> Result<String, Fault> {
    let keyspace = of_clients(context.server, context.setup)?.database;
    Ok(format!("|ks:{keyspace}|scope:{}|", context.table.name))
}

#[cfg(test)]
mod tests {
    use tithe_plugin::matrix::{Scope, State};

    use super::{accounts::Accounts, *};
    use crate::{
        cassandra::{
            Cassandra,
            told::{FIRST_PASSWORD, tight},
        },
        inspect::Judgement,
        test_setup::as_arm,
        told::Told,
    };

    #[test]
    fn plaintext_is_served_at_a_second_port_and_perhaps_by_other_nodes() {
        let told = |told: Told| {
            told.seen(|server| {
                as_arm(&Cassandra, server, |context| {
                    let whole = (PROBES.others)(context).map_err(|fault| fault.to_string())?;
                    Ok::<_, String>((whole.exceptions.len(), whole.doubts.len()))
                })
            })
        };
        let second = || tight().with("native_transport_port_ssl", "9142");
        assert_eq!([told(tight()), told(second())], [Ok((0, 0)), Ok((1, 0))]);
        assert_eq!(told(second().with("native_transport_port_ssl", "9042")), Ok((0, 0)));
        const PEERS: &str = "FROM system.peers_v2";
        assert_eq!([told(tight().telling(PEERS, &[&["b"]])), told(tight().refusing(PEERS))], [Ok((0, 1)), Ok((0, 1))]);
        let refused = told(tight().refusing("FROM system_views.settings"));
        assert_eq!(refused, Err("refused: 0x2100: denied to this account".to_owned()));
    }

    #[test]
    fn rights_are_enforced_where_all_else_is_refused_and_the_own_table_is_served() {
        let begins = |told: Told| {
            let seen = told.observed(&Accounts);
            seen.split(':').next().unwrap_or_default().to_owned()
        };
        let limited = || tight().refusing("salted_hash FROM").refusing("DROP ROLE").telling("LIMIT 1", &[&["user1"]]);
        assert_eq!(begins(limited()), "protected");
        assert_eq!(begins(limited().telling("salted_hash FROM", &[&["admin", "$2a$10$"]])), "exposed");
        assert_eq!(begins(limited().failing("DROP ROLE", ("2200", "tithe_x doesn't exist"))), "exposed");
        assert_eq!(begins(limited().with(FIRST_PASSWORD, "yes")), "exposed");
        assert_eq!(begins(limited().refusing("LIMIT 1")), "refused", "an account without any right shows nothing");
    }

    #[test]
    fn one_node_of_several_is_not_the_whole_server() {
        let judged = |others: usize| {
            let whole = Judgement::whole(State::Enforced, "x");
            let judged = unseen_nodes(others).iter().fold(whole, |judged, doubt| judged.doubted(doubt));
            (judged.scope, judged.seen)
        };
        assert_eq!(judged(0), (Scope::Server, "x".to_owned()));
        let seen = |nodes: &str| format!("x; not judged: {nodes} (each has settings of its own)");
        assert_eq!(judged(1), (Scope::Account, seen("1 other node")));
        assert_eq!(judged(2), (Scope::Account, seen("2 other nodes")));
    }

    #[test]
    fn a_plaintext_port_is_one_beside_another_port_for_tls() {
        for (plain, tls, expected) in [
            (Some("9042"), Some("9142"), Some("9042")),
            (Some("9042"), Some("9042"), None),
            (Some("9042"), None, None),
            (Some("9042"), Some(""), None),
            (Some("9042"), Some("null"), None),
            // What is not reported may be open.
            (None, Some("9142"), Some("?")),
            (Some("null"), Some("9142"), Some("?")),
            (None, None, None),
        ] {
            assert_eq!(plaintext_port(plain, tls), expected, "{plain:?} {tls:?}");
        }
    }
}
