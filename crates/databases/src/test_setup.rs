//! Shared code for tests of launches and protections; none of it needs a server.

use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
};

use expect_test::Expect;
use tithe_machine::{
    credentials::Credentials,
    launch::{Address, Command, Content, Launch, Server, Step},
    observation::Observation,
    secret::Secret,
};
use tithe_model::experiment::{self, OptionValue, Url};
use tithe_plugin::{
    database::{Database, Lack, Without},
    evidence::{Check, CheckContext, seen_by},
    matrix::FeatureStatus,
    protection::{Protection, ways},
    session::Table,
    setup::{AfterLoading, Setup},
};

use crate::{
    inspect::{Judgement, Open, transport},
    target::{Authority, Outside, Product, Target, Tls},
};

/// A plain set-up with fictitious paths.
pub fn plain() -> Setup {
    let credentials = Credentials {
        authority: "/m/ca.pem".into(),
        server_certificate: "/m/server.pem".into(),
        server_key: "/m/server.key".into(),
        client_certificate: "/m/client.pem".into(),
        client_key: "/m/client.key".into(),
        untrusted_authority: "/m/untrusted.pem".into(),
        password: Secret::new("correct horse"),
        key: Secret::new([7; 32]),
        second_key: Secret::new([8; 32]),
    };
    Setup::plain(BTreeMap::new(), credentials)
}

/// The protection `id` of `all` with its defaults, except for `options`.
pub fn chosen(all: &[&dyn Protection], id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    let protection = all.iter().find(|protection| protection.entry().id == id).expect("a protection");
    let mut values: BTreeMap<String, OptionValue> = protection
        .entry()
        .options
        .iter()
        .filter_map(|option| Some((option.name.to_owned(), option.default?.value())))
        .collect();
    for (name, value) in options {
        let value = match *value {
            "true" => OptionValue::Flag(true),
            "false" => OptionValue::Flag(false),
            text => OptionValue::Text(text.to_owned()),
        };
        values.insert((*name).to_owned(), value);
    }
    experiment::Protection::listed(id, values)
}

/// Applies `chosen`, which are of `all`, to `setup`.
pub fn apply(all: &[&dyn Protection], chosen: &[experiment::Protection], setup: &mut Setup) {
    for chosen in chosen {
        let protection = all.iter().find(|protection| protection.entry().id == chosen.id).expect("a protection");
        protection.apply(chosen, setup);
    }
}

/// Everything that `launch` and `setup` do, as text.
pub fn shown(launch: &Launch, setup: &Setup) -> String {
    let run = |command: &Command| {
        let environment: Vec<_> = command.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        format!("{}{} {}", environment.concat(), command.program.display(), command.arguments.join(" "))
    };
    let mut lines = Vec::new();
    for step in &launch.steps {
        lines.push(match step {
            Step::Write { path, content: Content::Text(text), mode } => {
                format!("write {} {mode:o}\n{}", path.display(), text.trim_end())
            }
            Step::Write { path, content, mode } => format!("write {} {mode:o} {content:?}", path.display()),
            Step::Run(command) | Step::MakeData(command) => format!("run {}", run(command)),
            other => format!("{other:?}"),
        });
    }
    if let Some(server) = &launch.server {
        lines.push(format!("serve {}", run(server)));
        lines.push(format!("stop by signal {} at {:?}", launch.stop_signal.as_raw(), launch.address));
    }
    lines.push(format!("paths {:?}", launch.paths));
    for statement in &setup.statements {
        lines.push(format!("then {statement}"));
    }
    for statement in &setup.table_statements {
        lines.push(format!("each table {statement}"));
    }
    lines.join("\n") + "\n"
}

/// The targets that each of `urls` of `product` names, or why none; a line each.
pub fn targets_of(product: &Product, urls: &[&str]) -> String {
    let line = |url: &&str| {
        let text = match product.attached(&Url::new(*url), &plain(), &Outside::of(&[])) {
            Ok(targets) => targets
                .iter()
                .map(|target| {
                    let tls = target.tls.as_ref().map(|tls| (&tls.authority, &tls.identity));
                    format!("{}:{} `{}` {:?} {tls:?}", target.host, target.port, target.user, target.password)
                })
                .collect(),
            Err(fault) => fault.to_string(),
        };
        format!("{url}: {text}\n")
    };
    urls.iter().map(line).collect()
}

/// The lines that are in one text only: `-` in `before`, `+` in `after`.
pub fn difference(before: &str, after: &str) -> String {
    let missing = |from: &str, of: &str, sign: char| -> String {
        of.lines()
            .filter(|line| !from.lines().any(|other| other == *line))
            .map(|line| format!("{sign} {line}\n"))
            .collect()
    };
    missing(after, before, '-') + &missing(before, after, '+')
}

