//! What prevents Tithe from measuring a server that it did not start, or from proving a protection there.
//!
//! Each command is sent in a form in which the server checks the account's rights first and then refuses it or finds
//! nothing to do: no key is created or changed.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{IDLE_AT_LEAST_S, Lack, Remedy, Without},
    setup::Setup,
};

use super::{
    ENTRY,
    connection::RedisConnection,
    store::{administrator, is_replica},
    target::of_administrator,
};
use crate::attached::unseen_process;

/// A key that does not exist, with a name like Tithe's own.
const NOWHERE: &str = "tithe:is-not-here-and-tries-its-rights";

/// The commands that Tithe uses on its keys, in a form that changes nothing.
const OF_KEYS: [&[&str]; 11] = [
    &["GET", NOWHERE],
    &["SET", NOWHERE, "value", "no-option"],
    &["DEL", NOWHERE],
    &["UNLINK", NOWHERE],
    &["HSET", NOWHERE, "field", "value", "field-without-value"],
    &["HGETALL", NOWHERE],
    &["HMGET", NOWHERE, "field"],
    &["ZADD", NOWHERE, "no-number", "member"],
    &["ZREM", NOWHERE, "member"],
    &["ZRANGE", NOWHERE, "0", "0"],
    &["ZRANGEBYLEX", NOWHERE, "-", "+", "LIMIT", "0", "1"],
];

/// The commands that it sends about the server.
const OF_SERVER: [&[&str]; 3] = [&["PING"], &["SCAN", "0", "MATCH", NOWHERE], &["INFO", "server"]];

/// Everything that `server` and the account lack.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut connection = administrator(server, setup)?;
    let target = of_administrator(server, setup)?;
    let account = if target.user.is_empty() { "default" } else { &target.user };
    let mut all = rights(&mut connection, account)?;
    all.extend(obstacles(&mut connection)?);
    all.extend(settings(&mut connection, account, target.tls.is_some())?);
    if refused(&mut connection, &["CLIENT", "LIST"])?.is_some() {
        all.push(Lack {
            why: "`tithe witness` and `tithe inspect` check how other clients are connected; the account may not see that"
                .to_owned(),
            remedy: rule(account, &["+client|list".to_owned()]),
            without: Without::Figures("information on other clients in `tithe witness` and `tithe inspect`"),
        });
    }
    all.extend(unseen_process(std::os::fd::AsFd::as_fd(&connection.into_wire()), ENTRY.server_programs, None));
    Ok(all)
}

/// Rules that the account lacks: for commands, and for keys of Tithe's own.
fn rights(connection: &mut RedisConnection, account: &str) -> Result<Vec<Lack>, Fault> {
    let mut commands: Vec<String> = Vec::new();
    let (mut keys_refused, mut keys_allowed) = (false, false);
    for command in OF_KEYS.iter().chain(&OF_SERVER) {
        match refused(connection, command)? {
            None => keys_allowed |= command.contains(&NOWHERE),
            Some(words) if words.contains("command") => commands.push(format!("+{}", command[0].to_ascii_lowercase())),
            Some(_) => keys_refused = true,
        }
    }
    let mut all = Vec::new();
    if !commands.is_empty() {
        all.push(Lack {
            why: "Tithe makes, reads, changes and removes keys of its own, and the account may not".to_owned(),
            remedy: rule(account, &commands),
            without: Without::Measurement,
        });
    }
    // Which keys an account has is only known if it has a command for keys.
    if keys_refused || !keys_allowed {
        let known =
            if keys_refused { "are not the account's" } else { "may not be the account's: it has no command for keys" };
        all.push(Lack {
            why: format!("the keys that Tithe makes begin with `tithe`, and {known}"),
            remedy: rule(account, &["~tithe*".to_owned()]),
            without: Without::Measurement,
        });
    }
    Ok(all)
}

/// The command that gives `account` these rules.
fn rule(account: &str, rules: &[String]) -> Remedy {
    Remedy::Statement(format!("ACL SETUSER {account} {}", rules.join(" ")))
}

/// The server's message if it refuses `command` to this account.
fn refused(connection: &mut RedisConnection, command: &[&str]) -> Result<Option<String>, Fault> {
    match connection.call(command) {
        Err(Fault::Refused(words)) if words.starts_with("NOPERM") => Ok(Some(words)),
        Ok(_) | Err(Fault::Refused(_) | Fault::Server(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What prevents the server from being measured, whatever the account.
fn obstacles(connection: &mut RedisConnection) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    // An account that may not ask gets a message of its own.
    if is_replica(connection).unwrap_or(false) {
        all.push(Lack {
            why: "it is a replica, whose data are its master's, and Tithe loads records of its own".to_owned(),
            remedy: Remedy::Words("name the master".to_owned()),
            without: Without::Measurement,
        });
    }
    // A server may hide its settings; then the timeout shows when it closes a connection.
    let idle_s = connection.setting("timeout").ok().flatten().and_then(|text| text.parse::<u64>().ok());
    if let Some(idle_s) = idle_s.filter(|idle_s| (1..IDLE_AT_LEAST_S).contains(idle_s)) {
        all.push(Lack {
            why: format!(
                "it closes connections that are idle for {idle_s} s, and an arm's connections are idle while others are \
                 measured"
            ),
            remedy: Remedy::Statement("CONFIG SET timeout 0".to_owned()),
            without: Without::Measurement,
        });
    }
    Ok(all)
}

/// What the server's settings lack, if they are readable.
fn settings(connection: &mut RedisConnection, account: &str, tls: bool) -> Result<Option<Lack>, Fault> {
    if refused(connection, &["CONFIG", "GET", "tls-port"])?.is_some() {
        return Ok(Some(Lack {
            why: "the settings say whether the server accepts clients without TLS, and the account may not read them"
                .to_owned(),
            remedy: rule(account, &["+config|get".to_owned()]),
            without: Without::Figures("information on other clients in the proof of tls"),
        }));
    }
    let off = !tls && connection.setting("tls-port").ok().flatten().is_some_and(|port| port == "0");
    Ok(off.then(|| Lack {
        why: "the server speaks no TLS".to_owned(),
        remedy: Remedy::Words(
            "give it a port and a certificate for it (tls-port, tls-cert-file, tls-key-file)".to_owned(),
        ),
        without: Without::Proof(&["tls"]),
    }))
}
