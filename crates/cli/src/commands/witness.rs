//! `tithe witness`: evidence before, during and after a user's own command uses running servers; nothing is timed.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    process::ExitStatus,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tithe_analysis::report::words;
use tithe_harness::witness::{UNSEEN, When, Witness, WitnessFinding, through, unchanged, unseen, watching::Watching};
use tithe_machine::{
    fault::Fault,
    launch::Command,
    sandbox::{Sandbox, process},
};
use tithe_model::{
    experiment::{Protection, Url},
    record::{Role, Verdict},
};
use tithe_plugin::{matrix::FeatureStatus, product::Product, wire};

use crate::{
    WitnessArgs, asked,
    commands::inspect::FIRST_ANSWER_S,
    exit::{self, Stop},
    interrupt, offer, prepare, progress, refusals,
};

/// A server that the command will use.
struct Target {
    url: Url,
    database: &'static dyn Product,
    /// The protections that must hold on it.
    protections: Vec<Protection>,
}

/// The evidence of one server.
struct Account {
    /// Its URL, without a password.
    name: String,
    version: String,
    /// The features that it enforced before.
    enforced: Vec<FeatureStatus>,
    seen: Vec<WitnessFinding>,
}

/// Runs the command; returns the exit status.
pub fn witness(arguments: &WitnessArgs) -> Result<i32, Stop> {
    wire::hasten(FIRST_ANSWER_S);
    let targets: Vec<Target> =
        arguments.urls.iter().map(|url| target(url, &arguments.protect)).collect::<Result<_, _>>()?;
    let sandbox = Sandbox::new(&std::env::temp_dir())?;
    let credentials = sandbox.credentials()?;
    let witnesses: Vec<Witness<'_>> = targets
        .iter()
        .map(|target| {
            let folder = sandbox.folder().to_owned();
            Witness::new(target.database, target.url.clone(), &target.protections, credentials.clone(), folder).map_err(
                |fault| match fault {
                    Fault::Refused(words) => refused(&words),
                    fault => Stop::from(fault),
                },
            )
        })
        .collect::<Result<_, _>>()?;
    // From here on servers have tables of Tithe's for a short time. They are removed even if the command is not waited
    // for.
    let cancelled = interrupt::listen();
    let mut accounts = Vec::new();
    for (target, witness) in targets.iter().zip(&witnesses) {
        accounts.push(before(target, witness)?);
    }
    if cancelled.load(Ordering::SeqCst) {
        return Err(Stop::new(exit::INTERRUPTED, "stopped; the command was not started"));
    }
    let mut ended = None;
    if status(&accounts) != exit::DISPROVEN {
        ended = Some(accompanied(arguments, &targets, &witnesses, &mut accounts, cancelled)?);
        for (witness, account) in witnesses.iter().zip(&mut accounts) {
            account.seen.push(unchanged(&account.enforced, witness.enforced()));
            // What was seen before and while the command ran is shown in any case.
            account.seen.extend(witness.look(When::After).unwrap_or_else(|fault| vec![unseen(&fault)]));
        }
    }
    match arguments.format.as_str() {
        "json" => crate::shown::show!("{}", document(&accounts, ended.as_ref())),
        _ => crate::shown::show!("{}", told(&accounts, ended.as_ref(), progress::columns())),
    }
    Ok(conclude(&accounts, ended.as_ref()))
}

/// The server at `url`, on which all protections in `protect` must hold.
fn target(url: &str, protect: &[String]) -> Result<Target, Stop> {
    let catalogue = offer::catalogue();
    let Some(offered) = asked::database(url, &catalogue)?.filter(|_| Url::is_url(url)) else {
        return Err(refused("name a server by its URL, as in `tithe witness postgres://me@db/shop -- COMMAND`"));
    };
    asked::check_target(url, offered)?;
    let database = offer::database(offered.entry.id)?;
    let mut target = Target { url: Url::new(url), database, protections: Vec::new() };
    if !protect.is_empty() {
        let together = [protect.join("+")];
        let (source, experiment) = prepare::protected("witness", url, (offered, &together), &catalogue)?;
        let refused = refusals::of_urls(database, &experiment, &source.text);
        if !refused.is_empty() {
            return Err(source.complain(refused));
        }
        target.protections = experiment.arms.into_iter().flat_map(|arm| arm.protections).collect();
    }
    Ok(target)
}

