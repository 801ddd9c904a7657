//! Login methods of servers, each against a real one; none reveals a password to other listeners.

use std::process::Command;

use super::attached::{arm, experiment, schemas};
use crate::support::{
    Bench, err, out,
    process::Process,
    server::{OtherServer, Server},
    status, wait_until, words as in_one_line,
};

/// The password of every account that has one: with all characters that have a meaning in URLs, files, shells or
/// statements.
const PASSWORD: &str = "an @ccount: of/the?tests#1%20&+=[$(id)]`~|;<>{}^*!é";

/// The output of `tithe inspect` for `url` with the password in `variable`, and whether it could read the server.
fn looked_at(url: &str, variable: &str) -> (bool, String) {
    let bench = Bench::new("logins");
    let output = bench.command(&["inspect", url]).env(variable, PASSWORD).output().expect("tithe starts");
    (status(&output) == 0, out(&output) + &err(&output))
}

/// Each URL without words is accepted; the others are refused with their words.
fn meet(variable: &str, cases: &[(&str, String)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(words, url)| {
            let (seen, told) = looked_at(url, variable);
            let met = if words.is_empty() { seen } else { !seen && told.contains(words) };
            (!met || told.contains(PASSWORD)).then(|| format!("{url}: {told}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `text` with every byte of it percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The account that the tests run as.
fn own_account() -> String {
    let output = Command::new("id").arg("-un").output().expect("id");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

#[test]
fn postgres_lets_in_by_each_of_its_ways() {
    let Some(server) = Server::start() else { return };
    let own = own_account();
    server.psql(&format!(
        "SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD '{PASSWORD}'; \
         SET password_encryption = 'scram-sha-256'; CREATE ROLE clear LOGIN PASSWORD '{PASSWORD}'; \
         CREATE ROLE bound LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE \"{own}\" LOGIN"
    ));
    let rules = format!(
        "local all {own} peer\nlocal all hashed md5\nlocal all clear password\nhost all hashed 127.0.0.1/32 md5\n\
         host all clear 127.0.0.1/32 password\nhost all bound 127.0.0.1/32 scram-sha-256\n"
    );
    server.add_rules(&rules);
    let (port, folder) = (server.port(), server.folder().display().to_string());
    let tcp = |user: &str| server.url_of(user, false);
    let tls = |user: &str, more: &str| server.url_of(user, true) + more;
    let socket = |user: &str| format!("postgres://{user}@/postgres?host={folder}&port={port}");
    let in_secret = "is sent over TLS with a verified certificate or over a Unix socket only";
    meet(
        "PGPASSWORD",
        &[
            ("", socket("hashed")),
            ("", socket("clear")),
            ("", tls("hashed", "")),
            ("", tls("clear", "")),
            ("", tls("bound", "&channel_binding=require")),
            ("", tls("bound", "&require_auth=scram-sha-256")),
            ("", tcp("bound")),
            (in_secret, tcp("hashed")),
            (in_secret, tcp("clear")),
            (in_secret, format!("{}?sslmode=require", tcp("clear"))),
            ("channel_binding=require needs TLS", format!("{}?channel_binding=require", tcp("bound"))),
            ("which require_auth does not allow", tls("hashed", "&require_auth=scram-sha-256")),
            ("which require_auth does not allow", tls("clear", "&require_auth=!password")),
            ("channel_binding=require needs TLS", format!("{}&channel_binding=require", socket("bound"))),
        ],
    );
    // A client that the kernel has authenticated gets the same answer as one that was not authenticated at all.
    let told = |account: &str, words: &str| {
        let (seen, told) = looked_at(&socket(account), "UNUSED");
        assert!(seen && told.contains(words), "{account}: {told}");
    };
    told(&own, "whether by peer or trust is");
    server.psql(&format!(
        "GRANT SELECT ON pg_hba_file_rules TO \"{own}\"; GRANT EXECUTE ON FUNCTION pg_hba_file_rules() TO \"{own}\""
    ));
    told(&own, "by socket peer");
    told("tithe", "let in without a password");
}

#[test]
fn mariadb_and_mysql_let_in_by_each_of_their_ways() {
    let own = own_account();
    for mysql in [false, true] {
        let accounts = match mysql {
            true => format!(
                "CREATE USER sha2@'%' IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}';\n\
                 CREATE USER sha256@'%' IDENTIFIED WITH sha256_password BY '{PASSWORD}';\n"
            ),
            false => format!(
                "CREATE OR REPLACE USER '{own}'@localhost IDENTIFIED VIA unix_socket;\n\
                 CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}';\n\
                 CREATE USER signed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}');\n"
            ),
        };
        let settings = if mysql { "" } else { "plugin_load_add = auth_ed25519\n" };
        let Some(server) = OtherServer::mariadb_with(mysql, settings, &accounts) else { continue };
        let socket = server.folder().join("data/server.sock").display().to_string();
        let by_socket = |user: &str| format!("mysql://{user}@/?socket={socket}");
        let by_tcp = |user: &str| format!("mysql://{user}@{}", server.place("127.0.0.1"));
        let authority = server.authority();
        let by_tls = |user: &str| format!("{}?ssl-mode=verify_ca&ssl-ca={authority}", by_tcp(user));
        let cases: Vec<(&str, String)> = match mysql {
            true => ["sha2", "sha256"]
                .iter()
                .flat_map(|user| [by_socket(user), by_tls(user), by_tcp(user)])
                .map(|url| ("", url))
                .collect(),
            false => ["native", "signed"]
                .iter()
                .flat_map(|user| [by_socket(user), by_tls(user), by_tcp(user)])
                .chain([by_socket(&own)])
                .map(|url| ("", url))
                .collect(),
        };
        meet("MYSQL_PWD", &cases);
        if !mysql {
            let (seen, told) = looked_at(&by_socket(&own), "UNUSED");
            assert!(seen && told.contains("by socket peer"), "{told}");
        }
    }
}

#[test]
fn a_command_says_the_password() {
    let Some(server) = OtherServer::redis_with("") else { return };
    server.tell_redis(&format!("CONFIG SET requirepass \"{PASSWORD}\""));
    let place = server.place("127.0.0.1");
    let url = |command: &str| format!("redis://{place}?password_command={command}");
    meet(
        "UNUSED",
        &[
            ("", url(&encoded(&format!("echo '{PASSWORD}'")))),
            ("password_command ended with exit status: 3", url("exit%203")),
            ("password_command prints more than one line", url("echo%20a;%20echo%20b")),
            ("password_command says nothing", url("true")),
        ],
    );
}

/// The cost of one arm includes the difference in transport, and the reader is warned.
#[test]
fn a_socket_beside_tcp_is_warned_of() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("ways");
    let (port, folder, url) = (server.port(), server.folder().display().to_string(), server.url_of("tithe", false));
    let authority = server.authority();
    bench.file(
        "e.toml",
        &format!(
            "title = \"Short\"\ndatabase = \"postgres\"\n[data]\nrecords = 200\n[measure]\nbudget = \"2 min\"\n[[workload]]\n\
             ycsb = \"c\"\n[[arm]]\nname = \"plain\"\nurl = \"host={folder} port={port} user=tithe dbname=postgres\"\n\
             [[arm]]\nname = \"tls\"\nurl = \"{url}?sslmode=verify-ca&\
             sslrootcert={authority}\"\nprotections = [{{ use = \"tls\" }}]\n"
        ),
    );
    let output = bench.tithe(&["plan", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 0, "{told}");
    for words in [
        "arm plain is reached by a Unix socket and arm tls by TCP",
        "by the Unix socket ",
        "encrypted and authenticated by authority, host name not checked",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 0, "{told}");
    assert!(told.contains("host name not checked"), "{told}");
}

#[test]
fn a_token_that_expires_ends_the_cell_with_the_reason_and_a_new_one_goes_on() {
    let Some(server) = Server::start() else { return };
    server.psql("CREATE ROLE app LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE postgres TO app");
    server.add_rules("host all app 127.0.0.1/32 scram-sha-256\n");
    let bench = Bench::new("expired");
    let (port, token) = (server.port(), bench.path("token"));
    let arm = |name: &str| {
        let command = encoded(&format!("cat '{}'", token.display()));
        arm(name, &format!("postgres://app@127.0.0.1:{port}/postgres?password_command={command}"), "")
    };
    let text = experiment("postgres", &(arm("one") + &arm("other")));
    bench.file("e.toml", &text.replace("[measure]", "[measure]\nepochs = 2"));
    bench.file("token", "first\n");
    let child = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    wait_until(|| bench.frames_so_far() > 0);
    server.psql("ALTER ROLE app PASSWORD 'second'");
    let output = child.output();
    let told = in_one_line(&(out(&output) + &err(&output)));
    assert_eq!(status(&output), 4, "{told}");
    assert!(told.contains("password authentication failed for user \"app\""), "{told}");
    assert!(told.contains("continue: tithe run --resume"), "{told}");
    let before = bench.kept_so_far("frames.jsonl");
    bench.file("token", "second\n");
    // While the run goes on, the token changes once more, and the command is called again.
    let run = bench.run_folder().display().to_string();
    let child = Process::heard(&mut bench.command(&["run", "--resume", &run, "--quiet"]));
    wait_until(|| bench.frames_so_far() > before.lines().count());
    bench.file("token", "third\n");
    server.psql("ALTER ROLE app PASSWORD 'third'");
    let output = child.output();
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(bench.kept_so_far("frames.jsonl").starts_with(&before));
    assert_eq!(schemas(&server), "0");
}
