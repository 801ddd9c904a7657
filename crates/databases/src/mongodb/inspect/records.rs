//! What a MongoDB records of its clients, and which files hold values.

use std::path::Path;

use mongodb::bson::doc;
use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::State, recording::Recording};

use super::{
    super::{
        build::{Build, at},
        link::Link,
    },
    options::{Options, RIGHT},
    profilers::Profilers,
};
use crate::{
    findings::{MONGODB_AUDIT_PARTIAL, MONGODB_REST_REPEATS_VALUES},
    inspect::{Judgement, named},
};

/// Filter and successes, if the audit log is configured at run time (from 5.0 on).
pub type Runtime = Result<(Option<String>, Option<String>), Fault>;

/// Asks for them.
pub fn runtime(link: &Link) -> Runtime {
    let told = link.admin(doc! { "getAuditConfig": 1 })?;
    let filter = at(&told, &["filter"]).filter(|filter| leaves_out(filter));
    Ok((filter, at(&told, &["auditAuthorizationSuccess"])))
}

/// True of a filter that does not pass every record, as an empty one does.
fn leaves_out(filter: &str) -> bool {
    filter.chars().any(|c| !"{} ".contains(c))
}

/// The audit log. Reads and writes are recorded by the check of their rights. Only failed checks are recorded unless
/// `auditAuthorizationSuccess` is set.
///
/// # Errors
/// Why the server does not say how it was started.
pub fn auditing(options: &Options, build: &Build, runtime: impl FnOnce() -> Runtime) -> Result<Judgement, Fault> {
    if build.is_foreign {
        return Ok(Judgement::unseen("no command shows what this product records"));
    }
    if build.is_community {
        return Ok(Judgement::whole(State::NotOffered, "no edition but Enterprise has an audit log"));
    }
    let Some(destination) = options.option(&["auditLog", "destination"])? else {
        return Ok(Judgement::whole(State::Off, "getCmdLineOpts: no auditLog.destination"));
    };
    if options.option(&["auditLog", "path"])?.as_deref() == Some("/dev/null") {
        return Ok(Judgement::whole(State::Off, format!("auditLog to {destination} /dev/null, which keeps nothing")));
    }
    let (filter, successes) = match options.is_on(&["auditLog", "runtimeConfiguration"])? {
        true => runtime()?,
        false => {
            let filter = options.option(&["auditLog", "filter"])?.filter(|filter| leaves_out(filter));
            (filter, options.parameter("auditAuthorizationSuccess")?)
        }
    };
    let mut seen = format!("auditLog to {destination}");
    let mut is_partial = false;
    match &filter {
        Some(filter) => {
            is_partial = true;
            seen.push_str(&format!(", only what passes the filter {filter}"));
        }
        None => seen.push_str(", no filter"),
    }
    // The parameter is false by itself (documentation, "auditAuthorizationSuccess").
    if successes.as_deref() != Some("true") {
        is_partial = true;
        seen.push_str(
            "; reads and writes are recorded where they are refused, and no others: set auditAuthorizationSuccess to true",
        );
    }
    let judged = match is_partial {
        true => Judgement::whole(State::Available, seen).found(&MONGODB_AUDIT_PARTIAL),
        false => Judgement::whole(State::Enforced, seen),
    };
    Ok(match destination.as_str() {
        "file" => judged,
        "syslog" => judged.doubted("what syslog keeps of it"),
        _ => judged.doubted("what keeps the server's output"),
    })
}

/// The folder of the data, if no option names one (documentation, "storage.dbPath").
const FOLDER: &str = "/data/db";