/// Compares the lines that `chosen`, which are of `all`, remove from a plain set-up as `shown`, and add to it.
pub fn check(
    all: &[&dyn Protection],
    chosen: &[experiment::Protection],
    shown: impl Fn(&Setup) -> String,
    expect: Expect,
) {
    let mut setup = plain();
    apply(all, chosen, &mut setup);
    expect.assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

/// What each way to configure each of `protections` changes in a plain arm: in its server, which `launched` shows, and
/// in its clients.
pub fn every_way(protections: &[&dyn Protection], launched: impl Fn(&Setup) -> String) -> String {
    let shown = |setup: &Setup| {
        // Every field, so that none is forgotten: those below `_` belong to the server, or to no protection.
        let Setup {
            session_statements,
            transport,
            authentication,
            at_rest,
            rotates,
            key_server,
            columns,
            compute,
            volume,
            settings: _,
            create_arguments: _,
            statements: _,
            table_statements: _,
            space: _,
            tables: _,
            after_loading: AfterLoading { statements, session, undo: _ },
            files: _,
            account: _,
            clients: _,
            data_bytes: _,
            credentials: _,
        } = setup;
        format!(
            "{}session {session_statements:?}\ntransport {transport:?}\nauthentication {authentication:?}\n\
             at rest {at_rest:?}\nrotates {rotates}\nkey server {key_server:?}\ncolumns {columns:?}\n\
             compute {compute:?}\nvolume {volume:?}\nafter loading {statements:?}\nmeasured session {session:?}\n",
            launched(setup),
        )
    };
    let mut told = String::new();
    for protection in protections {
        for chosen in ways(*protection) {
            let mut setup = plain();
            protection.apply(&chosen, &mut setup);
            let options: String = chosen.options.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
            told += &format!("{}{options}\n{}\n", chosen.id, difference(&shown(&plain()), &shown(&setup)));
        }
    }
    told
}

/// How plaintext is judged for a server that answers `said` to a client in `plaintext`, if the URL requests TLS; and
/// what the server received.
pub fn tried_in_plaintext(said: &[u8], plaintext: Open) -> (String, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = Target {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().expect("bound").port(),
        user: "ann".to_owned(),
        database: "0".to_owned(),
        password: Some(Secret::new("correct horse")),
        must_ask: true,
        tls: Some(Tls::of_url(Authority::Anyone, None)),
        ..Target::default()
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            drop(listener);
            stream.write_all(said).expect("sent");
            stream.shutdown(Shutdown::Write).expect("shut");
            let mut sent = Vec::new();
            let _ = stream.read_to_end(&mut sent);
            sent
        });
        let Judgement { state, seen, .. } = transport(&target, "TLSv1.3", Ok(true), plaintext);
        (format!("{}: {seen}", state.words()), server.join().expect("the server ends"))
    })
}

/// How plaintext is judged for a server that asks for a password with `asks`; it must not be sent the password.
pub fn asked_in_plaintext(asks: &[u8], plaintext: Open) -> String {
    let (judged, sent) = tried_in_plaintext(asks, plaintext);
    assert!(!sent.is_empty() && !sent.windows(7).any(|part| part == b"correct"), "it was sent {sent:?}");
    judged
}

/// The result of `look` on a server of which `serve` serves each connection, attached by a URL that begins with
/// `begin`, its scheme and account.
pub fn attached<T>(
    begin: &str,
    serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
    look: impl FnOnce(&Server) -> T,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    look(&Server::at(Address::Attached(Url::new(format!("{begin}127.0.0.1:{port}")))))
}

/// The result of `look` on the protected arm of `database` at `server`.
pub fn as_arm<T>(database: &dyn Database, server: &Server, look: impl FnOnce(&mut CheckContext<'_>) -> T) -> T {
    let (setup, table) = (plain(), Table::of_canaries());
    let (setup, table) = (&setup, &table);
    look(&mut CheckContext { database, server, setup, table, protected: true, nonce: 7, narrowed: None })
}

/// What `check` observes on the protected arm of `database` at `server`, in one word.
pub fn observed(database: &dyn Database, server: &Server, check: &dyn Check) -> &'static str {
    match as_arm(database, server, |context| seen_by(check, context)) {
        Observation::Protected(_) => "protected",
        Observation::Exposed(_) => "exposed",
        Observation::Unknown(_) | Observation::OutOfReach(_) => "unknown",
    }
}

/// What is impossible because of `lacks`, except figures: the process of a server is that of the test.
pub fn impossible(lacks: &[Lack]) -> Vec<Without> {
    let all = lacks.iter().map(|lack| lack.without);
    all.filter(|without| !matches!(without, Without::Figures(_))).collect()
}

/// Each of `rows` of a matrix with its state, its scope and its findings.
pub fn states(rows: &[FeatureStatus]) -> Vec<String> {
    rows.iter().map(|row| state(row) + "\n").collect()
}

/// The same with what was seen.
pub fn whole_rows(rows: &[FeatureStatus]) -> Vec<String> {
    rows.iter().map(|row| format!("{}: {}\n", state(row), row.seen)).collect()
}

fn state(row: &FeatureStatus) -> String {
    let findings: String = row.findings.iter().map(|finding| format!(" [{}]", finding.id)).collect();
    format!("{}: {}, {}{findings}", row.feature.id(), row.state.words(), row.scope.words())
}

/// For each of `changes` its rows that the `usual` server does not have.
pub fn changed_rows(usual: &[String], changes: &[(&str, Vec<String>)]) -> String {
    let mut text = String::new();
    for (name, rows) in changes {
        text += &format!("{name}\n");
        rows.iter().filter(|row| !usual.contains(row)).for_each(|row| text += &format!("  {row}"));
    }
    text
}
