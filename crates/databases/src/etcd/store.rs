//! The keys in which Tithe keeps its records, and requests outside the load.
//!
//! All of Tithe's keys begin with its space (`tithe/`, or one per arm if several arms share a server). The value
//! [`MARK`] of the key `tithe` marks them as Tithe's. If such keys exist without the mark, they belong to someone else:
//! they are refused, and never removed.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::record::ArmFacts;
use tithe_plugin::{
    database::{Lack, Remedy, Without},
    session::Table,
    setup::{Authentication, Setup},
};

use super::{
    ENTRY,
    connection::EtcdConnection,
    keys::{SPACE, after, prefix_of},
    launch::{clients_of, members_of},
    messages::{
        AUTH_ENABLE, COMPACT, DEFRAGMENT, DELETE_RANGE, Fields, MEMBERS, PUT, ROLE_ADD, ROLE_GRANT_PERMISSION, STATUS,
        TXN, USER_ADD, USER_GRANT_ROLE, path_of, put_bytes, put_message, put_number,
    },
    target::{ADMINISTRATOR, USER, of_clients},
};
use crate::{
    attached::unseen_process,
    target::{Target, is_local},
};

/// The value of the key with the space's name.
const MARK: &[u8] = b"made by tithe";

/// Kind of a permission: to read and to write.
const READ_AND_WRITE: u64 = 2;

/// A connection as the measured clients have it.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn client(server: &Server, setup: &Setup) -> Result<EtcdConnection, Fault> {
    EtcdConnection::open(&of_clients(server, setup)?)
}

/// A connection that is not measured. In a launched server that asks for passwords it first creates the accounts.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<EtcdConnection, Fault> {
    let target = of_clients(server, setup)?;
    if !is_local(server) || !matches!(setup.authentication, Authentication::Password { .. }) {
        return EtcdConnection::open(&target);
    }
    let target = Target { user: ADMINISTRATOR.to_owned(), ..target };
    let open = Target { password: None, must_ask: false, ..target.clone() };
    if let Ok(mut connection) = EtcdConnection::open(&open) {
        make_accounts(&mut connection, setup)?;
    }
    EtcdConnection::open(&target)
}

/// Creates the administrator, and the clients' account with a role that may read and write Tithe's keys; then switches
/// authentication on.
fn make_accounts(connection: &mut EtcdConnection, setup: &Setup) -> Result<(), Fault> {
    let password = setup.credentials.password.expose();
    let mut say = |path: &str, put: &dyn Fn(&mut Vec<u8>)| match connection.call(path, put) {
        // Left over from a start that was broken off.
        Err(Fault::Server(words)) if words.contains("already exists") => Ok(()),
        outcome => outcome.map(drop),
    };
    for name in [ADMINISTRATOR, USER] {
        say(USER_ADD, &|out| {
            put_bytes(out, 1, &[name.as_bytes()]);
            put_bytes(out, 2, &[password]);
        })?;
        say(ROLE_ADD, &|out| put_bytes(out, 1, &[name.as_bytes()]))?;
        say(USER_GRANT_ROLE, &|out| {
            put_bytes(out, 1, &[name.as_bytes()]);
            put_bytes(out, 2, &[name.as_bytes()]);
        })?;
    }
    say(ROLE_GRANT_PERMISSION, &|out| {
        put_bytes(out, 1, &[USER.as_bytes()]);
        put_message(out, 2, |out| {
            put_number(out, 1, READ_AND_WRITE);
            put_bytes(out, 2, &[SPACE.as_bytes()]);
            put_bytes(out, 3, &[&after(SPACE.as_bytes())]);
        });
    })?;
    say(AUTH_ENABLE, &|_| {})
}

/// Makes the keys of `table` Tithe's own.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, space) = (administrator(server, setup)?, &setup.space);
    if is_local(server) {
        setup.statements.iter().try_for_each(|statement| connection.call(&path_of(statement), |_| {}).map(drop))?;
    }
    if is_ours(&mut connection, space)? {
        // Left over from a run that was killed.
        clear(&mut connection, &prefix_of(space, table))?;
    }
    let put = |out: &mut Vec<u8>| {
        put_bytes(out, 1, &[space.as_bytes()]);
        put_bytes(out, 2, &[MARK]);
    };
    connection.call(PUT, put).map(drop)
}

/// True if an attached server still has the mark.
///
/// # Errors
/// As [`create`].
pub fn keeps_records(server: &Server, setup: &Setup) -> Result<bool, Fault> {
    is_ours(&mut administrator(server, setup)?, &setup.space)
}

