//! What can be measured, and the meaning of flags, as the command line lists them.

use expect_test::expect;

use crate::support::{Bench, err, out, status};

fn listed(names: &[&str]) -> String {
    let output = Bench::new("listed").tithe(&[&["ls"], names].concat());
    assert_eq!(status(&output), 0, "{}", err(&output));
    out(&output)
}

#[test]
fn everything_fits_on_a_screen() {
    // Simulated databases lack what all others have, which makes the list longer.
    let output = Bench::new("listed").command(&["ls"]).env_remove("TITHE_SIMULATED").output().expect("tithe starts");
    let text = out(&output);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 45, "{text}");
    for words in ["postgres", "pgaudit", "page-encryption", "volume-luks2", "ycsb = \"a\"", "The arm \"A/A\""] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches("volume-luks2").count(), 1, "what all have is listed once: {text}");
}

#[test]
fn protections_in_files_are_yours() {
    let bench = Bench::new("yours");
    std::fs::create_dir(bench.path("protections")).expect("a folder");
    bench
        .file("protections/rls.toml", "description = \"each tenant sees its rows\"\nsession = [\"SET ROLE tenant\"]\n");
    bench.file("protections/wrong.toml", "description = \"x\"\nsession = 3\n");
    let text = out(&bench.tithe(&["ls"]));
    assert!(
        text.contains("\nYours\n  rls  each tenant sees its rows\n  wrong  2:11: `session` must be a list"),
        "{text}"
    );
}

#[test]
fn a_database_tells_what_its_protections_are_for_and_a_protection_everything() {
    let text = listed(&["postgres"]);
    assert!(text.starts_with("PostgreSQL (launched by tithe, or attached by postgres://"), "{text}");
    assert!(text.contains("pgaudit") && !text.contains("pgaudit.log_parameter"), "{text}");
    expect![[r#"
        audit log (pgaudit): `protections = [{ use = "pgaudit" }]`
          protects against  access to data that cannot be traced afterwards.
          leaves open       the log itself: the server's account can change it, and it
                            repeats values in the clear.

          log = "read,write" | "read" | "write" | "ddl,role", default "read,write"
              Classes of statements that are logged (pgaudit.log). `ddl,role` logs no
              reads and writes.

          parameter = true | false, default true
              Log the parameters of statements too (pgaudit.log_parameter).

          by = "session" | "object", default "session"
              All statements of these classes, or those on tables granted to
              pgaudit.role.

          sink = "any" | "stderr" | "collector" | "csvlog" | "syslog", default "any"
              Where the log goes. `any`: as the server is set up.

          proven on a server that tithe launches by
            needed       every statement of class read and write is in the audit log
                         once, and no other
            reported     the logs are free of every key or field value, of data keys and
                         of passwords
            reported     the value and the key that a client gives to pgcrypto stay out
                         of the log

          proven on an attached server (by sessions) by
            needed       every statement of class read and write is in the audit log
                         once, and no other
            reported     the logs are free of every key or field value, of data keys and
                         of passwords
            reported     the value and the key that a client gives to pgcrypto stay out
                         of the log
    "#]]
    .assert_eq(&listed(&["postgres", "pgaudit"]));
    expect![[r#"
        pgbench in slices: the properties protocol (-M), jobs (-j), connect (-C), define
        (-D); -c and -R are of [load]
          pgbench = "tpcb-like"  Three updates, a select and an insert in a transaction
          pgbench = "simple-update"  The same without the tables that all clients update
                                     (-N)
          pgbench = "select-only"  One select by key (-S)
          pgbench_file = "FILE"  a script of pgbench, or a list of scripts with weights:
                                 ["one.sql@9", "two.sql@1"]
    "#]]
    .assert_eq(&listed(&["pgbench"]));
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let refused = |names: &[&str]| {
        let output = Bench::new("not-listed").tithe(&[&["ls"], names].concat());
        assert_eq!(status(&output), 2);
        err(&output)
    };
    let text = refused(&["postgres", "tsl"]);
    assert!(
        text.starts_with("tithe: PostgreSQL has no protection tsl (did you mean tls?); there are tls, pgaudit"),
        "{text}"
    );
    let text = refused(&["oracle"]);
    assert!(text.contains("no database and no workload oracle; there are sqlite") && text.contains("ycsb"), "{text}");
}

#[test]
fn a_flag_is_explained_however_it_is_spelled() {
    let explained = |flag: &str| Bench::new("explained").tithe(&["explain", flag]);
    for flag in ["CARRY_OVER", "carry-over"] {
        assert!(out(&explained(flag)).starts_with("CARRY_OVER  Effects of the previous arm"));
    }
    let output = explained("CARRY");
    assert_eq!(status(&output), 2);
    let text = err(&output);
    assert!(text.contains("no flag is called CARRY; there are TAIL_DRIVEN, ") && text.contains("CARRY_OVER"), "{text}");
}
