//! TLS that is not required of all clients.

use std::net::Ipv4Addr;

use tithe_machine::sandbox::ports::Port;

use super::*;

/// TLS is on and plaintext is also served.
fn tls_is_optional(database: &'static dyn Product, mistakes: &[(&str, &str)], expected: Expect) {
    let asked = chosen(database, "tls", &[]);
    let Some(sandbox) = start(database, std::slice::from_ref(&asked), mistakes) else { return };
    let words = caught(&sandbox, &asked);
    eprintln!("{}: {words}", database.id());
    assert!(words.contains("plaintext: served") || words.contains("also a plaintext port"), "{words}");
    expected.assert_eq(&shown(&sandbox, &[Feature::Transport]));
}

#[test]
fn postgres_with_optional_tls() {
    tls_is_optional(
        &Postgres,
        &[("hostssl all all", "host all all")],
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn mariadb_with_optional_tls() {
    let mistakes = [("require_secure_transport = ON", "require_secure_transport = OFF"), (" REQUIRE SSL", "")];
    tls_is_optional(
        &MariaDb,
        &mistakes,
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn mysql_with_optional_tls() {
    let mistakes = [("require_secure_transport = ON", "require_secure_transport = OFF"), (" REQUIRE SSL", "")];
    tls_is_optional(
        &MySql,
        &mistakes,
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn redis_with_a_plaintext_port_beside_tls() {
    let free = Port::draw(Ipv4Addr::LOCALHOST.into()).expect("a port");
    tls_is_optional(
        &Redis,
        &[("\nport 0\n", &format!("\nport {}\n", free.number()))],
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

/// The server trusts an authority that it should not trust. Here it is the other way round: the certificate that counts
/// as one of an unknown authority is that of our clients.
fn tls_knows_another_authority(database: &'static dyn Product) {
    let asked = chosen(database, "tls", &[("mutual", OptionValue::Flag(true))]);
    let Some(mut sandbox) = start(database, std::slice::from_ref(&asked), &[]) else { return };
    let elsewhere = sandbox.server.folder.join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let credentials = &mut sandbox.setup.credentials;
    let authority = elsewhere.join("untrusted.pem");
    std::fs::copy(&credentials.untrusted_authority, &authority).expect("copied");
    credentials.untrusted_authority = authority;
    let [certificate, key] = [&credentials.client_certificate, &credentials.client_key]
        .map(|file| std::fs::read_to_string(file).expect("a text"));
    std::fs::write(credentials.untrusted_client(), certificate + &key).expect("written");
    let words = caught(&sandbox, &asked);
    eprintln!("{}: {words}", database.id());
    assert!(words.contains("a client without a certificate: refused"), "{words}");
    assert!(words.contains("a client of an unknown authority: served"), "{words}");
}

#[test]
fn postgres_that_knows_another_authority() {
    tls_knows_another_authority(&Postgres);
}

#[test]
fn mariadb_that_knows_another_authority() {
    tls_knows_another_authority(&MariaDb);
}

#[test]
fn redis_that_knows_another_authority() {
    tls_knows_another_authority(&Redis);
}

/// Our account needs TLS and another does not. An account that may read the login rules sees it; for one that may not,
/// the claim is about itself alone. `made` are statements for the administrator, `url` is how the account `app`
/// connects.
fn plaintext_for_others(
    database: &'static dyn Product,
    mistakes: &[(&str, &str)],
    made: &[&str],
    url: fn(u16, &str) -> String,
    expected: Expect,
) {
    let asked = chosen(database, "tls", &[]);
    let Some(mut sandbox) = Sandbox::start_wrong(database, std::slice::from_ref(&asked), mistakes) else { return };
    sandbox.setup.statements = made.iter().map(|statement| (*statement).to_owned()).collect();
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut text = brief(&sandbox, &asked);
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let address = Address::Attached(Url::new(url(port, &sandbox.setup.credentials.authority.display().to_string())));
    sandbox.server = Server { address, process: None, ..sandbox.server.clone() };
    text += &brief(&sandbox, &asked);
    expected.assert_eq(&text);
}

/// The claim of the TLS check, and its text about all other clients.
fn brief(sandbox: &Sandbox, asked: &Chosen) -> String {
    let check = protection(sandbox.database, "tls").evidence(asked).remove(0);
    let (observation, claim) = observe_and_claim(sandbox, true, &*check);
    eprintln!("{}: {claim}: {observation:?}", sandbox.database.id());
    assert!(observation.quotation().contains("plaintext: refused"), "our own account: {observation:?}");
    let word = match &observation {
        Observation::Protected(_) => "protected",
        Observation::Exposed(_) => "exposed",
        Observation::Unknown(_) | Observation::OutOfReach(_) => "unknown",
    };
    let claim = claim.split("; ").nth(1).unwrap_or_default();
    let others = observation.quotation().split("everybody else: ").nth(1).unwrap_or_default();
    // The server's text about a missing privilege differs between versions.
    let others = if others.starts_with("not seen (refused: ") { "not seen (refused)" } else { others };
    format!("{claim}\n{word}: {others}\n")
}

#[test]
fn postgres_with_plaintext_for_others() {
    let ours = "hostssl all all 127.0.0.1/32 trust\n";
    let others = format!("{ours}host otherdb all 10.0.0.0/8 scram-sha-256\nhost all other 127.0.0.1/32 trust\n");
    plaintext_for_others(
        &Postgres,
        &[(ours, &others)],
        &["CREATE ROLE app LOGIN"],
        |port, authority| {
            format!("postgres://app@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={authority}")
        },
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: line 2: host otherdb all 10.0.0.0/8 scram-sha-256; line 3: host all other 127.0.0.1/32 trust (pg_hba_file_rules)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}

const NEEDS_NO_TLS: [&str; 2] = ["CREATE USER other@'10.%'", "CREATE USER app@'127.0.0.1' REQUIRE SSL"];

#[test]
fn mariadb_with_plaintext_for_others() {
    plaintext_for_others(
        &MariaDb,
        &[("require_secure_transport = ON", "require_secure_transport = OFF")],
        &NEEDS_NO_TLS,
        |port, authority| format!("mariadb://app@127.0.0.1:{port}/?ssl-mode=verify_identity&ssl-ca={authority}"),
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: 'other'@'10.%' without REQUIRE SSL (the table of accounts)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}

#[test]
fn mysql_with_plaintext_for_others() {
    plaintext_for_others(
        &MySql,
        &[("require_secure_transport = ON", "require_secure_transport = OFF")],
        &NEEDS_NO_TLS,
        |port, authority| format!("mysql://app@127.0.0.1:{port}/?ssl-mode=verify_identity&ssl-ca={authority}"),
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: 'other'@'10.%' without REQUIRE SSL (the table of accounts)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}
