//! Each kind of claim on servers that confirm it, that refute it, and that cannot show it.

use expect_test::{Expect, expect};

use super::*;
use crate::simulated::sql_bench::{Answers, SqlBench};

fn no() -> Result<Vec<Row>, Fault> {
    Err(Fault::Server("permission denied".to_owned()))
}

fn other() -> Result<Vec<Row>, Fault> {
    Err(Fault::Server("no such table".to_owned()))
}

fn rows(rows: &[&[Option<&str>]]) -> Result<Vec<Row>, Fault> {
    let row = |row: &&[Option<&str>]| row.iter().map(|value| value.map(str::to_owned)).collect();
    Ok(rows.iter().map(row).collect())
}

fn arm(answers: Answers) -> SqlBench {
    let mut arm = SqlBench::plain();
    arm.database.answers = Some(answers);
    arm
}

/// The result of `claim` on each server, on the protected arm and, if that differs, on the plain one.
fn table(claim: Claim, servers: &[(&str, Answers)], expected: Expect) {
    let check = check(&claim, &Probes::NONE);
    let mut text = format!("{:?} {}\n", check.entry(), check.claim());
    for (name, answers) in servers {
        let arm = arm(*answers);
        let (on, off) = (arm.look(check.as_ref(), true).0, arm.look(check.as_ref(), false).0);
        text += &format!("{name}: {on:?}\n");
        if on != off {
            text += &format!("  on the plain arm: {off:?}\n");
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn a_statement_says_it_or_does_not() {
    let says = |says| Claim::Statement { statement: "SELECT a".to_owned(), says };
    // A client that did not run the careful statements first could change what it queries.
    let servers: [(&str, Answers); 5] = [
        ("one row", |_, is_careful, sql| {
            assert!(is_careful && sql == "SELECT a");
            rows(&[&[Some("1"), None]])
        }),
        ("two rows", |_, _, _| rows(&[&[Some("1"), None], &[Some("2"), Some("b")]])),
        ("no rows", |_, _, _| rows(&[])),
        ("refuses", |_, _, _| no()),
        ("fails otherwise", |_, _, _| other()),
    ];
    table(
        says(Says::Equals("1, NULL; 2, b".to_owned())),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: PlainArm } `SELECT a` answers `1, NULL; 2, b`
        one row: Exposed("it answers 1, NULL")
        two rows: Protected("it answers 1, NULL; 2, b")
          on the plain arm: Protected("it answers 1, NULL; 2, b: the claim holds on the plain arm, too")
        no rows: Exposed("it returns no rows")
        refuses: Unknown("the statement failed: server: permission denied")
        fails otherwise: Unknown("the statement failed: server: no such table")
    "#]],
    );
    table(
        says(Says::Matches("1,*".to_owned())),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: PlainArm } `SELECT a` answers with text like `1,*`
        one row: Protected("it answers 1, NULL")
          on the plain arm: Protected("it answers 1, NULL: the claim holds on the plain arm, too")
        two rows: Protected("it answers 1, NULL; 2, b")
          on the plain arm: Protected("it answers 1, NULL; 2, b: the claim holds on the plain arm, too")
        no rows: Exposed("it returns no rows")
        refuses: Unknown("the statement failed: server: permission denied")
        fails otherwise: Unknown("the statement failed: server: no such table")
    "#]],
    );
    table(
        says(Says::Rows(1)),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: PlainArm } `SELECT a` brings 1 row
        one row: Protected("it answers 1, NULL")
          on the plain arm: Protected("it answers 1, NULL: the claim holds on the plain arm, too")
        two rows: Exposed("it answers 1, NULL; 2, b")
        no rows: Exposed("it returns no rows")
        refuses: Unknown("the statement failed: server: permission denied")
        fails otherwise: Unknown("the statement failed: server: no such table")
    "#]],
    );
    table(
        says(Says::FailsWith("denied".to_owned())),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: PlainArm } `SELECT a` fails with `denied`
        one row: Exposed("it answers 1, NULL")
        two rows: Exposed("it answers 1, NULL; 2, b")
        no rows: Exposed("it returns no rows")
        refuses: Protected("server: permission denied")
          on the plain arm: Protected("server: permission denied: the claim holds on the plain arm, too")
        fails otherwise: Unknown("the statement failed: server: no such table")
    "#]],
    );
}

#[test]
fn another_account_is_refused_what_a_client_is_not() {
    let claim = NamedCheck::RefusedAs {
        account: "eve".to_owned(),
        statement: "SELECT a".to_owned(),
        words: "denied".to_owned(),
    };
    let servers: [(&str, Answers); 4] = [
        ("refuses eve", |account, _, _| if account == Some("eve") { no() } else { rows(&[]) }),
        ("refuses nobody", |_, _, _| rows(&[&[Some("1")]])),
        ("refuses everybody", |_, _, _| no()),
        ("fails otherwise", |account, _, _| if account == Some("eve") { other() } else { rows(&[]) }),
    ];
    table(
        Claim::Check(claim),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: Own } `SELECT a` as eve fails with `denied`, and not as a measured client (the plain arm is not asked)
        refuses eve: Protected("server: permission denied")
        refuses nobody: Exposed("it answers 1")
        refuses everybody: Unknown("as a measured client it fails, too: server: permission denied")
        fails otherwise: Unknown("server: no such table")
    "#]],
    );
}

