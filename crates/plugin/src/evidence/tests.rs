//! The shared checks on arms of the simulated database, and what two observations prove together.

use std::{fs, io::Write};

use expect_test::{Expect, expect};

use super::*;
use crate::{
    checks::{
        canary::Targets, columns::*, disk_canary::DiskCanary, key_apart::KeyApart, logs_free::LogsFree, scan::Places,
        wire_canary::WireCanary,
    },
    setup::{Columns, Selection},
    simulated::test_bench::{Bench, credentials},
};

/// An arm whose first `share` of ten fields are encrypted by the client.
fn encrypted(share: f64) -> Bench {
    let mut setup = Setup::plain([].into(), credentials());
    setup.columns = Some(Columns::of_share(share, setup.credentials.key.clone()));
    Bench::of(setup, true)
}

/// The verdict of `check`, and its observations on `protected` and on a plain arm.
fn check(check: &dyn Check, protected: &Bench, expected: Expect) {
    let (on, off) = (protected.observe(check), Bench::plain().observe(check));
    let verdict = judge(check.entry().control, &on, Some(&off));
    let text = format!("{}: {}: {verdict:?}\n on: {on:?}\noff: {off:?}\n", check.id(), check.claim());
    expected.assert_eq(&text);
}

#[test]
fn a_check_proves_something_only_with_its_control() {
    let observations =
        [Observation::Protected("p".into()), Observation::Exposed("e".into()), Observation::Unknown("u".into())];
    let mut table = String::new();
    for control in [Control::PlainArm, Control::Own] {
        for protected in &observations {
            for plain in observations.iter().map(Some).chain([None]) {
                let told = plain.map_or("-", Observation::quotation);
                let verdict = judge(control, protected, plain);
                table += &format!("{control:?} protected {} plain {told}: {verdict:?}\n", protected.quotation());
            }
        }
    }
    expect![[r#"
        PlainArm protected p plain p: CannotTell
        PlainArm protected p plain e: Holds
        PlainArm protected p plain u: CannotTell
        PlainArm protected p plain -: CannotTell
        PlainArm protected e plain p: Fails
        PlainArm protected e plain e: Fails
        PlainArm protected e plain u: Fails
        PlainArm protected e plain -: Fails
        PlainArm protected u plain p: CannotTell
        PlainArm protected u plain e: CannotTell
        PlainArm protected u plain u: CannotTell
        PlainArm protected u plain -: CannotTell
        Own protected p plain p: Holds
        Own protected p plain e: Holds
        Own protected p plain u: Holds
        Own protected p plain -: Holds
        Own protected e plain p: Fails
        Own protected e plain e: Fails
        Own protected e plain u: Fails
        Own protected e plain -: Fails
        Own protected u plain p: CannotTell
        Own protected u plain e: CannotTell
        Own protected u plain u: CannotTell
        Own protected u plain -: CannotTell
    "#]]
    .assert_eq(&table);
}

#[test]
fn encrypted_columns_are_proven() {
    let all = encrypted(1.0);
    check(
        &CiphertextSeen::new(Selection::of_share(1.0), false),
        &all,
        expect![[r#"
        ciphertext-seen: the server holds randomised ciphertext for the values of encrypted fields: Holds
         on: Protected("fields 0 to 9: 124 bytes stored for 96 sent, no two alike, no block of 16 bytes twice; keys are in the clear")
        off: Exposed("20 of 20 values are in the server as they were sent")
    "#]],
    );
    check(
        &WrongColumnKey::new(Selection::of_share(1.0)),
        &all,
        expect![[r#"
            wrong-column-key: the arm's key opens encrypted fields, another key does not: Holds
             on: Protected("with another key: field 0 of key !canaryMo5CatQ6kPEWNrExPV4S8gJ2 does not decrypt")
            off: Exposed("the values are read without the arm's key")
        "#]],
    );
    check(
        &DiskCanary::new(Places::ALL, Targets::Fields(Selection::of_share(1.0))),
        &all,
        expect![[r#"
        disk-canary: no field value is readable in the data files, journal and logs: Holds
         on: Protected("none of 31 canaries in 1 file, 5.8 kB")
        off: Exposed("20 canaries found 20 times, in data/records (20)")
    "#]],
    );
    check(
        &KeyApart,
        &all,
        expect![[r#"
        key-apart: no file of the server or of its folder holds the data key: Holds
         on: Protected("no data key in 2 files, 5.8 kB; the marker was found")
        off: Protected("no data key in 2 files, 24 B; the marker was found")
    "#]],
    );
}

#[test]
fn a_share_of_the_columns_is_proven_and_no_more() {
    let some = encrypted(0.2);
    check(
        &CiphertextSeen::new(Selection::of_share(0.2), false),
        &some,
        expect![[r#"
        ciphertext-seen: the server holds randomised ciphertext for the values of encrypted fields: Holds
         on: Protected("fields 0 to 1: 124 bytes stored for 96 sent, no two alike, no block of 16 bytes twice; keys and fields 2 to 9 are in the clear")
        off: Exposed("4 of 4 values are in the server as they were sent")
    "#]],
    );
    check(
        &DiskCanary::new(Places::ALL, Targets::Fields(Selection::of_share(0.2))),
        &some,
        expect![[r#"
        disk-canary: no value of the first 20 % of the fields is readable in the data files, journal and logs: Holds
         on: Protected("none of 7 canaries in 1 file, 4.3 kB")
        off: Exposed("4 canaries found 4 times, in data/records (4)")
    "#]],
    );
    check(
        &DiskCanary::new(Places::ALL, Targets::Fields(Selection::of_share(0.3))),
        &some,
        expect![[r#"
        disk-canary: no value of the first 30 % of the fields is readable in the data files, journal and logs: Fails
         on: Exposed("2 canaries found 2 times, in data/records (2)")
        off: Exposed("6 canaries found 6 times, in data/records (6)")
    "#]],
    );
    check(
        &DiskCanary::new(Places::ALL, Targets::Everything),
        &some,
        expect![[r#"
        disk-canary: no key or field value is readable in the data files, journal and logs: Fails
         on: Exposed("18 canaries found 18 times, in data/records (18)")
        off: Exposed("22 canaries found 22 times, in data/records (22)")
    "#]],
    );
}

#[test]
fn a_share_that_rounds_to_no_field_proves_nothing() {
    let none = encrypted(0.04);
    check(
        &CiphertextSeen::new(Selection::of_share(0.04), false),
        &none,
        expect![[r#"
        ciphertext-seen: the server holds randomised ciphertext for the values of encrypted fields: CannotTell
         on: Unknown("the share of fields rounds to none")
        off: Unknown("the share of fields rounds to none")
    "#]],
    );
    check(
        &WrongColumnKey::new(Selection::of_share(0.04)),
        &none,
        expect![[r#"
        wrong-column-key: the arm's key opens encrypted fields, another key does not: CannotTell
         on: Unknown("the share of fields rounds to none")
        off: Unknown("the share of fields rounds to none")
    "#]],
    );
    check(
        &DiskCanary::new(Places::ALL, Targets::Fields(Selection::of_share(0.04))),
        &none,
        expect![[r#"
        disk-canary: no value of the first 4 % of the fields is readable in the data files, journal and logs: CannotTell
         on: Unknown("the share of fields rounds to none")
        off: Unknown("the share of fields rounds to none")
    "#]],
    );
}

#[test]
fn columns_that_are_not_encrypted_are_found_out() {
    let claimed = Bench::new(&[("placebo", &[])], &[]);
    check(
        &CiphertextSeen::new(Selection::of_share(1.0), false),
        &claimed,
        expect![[r#"
        ciphertext-seen: the server holds randomised ciphertext for the values of encrypted fields: Fails
         on: Exposed("20 of 20 values are in the server as they were sent")
        off: Exposed("20 of 20 values are in the server as they were sent")
    "#]],
    );
    check(
        &WrongColumnKey::new(Selection::of_share(1.0)),
        &claimed,
        expect![[r#"
        wrong-column-key: the arm's key opens encrypted fields, another key does not: Fails
         on: Exposed("the values are read without the arm's key")
        off: Exposed("the values are read without the arm's key")
    "#]],
    );
    check(
        &WrapperIdle,
        &claimed,
        expect![[r#"
        wrapper-idle: the sessions are wrapped and nothing is encrypted: Fails
         on: Exposed("this arm's sessions are not wrapped with a share of 0")
        off: Exposed("this arm's sessions are not wrapped with a share of 0")
    "#]],
    );
}

#[test]
fn a_wrapper_that_encrypts_nothing_is_told_from_one_that_does() {
    check(
        &WrapperIdle,
        &encrypted(0.0),
        expect![[r#"
        wrapper-idle: the sessions are wrapped and nothing is encrypted: Holds
         on: Protected("10 of 10 values are in the server as they were sent")
        off: Exposed("this arm's sessions are not wrapped with a share of 0")
    "#]],
    );
    check(
        &WrapperIdle,
        &encrypted(1.0),
        expect![[r#"
        wrapper-idle: the sessions are wrapped and nothing is encrypted: Fails
         on: Exposed("this arm's sessions are not wrapped with a share of 0")
        off: Exposed("this arm's sessions are not wrapped with a share of 0")
    "#]],
    );
}

#[test]
fn a_check_of_one_place_is_about_that_place() {
    let sealed = Bench::new(&[("seal", &[])], &[]);
    // The simulated database has no journal.
    check(
        &DiskCanary::new(Places::JOURNAL, Targets::Everything),
        &sealed,
        expect![[r#"
        journal-canary: no key or field value is readable in the journal: CannotTell
         on: Unknown("no such file of the server can be seen from here")
        off: Unknown("no such file of the server can be seen from here")
    "#]],
    );
}

#[test]
fn a_control_that_is_seen_elsewhere_only_does_not_vouch_for_the_data() {
    // Data are sealed, and the log contains the keys: as with a plain arm whose data files are compressed.
    let compressed = Bench::new(&[("seal", &[]), ("audit", &[])], &[]);
    let mut context = compressed.context();
    context.protected = false;
    let check = DiskCanary::new(Places::ALL, Targets::Everything);
    expect![[r#"Unknown("not in the data files; 2 canaries found 6 times, in audit.log (6)")"#]]
        .assert_eq(&format!("{:?}", seen_by(&check, &mut context)));
    context.protected = true;
    context.nonce += 1;
    expect![[r#"Exposed("2 canaries found 6 times, in audit.log (6)")"#]]
        .assert_eq(&format!("{:?}", seen_by(&check, &mut context)));
}

fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let mut log = fs::OpenOptions::new().create(true).append(true).open(&context.server.paths.logs[0])?;
    Ok(writeln!(log, "LOG {token}")?)
}

fn logs_free(targets: Targets) -> LogsFree {
    LogsFree::new(Role::Disclosure, targets, plant)
}

#[test]
fn logs_are_searched_for_values_and_secrets() {
    let audit = Bench::new(&[("audit", &[])], &[]);
    // Its log contains the keys of records and no value.
    check(
        &logs_free(Targets::Fields(Selection::of_share(1.0))),
        &audit,
        expect![[r#"
            logs-free: the logs are free of every field value, of data keys and of passwords: Holds
             on: Protected("none of 31 canaries, no data key and no password in 1 file, 259 B; the control token was found")
            off: Protected("none of 31 canaries, no data key and no password in 1 file, 29 B; the control token was found")
        "#]],
    );
    check(
        &logs_free(Targets::Everything),
        &audit,
        expect![[r#"
        logs-free: the logs are free of every key or field value, of data keys and of passwords: Fails
         on: Exposed("2 canaries found 6 times, in audit.log (6)")
        off: Protected("none of 33 canaries, no data key and no password in 1 file, 29 B; the control token was found")
    "#]],
    );
    let leaky = Bench::new(&[("audit", &[])], &[]);
    let secrets = &leaky.setup.credentials;
    let line = format!("encrypt(v, '\\x{}') as {}", secrets.key.expose_hex(), secrets.password.expose_text());
    fs::write(&leaky.server.paths.logs[0], line).unwrap();
    check(
        &logs_free(Targets::Fields(Selection::of_share(1.0))),
        &leaky,
        expect![[r#"
        logs-free: the logs are free of every field value, of data keys and of passwords: Fails
         on: Exposed("1 data key, 1 password found 2 times as raw and hexadecimal, in audit.log (2)")
        off: Protected("none of 31 canaries, no data key and no password in 1 file, 29 B; the control token was found")
    "#]],
    );
}

#[test]
fn a_key_in_the_servers_folder_is_found() {
    let sealed = Bench::new(&[("seal", &[])], &[]);
    check(
        &KeyApart,
        &sealed,
        expect![[r#"
        key-apart: no file of the server or of its folder holds the data key: Holds
         on: Protected("no data key in 2 files, 52 B; the marker was found")
        off: Protected("no data key in 2 files, 24 B; the marker was found")
    "#]],
    );
    let left: Vec<_> = fs::read_dir(&sealed.server.folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["data"], "the marker is gone");
    fs::write(sealed.server.folder.join("data/keyring"), sealed.setup.credentials.key.expose_hex()).unwrap();
    check(
        &KeyApart,
        &sealed,
        expect![[r#"
        key-apart: no file of the server or of its folder holds the data key: Fails
         on: Exposed("1 data key found once as hexadecimal, in data/keyring (1)")
        off: Protected("no data key in 2 files, 24 B; the marker was found")
    "#]],
    );
}

#[test]
fn where_there_is_no_wire_nothing_is_said_about_it() {
    let sealed = Bench::new(&[("seal", &[])], &[]);
    check(
        &WireCanary::new(Targets::Everything),
        &sealed,
        expect![[r#"
        wire-canary: no key or field value is readable on the wire: CannotTell
         on: Unknown("there is no wire: the database is embedded")
        off: Unknown("there is no wire: the database is embedded")
    "#]],
    );
    let mut server = sealed.server.clone();
    server.address = Address::Attached(tithe_model::experiment::Url::new("postgres://tithe:secret@db.example"));
    let mut context = sealed.context();
    context.server = &server;
    expect![[r#"OutOfReach("the driver leads clients of this server elsewhere: a relay is not possible")"#]]
        .assert_eq(&format!("{:?}", seen_by(&WireCanary::new(Targets::Everything), &mut context)));
}

#[test]
fn files_of_an_attached_server_are_out_of_reach_and_strengthen_a_proof() {
    let sealed = Bench::new(&[("seal", &[])], &[]);
    let mut server = sealed.server.clone();
    server.address = Address::Attached(tithe_model::experiment::Url::new("postgres://tithe@db.example"));
    server.paths = Default::default();
    let mut context = sealed.context();
    context.server = &server;
    let check = Strengthens(DiskCanary::new(Places::ALL, Targets::Everything));
    let seen = seen_by(&check, &mut context);
    expect![[r#"OutOfReach("no such file of the server can be seen from here")"#]].assert_eq(&format!("{seen:?}"));
    assert_eq!(check.entry().role, Role::Strengthens);
    let exposed = Observation::Exposed(String::new());
    assert_eq!(judge(Control::PlainArm, &seen, Some(&exposed)), Verdict::OutOfReach);
    let protected = Observation::Protected(String::new());
    assert_eq!(judge(Control::PlainArm, &protected, Some(&seen)), Verdict::CannotTell);
}

/// A check that differs from the defaults in everything.
struct Particular;

impl Check for Particular {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("particular").own_control()
    }

    fn claim(&self) -> String {
        "it is so".to_owned()
    }

    fn observe(&self, _context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(Observation::Exposed("seen".to_owned()))
    }

    fn watch(&self, _context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        Some(Box::new(Particular))
    }

    fn concerns(&self, address: &Address) -> bool {
        !address.is_attached()
    }

    fn looks_into_files(&self) -> bool {
        true
    }
}

impl Watch for Particular {
    fn claim(&self) -> String {
        "it was so".to_owned()
    }

    fn end(self: Box<Self>, _context: &CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(Observation::Unknown("watched".to_owned()))
    }
}

#[test]
fn what_strengthens_a_proof_differs_by_its_role_alone() {
    let (bench, check) = (Bench::plain(), Strengthens(Particular));
    let CheckEntry { id, role, control } = check.entry();
    assert_eq!((id, role, control), ("particular", Role::Strengthens, Control::Own));
    assert_eq!(check.claim(), "it is so");
    assert_eq!(bench.observe(&check), Observation::Exposed("seen".to_owned()));
    let attached = Address::Attached(tithe_model::experiment::Url::new("postgres://tithe@db.example"));
    let concerned = [&Address::Nowhere, &attached].map(|address| check.concerns(address));
    assert_eq!((concerned, check.looks_into_files()), ([true, false], true));
    assert_eq!(check.watch(&bench.context()).map(|watch| watch.claim()).as_deref(), Some("it was so"));
    let usual = Strengthens(KeyApart);
    assert!(!usual.looks_into_files() && usual.concerns(&attached) && usual.watch(&bench.context()).is_none());
}

#[test]
fn a_claim_is_limited_to_what_was_judged() {
    assert_eq!(claimed(&Particular, None), "it is so");
    assert_eq!(claimed(&Particular, Some("in the journal")), "it is so (in the journal)");
}

/// Else a check could find what an earlier one left behind.
#[test]
fn no_two_checks_have_the_same_number() {
    let drawn: std::collections::BTreeSet<u64> = (0..256).map(|_| fresh_nonce()).collect();
    assert_eq!(drawn.len(), 256);
    // All 64 bits are drawn: of so many numbers some have a bit, and some have not.
    let (some, all) = drawn.iter().fold((0, u64::MAX), |(some, all), nonce| (some | nonce, all & nonce));
    assert_eq!((some, all), (u64::MAX, 0));
}