/// The evidence of `witness` before the command is started.
fn before(target: &Target, witness: &Witness<'_>) -> Result<Account, Stop> {
    let name = target.url.redacted();
    let unreached = |fault: Fault| Stop::new(exit::FAILED, format!("{name}: {fault}; the command was not started"));
    let enforced = witness.enforced().map_err(unreached)?;
    let seen = witness.look(When::Before).map_err(unreached)?;
    Ok(Account { version: witness.version(), name, enforced, seen })
}

/// How the command ended; `None` if ctrl-C ended it.
type Ended = Option<ExitStatus>;

/// Runs the command to its end and adds the evidence meanwhile to `accounts`.
fn accompanied(
    arguments: &WitnessArgs,
    targets: &[Target],
    witnesses: &[Witness<'_>],
    accounts: &mut [Account],
    cancelled: &AtomicBool,
) -> Result<Ended, Stop> {
    let mut watching: Vec<Watching<'_>> = witnesses.iter().map(Witness::watch).collect::<Result<_, Fault>>()?;
    let places = places(targets, &watching);
    let command = command(&arguments.command, &places)?;
    let aside = arguments.format == "json";
    watching.iter_mut().for_each(Watching::is_to_start);
    let mut look = || watching.iter_mut().for_each(Watching::look);
    let ended = process::accompany(&command, aside, cancelled, &mut look).map_err(|error| {
        let status = if error.kind() == ErrorKind::NotFound { exit::MISSING } else { exit::MACHINE };
        Stop::new(status, format!("cannot start {}: {error}", command.program.display()))
    })?;
    for (watching, account) in watching.into_iter().zip(accounts) {
        account.seen.extend(watching.end());
    }
    Ok(ended)
}

/// The addresses of each server through its relay, by name: `url`, `host`, `port`, and `url2` for the second server.
fn places(targets: &[Target], watching: &[Watching<'_>]) -> BTreeMap<String, Option<String>> {
    let mut places = BTreeMap::new();
    for (number, (target, watching)) in (1..).zip(targets.iter().zip(watching)) {
        let suffix = if number == 1 { String::new() } else { format!("{number}") };
        let port = watching.port();
        let option = target.database.entry().address_option;
        let mut put = |name: &str, value: Option<String>| places.insert(format!("{name}{suffix}"), value);
        put("url", port.map(|port| through(&target.url, option, port)));
        put("host", port.map(|_| "127.0.0.1".to_owned()));
        put("port", port.map(|port| port.to_string()));
    }
    places
}

/// The command in `words`, with `places` in its arguments and its environment.
fn command(words: &[String], places: &BTreeMap<String, Option<String>>) -> Result<Command, Stop> {
    let mut words = words.to_vec();
    for (name, value) in places {
        let placeholder = format!("{{{name}}}");
        for word in words.iter_mut().filter(|word| word.contains(&placeholder)) {
            let value = value.as_ref().ok_or_else(|| {
                refused(&format!("{placeholder} leads through Tithe's relay, and this server cannot have a relay"))
            })?;
            *word = word.replace(&placeholder, value);
        }
    }
    let environment = places.iter().filter_map(|(name, value)| {
        let number = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let name = name.strip_suffix(number).unwrap_or(name).to_ascii_uppercase();
        let between = if number.is_empty() { "" } else { "_" };
        Some((format!("TITHE_{name}{between}{number}"), value.clone()?))
    });
    let environment = environment.collect();
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default().into();
    Ok(Command { program, arguments: words.collect(), environment })
}

/// The exit status for the evidence.
fn status(accounts: &[Account]) -> i32 {
    let of = |finding: &WitnessFinding| match (finding.role, finding.verdict) {
        _ if finding.check == UNSEEN => exit::FAILED,
        (Role::Claim | Role::Strengthens, Verdict::Fails) => exit::DISPROVEN,
        (Role::Claim, Verdict::CannotTell | Verdict::OutOfReach) | (Role::Strengthens, Verdict::CannotTell) => {
            exit::CANNOT_TELL
        }
        _ => exit::OK,
    };
    accounts.iter().flat_map(|account| &account.seen).map(of).fold(exit::OK, exit::worse)
}

/// The exit status for evidence and command.
fn conclude(accounts: &[Account], ended: Option<&Ended>) -> i32 {
    match ended {
        Some(None) => exit::INTERRUPTED,
        Some(Some(command)) if !command.success() => exit::FAILED,
        _ => status(accounts),
    }
}

/// How the command ended, as text.
fn ending(ended: Option<&Ended>) -> String {
    match ended {
        None => "the command was not started, as a claim does not hold".to_owned(),
        Some(None) => "the command was asked to stop".to_owned(),
        Some(Some(status)) => format!("the command ended ({status})"),
    }
}

/// The evidence, as text for a terminal with this number of `columns`. Equal findings before and after are combined.
fn told(accounts: &[Account], ended: Option<&Ended>, columns: usize) -> String {
    let mut text = String::new();
    for account in accounts {
        text += &format!("{}\n{}\n", account.name, account.version);
        let mut groups: Vec<(&WitnessFinding, Vec<When>)> = Vec::new();
        for finding in &account.seen {
            match groups.iter_mut().find(|(first, _)| is_same(first, finding)) {
                Some((_, when)) => when.push(finding.when),
                None => groups.push((finding, vec![finding.when])),
            }
        }
        groups.iter().for_each(|(finding, when)| text += &line(finding, when, columns));
    }
    let end = match conclude(accounts, ended) {
        exit::OK => "every claim holds; nothing was timed",
        exit::DISPROVEN => "some claim does not hold",
        exit::CANNOT_TELL => "some claim cannot be decided",
        exit::FAILED if status(accounts) == exit::FAILED => "a server could not be seen",
        _ => "",
    };
    let words = [ending(ended), end.to_owned()].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
    format!("{text}\n{}\n", words.join("; "))
}

fn is_same(one: &WitnessFinding, other: &WitnessFinding) -> bool {
    WitnessFinding { when: other.when, ..one.clone() } == *other
}

fn line(finding: &WitnessFinding, when: &[When], columns: usize) -> String {
    let (mark, ..) = words::finding(finding.role, finding.verdict);
    let mark = if finding.role == Role::Disclosure { "i" } else { mark };
    let when: Vec<&str> = when.iter().map(|when| when.word()).collect();
    let protection = if finding.protection.is_empty() { String::new() } else { format!("{}: ", finding.protection) };
    let claim = format!("{protection}{} ({})", finding.claim, when.join(" and "));
    [
        words::paragraph(&format!("  {mark} "), &claim, columns),
        words::paragraph("      seen: ", &finding.seen, columns),
        words::paragraph("      control: ", &finding.control, columns),
    ]
    .concat()
}

/// The same as a document.
fn document(accounts: &[Account], ended: Option<&Ended>) -> String {
    let finding = |one: &WitnessFinding| {
        json!({
            "when": one.when.word(), "protection": one.protection, "check": one.check, "claim": one.claim,
            "role": one.role, "verdict": one.verdict, "seen": one.seen, "control": one.control,
        })
    };
    let server = |account: &Account| {
        let seen: Vec<Value> = account.seen.iter().map(finding).collect();
        json!({ "server": account.name, "version": account.version, "evidence": seen })
    };
    let code = ended.copied().flatten().and_then(|status| status.code());
    let servers: Vec<Value> = accounts.iter().map(server).collect();
    let text = json!({
        "servers": servers, "command": { "ended": ending(ended), "status": code }, "exit_status": conclude(accounts, ended),
    });
    format!("{text:#}\n")
}

fn refused(words: &str) -> Stop {
    Stop::new(exit::USAGE, format!("{words}; nothing was started"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use expect_test::expect;

    use super::*;

    fn finding(when: When, role: Role, verdict: Verdict) -> WitnessFinding {
        WitnessFinding {
            when,
            protection: "tls".to_owned(),
            check: "tls-spoken".to_owned(),
            claim: "the server reports that clients speak TLSv1.3".to_owned(),
            role,
            verdict,
            seen: "TLSv1.3".to_owned(),
            control: "planted".to_owned(),
        }
    }

    fn account(seen: &[WitnessFinding]) -> Account {
        let (name, version) = ("postgres://ann@db/shop".to_owned(), "PostgreSQL 15.20".to_owned());
        Account { name, version, enforced: Vec::new(), seen: seen.to_vec() }
    }

    /// A command that ended with the status `raw` of `wait(2)`.
    fn ended(raw: i32) -> Option<Ended> {
        Some(Some(ExitStatus::from_raw(raw)))
    }

    #[test]
    fn what_was_seen_alike_is_told_once() {
        let of = |when, role, verdict| finding(when, role, verdict);
        let clients =
            WitnessFinding { protection: String::new(), ..of(When::While, Role::Strengthens, Verdict::OutOfReach) };
        let seen = [
            of(When::Before, Role::Claim, Verdict::Holds),
            clients,
            of(When::After, Role::Claim, Verdict::Holds),
            WitnessFinding { seen: "off".to_owned(), ..of(When::After, Role::Disclosure, Verdict::Fails) },
        ];
        expect![[r#"
            postgres://ann@db/shop
            PostgreSQL 15.20
              ✓ tls: the server reports that clients speak TLSv1.3 (before and after)
                  seen: TLSv1.3
                  control: planted
              · the server reports that clients speak TLSv1.3 (while)
                  seen: TLSv1.3
                  control: planted
              i tls: the server reports that clients speak TLSv1.3 (after)
                  seen: off
                  control: planted

            the command ended (exit status: 0); every claim holds; nothing was timed
        "#]]
        .assert_eq(&told(&[account(&seen)], ended(0).as_ref(), 100));
    }

    #[test]
    fn a_command_that_fails_outranks_what_is_disproven_and_this_what_cannot_be_told() {
        let of = |role, verdict| [account(&[finding(When::While, role, verdict)])];
        let check = |accounts: &[Account], ended: Option<Ended>| conclude(accounts, ended.as_ref());
        let holds = of(Role::Claim, Verdict::Holds);
        assert_eq!(check(&holds, ended(0)), exit::OK);
        assert_eq!(check(&holds, ended(1 << 8)), exit::FAILED);
        assert_eq!(check(&holds, Some(None)), exit::INTERRUPTED);
        assert_eq!(check(&of(Role::Claim, Verdict::OutOfReach), ended(0)), exit::CANNOT_TELL);
        assert_eq!(check(&of(Role::Strengthens, Verdict::OutOfReach), ended(0)), exit::OK);
        assert_eq!(check(&of(Role::Strengthens, Verdict::Fails), ended(0)), exit::DISPROVEN);
        assert_eq!(check(&of(Role::Claim, Verdict::Fails), None), exit::DISPROVEN);
        assert_eq!(check(&of(Role::Disclosure, Verdict::Fails), ended(0)), exit::OK);
        let gone = [account(&[unseen(&Fault::Connection("gone".to_owned()))])];
        assert_eq!(check(&gone, ended(0)), exit::FAILED);
        assert!(told(&gone, ended(0).as_ref(), 100).ends_with("; a server could not be seen\n"));
    }

    #[test]
    fn placeholders_and_variables_lead_through_the_relay() {
        let place = |value: &str| Some(value.to_owned());
        let mut places = BTreeMap::from([
            ("url".to_owned(), place("x://db:7")),
            ("port".to_owned(), place("7")),
            ("port2".to_owned(), place("8")),
        ]);
        let words = ["bench", "{url}", "--port={port},{port2}", "{print}"].map(str::to_owned);
        let made = command(&words, &places).expect("a command");
        assert_eq!(made.program.display().to_string(), "bench");
        assert_eq!(made.arguments, ["x://db:7", "--port=7,8", "{print}"]);
        let names: Vec<&str> = made.environment.keys().map(String::as_str).collect();
        assert_eq!(names, ["TITHE_PORT", "TITHE_PORT_2", "TITHE_URL"]);
        places.insert("url".to_owned(), None);
        assert_eq!(command(&words, &places).expect_err("there is no relay").status, exit::USAGE);
    }
}