#[test]
fn what_was_replaced_and_what_was_removed_are_both_found() {
    // The value that an update replaced is queried first.
    fn is_first(sql: &str) -> bool {
        use std::{cell::RefCell, collections::BTreeMap};
        thread_local! {
            static SEEN: RefCell<BTreeMap<String, bool>> = const { RefCell::new(BTreeMap::new()) };
        }
        SEEN.with_borrow_mut(|seen| {
            let is_first = seen.len().is_multiple_of(2);
            *seen.entry(sql.to_owned()).or_insert(is_first)
        })
    }
    let claim = NamedCheck::RemovedFound { statement: "FIND {canary}".to_owned() };
    let servers: [(&str, Answers); 5] = [
        ("finds both", |_, is_careful, sql| {
            assert!(is_careful && sql.starts_with("FIND ") && sql.len() > 100, "{sql}");
            rows(&[&[None]])
        }),
        ("finds none", |_, _, _| rows(&[])),
        ("finds what was replaced", |_, _, sql| if is_first(sql) { rows(&[&[None]]) } else { rows(&[]) }),
        ("fails", |_, _, _| other()),
        ("fails at what was removed", |_, _, sql| if is_first(sql) { rows(&[&[None]]) } else { other() }),
    ];
    table(
        Claim::Check(claim),
        &servers,
        expect![[r#"
        CheckEntry { id: "your-claim", role: Claim, control: PlainArm } `FIND {canary}` finds what a client replaced and removed
        finds both: Protected("both are found")
          on the plain arm: Protected("both are found: the claim holds on the plain arm, too")
        finds none: Exposed("the value that an update replaced is not found")
        finds what was replaced: Exposed("the value that went with its row is not found")
        fails: Unknown("server: no such table")
          on the plain arm: Exposed("server: no such table")
        fails at what was removed: Unknown("server: no such table")
          on the plain arm: Exposed("server: no such table")
    "#]],
    );
}

#[test]
fn lines_of_the_log_are_counted_and_passwords_asked_for_where_that_is_known() {
    struct Always;
    impl Check for Always {
        fn entry(&self) -> CheckEntry {
            CheckEntry::claim("always")
        }
        fn claim(&self) -> String {
            "x".to_owned()
        }
        fn observe(&self, _: &mut CheckContext<'_>) -> Result<Observation, Fault> {
            Ok(Observation::Protected("refused".to_owned()))
        }
    }
    static KNOWN: Probes = Probes {
        password: Some(|| Box::new(Always)),
        count_in_log: Some(|_, pattern| match pattern {
            "unreadable" => Ok(Err("the log cannot be read".to_owned())),
            pattern => Ok(Ok(pattern.len() as u64)),
        }),
    };
    let counted = |pattern: &str| Claim::Check(NamedCheck::CountedInLog { pattern: pattern.to_owned(), count: 4 });
    let claims =
        [counted("four"), counted("three"), counted("unreadable"), Claim::Check(NamedCheck::RefusedWithoutPassword)];
    let arm = arm(|_, _, _| rows(&[]));
    let mut text = String::new();
    for claim in claims {
        for probes in [&KNOWN, &Probes::NONE] {
            let check = check(&claim, probes);
            text += &format!("{}: {:?}\n", check.claim(), arm.look(check.as_ref(), true).0);
        }
        let check = check(&claim, &KNOWN);
        text += &format!("  on the plain arm: {:?}\n", arm.look(check.as_ref(), false).0);
    }
    expect![[r#"
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `four` into the log: Protected("4 such lines")
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `four` into the log: Unknown("Tithe does not read the log of SQL in memory")
          on the plain arm: Protected("4 such lines: the claim holds on the plain arm, too")
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `three` into the log: Exposed("5 such lines")
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `three` into the log: Unknown("Tithe does not read the log of SQL in memory")
          on the plain arm: Exposed("5 such lines")
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `unreadable` into the log: Unknown("the log cannot be read")
        100 statements each of INSERT, SELECT, UPDATE and DELETE bring 4 lines like `unreadable` into the log: Unknown("Tithe does not read the log of SQL in memory")
          on the plain arm: Unknown("the log cannot be read")
        clients without the password, and with a wrong one, are refused; the right one is served: Protected("refused")
        clients without the password, and with a wrong one, are refused; the right one is served: Unknown("SQL in memory has no passwords")
          on the plain arm: Protected("refused")
    "#]].assert_eq(&text);
}

#[test]
fn claims_by_name_look_where_they_say() {
    use FilePlace::*;
    let places: [&[FilePlace]; 4] = [&[Data], &[Journal], &[Logs], &[Data, Journal]];
    let mut text = String::new();
    for places in places {
        let of = [NamedCheck::CanaryNotInFiles, NamedCheck::ValuesNotInFiles, NamedCheck::RemovedNotInFiles];
        for named in of {
            let check = check(&Claim::Check(named(places.to_vec())), &Probes::NONE);
            text += &format!("{}: {}\n", check.id(), check.claim());
        }
    }
    let check = check(&Claim::Check(NamedCheck::NotOnTheWire), &Probes::NONE);
    text += &format!("{}: {}\n", check.id(), check.claim());
    expect![[r#"
        disk-canary: no key or field value is readable in the data files
        disk-canary: no field value is readable in the data files
        removed-canary: no key or field value of removed rows is readable in the data files
        journal-canary: no key or field value is readable in the journal
        journal-canary: no field value is readable in the journal
        removed-canary: no key or field value of removed rows is readable in the journal
        disk-canary: no key or field value is readable in the logs
        disk-canary: no field value is readable in the logs
        removed-canary: no key or field value of removed rows is readable in the logs
        disk-canary: no key or field value is readable in the data files and journal
        disk-canary: no field value is readable in the data files and journal
        removed-canary: no key or field value of removed rows is readable in the data files and journal
        wire-canary: no key or field value is readable on the wire
    "#]]
    .assert_eq(&text);
}