/// Encryption of data files.
///
/// # Errors
/// As [`auditing`].
pub fn at_rest(options: &Options, build: &Build, is_router: bool) -> Result<Judgement, Fault> {
    if build.is_foreign {
        return Ok(Judgement::unseen("no command shows how this product stores data, or what stores them for it"));
    }
    if build.is_community {
        return Ok(Judgement::whole(State::NotOffered, "no edition but Enterprise encrypts its files"));
    }
    if is_router {
        return Ok(Judgement::unseen("a router (mongos) has no data files: ask each shard"));
    }
    Ok(match options.is_on(&["security", "enableEncryption"])? {
        true => {
            let cipher = options.option(&["security", "encryptionCipherMode"])?;
            let cipher = cipher.unwrap_or_else(|| "AES256-CBC, the default".to_owned());
            let file = options.option(&["security", "encryptionKeyFile"])?;
            let folder = options.option(&["storage", "dbPath"])?.unwrap_or_else(|| FOLDER.to_owned());
            let is_beside = file.as_ref().is_some_and(|file| Path::new(file).starts_with(&folder));
            let beside = if is_beside { ", which is in the folder of the data" } else { "" };
            let key = file.map_or(String::new(), |file| format!("; the key is a file on the server: {file}{beside}"));
            let seen = format!("getCmdLineOpts: enableEncryption true, {cipher}{key}; files were not checked");
            Judgement::whole(if is_beside { State::Available } else { State::Enforced }, seen)
        }
        false => Judgement::whole(State::Off, "getCmdLineOpts: enableEncryption is not set"),
    })
}

/// The row of encryption at rest with what [`repeated`] adds. A log in plaintext that repeats every command holds what
/// the files hide; what profilers write is in these files.
pub fn beside_files(judged: Judgement, options: &Options, profilers: &Profilers) -> Judgement {
    let state = match judged.state {
        State::Enforced if repeats(options, profilers).every_by_logs => State::Available,
        state => state,
    };
    repeated(Judgement { state, ..judged }, options, profilers)
}

/// Adds to `judged` which logs and profilers repeat values.
pub fn repeated(judged: Judgement, options: &Options, profilers: &Profilers) -> Judgement {
    let Repeats { seen, every_by_logs, every_by_profilers } = repeats(options, profilers);
    let doubt = profilers.doubt.iter().map(|doubt| format!("not judged: {doubt}"));
    let seen = [vec![judged.seen.clone()], seen, doubt.collect()].concat().join("; ");
    let judged = Judgement { seen, ..judged };
    if every_by_logs || every_by_profilers { judged.found(&MONGODB_REST_REPEATS_VALUES) } else { judged }
}

/// Recorders that repeat values in plaintext.
pub fn of_values(options: &Options, profilers: &Profilers, build: &Build) -> Recording {
    if build.is_foreign {
        return Recording { repeats: Vec::new(), doubts: vec!["logs of this product".to_owned()] };
    }
    let mut doubts: Vec<String> = profilers.doubt.iter().cloned().collect();
    let repeats = match &options.started {
        Ok(_) => repeats(options, profilers).seen,
        Err(fault) => {
            doubts.push(format!("logs ({fault}: {RIGHT})"));
            profilers.repeats().0
        }
    };
    Recording { repeats, doubts }
}

/// What repeats values.
struct Repeats {
    /// Each log and profiler, in words.
    seen: Vec<String>,
    /// A log repeats those of every command.
    every_by_logs: bool,
    /// A profiler does.
    every_by_profilers: bool,
}

/// Which logs and profilers repeat values.
fn repeats(options: &Options, profilers: &Profilers) -> Repeats {
    let of = |path: &[&str]| options.option(path).ok().flatten();
    let redacts = options.parameter("redactClientLogData").ok().flatten();
    let redacted = redacts.or_else(|| of(&["security", "redactClientLogData"])).as_deref() == Some("true");
    let slow_ms = of(&["operationProfiling", "slowOpThresholdMs"]).and_then(|ms| ms.parse::<i64>().ok());
    let (profiled, mut every_by_profilers) = profilers.repeats();
    let mut every = false;
    let mut seen = Vec::new();
    match (redacted, profilers.slow_ms.or(slow_ms).unwrap_or(100)) {
        (true, _) => {}
        (false, ..=0) => {
            every = true;
            seen.push("the log repeats values of every command (slowOpThresholdMs)".to_owned());
        }
        (false, ms) => seen.push(format!("the log repeats values of commands slower than {ms} ms")),
    }
    if !redacted && !profilers.filtered.is_empty() {
        let which = "commands that pass a filter, however fast (profile)";
        seen.push(format!("in {} the log repeats values of {which}", named(&profilers.filtered)));
    }
    if !redacted && let Some(words) = verbose(options) {
        every = true;
        seen.push(words);
    }
    if of(&["operationProfiling", "mode"]).as_deref() == Some("all") {
        every_by_profilers = true;
        seen.push(
            "each database's system.profile repeats values of every command (operationProfiling.mode)".to_owned(),
        );
    }
    // From 6.0 on the log may be encrypted.
    let is_sealed = ["auditEncryptionKeyIdentifier", "localAuditKeyFile"].map(|key| of(&["auditLog", key]));
    let is_sealed = is_sealed.iter().any(Option::is_some);
    if of(&["auditLog", "destination"]).is_some() && !is_sealed {
        let successes = options.parameter("auditAuthorizationSuccess").ok().flatten();
        let at_run_time = options.is_on(&["auditLog", "runtimeConfiguration"]).unwrap_or_default();
        let all = successes.as_deref() == Some("true") || at_run_time;
        every |= all;
        let which = if all { "every command that it records" } else { "commands that are refused" };
        seen.push(format!("the audit log repeats values of {which}"));
    }
    seen.extend(profiled);
    Repeats { seen, every_by_logs: every, every_by_profilers }
}