/// Removes the records of `table`, and the mark if nothing else of Tithe is left.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, space) = (administrator(server, setup)?, &setup.space);
    if !is_ours(&mut connection, space)? {
        return Ok(());
    }
    clear(&mut connection, &prefix_of(space, table))?;
    if first_below(&mut connection, space)?.is_none() {
        connection.call(DELETE_RANGE, |out| put_bytes(out, 1, &[space.as_bytes()]))?;
    }
    Ok(())
}

/// True if the mark shows that keys that begin with `space` are Tithe's, false if there are none.
fn is_ours(connection: &mut EtcdConnection, space: &str) -> Result<bool, Fault> {
    let foreign = |key: &str| Fault::Refused(format!("a key `{key}` is on this server, and Tithe did not make it"));
    let answer = connection.range(space.as_bytes(), b"", 1)?;
    match Fields(&answer).all(2)?.first() {
        Some(mark) if Fields(mark).first(5)? == MARK => Ok(true),
        Some(_) => Err(foreign(space)),
        None => first_below(connection, space)?.map_or(Ok(false), |key| Err(foreign(&key))),
    }
}

/// The first key below `space`.
fn first_below(connection: &mut EtcdConnection, space: &str) -> Result<Option<String>, Fault> {
    let below = format!("{space}/");
    let answer = connection.range(below.as_bytes(), &after(below.as_bytes()), 1)?;
    let first = Fields(&answer).all(2)?.first().map(|pair| Fields(pair).first(1)).transpose()?;
    Ok(first.map(|key| String::from_utf8_lossy(key).into_owned()))
}

/// Removes every key that begins with `prefix`.
fn clear(connection: &mut EtcdConnection, prefix: &str) -> Result<(), Fault> {
    let put = |out: &mut Vec<u8>| {
        put_bytes(out, 1, &[prefix.as_bytes()]);
        put_bytes(out, 2, &[&after(prefix.as_bytes())]);
    };
    connection.call(DELETE_RANGE, put).map(drop)
}

/// Discards overwritten and deleted values in a launched server, and rewrites its file. On an attached server the
/// history is left alone.
///
/// # Errors
/// The server's error.
pub fn quiesce(server: &Server, setup: &Setup) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    let mut connection = administrator(server, setup)?;
    let answer = connection.range(setup.space.as_bytes(), b"", 1)?;
    let revision = Fields(Fields(&answer).first(1)?).number(3)?;
    let compacted = connection.call(COMPACT, |out| {
        put_number(out, 1, revision);
        put_number(out, 2, 1);
    });
    match compacted {
        // Nothing was written since.
        Err(Fault::Server(words)) if words.contains("has been compacted") => {}
        outcome => drop(outcome?),
    }
    connection.call(DEFRAGMENT, |_| {})?;
    other_members(server, setup)?.iter_mut().try_for_each(|other| other.call(DEFRAGMENT, |_| {}).map(drop))
}

/// A connection to each further member of a launched cluster; not measured, and after that of [`administrator`], which
/// makes the accounts.
fn other_members(server: &Server, setup: &Setup) -> Result<Vec<EtcdConnection>, Fault> {
    if !is_local(server) {
        return Ok(Vec::new());
    }
    let mut target = Target { relay: None, ..of_clients(server, setup)? };
    if matches!(setup.authentication, Authentication::Password { .. }) {
        ADMINISTRATOR.clone_into(&mut target.user);
    }
    let open = |number| EtcdConnection::open(&Target { host: clients_of(number).to_string(), ..target.clone() });
    (2..=members_of(&setup.settings)?).map(open).collect()
}

/// The ids of cluster and member, which are random and set when they are created.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    let answer = client(server, setup)?.call(STATUS, |_| {})?;
    let header = Fields(&answer).first(1)?;
    Ok(Some(format!("{:x} {:x}", Fields(header).number(1)?, Fields(header).number(2)?)))
}

/// The name of a member, and its URLs for other members and for clients.
pub struct Member {
    /// Its name.
    pub name: String,
    /// URLs for other members.
    pub peers: Vec<String>,
    /// URLs for clients, as it reports them.
    pub clients: Vec<String>,
}

/// All members of the cluster.
///
/// # Errors
/// The server's error.
pub fn members(connection: &mut EtcdConnection) -> Result<Vec<Member>, Fault> {
    let answer = connection.call(MEMBERS, |_| {})?;
    let member = |bytes: &[u8]| {
        let name = Fields(bytes).texts(2)?.pop().unwrap_or_default();
        Ok(Member { name, peers: Fields(bytes).texts(3)?, clients: Fields(bytes).texts(4)? })
    };
    Fields(&answer).all(2)?.into_iter().map(member).collect()
}

