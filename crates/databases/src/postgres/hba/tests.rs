//! Rules as text, and how they are judged.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::evidence::whole::Exception;

/// A row in the form of PostgreSQL 15.
fn row(line: i64, text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let (place, rest) = if words[0] == "local" { ("", &words[3..]) } else { (words[3], &words[4..]) };
    let (address, netmask) = match place.split_once('/') {
        Some((address, "32")) => (address, "255.255.255.255"),
        Some((address, "8")) => (address, "255.0.0.0"),
        Some((address, "9")) => (address, "255.128.0.0"),
        Some((address, "10")) => (address, "255.192.0.0"),
        Some((address, "16")) => (address, "255.255.0.0"),
        Some(("::", "0")) => ("::", "::"),
        Some((address, "0")) => (address, "0.0.0.0"),
        _ => (place, ""),
    };
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    serde_json::json!({
        "line_number": line, "type": words[0], "database": list(words[1]), "user_name": list(words[2]),
        "address": or_null(address), "netmask": or_null(netmask), "auth_method": rest[0],
        "options": rest[1..].to_vec(), "error": or_null(""),
    })
    .to_string()
}

fn parsed(lines: &[&str], tls: bool) -> Hba {
    let rows: Vec<String> = (1..).zip(lines).map(|(line, text)| row(line, text)).collect();
    Hba::of(rows.iter().map(String::as_str), tls).expect("rules")
}

fn check(lines: &[&str], tls: bool) -> String {
    let hba = parsed(lines, tls);
    let of = |rules: Rules| if rules.exceptions.is_empty() { "none".to_owned() } else { rules.exceptions.join("; ") };
    let (clients, replicas) = (of(hba.of_transport()), of(hba.of_replication()));
    format!("authentication: {}\ntransport: {clients}\nreplicas: {replicas}\n", of(hba.of_authentication()))
}

const NONE: &str = "authentication: none\ntransport: none\nreplicas: none\n";

#[test]
fn a_row_of_the_server_is_understood() {
    let row = r#"{"type": "host", "error": null, "address": "127.0.0.1", "netmask": "255.255.255.255", "options": null,
        "database": ["all"], "user_name": ["all"], "auth_method": "trust", "line_number": 97}"#;
    let hba = Hba::of([row].into_iter(), true).expect("rules");
    expect!["1 rule of pg_hba.conf: 1 exception: line 97 (host all all 127.0.0.1/32 trust) serves plaintext: change host to hostssl and reload"]
        .assert_eq(&hba.of_transport().words());
}

#[test]
fn each_kind_of_rule_matches_its_ways() {
    use Way::{Gss, Plaintext, Socket, Tls};
    let ways = |line: &str| [true, false].map(|tls| parsed(&[line], tls).rules[0].ways(tls).collect::<Vec<_>>());
    assert_eq!(ways("local all all md5"), [vec![Socket], vec![Socket]]);
    for (kind, with_tls, without) in [
        ("host", vec![Plaintext, Tls, Gss], vec![Plaintext, Gss]),
        ("hostssl", vec![Tls], vec![]),
        ("hostnossl", vec![Plaintext, Gss], vec![Plaintext, Gss]),
        ("hostgssenc", vec![Gss], vec![Gss]),
        ("hostnogssenc", vec![Plaintext, Tls], vec![Plaintext]),
    ] {
        assert_eq!(ways(&format!("{kind} all all all md5")), [with_tls, without], "{kind}");
    }
}