/// The log of everything by its level, in words: a component without a level of its own has that of all.
fn verbose(options: &Options) -> Option<String> {
    let of_all = level(options, None).unwrap_or(0.0);
    let told = |component: &str| {
        let own = level(options, Some(component)).filter(|own| *own >= 0.0);
        let part = own.map_or(String::new(), |_| format!("component.{component}."));
        let words = || format!("the log repeats values of every {component} (systemLog.{part}verbosity)");
        (own.unwrap_or(of_all) > 0.0).then(words)
    };
    ["command", "write"].into_iter().find_map(told)
}

/// The level of the log, or that of one of its components: as it is now, or else as the server was started.
fn level(options: &Options, component: Option<&str>) -> Option<f64> {
    const NOW: &str = "logComponentVerbosity";
    let names: Vec<&str> = component.into_iter().chain(["verbosity"]).collect();
    let running = options.running.as_ref().ok().filter(|running| running.contains_key(NOW));
    let text = match (running, component) {
        (Some(running), _) => at(running, &[&[NOW], &names[..]].concat()),
        (None, None) => options.option(&["systemLog", "verbosity"]).ok().flatten(),
        (None, Some(_)) => options.option(&[&["systemLog", "component"], &names[..]].concat()).ok().flatten(),
    };
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use mongodb::bson::Document;

    use super::{super::options::tests::options, *};

    fn build(is_community: bool) -> Build {
        Build { title: "MongoDB 7".to_owned(), stand_in: false, is_foreign: false, is_community }
    }

    fn words(judged: Result<Judgement, Fault>, options: &Options) -> String {
        let judged = repeated(judged.expect("options"), options, &Profilers::default());
        let found: Vec<&str> = judged.findings.iter().map(|finding| finding.id).collect();
        format!("{}: {} {found:?}\n", judged.state.words(), judged.seen)
    }

    #[test]
    fn an_audit_log_is_complete_that_records_successes_and_filters_nothing() {
        let of = |log: Document, running: Document, community: bool| {
            let options = options(doc! { "auditLog": log }, running);
            let runtime = || Ok((None, Some("true".to_owned())));
            words(auditing(&options, &build(community), runtime), &options)
        };
        let on = || doc! { "auditAuthorizationSuccess": true };
        let text = [
            of(doc! {}, doc! {}, true),
            of(doc! {}, doc! {}, false),
            of(doc! { "destination": "file" }, doc! {}, false),
            of(doc! { "destination": "file" }, on(), false),
            of(doc! { "destination": "file", "filter": "{ atype: 'authCheck' }" }, on(), false),
            of(doc! { "destination": "file", "filter": "{ }" }, on(), false),
            of(doc! { "destination": "file", "runtimeConfiguration": true }, doc! {}, false),
        ];
        expect![[r#"
            not offered by this product: no edition but Enterprise has an audit log; the log repeats values of commands slower than 100 ms []
            off: getCmdLineOpts: no auditLog.destination; the log repeats values of commands slower than 100 ms []
            available but not enforced: auditLog to file, no filter; reads and writes are recorded where they are refused, and no others: set auditAuthorizationSuccess to true; the log repeats values of commands slower than 100 ms; the audit log repeats values of commands that are refused ["MONGODB-AUDIT-PARTIAL"]
            enforced: auditLog to file, no filter; the log repeats values of commands slower than 100 ms; the audit log repeats values of every command that it records ["MONGODB-REST-REPEATS-VALUES"]
            available but not enforced: auditLog to file, only what passes the filter { atype: 'authCheck' }; the log repeats values of commands slower than 100 ms; the audit log repeats values of every command that it records ["MONGODB-AUDIT-PARTIAL", "MONGODB-REST-REPEATS-VALUES"]
            enforced: auditLog to file, no filter; the log repeats values of commands slower than 100 ms; the audit log repeats values of every command that it records ["MONGODB-REST-REPEATS-VALUES"]
            enforced: auditLog to file, no filter; the log repeats values of commands slower than 100 ms; the audit log repeats values of every command that it records ["MONGODB-REST-REPEATS-VALUES"]
        "#]].assert_eq(&text.concat());
    }

    #[test]
    fn logs_that_repeat_values_are_named_where_files_are_judged() {
        let of = |parsed: Document, community: bool| {
            let options = options(parsed, doc! {});
            words(at_rest(&options, &build(community), false), &options)
        };
        let text = [
            of(doc! {}, false),
            of(doc! { "security": { "enableEncryption": true, "encryptionKeyFile": "/key" } }, false),
            of(doc! { "operationProfiling": { "mode": "all", "slowOpThresholdMs": -1 } }, false),
            of(doc! { "security": { "redactClientLogData": true }, "systemLog": { "verbosity": 2 } }, false),
            of(doc! { "systemLog": { "verbosity": 1 } }, true),
            of(doc! { "security": { "enableEncryption": true }, "auditLog": { "destination": "file" } }, false),
            of(doc! { "auditLog": { "destination": "file", "runtimeConfiguration": true } }, false),
            of(doc! { "auditLog": { "destination": "file", "localAuditKeyFile": "/k" } }, false),
        ];
        expect![[r#"
            off: getCmdLineOpts: enableEncryption is not set; the log repeats values of commands slower than 100 ms []
            enforced: getCmdLineOpts: enableEncryption true, AES256-CBC, the default; the key is a file on the server: /key; files were not checked; the log repeats values of commands slower than 100 ms []
            off: getCmdLineOpts: enableEncryption is not set; the log repeats values of every command (slowOpThresholdMs); each database's system.profile repeats values of every command (operationProfiling.mode) ["MONGODB-REST-REPEATS-VALUES"]
            off: getCmdLineOpts: enableEncryption is not set []
            not offered by this product: no edition but Enterprise encrypts its files; the log repeats values of commands slower than 100 ms; the log repeats values of every command (systemLog.verbosity) ["MONGODB-REST-REPEATS-VALUES"]
            enforced: getCmdLineOpts: enableEncryption true, AES256-CBC, the default; files were not checked; the log repeats values of commands slower than 100 ms; the audit log repeats values of commands that are refused []
            off: getCmdLineOpts: enableEncryption is not set; the log repeats values of commands slower than 100 ms; the audit log repeats values of every command that it records ["MONGODB-REST-REPEATS-VALUES"]
            off: getCmdLineOpts: enableEncryption is not set; the log repeats values of commands slower than 100 ms []
        "#]].assert_eq(&text.concat());
    }

    #[test]
    fn the_log_is_judged_by_its_levels_and_its_redaction_now() {
        let of = |parsed: Document, running: Document| {
            let Repeats { seen, every_by_logs, .. } = repeats(&options(parsed, running), &Profilers::default());
            (every_by_logs, seen.last().cloned().unwrap_or_default())
        };
        let levels = |all: i32, command: i32| {
            doc! { "logComponentVerbosity": { "verbosity": all, "command": { "verbosity": command } } }
        };
        let slow = || (false, "the log repeats values of commands slower than 100 ms".to_owned());
        let every = |what: &str| (true, format!("the log repeats values of every {what}verbosity)"));
        assert_eq!(of(doc! {}, levels(0, -1)), slow());
        assert_eq!(of(doc! {}, levels(0, 1)), every("command (systemLog.component.command."));
        assert_eq!(of(doc! {}, levels(1, -1)), every("command (systemLog."));
        assert_eq!(of(doc! {}, levels(1, 0)), every("write (systemLog."));
        let started = || doc! { "systemLog": { "component": { "write": { "verbosity": 2 } } } };
        assert_eq!(of(started(), doc! {}), every("write (systemLog.component.write."));
        assert_eq!(of(started(), levels(0, -1)), slow(), "it was lowered");
        let redacts = || doc! { "security": { "redactClientLogData": true } };
        let nothing = || (false, String::new());
        assert_eq!(of(redacts(), doc! {}), nothing());
        assert_eq!(of(redacts(), doc! { "redactClientLogData": false }), slow());
        assert_eq!(of(doc! {}, doc! { "redactClientLogData": true }), nothing());
    }

    #[test]
    fn a_filter_decides_in_place_of_the_duration_what_the_log_repeats() {
        let mut profilers = Profilers::default();
        profilers.filtered.push("shop".to_owned());
        let seen = |running: Document| repeats(&options(doc! {}, running), &profilers).seen;
        let filtered = "in shop the log repeats values of commands that pass a filter, however fast (profile)";
        assert_eq!(seen(doc! {}), ["the log repeats values of commands slower than 100 ms", filtered]);
        assert_eq!(seen(doc! { "redactClientLogData": true }), [""; 0]);
    }

    #[test]
    fn options_of_mongodb_say_nothing_of_another_product() {
        // FerretDB answers getCmdLineOpts without any option.
        let ferret = Build { is_foreign: true, ..build(false) };
        let options = options(doc! {}, doc! {});
        let audit = auditing(&options, &ferret, || Ok((None, None))).expect("options");
        let at_rest = at_rest(&options, &ferret, false).expect("options");
        assert_eq!([audit.state, at_rest.state], [State::Unseen; 2]);
        let recorded = |build: &Build| of_values(&options, &Profilers::default(), build);
        let (own, foreign) = (recorded(&build(false)), recorded(&ferret));
        assert_eq!([own.repeats.len(), own.doubts.len()], [1, 0], "the log of slow commands");
        assert_eq!([foreign.repeats.len(), foreign.doubts.len()], [0, 1]);
    }

    #[test]
    fn an_audit_log_that_is_no_file_is_not_seen() {
        let judged = |log: Document| {
            let options = options(doc! { "auditLog": log }, doc! { "auditAuthorizationSuccess": true });
            let judged = auditing(&options, &build(false), || Ok((None, None))).expect("options");
            (judged.state, judged.scope.words())
        };
        assert_eq!(judged(doc! { "destination": "file", "path": "/a" }), (State::Enforced, "whole server"));
        assert_eq!(judged(doc! { "destination": "file", "path": "/dev/null" }), (State::Off, "whole server"));
        for elsewhere in ["syslog", "console"] {
            assert_eq!(judged(doc! { "destination": elsewhere }), (State::Enforced, "this account"), "{elsewhere}");
        }
    }

    #[test]
    fn a_key_in_the_folder_of_the_data_is_no_key() {
        let state = |file: &str, storage: Document| {
            let security = doc! { "enableEncryption": true, "encryptionKeyFile": file };
            let options = options(doc! { "security": security, "storage": storage }, doc! {});
            at_rest(&options, &build(false), false).expect("options").state
        };
        let srv = || doc! { "dbPath": "/srv/db/" };
        assert_eq!(state("/keys/key", srv()), State::Enforced);
        assert_eq!(state("/srv/db/key", srv()), State::Available);
        assert_eq!(state("/srv/db-keys/key", srv()), State::Enforced);
        assert_eq!([state("/data/db/key", doc! {}), state("/key", doc! {})], [State::Available, State::Enforced]);
    }

    #[test]
    fn a_log_in_the_clear_of_every_command_is_beside_encrypted_files() {
        let state = |log: Document, encrypted: bool, is_router: bool| {
            let mut parsed = doc! { "security": { "enableEncryption": encrypted } };
            parsed.extend(log);
            let options = options(parsed, doc! {});
            let judged = at_rest(&options, &build(false), is_router).expect("options");
            beside_files(judged, &options, &Profilers::default()).state
        };
        let every = || doc! { "systemLog": { "verbosity": 1 } };
        assert_eq!(state(doc! {}, true, false), State::Enforced);
        assert_eq!(state(every(), true, false), State::Available);
        let profiled = doc! { "operationProfiling": { "mode": "all" } };
        assert_eq!(state(profiled, true, false), State::Enforced, "profiles are in the encrypted files");
        assert_eq!([state(doc! {}, false, false), state(every(), false, false)], [State::Off; 2]);
        assert_eq!([state(doc! {}, false, true), state(every(), false, true)], [State::Unseen; 2], "it has no files");
    }
}
