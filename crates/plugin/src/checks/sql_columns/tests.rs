use expect_test::{Expect, expect};

use super::*;
use crate::{checks::scan::File, setup::Transport, simulated::sql_bench::SqlBench, sql::Sensitivity};

#[test]
fn runs_of_numbers_are_looked_for_in_every_form_and_short_ones_are_not() {
    assert!(forms(&[1, 2], ColumnType::Integer).is_empty() && forms(&[1], ColumnType::Long).is_empty());
    let all = forms(&[1, 2, 3], ColumnType::Integer);
    let told: Vec<String> = all.iter().map(|form| form.escape_ascii().to_string()).collect();
    expect![[r"
        \x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03
        \x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00
        \x80\x00\x00\x01\x80\x00\x00\x02\x80\x00\x00\x03
        \x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x03"]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn what_is_not_found_is_protected_only_where_it_could_have_been() {
    let report = |bytes| Report { files: 1, bytes, ..Report::default() };
    let refused = || Err(Fault::Refused("no right".to_owned()));
    let unknown = |words: &str| Observation::Unknown(words.to_owned());
    let protected = Observation::Protected("none of 9 canaries in 1 file, 4.1 kB".to_owned());
    assert_eq!(conclude_on_disk(&report(4096), 9, Ok(()), true), protected);
    let words = "the server could not be made to write the tables: refused: no right";
    assert_eq!(conclude_on_disk(&report(4096), 9, refused(), true), unknown(words));
    assert_eq!(conclude_on_disk(&report(0), 9, Ok(()), true), unknown("nothing is in these files yet"));
    let words = "no encrypted column holds a value long enough to search for";
    assert_eq!(conclude_on_disk(&report(4096), 0, Ok(()), true), unknown(words));
    let unreadable = Report { unreadable: vec!["base/1: no".to_owned()], ..report(4096) };
    assert_eq!(conclude_on_disk(&unreadable, 9, Ok(()), true), unknown("cannot read base/1: no"));

    let canary = b"what a canary is";
    let found_in = |kind| {
        let file = File { path: "base/1".into(), name: "base/1".to_owned(), kind };
        let found = vec![(file, Needles::new([("canary", &canary[..])]).count(canary))];
        Report { found, ..report(4096) }
    };
    for (kind, protected) in [(FileKind::Data, true), (FileKind::Data, false), (FileKind::Journal, true)] {
        let exposed = conclude_on_disk(&found_in(kind), 9, refused(), protected);
        assert!(matches!(exposed, Observation::Exposed(_)), "{exposed:?}");
    }
    let control = conclude_on_disk(&found_in(FileKind::Journal), 9, Ok(()), false);
    assert_eq!(control, unknown("not in the data files; 1 canary found once, in base/1 (1)"));
}

#[test]
fn what_did_not_pass_is_protected_only_if_all_that_passed_was_kept() {
    let canaries = [b"what a canary is".to_vec(), b"what another is!".to_vec()];
    let talk = |sent: &[u8], received: &[u8], truncated: bool| Conversation {
        sent: sent.to_vec(),
        received: received.to_vec(),
        truncated,
    };
    let seen = |talks: &[Conversation]| conclude_on_wire(talks, &canaries);
    let quiet = || talk(b"SELECT", b"ok", false);
    assert_eq!(seen(&[quiet(), quiet()]), Observation::Protected("none of 2 canaries in 16 bytes".to_owned()));
    let unknown = |words: &str| Observation::Unknown(words.to_owned());
    for lost in [vec![], vec![talk(b"", b"", false)], vec![quiet(), talk(b"SELECT", b"", true)]] {
        assert_eq!(seen(&lost), unknown("not everything that passed was kept"), "{lost:?}");
    }
    assert_eq!(conclude_on_wire(&[quiet()], &[]), unknown(NOT_LONG_ENOUGH));
    for exposed in [talk(&canaries[0], b"", false), talk(b"", &canaries[1], false), talk(b"", &canaries[1], true)] {
        assert_eq!(seen(&[quiet(), exposed]), Observation::Exposed("1 canary found once".to_owned()));
    }
}

#[test]
fn what_stands_in_the_clear_or_repeats_is_exposed() {
    let column = Column::new("x", ColumnType::Text(64), Sensitivity::Remark);
    let value = Value::Text(b"sixteen bytes ..".repeat(2));
    let ramp = |from: u8| -> Vec<u8> { (from..from + 48).collect() };
    let told = |treatment, stored: [&Vec<u8>; 2]| {
        let mut seen = Seen::default();
        seen.column(&column, Some(treatment), &value, stored, false);
        matches!(seen.conclude(("", "")), Observation::Protected(_))
    };
    let (one, other) = (ramp(0), ramp(100));
    assert!(told(Treatment::Randomised, [&one, &other]));
    assert!(!told(Treatment::Randomised, [&one, &one]), "equal values look equal");
    assert!(!told(Treatment::Randomised, [&[7; 48].to_vec(), &other]), "a block repeats");
    assert!(!told(Treatment::Randomised, [&value.delivered(), &other]), "plaintext");
    assert!(told(Treatment::Deterministic, [&one, &one]));
    assert!(!told(Treatment::Deterministic, [&one, &other]), "equal values look different");
}

/// A table with a key of two columns, one of whose runs of numbers is next to the key, and one without a key.
static TABLES: [SqlTable; 2] = [
    SqlTable {
        name: "thing",
        columns: &[
            Column::new("t_id", ColumnType::Integer, Sensitivity::Identifier).compared("thing"),
            Column::new("t_part", ColumnType::Integer, Sensitivity::Identifier).compared("part"),
            Column::new("t_stock", ColumnType::Integer, Sensitivity::Figure),
            Column::new("t_price", ColumnType::Long, Sensitivity::Figure),
            Column::new("t_maker", ColumnType::Text(40), Sensitivity::Identifier).compared("maker"),
            Column::new("t_name", ColumnType::Text(24), Sensitivity::Remark),
            Column::new("t_code", ColumnType::Text(9), Sensitivity::Remark),
        ],
        key: &["t_part", "t_id"],
        indexes: &[],
    },
    SqlTable {
        name: "note",
        columns: &[
            Column::new("n_thing", ColumnType::Integer, Sensitivity::Identifier).compared("thing"),
            Column::new("n_text", ColumnType::Text(40), Sensitivity::Remark),
        ],
        key: &[],
        indexes: &[],
    },
];

fn subject(share: f64) -> Subject {
    Subject { share, names: Vec::new(), tables: &TABLES }
}

/// The observations of `check` on arms that encrypt nothing, everything, or less than claimed; each as the protected
/// arm, and as the plain one if that makes a difference. No rows may be left.
fn table(check: &dyn Check, prepare: impl Fn(SqlBench) -> SqlBench, expected: Expect) {
    let arms = [
        ("nothing encrypted", SqlBench::plain()),
        ("all", SqlBench::encrypted(1.0)),
        ("identifiers alone", SqlBench::encrypted(0.2)),
        ("wrapped alone", SqlBench::encrypted(0.0)),
    ];
    let mut text = format!("{:?} {}\n", check.entry(), check.claim());
    for (name, arm) in arms {
        let arm = prepare(arm);
        let before = arm.rows();
        let (on, off) = (arm.look(check, true), arm.look(check, false));
        assert_eq!(arm.rows(), before, "{name}: rows are left");
        text += &format!("{name}: {on:?}\n");
        if on != off {
            text += &format!("  as the plain arm: {off:?}\n");
        }
    }
    expected.assert_eq(&text);
}

/// The same with a row of the workload's own in each table.
fn filled(arm: SqlBench) -> SqlBench {
    let mut context = arm.bench.context();
    context.database = &arm.database;
    let all = subject(1.0);
    let mut session = all.connect(&context, &arm.bench.server, &arm.bench.setup).unwrap();
    let mut source = Source::new(&context, "a workload");
    TABLES.iter().for_each(|table| Row::draw(table, &mut source).write(&all, session.as_mut()).unwrap());
    arm
}

#[test]
fn ciphertext_is_told_from_what_was_sent() {
    table(
        &SqlCiphertext(subject(1.0)),
        filled,
        expect![[r#"
        CheckEntry { id: "ciphertext-seen", role: Claim, control: PlainArm } the server holds ciphertext in encrypted columns, randomised unless the column is compared
        nothing encrypted: (Exposed("7 columns hold what was sent, the first of them t_id"), Some("in tables with a key"))
        all: (Protected("4 columns randomised (AES-256-GCM), no block of 16 bytes twice; 3 deterministic (AES-256-SIV), which show equal values; 0 in the clear"), Some("in tables with a key"))
        identifiers alone: (Exposed("4 columns hold what was sent, the first of them t_stock"), Some("in tables with a key"))
        wrapped alone: (Exposed("7 columns hold what was sent, the first of them t_id"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlCiphertext(subject(0.2)),
        filled,
        expect![[r#"
        CheckEntry { id: "ciphertext-seen", role: Claim, control: PlainArm } the server holds ciphertext in encrypted columns, randomised unless the column is compared
        nothing encrypted: (Exposed("3 columns hold what was sent, the first of them t_id"), Some("in tables with a key"))
        all: (Protected("0 columns randomised (AES-256-GCM), no block of 16 bytes twice; 3 deterministic (AES-256-SIV), which show equal values; 4 in the clear"), Some("in tables with a key"))
        identifiers alone: (Protected("0 columns randomised (AES-256-GCM), no block of 16 bytes twice; 3 deterministic (AES-256-SIV), which show equal values; 4 in the clear"), Some("in tables with a key"))
        wrapped alone: (Exposed("3 columns hold what was sent, the first of them t_id"), Some("in tables with a key"))
    "#]],
    );
}

#[test]
fn a_server_that_does_not_keep_what_it_is_sent_proves_nothing() {
    let cuts = |mut arm: SqlBench| {
        arm.database.keeps = |bytes| bytes[..bytes.len().min(20)].to_vec();
        arm
    };
    table(
        &SqlCiphertext(subject(1.0)),
        cuts,
        expect![[r#"
        CheckEntry { id: "ciphertext-seen", role: Claim, control: PlainArm } the server holds ciphertext in encrypted columns, randomised unless the column is compared
        nothing encrypted: (Unknown("thing is not read as it was written"), Some("in tables with a key"))
        all: (Unknown("wrong answer: a value of t_id does not decrypt"), Some("in tables with a key"))
        identifiers alone: (Unknown("wrong answer: a value of t_id does not decrypt"), Some("in tables with a key"))
        wrapped alone: (Unknown("thing is not read as it was written"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| cuts(arm.wired()),
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Unknown("rows are not read as they were written"), Some("in tables with a key"))
        all: (Unknown("wrong answer: a value of t_id does not decrypt"), Some("in tables with a key"))
        identifiers alone: (Unknown("wrong answer: a value of t_id does not decrypt"), Some("in tables with a key"))
        wrapped alone: (Unknown("rows are not read as they were written"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlWrapperIdle(subject(1.0)),
        cuts,
        expect![[r#"
        CheckEntry { id: "wrapper-idle", role: Claim, control: Own } the sessions are wrapped and nothing is encrypted
        nothing encrypted: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        all: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        identifiers alone: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        wrapped alone: (Exposed("thing does not hold what was sent"), None)
    "#]],
    );
}

#[test]
fn another_key_must_not_open_what_is_there() {
    table(
        &SqlWrongKey(subject(1.0)),
        filled,
        expect![[r#"
        CheckEntry { id: "wrong-column-key", role: Claim, control: PlainArm } the arm's key opens encrypted columns, another key does not
        nothing encrypted: (Exposed("t_id is read without a key"), None)
        all: (Protected("with another key: a value of t_id does not decrypt"), None)
        identifiers alone: (Protected("with another key: a value of t_id does not decrypt"), None)
        wrapped alone: (Exposed("t_id is read with another key"), None)
    "#]],
    );
    table(
        &SqlWrongKey(subject(1.0)),
        |arm| arm,
        expect![[r#"
        CheckEntry { id: "wrong-column-key", role: Claim, control: PlainArm } the arm's key opens encrypted columns, another key does not
        nothing encrypted: (Unknown("thing is empty"), None)
        all: (Unknown("thing is empty"), None)
        identifiers alone: (Unknown("thing is empty"), None)
        wrapped alone: (Unknown("thing is empty"), None)
    "#]],
    );
    table(
        &SqlWrongKey(subject(0.0)),
        filled,
        expect![[r#"
        CheckEntry { id: "wrong-column-key", role: Claim, control: PlainArm } the arm's key opens encrypted columns, another key does not
        nothing encrypted: (Unknown("no column is encrypted"), None)
        all: (Unknown("no column is encrypted"), None)
        identifiers alone: (Unknown("no column is encrypted"), None)
        wrapped alone: (Unknown("no column is encrypted"), None)
    "#]],
    );
}

#[test]
fn what_was_written_is_looked_for_in_files() {
    table(
        &SqlDiskCanary(subject(1.0)),
        filled,
        expect![[r#"
        CheckEntry { id: "disk-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable in the data files, journal and logs
        nothing encrypted: (Exposed("4 canaries found 8 times, in data/tables (8)"), Some("in tables with a key"))
        all: (Protected("none of 10 canaries in 2 files, 887 B"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 2 times, in data/tables (2)"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 8 times, in data/tables (8)"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlDiskCanary(subject(0.2)),
        |arm| arm,
        expect![[r#"
        CheckEntry { id: "disk-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable in the data files, journal and logs
        nothing encrypted: (Exposed("1 canary found 4 times, in data/tables (4)"), Some("in tables with a key"))
        all: (Protected("none of 1 canaries in 2 files, 530 B"), Some("in tables with a key"))
        identifiers alone: (Protected("none of 1 canaries in 2 files, 298 B"), Some("in tables with a key"))
        wrapped alone: (Exposed("1 canary found 4 times, in data/tables (4)"), Some("in tables with a key"))
    "#]],
    );
    let none = |mut arm: SqlBench| {
        arm.bench.server.paths = Default::default();
        arm.attached()
    };
    table(
        &SqlDiskCanary(subject(1.0)),
        none,
        expect![[r#"
        CheckEntry { id: "disk-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable in the data files, journal and logs
        nothing encrypted: (OutOfReach("no such file of the server can be seen from here"), None)
        all: (OutOfReach("no such file of the server can be seen from here"), None)
        identifiers alone: (OutOfReach("no such file of the server can be seen from here"), None)
        wrapped alone: (OutOfReach("no such file of the server can be seen from here"), None)
    "#]],
    );
    let refuses = |mut arm: SqlBench| {
        arm.database.written_out = Err(Fault::Refused("no right".to_owned()));
        arm
    };
    table(
        &SqlDiskCanary(subject(1.0)),
        refuses,
        expect![[r#"
        CheckEntry { id: "disk-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable in the data files, journal and logs
        nothing encrypted: (Exposed("4 canaries found 8 times, in data/tables (8)"), Some("in tables with a key"))
        all: (Unknown("the server could not be made to write the tables: refused: no right"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 2 times, in data/tables (2)"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 8 times, in data/tables (8)"), Some("in tables with a key"))
    "#]],
    );
}

#[test]
fn what_was_written_is_looked_for_on_the_wire() {
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| arm.wired(),
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
        all: (Protected("none of 10 canaries in 1454 bytes"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 4 times"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| arm,
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Unknown("there is no wire: the database is embedded"), Some("in tables with a key"))
        all: (Unknown("there is no wire: the database is embedded"), Some("in tables with a key"))
        identifiers alone: (Unknown("there is no wire: the database is embedded"), Some("in tables with a key"))
        wrapped alone: (Unknown("there is no wire: the database is embedded"), Some("in tables with a key"))
    "#]],
    );
    // Below TLS that the URL asks for and the arm does not, nothing is visible; plaintext is.
    let hello = |mut arm: SqlBench| {
        arm.database.opening = &[0x16, 3, 1, 0, 0xf5, 1, 0, 0, 0xf1, 3, 3, 0x42];
        arm
    };
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| arm.attached(),
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
        all: (Protected("none of 10 canaries in 1454 bytes"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 4 times"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| hello(arm.attached()),
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (OutOfReach("its URL asks for TLS, below which nothing else can be seen"), Some("in tables with a key"))
        all: (OutOfReach("its URL asks for TLS, below which nothing else can be seen"), Some("in tables with a key"))
        identifiers alone: (OutOfReach("its URL asks for TLS, below which nothing else can be seen"), Some("in tables with a key"))
        wrapped alone: (OutOfReach("its URL asks for TLS, below which nothing else can be seen"), Some("in tables with a key"))
    "#]],
    );
    table(
        &SqlWireCanary(subject(1.0)),
        |arm| hello(arm.wired()),
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
        all: (Protected("none of 10 canaries in 1468 bytes"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 4 times"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
    "#]],
    );
    let with_tls = |mut arm: SqlBench| {
        arm.bench.setup.transport = Transport::tls(crate::setup::TlsVersion::V1_3, false);
        hello(arm.attached())
    };
    table(
        &SqlWireCanary(subject(1.0)),
        with_tls,
        expect![[r#"
        CheckEntry { id: "wire-canary", role: Claim, control: PlainArm } no value of an encrypted column is readable on the wire
        nothing encrypted: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
        all: (Protected("none of 10 canaries in 1468 bytes"), Some("in tables with a key"))
        identifiers alone: (Exposed("1 canary found 4 times"), Some("in tables with a key"))
        wrapped alone: (Exposed("4 canaries found 16 times"), Some("in tables with a key"))
    "#]],
    );
}

#[test]
fn wrapping_alone_leaves_everything_as_it_was_sent() {
    table(
        &SqlWrapperIdle(subject(0.0)),
        filled,
        expect![[r#"
        CheckEntry { id: "wrapper-idle", role: Claim, control: Own } the sessions are wrapped and nothing is encrypted
        nothing encrypted: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        all: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        identifiers alone: (Exposed("this arm's sessions are not wrapped with a share of 0"), None)
        wrapped alone: (Protected("rows of 1 tables are in the server as they were sent"), None)
    "#]],
    );
}