/// Everything that `server` lacks for being measured, and for proof.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = EtcdConnection::open(&target)?;
    let mut all = Vec::new();
    let below = format!("{}/", setup.space);
    // Rights are checked for the write under a condition that is never true: no key has that many versions.
    let tried = connection.call(TXN, |out| {
        put_message(out, 1, |out| {
            put_number(out, 1, 1);
            put_bytes(out, 3, &[setup.space.as_bytes()]);
            put_number(out, 4, 1 << 60);
        });
        put_message(out, 2, |out| put_message(out, 2, |out| put_bytes(out, 1, &[setup.space.as_bytes()])));
        put_message(out, 2, |out| {
            put_message(out, 3, |out| {
                put_bytes(out, 1, &[below.as_bytes()]);
                put_bytes(out, 2, &[&after(below.as_bytes())]);
            });
        });
    });
    match tried {
        Ok(_) => {}
        Err(Fault::Refused(words)) => all.push(Lack {
            why: format!("Tithe writes keys that begin with {} ({words})", setup.space),
            remedy: Remedy::Words(format!(
                "etcdctl role grant-permission ROLE --prefix=true readwrite {}, for a role of {}",
                setup.space, target.user
            )),
            without: Without::Measurement,
        }),
        Err(fault) => return Err(fault),
    }
    if connection.tls_facts().is_none() {
        all.push(Lack {
            why: "the server speaks no TLS at this port".to_owned(),
            remedy: Remedy::Words("start it with cert-file and key-file, and https in listen-client-urls".to_owned()),
            without: Without::Proof(&["tls"]),
        });
    }
    all.extend(unseen_process(connection.into_http().descriptor(), ENTRY.server_programs, None));
    Ok(all)
}

/// The facts that a figure depends on, as the server and the client's TLS report them.
///
/// # Errors
/// The server's error.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut connection = administrator(server, setup)?;
    // Ready is a cluster whose members all serve clients.
    drop(other_members(server, setup)?);
    let status = connection.call(STATUS, |_| {})?;
    let version = format!("etcd {}", Fields(&status).texts(2)?.pop().unwrap_or_default());
    let leads = Fields(Fields(&status).first(1)?).number(2)? == Fields(&status).number(4)?;
    let leader = if leads { "the member with the clients" } else { "another member" };
    let names = members(&mut connection)?.into_iter().map(|member| member.name).collect::<Vec<_>>();
    let tls = connection.tls_facts().map(|tls| tls.in_words());
    let facts = BTreeMap::from([
        ("authentication".to_owned(), connection.method().to_owned()),
        ("leader".to_owned(), leader.to_owned()),
        ("members".to_owned(), format!("{} ({})", names.len(), names.join(", "))),
        ("tls as the client sees it".to_owned(), tls.unwrap_or_else(|| "off".to_owned())),
    ]);
    Ok(ArmFacts { version, facts, configuration: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        etcd::test_server::{Told, tight},
        test_setup::{impossible, plain},
    };

    #[test]
    fn keys_of_others_are_refused_and_never_removed() {
        let table = Table::of_canaries();
        let told = |keys, refused| {
            let told = Told { keys, refused, ..tight() };
            told.seen(|server| {
                let text = |fault: Fault| fault.to_string();
                (keeps_records(server, &plain()).map_err(text), remove(server, &plain(), &table).map_err(text))
            })
        };
        let nothing = (Ok(false), Ok(()));
        assert_eq!(told(&[], &[DELETE_RANGE]), nothing);
        assert_eq!(told(&[("tith", "a"), ("tithe0", "b"), ("tithes", "c")], &[DELETE_RANGE]), nothing);
        let foreign = |key: &str| {
            let words = format!("refused: a key `{key}` is on this server, and Tithe did not make it");
            (Err(words.clone()), Err(words))
        };
        assert_eq!(told(&[("tithe", "mine")], &[DELETE_RANGE]), foreign("tithe"));
        assert_eq!(told(&[("tithe/t/1", "made by tithe")], &[DELETE_RANGE]), foreign("tithe/t/1"));
        let denied = "refused: etcdserver: permission denied".to_owned();
        assert_eq!(told(&[("tithe", "made by tithe")], &[DELETE_RANGE]), (Ok(true), Err(denied)));
        assert_eq!(told(&[("tithe", "made by tithe"), ("tithe/t/1", "a")], &[]), (Ok(true), Ok(())));
    }

    #[test]
    fn what_a_member_lacks_is_named_with_what_is_impossible_without_it() {
        let lacking = |refused| {
            let told = Told { refused, ..tight() };
            told.seen(|server| impossible(&lacks(server, &plain()).expect("an answer")))
        };
        let tls = Without::Proof(&["tls"]);
        assert_eq!(lacking(&[]), [tls]);
        assert_eq!(lacking(&[TXN]), [Without::Measurement, tls]);
    }
}
