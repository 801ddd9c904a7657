//! The forms of MariaDB and MySQL: the general log, the slow log, and the log of server_audit.

use super::*;

#[test]
fn a_general_log_has_values_in_its_texts() {
    is(
        GENERAL,
        &expect![[r#"
            general-log
            session 1, 0 µs, kind 2
              Text insert into app.account values (1,100),(2,200)
            session 2, 0 µs, kind 0
              Text begin
              Text update account set balance = balance + 1 where id = 1
              Text select balance from account where id = 1
              Text commit .
            session 3, 0 µs, kind 0
              Text begin
              Text update account set balance = balance + 2 where id = 2
              Text select balance from account where id = 2
              Text commit .
            session 4, 0 µs, kind 1
              Text insert into account values (3, 5\n  \n )
            session 4, 0 µs, kind 3
              + BEGIN
              Text update account set balance = 0 where id = 3
              Text commit .
            session 5, 0 µs, kind 1
              Text insert into account values (1,1)
            session 6, 0 µs, kind 4
              Text SHOW VARIABLES LIKE 'pid_file'
            kind 0: update-account+1
            kind 1: insert-account
            kind 2: insert-app.account
            kind 3: update-account
            kind 4: show
            log:1 commit
            log:2 begin
            log:3 update account set balance = balance + ? where id = ?
            log:4 select balance from account where id = ?
            log:5 insert into account values (?)
            log:6 insert into app.account values (?)
            log:7 update account set balance = ? where id = ?
            log:8 SHOW VARIABLES LIKE ?
            log:other all others
            replayed: 60.9 % of the logged statements (the log has no durations): 7 transactions, 14 statements
            not replayed: sets something in its session, 30.4 % of the logged statements (the log has no durations): 2 transactions, 7 statements, the first in line 27
            not replayed: defines or maintains tables, accounts or the server, 8.7 % of the logged statements (the log has no durations): 2 transactions, 2 statements, the first in line 7
        "#]],
    );
}

#[test]
fn a_slow_log_has_durations() {
    is(
        SLOW,
        &expect![[r#"
            slow-log
            session 0, 7883 µs, kind 0
              Text insert into app.account values (1,100),(2,200)
            session 1, 2018 µs, kind 3
              Text begin
              Text update account set balance = balance + 1 where id = 1
              Text select balance from account where id = 1
              Text commit .
            session 2, 672 µs, kind 3
              Text begin
              Text update account set balance = balance + 2 where id = 2
              Text select balance from account where id = 2
              Text commit .
            session 3, 7635 µs, kind 1
              Text insert into account values (3, 5\n  \n )
            session 3, 4390 µs, kind 2
              + BEGIN
              Text update account set balance = 0 where id = 3
              Text commit .
            session 4, 167 µs, kind 1
              Text insert into account values (1,1)
            session 5, 452 µs, kind 4
              Text SHOW VARIABLES LIKE 'pid_file'
            kind 0: insert-app.account
            kind 1: insert-account
            kind 2: update-account
            kind 3: update-account+1
            kind 4: show
            log:1 insert into app.account values (?)
            log:2 insert into account values (?)
            log:3 commit
            log:4 update account set balance = balance + ? where id = ?
            log:5 SHOW VARIABLES LIKE ?
            log:6 select balance from account where id = ?
            log:7 update account set balance = ? where id = ?
            log:8 begin
            log:other all others
            replayed: 44.6 % of the logged time: 7 transactions, 14 statements
            not replayed: defines or maintains tables, accounts or the server, 53.8 % of the logged time: 2 transactions, 2 statements, the first in line 5
            not replayed: sets something in its session, 1.6 % of the logged time: 2 transactions, 6 statements, the first in line 80
        "#]],
    );
}

#[test]
fn a_slow_log_has_lines_of_other_versions_and_settings() {
    let log = "# Time: 2026-11-28T05:39:11.000100Z\n\
               # User@Host: app[app] @ localhost []  Id:     7\n\
               # Schema: app  Last_errno: 0  Killed: 0\n\
               # Query_time: 0.001000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0\n\
               # No InnoDB statistics available for this query\n\
               #\n\
               # explain: id\tselect_type\n\
               #\n\
               use app;\n\
               SET insert_id=3,timestamp=1795844351;\n\
               insert into t values (null, 1);\n\
               # Time: 2026-11-28T05:39:12.000100Z\n\
               # User@Host: app[app] @ localhost []  Id:     7\n\
               # Query_time: 0.002000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0\n\
               SET last_insert_id=3,timestamp=1795844352;\n\
               select last_insert_id();\n";
    let replayed = read(log, &[]).unwrap();
    assert_eq!(replayed.recording.texts, ["insert into t values (null, 1)", "select last_insert_id()"]);
    assert!(replayed.account.left_out.is_empty(), "{}", told(&replayed));
}

#[test]
fn server_audit_escapes_its_texts() {
    is(
        SERVER_AUDIT,
        &expect![[r#"
            server-audit
            session 1, 0 µs, kind 1
              Text insert into app.account values (1,100),(2,200)
            session 2, 0 µs, kind 0
              Text begin
              Text update account set balance = balance + 1 where id = 1
              Text select balance from account where id = 1
              Text commit .
            session 3, 0 µs, kind 0
              Text begin
              Text update account set balance = balance + 2 where id = 2
              Text select balance from account where id = 2
              Text commit .
            session 4, 0 µs, kind 2
              Text insert into account values (3, 5\n  \n )
            session 4, 0 µs, kind 3
              + BEGIN
              Text update account set balance = 0 where id = 3
              Text commit .
            session 6, 0 µs, kind 4
              Text SHOW VARIABLES LIKE 'pid_file'
            kind 0: update-account+1
            kind 1: insert-app.account
            kind 2: insert-account
            kind 3: update-account
            kind 4: show
            log:1 commit
            log:2 begin
            log:3 update account set balance = balance + ? where id = ?
            log:4 select balance from account where id = ?
            log:5 insert into app.account values (?)
            log:6 insert into account values (?)
            log:7 update account set balance = ? where id = ?
            log:8 SHOW VARIABLES LIKE ?
            log:other all others
            replayed: 59.1 % of the logged statements (the log has no durations): 6 transactions, 13 statements
            not replayed: sets something in its session, 27.3 % of the logged statements (the log has no durations): 2 transactions, 6 statements, the first in line 32
            not replayed: defines or maintains tables, accounts or the server, 9.1 % of the logged statements (the log has no durations): 2 transactions, 2 statements, the first in line 4
            not replayed: failed when it was logged, 4.5 % of the logged statements (the log has no durations): 1 transaction, 1 statement, the first in line 46
        "#]],
    );
}

#[test]
fn a_change_back_to_autocommit_ends_the_open_transaction() {
    let log = "261128  5:39:11\t     5 Connect\troot@localhost on app using Socket\n\t\t     5 Query\tset autocommit=0\n\
               \t\t     5 Query\tupdate t set a = 1\n\t\t     5 Query\tset autocommit=1\n\
               \t\t     5 Query\tupdate t set a = 2\n";
    let recording = read(log, &[]).unwrap().recording;
    let told: String = recording.transactions.iter().map(|each| transaction(&recording, each)).collect();
    expect![[r#"
        session 0, 0 µs, kind 0
          + BEGIN
          Text update t set a = 1
          Text COMMIT .
        session 0, 0 µs, kind 1
          Text update t set a = 2
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_general_log_says_when_a_session_enters_another_database() {
    let texts = |enters: &str| {
        let log = format!(
            "261128  5:39:11\t     5 Connect\troot@localhost on app using Socket\n\t\t     5 Query\tselect 1\n\
             \t\t     5 {enters}\n\t\t     5 Query\tselect 2\n"
        );
        ["app", "shop"].map(|database| read(&log, &[("database", database)]).unwrap().recording.texts.join("|"))
    };
    for enters in ["Init DB\tshop", "Query\tUSE `shop`"] {
        assert_eq!(texts(enters), ["select 1", "select 2"], "{enters}");
    }
}

#[test]
fn statements_that_failed_by_the_slow_log_of_mysql_are_not_replayed() {
    let record = |number: u32, errno: u32| {
        format!(
            "# Time: 2026-11-28T05:39:11.000001Z\n# User@Host: app[app] @ localhost []  Id:     8\n\
             # Query_time: 0.000123  Lock_time: 0.000004 Rows_sent: 0  Rows_examined: 0 Thread_id: 8 Errno: {errno} \
             Killed: 0 Bytes_received: 0\nuse app;\nSET timestamp=1795844351;\ninsert into t values ({number});\n"
        )
    };
    let replayed = read([record(1, 0), record(2, 1062), record(3, 0)].concat(), &[]).unwrap();
    assert_eq!(replayed.recording.texts, ["insert into t values (1)", "insert into t values (3)"]);
    assert_eq!(replayed.account.left_out[&Reason::Failed].statements, 1);
}

#[test]
fn the_audit_log_of_aurora_has_times_in_microseconds() {
    let log = "1795844351000000,aurora-1,app,10.0.0.7,12,0,CONNECT,app,,0\n\
               1795844351000100,aurora-1,app,10.0.0.7,12,3,QUERY,app,'select 1, 2',0\n";
    let recording = read(log, &[]).unwrap().recording;
    assert_eq!(recording.texts, ["select 1, 2"]);
    assert_eq!(recording.transactions[0].start_us, 1_795_844_351_000_100);
}