#[test]
fn rules_of_several_files_are_in_the_order_of_the_server() {
    // `include` in the last line of a file of 20 lines: the rule of the other file comes last.
    let numbered = |line: i64, number: i64, text: &str| {
        row(line, text).replace(r#""line_number""#, &format!(r#""rule_number":{number},"line_number""#))
    };
    let told = |reject: i64, open: i64| {
        let rows = [numbered(3, open, "hostssl all all all trust"), numbered(20, reject, "hostssl all all all reject")];
        Hba::of(rows.iter().map(String::as_str), true).expect("rules").of_authentication().exceptions
    };
    assert_eq!(told(1, 2), [""; 0], "the rule above it rejects all");
    let never = "line 20 (hostssl all all all reject) is never reached, because lines above it match first";
    assert_eq!(told(2, 1), ["line 3 (hostssl all all all trust) lets everyone in", never]);
}

#[test]
fn weak_rules_are_named_whomever_they_are_for() {
    expect![[r#"
        authentication: line 2 (host app app 10.0.0.0/8 trust) lets everyone in; line 4 (local all all trust) lets everyone in
        transport: line 2 (host app app 10.0.0.0/8 trust) serves plaintext
        replicas: none
    "#]]
    .assert_eq(&check(
        &[
            "hostssl all all all scram-sha-256",
            "host app app 10.0.0.0/8 trust",
            "local all postgres peer",
            "local all all trust",
        ],
        true,
    ));
}

#[test]
fn rules_that_no_connection_reaches_do_not_count() {
    // Plaintext is rejected above; the stricter rule above matches every connection of the weaker one.
    for lines in [
        &["hostnossl all,replication all all reject", "host all,replication all all scram-sha-256"][..],
        &["hostnossl all all 0.0.0.0/0 reject", "hostnossl all all ::/0 reject", "host all all all scram-sha-256"],
        &["hostnossl all all 0.0.0.0/0 reject", "hostnossl all all ::/0 reject", "host all all samenet md5"],
        &["hostssl all all all scram-sha-256", "hostssl all app 10.0.0.0/8 trust", "host all all all reject"],
        &["hostssl all all all trust clientcert=verify-full"],
        // A name that is there twice.
        &["hostnossl all,all all,all all reject", "host all all all scram-sha-256"],
    ] {
        assert_eq!(check(lines, true), NONE, "{lines:?}");
    }
    // `all` databases do not include replication, and 0.0.0.0/0 does not include ::/0.
    expect![[r#"
        authentication: line 2 (host replication all 127.0.0.1/32 trust) lets everyone in
        transport: line 4 (host all all all scram-sha-256) serves plaintext
        replicas: line 2 (host replication all 127.0.0.1/32 trust) serves replicas plaintext
    "#]]
    .assert_eq(&check(
        &[
            "hostnossl all all 127.0.0.1/32 reject",
            "host replication all 127.0.0.1/32 trust",
            "hostnossl all all 0.0.0.0/0 reject",
            "host all all all scram-sha-256",
        ],
        true,
    ));
}

#[test]
fn a_method_is_weak_by_where_the_password_goes_and_who_could_read_it() {
    let weak = |line: &str| {
        let rules = parsed(&[line], true).of_authentication();
        let words = rules.exceptions.first().and_then(|told| told.rsplit_once(") ")).map(|(_, words)| words.to_owned());
        (words.unwrap_or_default(), rules.findings.iter().map(|finding| finding.id).collect::<Vec<_>>().join(" "))
    };
    let none = || (String::new(), String::new());
    let no_password = |words: &str| (words.to_owned(), "PG-AUTHN-NO-PASSWORD".to_owned());
    let weak_method = |words: &str| (words.to_owned(), "PG-AUTHN-WEAK-METHOD".to_owned());
    assert_eq!(weak("hostssl all all all trust"), no_password("lets everyone in"));
    let some_certificate = no_password("lets anyone with a certificate log in as any account");
    assert_eq!(weak("hostssl all all all trust clientcert=verify-ca"), some_certificate);
    assert_eq!(weak("hostssl all all all trust clientcert=verify-full"), none());
    assert_eq!(weak("host all all all ident"), no_password("trusts the client's machine"));
    assert_eq!(weak("local all all ident"), none(), "the kernel says it");
    let directory = weak_method("has passwords sent to the directory in the clear");
    assert_eq!(weak("hostssl all all all ldap"), directory);
    for encrypted in ["ldaptls=true", "ldapscheme=ldaps"] {
        assert_eq!(weak(&format!("hostssl all all all ldap {encrypted}")), none());
    }
    for method in ["password", "ldap ldaptls=true", "pam", "bsd", "radius", "oauth issuer=https://i"] {
        let what = if method.starts_with("oauth") { "tokens" } else { "passwords" };
        let clear = weak_method(&format!("has {what} sent in the clear"));
        let open = ["host all all all", "hostnossl all all all", "hostnogssenc all all all", "host all all 10.0.0.0/8"];
        for exposed in open {
            assert_eq!(weak(&format!("{exposed} {method}")), clear, "{exposed} {method}");
        }
        let unexposed = [
            "hostssl all all all",
            "hostgssenc all all all",
            "local all all",
            "host all all 127.0.0.1/32",
            "host all all 127.0.0.0/8",
        ];
        for exposed in unexposed {
            assert_eq!(weak(&format!("{exposed} {method}")), none(), "{exposed} {method}");
        }
    }
    assert_eq!(weak("host all all all scram-sha-256"), none());
}

#[test]
fn a_directory_is_a_doubt_where_the_view_hides_how_it_is_asked() {
    let told = |options: &str, hides_ldaps: bool| {
        let line = format!("hostssl all all all ldap ldapserver=d{options}");
        let rules = Hba { hides_ldaps, ..parsed(&[line.as_str()], true) }.of_authentication();
        (rules.exceptions.len(), rules.doubts.len())
    };
    assert_eq!([told("", false), told("", true)], [(1, 0), (0, 1)]);
    assert_eq!([told(" ldaptls=true", false), told(" ldaptls=true", true)], [(0, 0); 2]);
    assert_eq!([120_022, 130_018, 150_010, 160_003, 170_002].map(hides_ldaps), [true; 5]);
    assert_eq!([130_019, 150_011, 170_003, 180_000].map(hides_ldaps), [false; 4]);
}

#[test]
fn rules_for_the_network_let_nobody_in_where_the_server_listens_on_no_address() {
    let lines = ["local all all peer", "host all all all trust", "host replication all all trust"];
    let hba = parsed(&lines, true).without_network();
    let words = [hba.of_authentication(), hba.of_transport(), hba.of_replication()].map(|rules| rules.words());
    let told = "1 rule of pg_hba.conf for the Unix socket (listen_addresses is empty): no exception";
    assert_eq!(words, [told; 3]);
}

#[test]
fn names_of_any_realm_are_a_doubt() {
    let doubts = |method: &str| {
        let line = format!("host all all all {method}");
        parsed(&[line.as_str()], true).of_authentication().doubts
    };
    let told = ["whether line 1 lets in users of other realms (include_realm=0 without krb_realm)"];
    assert_eq!(doubts("gss"), told);
    assert_eq!(doubts("sspi map=m"), told);
    for kept in ["gss include_realm=true", "gss krb_realm=EXAMPLE.COM", "scram-sha-256"] {
        assert!(doubts(kept).is_empty(), "{kept}");
    }
}

#[test]
fn each_hop_has_its_own_rules() {
    expect![[r#"
        authentication: none
        transport: none
        replicas: line 2 (host replication all all scram-sha-256) serves replicas plaintext
    "#]]
    .assert_eq(&check(&["hostssl all all all scram-sha-256", "host replication all all scram-sha-256"], true));
    expect![[r#"
        authentication: none
        transport: line 1 (host all all all scram-sha-256) serves plaintext
        replicas: none
    "#]]
    .assert_eq(&check(&["host all all all scram-sha-256", "hostssl replication all all scram-sha-256"], true));
    // One line for both; a line above it matches only the clients.
    expect![[r#"
        authentication: none
        transport: none
        replicas: line 2 (host shop,replication all all scram-sha-256) serves replicas plaintext
    "#]]
    .assert_eq(&check(&["hostnossl all all all reject", "host shop,replication all all scram-sha-256"], true));
}

#[test]
fn without_tls_its_rules_let_nobody_in() {
    assert_eq!(check(&["hostssl all all all trust"], false), NONE);
}

#[test]
fn a_file_that_could_not_be_loaded_is_a_doubt() {
    let row = r#"{"line_number": 3, "type": null, "error": "end-of-line before authentication method"}"#;
    let hba = Hba::of([row].into_iter(), true).expect("rules");
    expect!["0 rules of pg_hba.conf: no exception; not judged: line 3 (end-of-line before authentication method): the file was not loaded"]
        .assert_eq(&hba.of_transport().words());
}

#[test]
fn a_rule_that_is_of_no_use_is_loaded() {
    let row = r#"{"type": "hostssl", "error": "hostssl record cannot match because SSL is disabled", "address": "all",
        "database": ["all"], "user_name": ["all"], "auth_method": "md5", "line_number": 9}"#;
    let hba = Hba::of([row].into_iter(), false).expect("rules");
    expect!["1 rule of pg_hba.conf: no exception"].assert_eq(&hba.of_transport().words());
}

fn check_whole(lines: &[&str], expect: Expect) {
    let whole = parsed(lines, true).in_plaintext().expect("a file that is loaded");
    let line = |one: &Exception| format!("{}{}\n", one.text, if one.loopback { " (loopback)" } else { "" });
    expect.assert_eq(&whole.exceptions.iter().map(line).collect::<String>());
}

#[test]
fn every_line_that_takes_plaintext_is_one() {
    check_whole(
        &[
            "local all all trust",
            "hostssl all all all scram-sha-256",
            "host all all 127.0.0.1/32 md5",
            "hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256",
            "host all other samenet trust",
            "hostgssenc all all all gss",
        ],
        expect![[r#"
            line 3: host all all 127.0.0.1/32 md5 (loopback)
            line 4: hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256
            line 5: host all other samenet trust
        "#]],
    );
}

#[test]
fn what_is_refused_before_is_none() {
    check_whole(
        &[
            "hostnossl all all 0.0.0.0/0 reject",
            "hostnossl all all ::/0 reject",
            "host all all all md5",
            "host all other 10.1.0.0/16 trust",
            "host replication all all md5",
            "host all all db.example md5",
        ],
        expect![""],
    );
    // In the opposite order no connection is refused, and half of the addresses are not all.
    check_whole(
        &["host all all all md5", "hostnossl all all all reject"],
        expect![[r#"
            line 1: host all all all md5
        "#]],
    );
    check_whole(
        &[
            "hostnossl all all 10.0.0.0/9 reject",
            "host all all 10.64.0.0/10 md5",
            "host all all 10.128.0.0/9 md5",
            "host shop all 10.0.0.0/8 md5",
        ],
        expect![[r#"
            line 3: host all all 10.128.0.0/9 md5
            line 4: host shop all 10.0.0.0/8 md5
        "#]],
    );
}

#[test]
fn a_file_with_an_error_is_not_what_the_server_goes_by() {
    let good = row(1, "host all all all md5");
    let broken = r#"{"line_number": 7, "type": null, "error": "invalid connection type \"hots\""}"#;
    let hba = Hba::of([good.as_str(), broken].into_iter(), true).expect("rules");
    expect!["wrong answer: pg_hba.conf, line 7: invalid connection type \"hots\""]
        .assert_eq(&hba.in_plaintext().expect_err("an error").to_string());
}

#[test]
fn a_file_that_may_not_be_loaded_is_a_doubt_beside_what_it_says() {
    let hba = Hba { age: Some("changed".to_owned()), ..parsed(&["host all all all md5"], true) };
    let whole = hba.in_plaintext().expect("rules");
    assert_eq!((whole.exceptions.len(), whole.doubts), (1, vec!["changed".to_owned()]));
}

#[test]
fn a_strict_rule_is_shadowed_by_a_lax_one_alone() {
    let shadowed = |lines: &[&str], tls| parsed(lines, tls).shadowed().iter().map(|rule| rule.line).collect::<Vec<_>>();
    let open = "local all all trust";
    assert_eq!(shadowed(&["host all all all trust", "hostssl all app all cert"], true), [2]);
    assert!(shadowed(&["host all all all md5", "hostssl all app all cert", open], true).is_empty());
    assert!(shadowed(&["host all all all reject", "hostssl all app all cert", open], true).is_empty());
    // Without TLS no connection reaches it, whatever rules are above it.
    assert!(shadowed(&[open, "hostssl all all all scram-sha-256"], false).is_empty());
}

#[test]
fn of_five_thousand_rules_each_counts() {
    let line = |number: usize| format!("hostssl db{} user{number} 10.0.0.0/8 scram-sha-256", number % 50);
    let mut lines: Vec<String> = (0..5_000).map(line).collect();
    lines.push("hostssl db7 user7 10.0.0.0/9 trust".to_owned());
    lines.push("hostssl db8 user7 10.0.0.0/9 trust".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expect![[r#"
        authentication: line 5002 (hostssl db8 user7 10.0.0.0/9 trust) lets everyone in
        transport: none
        replicas: none
    "#]]
    .assert_eq(&check(&lines, true));
}

/// Whether `rule` matches all connections by `way` to `database` as `user` from `range`.
fn takes(rule: &Rule, way: Way, database: &str, user: &str, range: &Range) -> bool {
    let holds = |list: &[String], name: &str| list.iter().any(|found| found == name);
    let databases = holds(&rule.databases, database) || database != "replication" && holds(&rule.databases, "all");
    let users = holds(&rule.users, user) || holds(&rule.users, "all");
    let covers = |own: &Range| match (own, range) {
        (Range::Net(own, length), Range::Net(other, longer)) => {
            let first = |address: &std::net::IpAddr| match address {
                std::net::IpAddr::V4(address) => u64::from(address.to_bits()).checked_shr(32 - u32::from(*length)),
                std::net::IpAddr::V6(_) => Some(0),
            };
            length <= longer && own.is_ipv4() == other.is_ipv4() && first(own) == first(other)
        }
        (own, other) => own == other,
    };
    rule.ways(true).any(|own| own == way) && databases && users && rule.ranges.iter().any(covers)
}

#[test]
fn logical_replicas_come_as_clients_do() {
    let hba = parsed(&["hostssl all tithe 0.0.0.0/0 scram-sha-256", "host all sub 10.0.0.0/8 scram-sha-256"], true);
    assert_eq!((hba.of_replication().exceptions.len(), hba.of_logical_replication().exceptions.len()), (0, 1));
    let hba = parsed(&["host replication sub 10.0.0.0/8 scram-sha-256"], true);
    assert_eq!((hba.of_replication().exceptions.len(), hba.of_logical_replication().exceptions.len()), (1, 1));
}

#[test]
fn a_mask_with_gaps_contains_no_range() {
    let below = row(2, "host all all 0.0.0.0/0 scram-sha-256");
    let under = |mask: &str| {
        let above = row(1, "hostnossl all all 0.0.0.0/0 reject");
        let above = above.replace(r#""netmask":"0.0.0.0""#, &format!(r#""netmask":"{mask}""#));
        let hba = Hba::of([above.as_str(), &below].into_iter(), true).expect("rules");
        (hba.of_transport().exceptions.len(), hba.rules[0].text())
    };
    assert_eq!(under("0.0.0.0"), (0, "hostnossl all all 0.0.0.0/0 reject".to_owned()));
    assert_eq!(under("0.0.0.1"), (1, "hostnossl all all 0.0.0.0 0.0.0.1 reject".to_owned()));
    assert_eq!(under("255.0.255.0").0, 1);
    assert_eq!(under("255.255.0.0"), (1, "hostnossl all all 0.0.0.0/16 reject".to_owned()));
}

#[test]
fn quoted_keywords_are_a_doubt_where_they_matter() {
    let decoy = ["host all tithe all scram-sha-256", "host all all all scram-sha-256", "host all all all trust"];
    let usual = ["local all all peer", "hostssl all all all scram-sha-256", "host all all all reject"];
    let refused = || Err(Fault::Refused("pg_read_file".to_owned()));
    let doubts = |lines: &[&str], files: Result<String, Fault>| {
        let mut hba = parsed(lines, true);
        hba.quoted = hba.doubt_of_quotes(files);
        (hba.of_authentication().doubts, hba.in_plaintext().expect("loaded").doubts)
    };
    let told = |doubt: &str| (vec![doubt.to_owned()], vec![doubt.to_owned()]);
    assert_eq!(doubts(&decoy, Ok(String::new())), (vec![], vec![]));
    let quoted = "quoted words of /etc/pg_hba.conf, which are names and look like keywords";
    assert_eq!(doubts(&usual, Ok("/etc/pg_hba.conf".to_owned())), told(quoted));
    let unknown = "whether words of pg_hba.conf are quoted (pg_read_file: refused: pg_read_file)";
    assert_eq!(doubts(&decoy, refused()), told(unknown));
    assert_eq!(doubts(&usual, refused()), (vec![], vec![]));
}

proptest! {
    /// The same as by going through the rules one by one.
    #[test]
    fn a_connection_gets_past_the_rules_before_as_one_by_one(
        lines in prop::collection::vec(
            ("host|hostssl|hostnossl", "all|a|b|replication|a,b", "all|u|v|u,v", "all|0.0.0.0/0|10.0.0.0/8|10.128.0.0/9|::/0|samenet"),
            0..12,
        ),
    ) {
        let lines: Vec<String> =
            lines.iter().map(|(kind, databases, users, place)| format!("{kind} {databases} {users} {place} md5")).collect();
        let hba = parsed(&lines.iter().map(String::as_str).collect::<Vec<_>>(), true);
        for (number, rule) in hba.rules.iter().enumerate() {
            let taken = |way, database: &str, user: &str, range: &Range| {
                hba.rules[..number].iter().any(|rule| takes(rule, way, database, user, range))
            };
            let left = |(hop, way): &(Hop, Way)| rule.databases_of(*hop).any(|database| rule.users.iter().any(|user| {
                rule.ranges.iter().any(|range| {
                    let of_name = matches!(range, Range::Named(_))
                        && rule::EVERYWHERE.iter().all(|range| taken(*way, database, user, range));
                    !taken(*way, database, user, range) && !of_name
                })
            }));
            prop_assert_eq!(&hba.left[number], &rule.reach(true).filter(left).collect::<Vec<_>>());
        }
    }
}
