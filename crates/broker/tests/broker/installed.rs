//! Tests against `nats-server`.

use std::{fs, path::Path, thread, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use expect_test::expect;
use nkeys::{KeyPair, KeyPairType};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tithe_broker::{AccessFiles, Broker};
use tithe_harness::agents::link::{Answer, Delivery, Link, Subscription};
use tithe_machine::fault::Fault;

use crate::{
    LONG, at_last, connected, connected_within, eventually, hostile::takes_the_place_of_a_broker, private, refused,
    server::Server, without_port,
};

/// Configuration of TLS for a broker.
const TLS: &str = "tls { cert_file: \"CERTIFICATE\", key_file: \"KEY\" }\n";

/// A server without accounts, and a link to it.
fn open(configuration: &str) -> Option<(Server, Broker)> {
    let server = Server::start(configuration)?;
    let link = connected(&server.tls(), "coordinator", &server.trusting()).expect("connected");
    Some((server, link))
}

/// The next message, which must come.
fn next(subscription: &mut Box<dyn Subscription>) -> Delivery {
    subscription.next(LONG).expect("connected").expect("a message")
}

/// Answers each question at `subject` with the result of `answer`, as long as the thread runs.
fn answering(link: Broker, subject: &str, answer: fn(&[u8]) -> Vec<u8>) -> thread::JoinHandle<()> {
    let mut subscription = link.subscribe(subject).expect("it listens");
    thread::spawn(move || {
        while let Ok(delivery) = subscription.next(Duration::from_secs(3600)) {
            let delivery = delivery.expect("a message");
            if delivery.body == b"end" {
                return;
            }
            let reply = delivery.reply_to.expect("a question");
            link.publish(&reply, &answer(&delivery.body)).expect("answered");
        }
    })
}

#[test]
fn what_is_told_is_heard_by_all_in_its_order_and_by_nobody_else() {
    let Some((server, link)) = open(TLS) else { return };
    let agent = connected(&server.tls(), "rack7", &server.trusting()).expect("connected");
    let mut one = agent.subscribe("tithe.go.1").expect("it listens");
    let mut all = agent.subscribe("tithe.go.*").expect("it listens");
    link.publish("tithe.go.1", b"first").expect("told");
    link.publish("tithe.go.2", b"").expect("told");
    link.publish("tithe.nobody", b"lost").expect("told");
    let delivery = next(&mut one);
    assert_eq!((delivery.body.as_slice(), delivery.reply_to), (&b"first"[..], None));
    assert_eq!([next(&mut all).body, next(&mut all).body], [b"first".to_vec(), b"".to_vec()]);
    assert!(matches!(one.next(Duration::from_millis(50)), Ok(None)));
    drop(agent);
    expect!["connection: broker tls://localhost:PORT: the link to it has ended"]
        .assert_eq(&without_port(&all.next(LONG).err().expect("closed").to_string(), &server.tls()));
}

#[test]
fn questions_are_answered_or_it_is_said_that_nobody_listens() {
    let Some((server, link)) = open(TLS) else { return };
    let agents: Vec<_> = ["a", "b", "c"]
        .map(|name| connected(&server.tls(), name, &server.trusting()).expect("connected"))
        .into_iter()
        .map(|agent| answering(agent, "tithe.ask", |question| [question, b"!"].concat()))
        .collect();
    assert_eq!(link.request("tithe.ask", b"you", LONG), Ok(Answer::Reply(b"you!".to_vec())));
    // `request_all` always takes its full time, and on a busy machine a second may be too short.
    let answers = [1, 5, 60].map(Duration::from_secs).into_iter().find_map(|within| {
        let answers = link.request_all("tithe.ask", b"all", within).expect("answers");
        (answers.len() >= 3).then_some(answers)
    });
    assert_eq!(answers, Some(vec![b"all!".to_vec(); 3]));
    assert_eq!(link.request("tithe.nobody", b"?", LONG), Ok(Answer::NoResponders));
    assert_eq!(link.request_all("tithe.nobody", b"?", LONG), Ok(Vec::new()));
    let _deaf = link.subscribe("tithe.deaf").expect("it listens");
    assert_eq!(link.request("tithe.deaf", b"?", Duration::from_secs(1)), Ok(Answer::TimedOut));
    link.publish("tithe.ask", b"end").expect("told");
    agents.into_iter().for_each(|agent| agent.join().expect("it ended well"));
}

#[test]
fn long_messages_arrive_whole_both_ways() {
    let Some((server, link)) = open(TLS) else { return };
    let agent = connected(&server.tls(), "rack7", &server.trusting()).expect("connected");
    let answering = answering(agent, "tithe.rows", |question| question.iter().rev().copied().collect());
    let message: Vec<u8> = (0..10_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let answer = link.request("tithe.rows", &message, LONG);
    let Ok(Answer::Reply(answer)) = answer else { panic!("no answer") };
    assert!(answer.iter().rev().eq(message.iter()), "the answer is another one");
    link.publish("tithe.rows", b"end").expect("told");
    answering.join().expect("it ended well");
}

#[test]
fn a_broker_of_short_messages_gets_more_parts_and_one_of_too_short_ones_is_refused() {
    let Some((_server, link)) = open(&format!("{TLS}max_payload: 2000\n")) else { return };
    let mut subscription = link.subscribe("tithe.rows").expect("it listens");
    link.publish("tithe.rows", &[7; 100_000]).expect("told");
    assert_eq!(next(&mut subscription).body, [7; 100_000]);
    let Some((server, link)) = open(&format!("{TLS}max_payload: 1000\n")) else { return };
    expect!["refused: broker tls://localhost:PORT: carries no message longer than 1000 bytes: max_payload must be 1100 or more"]
        .assert_eq(&without_port(&link.publish("tithe.rows", b"x").unwrap_err().to_string(), &server.tls()));
}

#[test]
fn clocks_are_read_on_both_sides_of_an_exchange() {
    let Some((server, link)) = open(TLS) else { return };
    let agent = connected(&server.tls(), "rack7", &server.trusting()).expect("connected");
    let telling = agent.tell_time("tithe.clock.rack7").expect("it tells");
    for _ in 0..16 {
        let exchange = link.ask_time("tithe.clock.rack7", LONG).expect("connected").expect("an exchange");
        // Both sides have the same clock.
        let readings = [exchange.asked_ns, exchange.arrived_ns, exchange.answered_ns, exchange.heard_ns];
        assert!(readings.is_sorted() && readings[0] > 0, "{readings:?}");
    }
    assert_eq!(link.ask_time("tithe.clock.nobody", LONG), Ok(None));
    let _deaf = link.subscribe("tithe.clock.deaf").expect("it listens");
    assert_eq!(link.ask_time("tithe.clock.deaf", Duration::from_secs(1)), Ok(None));
    drop(telling);
    // A question sent while the telling ends gets no answer and is not refused either.
    let within = Duration::from_secs(10);
    eventually("that it tells no more", || link.ask_time("tithe.clock.rack7", within) == Ok(None));
}

#[test]
fn certificates_are_held_against_authority_and_name() {
    let Some(server) = Server::start(TLS) else { return };
    let untrusted =
        AccessFiles { authority: Some(server.credentials.untrusted_authority.clone()), ..AccessFiles::default() };
    let said = [
        refused(&server.tls(), &untrusted),
        // The system's authorities have not signed it.
        refused(&server.tls(), &AccessFiles::default()),
        // A name of 127.0.0.1 that is not in the certificate.
        refused(&server.url("tls", "0x7f000001"), &server.trusting()),
        // Without an answer from the network the resolver reports the first of these.
        refused(&server.url("tls", "nowhere.invalid"), &server.trusting())
            .replace("Temporary failure in name resolution", "Name or service not known"),
    ];
    expect![[r#"
        refused: broker tls://localhost:PORT: TLS: the server's certificate was signed by no authority that is trusted here: name the file of its authority, or of the certificate itself if it is self-signed
        refused: broker tls://localhost:PORT: TLS: the server's certificate was signed by no authority that is trusted here: name the file of its authority, or of the certificate itself if it is self-signed
        refused: broker tls://0x7f000001:PORT: TLS: the server's certificate is not for `0x7f000001`, the name used here, but for `localhost`, `127.0.0.1`, `0::1`, `127.0.0.2`, `127.0.0.3`, `127.0.0.4`, `127.0.0.11`, `127.0.0.12`, `127.0.0.13`, `127.0.0.14`: use a name of its certificate, or give it one for this name
        connection: broker tls://nowhere.invalid:PORT: its name does not resolve here: failed to lookup address information: Name or service not known"#]].assert_eq(&said.join("\n"));
    assert!(connected(&server.url("tls", "127.0.0.1"), "rack7", &server.trusting()).is_ok());
}

#[test]
fn a_broker_without_tls_is_told_nothing_where_tls_was_asked_for() {
    let Some(server) = Server::start("authorization { user: agent, password: hunter2 }\ntrace: true\n") else { return };
    let password = Some(private(server.folder.path(), "password", "agent\nhunter2\n"));
    let files = AccessFiles { password, ..server.trusting() };
    expect!["refused: broker tls://localhost:PORT: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)"]
        .assert_eq(&refused(&server.tls(), &files));
    assert!(!server.log().contains("CONNECT"), "{}", server.log());
    // On this machine an unencrypted connection is allowed.
    let link = connected(&server.url("nats", "127.0.0.1"), "rack7", &files).expect("connected");
    assert_eq!(link.request("tithe.nobody", b"?", LONG), Ok(Answer::NoResponders));
    assert!(server.log().contains("CONNECT"));
}

#[test]
fn a_client_s_certificate_is_shown_where_it_is_asked_for() {
    let mutual = "tls { cert_file: \"CERTIFICATE\", key_file: \"KEY\", ca_file: \"AUTHORITY\", verify: true }\n";
    let Some(server) = Server::start(mutual) else { return };
    let identity = Some((server.credentials.client_certificate.clone(), server.credentials.client_key.clone()));
    assert!(connected(&server.tls(), "rack7", &AccessFiles { identity, ..server.trusting() }).is_ok());
    let said = refused(&server.tls(), &server.trusting());
    // The server reports this and closes. If it received more in the meantime, the kernel may report only a reset.
    assert!(said.contains("it asks for a client's certificate") || said.contains("reset"), "{said}");
}

/// Two accounts: one with all rights below `tithe.`, one with the rights that an agent needs.
fn accounts(agent: &str) -> String {
    format!(
        "{TLS}authorization {{ users = [
           {{ user: coordinator, password: hunter2, permissions: {{ publish: \"tithe.>\", subscribe: \"tithe.>\" }} }}
           {{ {agent}, permissions: {{
               publish: [\"tithe.run.*\", \"tithe.clock.run.*\", \"tithe.inbox.coordinator.>\", \"tithe.inbox.rack7.>\"],
               subscribe: [\"tithe.roll-call\", \"tithe.agent.rack7.*\", \"tithe.clock.rack7.*\", \"tithe.inbox.rack7.>\"] }} }}
         ] }}\n"
    )
}

#[test]
fn rights_that_are_missing_are_errors_of_the_calls_that_need_them() {
    let Some(server) = Server::start(&accounts("user: agent, password: hunter3")) else { return };
    let password = |name: &str, text: &str| Some(private(server.folder.path(), name, text));
    let coordinator = AccessFiles { password: password("coordinator", "coordinator\nhunter2"), ..server.trusting() };
    let agent = AccessFiles { password: password("agent", "agent\nhunter3"), ..server.trusting() };
    let coordinator = connected(&server.tls(), "coordinator", &coordinator).expect("connected");
    let mut reports = coordinator.subscribe("tithe.run.4").expect("it listens");
    // It has no right to the inbox of another agent.
    let said =
        without_port(&connected(&server.tls(), "rack8", &agent).err().expect("refused").to_string(), &server.tls());
    expect!["refused: broker tls://localhost:PORT: this account has no right to subscribe tithe.inbox.rack8.ID.*: its permissions are in the broker's configuration"]
        .assert_eq(&without_id(&said, "tithe.inbox.rack8."));
    let agent = connected(&server.tls(), "rack7", &agent).expect("connected");
    let said = [
        agent.publish("tithe.agent.rack8.1", b"x").unwrap_err(),
        agent.request("tithe.agent.rack8.1", b"x", LONG).unwrap_err(),
        agent.request_all("tithe.go", &[0; 3_000_000], LONG).unwrap_err(),
        agent.ask_time("tithe.go", LONG).unwrap_err(),
        agent.subscribe("tithe.>").err().expect("refused"),
        agent.tell_time("tithe.clock.rack8.1").err().expect("refused"),
    ]
    .map(|fault| without_port(&fault.to_string(), &server.tls()));
    expect![[r#"
        refused: broker tls://localhost:PORT: this account has no right to publish tithe.agent.rack8.1: its permissions are in the broker's configuration
        refused: broker tls://localhost:PORT: this account has no right to publish tithe.agent.rack8.1: its permissions are in the broker's configuration
        refused: broker tls://localhost:PORT: this account has no right to publish tithe.go: its permissions are in the broker's configuration
        refused: broker tls://localhost:PORT: this account has no right to publish tithe.go: its permissions are in the broker's configuration
        refused: broker tls://localhost:PORT: this account has no right to subscribe tithe.>: its permissions are in the broker's configuration
        refused: broker tls://localhost:PORT: this account has no right to subscribe tithe.clock.rack8.1: its permissions are in the broker's configuration"#]].assert_eq(&said.join("\n"));
    // Its permitted actions still work: it is asked by the coordinator, and asks it.
    let mut told = agent.subscribe("tithe.agent.rack7.1").expect("it listens");
    coordinator.publish("tithe.agent.rack7.1", b"plan").expect("told");
    assert_eq!(next(&mut told).body, b"plan");
    let _telling = agent.tell_time("tithe.clock.rack7.1").expect("it tells");
    assert!(coordinator.ask_time("tithe.clock.rack7.1", LONG).expect("connected").is_some());
    let _telling = coordinator.tell_time("tithe.clock.run.4").expect("it tells");
    assert!(agent.ask_time("tithe.clock.run.4", LONG).expect("connected").is_some());
    agent.publish("tithe.run.4", b"here").expect("told");
    assert_eq!(next(&mut reports).body, b"here");
}

/// `words` with ID in place of the random part behind `prefix`.
fn without_id(words: &str, prefix: &str) -> String {
    let (before, rest) = words.split_once(prefix).expect("an inbox");
    format!("{before}{prefix}ID{}", &rest[32..])
}

#[test]
fn a_user_with_a_password_is_let_in_and_with_another_is_not() {
    let Some(server) = Server::start(&accounts("user: agent, password: hunter3")) else { return };
    let with = |name: &str, text: &str| AccessFiles {
        password: Some(private(server.folder.path(), name, text)),
        ..server.trusting()
    };
    assert!(connected(&server.tls(), "rack7", &with("right", "agent\nhunter3\n")).is_ok());
    let said = [
        refused(&server.tls(), &with("wrong", "agent\nhunter4\n")),
        refused(&server.tls(), &with("other", "nobody\nhunter3\n")),
        refused(&server.tls(), &server.trusting()),
    ];
    expect![[r#"
        refused: broker tls://localhost:PORT: the server refuses these credentials (Authorization Violation): compare them with the accounts in its configuration
        refused: broker tls://localhost:PORT: the server refuses these credentials (Authorization Violation): compare them with the accounts in its configuration
        refused: broker tls://localhost:PORT: the server refuses these credentials (Authorization Violation): compare them with the accounts in its configuration"#]].assert_eq(&said.join("\n"));
}

#[test]
fn an_nkey_is_let_in_and_another_is_not() {
    let key = KeyPair::new_user();
    let Some(server) = Server::start(&accounts(&format!("nkey: {}", key.public_key()))) else { return };
    let with = |name: &str, key: &KeyPair| {
        let nkey = Some(private(server.folder.path(), name, &(key.seed().expect("a seed") + "\n")));
        AccessFiles { nkey, ..server.trusting() }
    };
    let agent = connected(&server.tls(), "rack7", &with("agent.nk", &key)).expect("connected");
    agent.publish("tithe.run.4", b"here").expect("told");
    let said = refused(&server.tls(), &with("other.nk", &KeyPair::new_user()));
    assert!(said.contains("Authorization Violation"), "{said}");
    // The seed was never sent.
    assert!(!server.log().contains(&key.seed().expect("a seed")));
}

/// The JWT with `claims` about `subject`, signed by `issuer`.
fn jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, nats: &serde_json::Value) -> String {
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({ "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject.public_key(), "nats": nats });
    let text = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let signature = issuer.sign(text.as_bytes()).expect("it signs");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_file_of_credentials_is_let_in() {
    // The same keys in every run: a server once refused a token made with random keys.
    let key = |kind: KeyPairType, byte: u8| KeyPair::new_from_raw(kind, [byte; 32]).expect("a key");
    let (operator, account) = (key(KeyPairType::Operator, 1), key(KeyPairType::Account, 2));
    let user = key(KeyPairType::User, 3);
    let unlimited = json!({ "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1 });
    let operator_jwt = jwt(&operator, &operator, "operator", &json!({ "type": "operator", "version": 2 }));
    let account_jwt =
        jwt(&operator, &account, "tithe", &json!({ "limits": unlimited, "type": "account", "version": 2 }));
    let user_claims =
        json!({ "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2 });
    let user_jwt = jwt(&account, &user, "agent", &user_claims);
    let configuration = format!(
        "{TLS}operator: {operator_jwt}\nresolver: MEMORY\nresolver_preload: {{ {}: {account_jwt} }}\n",
        account.public_key()
    );
    let Some(server) = Server::start(&configuration) else { return };
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().expect("a seed")
    );
    let credentials = Some(private(server.folder.path(), "agent.creds", &text));
    let agent =
        connected(&server.tls(), "rack7", &AccessFiles { credentials, ..server.trusting() }).expect("connected");
    assert_eq!(agent.request("tithe.nobody", b"?", LONG), Ok(Answer::NoResponders));
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    let Some(mut server) = Server::start(TLS) else { return };
    server.kill();
    expect![
        "connection: broker tls://localhost:PORT: nothing listens there: is nats-server running, and is this its port?"
    ]
    .assert_eq(&refused(&server.tls(), &server.trusting()));
}

#[test]
fn a_broker_that_is_killed_fails_what_is_under_way_and_is_used_again_when_it_is_back() {
    let Some((mut server, link)) = open(TLS) else { return };
    let agent = connected(&server.tls(), "rack7", &server.trusting()).expect("connected");
    let mut subscription = agent.subscribe("tithe.go").expect("it listens");
    let telling = agent.tell_time("tithe.clock").expect("it tells");
    let _deaf = agent.subscribe("tithe.deaf").expect("it listens");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| link.request("tithe.deaf", b"?", Duration::from_secs(600)));
        thread::sleep(Duration::from_millis(300));
        server.kill();
        let fault = waiting.join().expect("it ends").unwrap_err();
        assert!(matches!(fault, Fault::Connection(_)), "{fault}");
    });
    let lost = "broker tls://localhost:PORT: the connection was lost and is being opened again";
    let is_loss = |fault: Fault| without_port(&fault.to_string(), &server.tls()).contains(lost);
    assert!(is_loss(subscription.next(LONG).err().expect("lost")));
    assert!(is_loss(subscription.next(Duration::ZERO).err().expect("still lost")));
    assert!(is_loss(link.publish("tithe.go", b"lost").unwrap_err()));
    assert!(is_loss(link.ask_time("tithe.clock", LONG).unwrap_err()));
    assert!(is_loss(link.subscribe("tithe.other").err().expect("lost")));
    server.run();
    eventually("that both are connected again", || {
        link.publish("tithe.go", b"here").is_ok()
            && subscription
                .next(Duration::from_secs(1))
                .is_ok_and(|delivery| delivery.is_some_and(|delivery| delivery.body == b"here"))
    });
    assert!(link.ask_time("tithe.clock", LONG).expect("connected").is_some());
    drop(telling);
}

#[test]
fn a_broker_that_comes_back_without_tls_is_told_nothing() {
    let Some(mut server) = Server::start(&accounts("user: agent, password: hunter2")) else { return };
    let password = Some(private(server.folder.path(), "password", "agent\nhunter2"));
    let link = connected(&server.tls(), "rack7", &AccessFiles { password, ..server.trusting() }).expect("connected");
    server.kill();
    takes_the_place_of_a_broker(server.port(), || {
        let fault = link.publish("tithe.run.4", b"agent").unwrap_err();
        assert!(matches!(fault, Fault::Connection(_)), "{fault}");
    });
}

/// The configuration in docs/agents.md, with the public keys of a coordinator and of the agent `rack7`.
fn documented(coordinator: &KeyPair, agent: &KeyPair) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks = page.split("```").map(str::trim_start);
    let block = blocks.filter(|block| block.starts_with("listen:")).collect::<String>();
    block
        .replace("listen: \"0.0.0.0:4222\"", "")
        .replace("/etc/tithe/broker.pem", "CERTIFICATE")
        .replace("/etc/tithe/broker.key", "KEY")
        .replace("UCOORDINATOR…", &coordinator.public_key())
        .replace("URACK7…", &agent.public_key())
}

#[test]
fn the_configuration_in_the_docs_gives_agents_what_they_need_and_no_more() {
    let (key, other) = (KeyPair::new_user(), KeyPair::new_user());
    let Some(server) = Server::start(&documented(&key, &other)) else { return };
    let with = |name: &str, key: &KeyPair| {
        let nkey = Some(private(server.folder.path(), name, &key.seed().expect("a seed")));
        connected(&server.tls(), name, &AccessFiles { nkey, ..server.trusting() }).expect("connected")
    };
    let (coordinator, agent) = (with("coordinator", &key), with("rack7", &other));
    let agent_is_asked = ["tithe.roll-call", "tithe.agent.rack7.0f"];
    let answering = agent_is_asked.map(|subject| answering(with("rack7", &other), subject, |_| b"here".to_vec()));
    for subject in agent_is_asked {
        assert_eq!(coordinator.request(subject, b"who?", LONG), Ok(Answer::Reply(b"here".to_vec())), "{subject}");
        coordinator.publish(subject, b"end").expect("told");
        assert!(agent.publish(subject, b"false orders").is_err(), "{subject}");
    }
    answering.into_iter().for_each(|answering| answering.join().expect("it ended well"));
    let mut reports = coordinator.subscribe("tithe.run.0f").expect("it listens");
    agent.publish("tithe.run.0f", b"rows").expect("told");
    assert_eq!(next(&mut reports).body, b"rows");
    let _times = (agent.tell_time("tithe.clock.rack7.0f"), coordinator.tell_time("tithe.clock.run.0f"));
    assert!(coordinator.ask_time("tithe.clock.rack7.0f", LONG).expect("connected").is_some());
    assert!(agent.ask_time("tithe.clock.run.0f", LONG).expect("connected").is_some());
    for subject in ["tithe.>", "tithe.run.0f", "tithe.agent.rack8.0f", "tithe.inbox.coordinator.>"] {
        assert!(agent.subscribe(subject).is_err(), "{subject}");
    }
}

#[test]
fn a_broker_that_hangs_is_late_and_not_for_ever() {
    let Some((server, link)) = open(TLS) else { return };
    let quick = at_last(|| connected_within(&server.tls(), "quick", &server.trusting(), Duration::from_secs(5)).ok());
    let paused = Paused::of(&server);
    let late = [
        quick.publish("tithe.go", b"x").unwrap_err(),
        connected_within(&server.tls(), "new", &server.trusting(), Duration::from_secs(1)).err().expect("late"),
    ];
    assert!(late.iter().all(|fault| fault.to_string().contains("it does not answer in time")), "{late:?}");
    assert_eq!(link.request("tithe.go", b"x", Duration::from_secs(1)), Ok(Answer::TimedOut));
    drop(paused);
    assert_eq!(link.request("tithe.nobody", b"x", LONG), Ok(Answer::NoResponders));
}

/// A server that is paused (SIGSTOP) until this is dropped.
struct Paused(Pid);

impl Paused {
    fn of(server: &Server) -> Self {
        let process = Pid::from_raw(server.process() as i32).expect("a process");
        kill_process(process, Signal::STOP).expect("it runs");
        let states = || fs::read_dir(format!("/proc/{process}/task")).expect("threads").flatten();
        let stat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        eventually("that all threads stop", || states().all(|thread| stat(thread).contains(") T ")));
        Self(process)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}
