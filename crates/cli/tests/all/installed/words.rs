//! One command without a file, on real servers: started by Tithe, and attached.

use std::net::TcpListener;

use tithe_machine::launch::Search;

use crate::support::{
    Bench, err, interrupted_after, out,
    server::{Server, found, installed},
    status,
};

#[test]
fn a_server_is_started_for_a_few_words() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("words-postgres");
    let words = ["postgres", "--protect", "tls", "--records", "500", "--quick"];
    let output = interrupted_after(2, &bench, &mut bench.command(&[&["run"], &words[..]].concat()));
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("✓ tls"), "{}", out(&output));
    assert!(
        err(&output).starts_with("What tls costs PostgreSQL\n  arms  plain, tls on PostgreSQL"),
        "{}",
        err(&output)
    );
}

#[test]
fn a_running_server_is_measured_from_its_url() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("words-attached");
    let url = server.address();
    let audit = ["--protect", "pgaudit:log=read"];
    let output = bench.tithe(&[&["run", &url, "--records", "500", "--budget", "15 s"], &audit[..]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("✓ pgaudit:log=read"), "{}", out(&output));
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tithe%'"), "0");

    // `init` knows which settings its sessions may switch, and that its URL asks for no TLS.
    let written = bench.tithe(&["init", &url, "--to", "e.toml"]);
    assert_eq!(status(&written), 0, "{}", err(&written));
    let text = std::fs::read_to_string(bench.path("e.toml")).expect("the file");
    assert!(text.contains("\non = [\"SET pgaudit.log = 'read,write'\""), "{text}");
    assert!(text.contains("# TLS is not available: arm `tls` asks for TLS"), "{text}");
    let planned = bench.tithe(&["plan", "e.toml"]);
    assert_eq!(status(&planned), 0, "{}", err(&planned));

    // `init` accepts a URL that asks for TLS, too.
    let with_tls = server.url_of("tithe", true);
    let text = out(&bench.tithe(&["init", &with_tls]));
    assert!(text.contains("name = \"tls\"") && !text.contains("# TLS cannot be had"), "{text}");

    // An account without the right to create a schema gets the statement that grants it, and so does one without the
    // right to switch auditing.
    server.psql("CREATE ROLE clerk LOGIN");
    let of_clerk = url.replace("tithe@", "clerk@");
    let refused = bench.tithe(&["init", &of_clerk]);
    assert_ne!(status(&refused), 0, "{}", out(&refused));
    assert!(err(&refused).contains("GRANT CREATE ON DATABASE postgres TO clerk"), "{}", err(&refused));
    server.psql("GRANT CREATE ON DATABASE postgres TO clerk");
    let text = out(&bench.tithe(&["init", &of_clerk]));
    // The text is in a comment, whose lines are wrapped.
    let text = text.split_whitespace().filter(|word| *word != "#").collect::<Vec<_>>().join(" ");
    for right in
        ["SET ON PARAMETER pgaudit.log, pgaudit.log_parameter, pgaudit.log_catalog", "EXECUTE ON FUNCTION pg_cur"]
    {
        assert!(text.contains(&format!("`GRANT {right}")), "everything at once: {text}");
    }
    let gone = bench.tithe(&["init", &url.replace("127.0.0.1", "127.0.0.9").replace("localhost", "127.0.0.9")]);
    assert_eq!(status(&gone), 4, "{}", out(&gone));
}

/// The costs of TLS and auditing on a running server, in one command.
#[test]
fn one_command_asks_a_running_server_for_tls_and_auditing() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("words-both");
    let url = server.url_of("tithe", true);
    let asked = ["--protect", "tls", "--protect", "pgaudit:log=read", "--records", "500", "--budget", "23 s"];
    let output = interrupted_after(2, &bench, &mut bench.command(&[&["run", &url], &asked[..]].concat()));
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    for arm in ["tls", "pgaudit:log=read"] {
        assert!(out(&output).contains(&format!("✓ {arm}")), "{}", out(&output));
    }
    assert!(out(&output).contains("TLS is on, not enforced by this server"), "{}", out(&output));
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tithe%'"), "0");
}

#[test]
fn what_is_written_for_every_installed_database_can_be_planned() {
    let bench = Bench::new("words-init");
    for database in tithe_databases::all() {
        let id = database.entry().id;
        // There is no MongoDB for tests, even if everything else is installed.
        let is_installed =
            if id == "mongodb" { database.find(&Search::default()).is_ok() } else { found(*database).is_some() };
        let written = bench.tithe(&["init", id, "--to", id]);
        assert_eq!(status(&written), if is_installed { 0 } else { 3 }, "{id}: {}", err(&written));
        if is_installed {
            let text = std::fs::read_to_string(bench.path(id)).expect("the file");
            assert!(!text.contains("\nname = \"ordinary-statements\""), "an arm that this load cannot prove: {text}");
            let planned = bench.tithe(&["plan", id]);
            assert_eq!(status(&planned), 0, "{id}: {}", err(&planned));
        }
    }
    let chosen = bench.tithe(&["init"]);
    assert_eq!(status(&chosen), 0, "{}", err(&chosen));
    assert!(out(&chosen).starts_with("# Found on this machine: sqlite"), "{}", out(&chosen));
}

#[test]
fn settings_that_the_installed_server_does_not_know_are_refused() {
    let bench = Bench::new("words-settings");
    for (id, slip, meant) in [
        ("postgres", "shared_bufers", "shared_buffers"),
        ("mariadb", "innodb_bufer_pool_size", "innodb_buffer_pool_size"),
        ("mysql", "innodb_bufer_pool_size", "innodb_buffer_pool_size"),
        ("redis", "maxmemori", "maxmemory"),
    ] {
        let database = tithe_databases::all().iter().find(|database| database.entry().id == id).expect("a database");
        if found(*database).is_none() {
            continue;
        }
        let text = |name: &str| {
            format!(
                "title = \"t\"\ndatabase = \"{id}\"\n[data]\nrecords = 500\n[[resources]]\nsettings = {{ {name} = \
                 \"256MB\" }}\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"tls\"\n\
                 protections = [{{ use = \"tls\" }}]\n"
            )
        };
        bench.file("e.toml", &text(slip));
        let output = bench.tithe(&["plan", "e.toml"]);
        assert_eq!(status(&output), 2, "{id}: {}{}", out(&output), err(&output));
        assert!(err(&output).contains("e.toml:6:"), "{id}: {}", err(&output));
        assert!(err(&output).contains(&format!("did you mean `{meant}`?")), "{id}: {}", err(&output));
        bench.file("e.toml", &text(meant));
        let output = bench.tithe(&["plan", "e.toml"]);
        assert_eq!(status(&output), 0, "{id}: {}", err(&output));
    }
}

#[test]
fn a_server_that_is_not_seen_hides_no_other() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("words-inspect");
    // It accepts connections, but never sends anything.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let silent_url = format!("postgres://ann@{}/shop", silent.local_addr().expect("an address"));
    let output = bench.tithe(&["inspect", &silent_url, &server.address(), "postgres://ann@127.0.0.1:9/shop"]);
    assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("transport encryption"), "{}", out(&output));
    assert!(err(&output).contains("did not answer for 5 s"), "{}", err(&output));
    assert!(err(&output).contains("127.0.0.1:9"), "{}", err(&output));
    let json = bench.tithe(&["inspect", &server.address(), "--format", "json"]);
    let matrix: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(matrix.as_array().map(Vec::len), Some(1), "{matrix}");
}
