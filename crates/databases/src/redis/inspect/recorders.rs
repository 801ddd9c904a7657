//! What a Redis records, and which records repeat values in plaintext.

use tithe_machine::fault::Fault;
use tithe_plugin::recording::Recording;

use super::super::{clients::value, connection::RedisConnection, store::info};

/// What is recorded of commands, with the texts about the slow log and about monitoring clients. Redis has no audit
/// log; these record something else, or only a small part.
pub fn of_commands(
    connection: &mut RedisConnection,
    slow_log: &Result<String, Fault>,
    watched: Option<&str>,
) -> String {
    let mut said = vec!["ACL LOG keeps refusals only".to_owned()];
    said.push(slow_log.as_ref().map_or_else(|fault| format!("slow log: {fault}"), Clone::clone));
    said.extend(watched.map(str::to_owned));
    match connection.setting("notify-keyspace-events") {
        Ok(Some(events)) if !events.is_empty() => {
            said.push(format!("names of keys are published to every subscriber (notify-keyspace-events = {events})"));
        }
        _ => {}
    }
    said.join("; ")
}

/// Recorders that repeat values in plaintext.
pub fn of_values(connection: &mut RedisConnection) -> Recording {
    let mut recording = Recording::default();
    match slow(connection).and_then(|slow| Ok((slow, large(connection)?))) {
        Ok(((repeats, words), large)) => {
            recording.repeats.extend(repeats.then_some(words));
            recording.repeats.extend(large);
        }
        Err(fault) => recording.doubts.push(format!("the slow log ({fault})")),
    }
    match watchers(connection) {
        Ok(watchers) if watchers.is_empty() => {}
        Ok(watchers) => recording.repeats.push(shown_to(&watchers)),
        Err(fault) => recording.doubts.push(format!("whether a client runs MONITOR ({fault})")),
    }
    recording
}

/// The slow log, and Valkey's logs of large commands: in memory, the latest commands above a limit, with the first
/// bytes of their values.
pub fn slow_log(connection: &mut RedisConnection) -> Result<String, Fault> {
    let (_, slow) = slow(connection)?;
    Ok([vec![slow], large(connection)?].concat().join("; "))
}

/// Those of Valkey's logs of large requests and large replies (8.1 and newer) that repeat values.
fn large(connection: &mut RedisConnection) -> Result<Vec<String>, Fault> {
    let mut repeating = Vec::new();
    for kind in ["request", "reply"] {
        let above = connection.setting(&format!("commandlog-{kind}-larger-than"))?;
        let kept = connection.setting(&format!("commandlog-large-{kind}-max-len"))?.unwrap_or_default();
        // Redis does not have the setting; a negative limit switches the log off.
        let Some(above) = above.filter(|above| !above.starts_with('-') && kept != "0") else { continue };
        repeating.push(format!(
            "the command log repeats values of commands whose {kind} has more than {above} bytes, the last {kept}, in memory"
        ));
    }
    Ok(repeating)
}

/// Whether it repeats values, and a description.
fn slow(connection: &mut RedisConnection) -> Result<(bool, String), Fault> {
    let mut setting = |name: &str| connection.setting(name).map(Option::unwrap_or_default);
    let (above, kept) = (setting("slowlog-log-slower-than")?, setting("slowlog-max-len")?);
    Ok(match above.parse::<i64>() {
        Ok(above) if above < 0 => (false, "the slow log is off".to_owned()),
        _ if kept == "0" => (false, "the slow log keeps nothing".to_owned()),
        Ok(0) => (true, format!("the slow log repeats values of all commands, the last {kept}, in memory")),
        _ => (true, format!("the slow log repeats values of commands above {above} µs, the last {kept}, in memory")),
    })
}

/// Clients that see every command with its values; `None` if there are none.
pub fn watched(connection: &mut RedisConnection) -> Option<String> {
    match watchers(connection) {
        Ok(watchers) if watchers.is_empty() => None,
        Ok(watchers) => Some(shown_to(&watchers)),
        Err(fault) => Some(format!("whether a client runs MONITOR: {fault}")),
    }
}

fn shown_to(watchers: &[String]) -> String {
    format!("MONITOR shows every command with its values to {}", watchers.join(", "))
}

/// Clients that see every command.
fn watchers(connection: &mut RedisConnection) -> Result<Vec<String>, Fault> {
    let list = connection.call(&["CLIENT", "LIST"])?.text().unwrap_or_default();
    let watches = |line: &&str| value(line, "flags").is_some_and(|flags| flags.contains('O'));
    let who =
        |line: &str| format!("`{}` at {}", value(line, "user").unwrap_or("?"), value(line, "addr").unwrap_or("?"));
    Ok(list.lines().filter(watches).map(who).collect())
}

/// The files that hold values, all of them in plaintext.
pub fn files(connection: &mut RedisConnection) -> Result<String, Fault> {
    let mut setting = |name: &str| connection.setting(name).map(Option::unwrap_or_default);
    let (folder, snapshot, when) = (setting("dir")?, setting("dbfilename")?, setting("save")?);
    let (appends, name, below) = (setting("appendonly")?, setting("appendfilename")?, setting("appenddirname")?);
    let mut files = Vec::new();
    let why = if when.is_empty() { "by SAVE and for replicas" } else { "by itself" };
    files.push(format!("{folder}/{snapshot} ({why})"));
    if appends == "yes" {
        files.push(
            [folder.as_str(), &below, &name]
                .iter()
                .filter(|part| !part.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join("/"),
        );
    }
    let password = !setting("requirepass")?.is_empty() || !setting("masterauth")?.is_empty();
    let configuration = info(connection, "server", "config_file")?.filter(|file| !file.is_empty());
    let passwords = configuration
        .filter(|_| password)
        .map(|file| format!("; a password is set, in the clear where {file} or what it includes has it"));
    Ok(format!("values reach {}{}", files.join(" and "), passwords.unwrap_or_default()))
}
