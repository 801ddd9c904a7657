//! Statements that are forbidden in scripts: their effects would outlast the transaction, for the slots of this arm or
//! for all arms.

use std::collections::BTreeSet;

use super::{
    statement::{Flavour, Quotes},
    variables::is_valid,
};

/// The forbidden effect of `statement`, and its remedy; `None` if it may run.
pub fn refuses(statement: &str, flavour: Flavour) -> Option<(String, String)> {
    let words: Vec<String> = words(statement, flavour).map(str::to_ascii_uppercase).take(8).collect();
    let word = |number: usize| words.get(number).map_or("", String::as_str);
    let first = word(0);
    let session = |what: &str, help: &str| {
        Some((format!("{what} changes the session for every later transaction"), help.to_owned()))
    };
    let connection = "set it for the account, or in the URL of the server: it is not part of a transaction";
    if statement.strip_prefix('.').is_some_and(|name| name.starts_with(|sign: char| sign.is_ascii_alphabetic())) {
        return Some((OF_A_PROGRAM.to_owned(), TAKE_OUT.to_owned()));
    }
    match first {
        "DELIMITER" | "SOURCE" => Some((OF_A_PROGRAM.to_owned(), TAKE_OUT.to_owned())),
        "SET" | "BEGIN" | "START" if makes_writable(statement, flavour) => Some((
            "this turns a read-only transaction into one that writes".to_owned(),
            "remove it: a transaction can write by default, unless the server forbids it".to_owned(),
        )),
        "SET" => match word(1) {
            "LOCAL" | "CONSTRAINTS" | "TRANSACTION" => None,
            // A session variable of MariaDB and MySQL, by which statements pass on values.
            name if name.starts_with('@') && !name.starts_with("@@") => None,
            _ => session("SET", "write `SET LOCAL` within a transaction, or set it for the account"),
        },
        "RESET" | "DISCARD" | "LISTEN" | "UNLISTEN" | "PREPARE" | "DEALLOCATE" | "USE" | "ATTACH" | "DETACH"
        | "PRAGMA" | "LOAD" | "HANDLER" | "FLUSH" | "KILL" | "SHUTDOWN" | "CHANGE" => session(first, connection),
        "UNLOCK" if word(1).starts_with("TABLE") => session(first, connection),
        // In PostgreSQL a lock ends with its transaction.
        "LOCK" if word(1).starts_with("TABLE") && flavour == Flavour::MySql => {
            session("LOCK TABLES", "leave it out: statements lock the rows that they change")
        }
        "DECLARE" if words.iter().any(|word| word == "HOLD") => session("a cursor WITH HOLD", "leave out WITH HOLD"),
        "CREATE" if word(1).starts_with("TEMP") && statement.to_ascii_uppercase().contains("ON COMMIT DROP") => None,
        "CREATE" | "ALTER" | "DROP" | "TRUNCATE" | "GRANT" | "REVOKE" | "COMMENT" | "VACUUM" | "REINDEX"
        | "CLUSTER" | "RENAME" | "OPTIMIZE" | "REPAIR" | "INSTALL" | "UNINSTALL" | "SECURITY" | "REASSIGN"
        | "REFRESH" | "IMPORT" | "PURGE" | "CHECKPOINT" | "CLONE" | "RESTART" | "STOP" | "BINLOG" => {
            more_than_rows(first)
        }
        "START" if word(1) != "TRANSACTION" => more_than_rows(first),
        // MariaDB's ANALYZE runs the statement behind it.
        "ANALYZE" if !words.iter().any(|word| ["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&word.as_str())) => {
            more_than_rows(first)
        }
        "SELECT" | "WITH" | "TABLE" | "VALUES" if makes_what_it_selects_into(statement, flavour) => Some((
            "SELECT INTO creates a table or a file, but the slots of all arms must find the same data".to_owned(),
            "leave out INTO, or take the values as variables by `\\gset`".to_owned(),
        )),
        "COPY" if copies_into_a_file(statement, flavour) => Some((
            "COPY to a file or a program changes more than rows".to_owned(),
            "write COPY … TO STDOUT, whose rows the client reads".to_owned(),
        )),
        "COPY" if words.iter().any(|word| word == "STDIN") => Some((
            "COPY FROM STDIN waits for data that a script does not have".to_owned(),
            "write INSERT, or load the file when the data are prepared".to_owned(),
        )),
        _ => {
            if let Some(name) = self::words(statement, flavour).find(|word| maintains(word)) {
                return more_than_rows(name);
            }
            let lower = statement.to_ascii_lowercase();
            let ends = |name: &str| name.eq_ignore_ascii_case("set_config") && lower.contains("true)");
            self::words(statement, flavour).find(|word| lasts(word) && !ends(word)).map(|name| {
                let help = match flavour {
                    Flavour::Postgres => "write pg_advisory_xact_lock or SET LOCAL, which end with the transaction",
                    Flavour::MySql => "leave it out: statements lock the rows that they change",
                };
                (format!("{name} lasts longer than the transaction"), help.to_owned())
            })
        }
    }
}

/// The refusal of statements that begin with `first`.
fn more_than_rows(first: &str) -> Option<(String, String)> {
    Some((
        format!("{first} changes more than rows, and the slots of all arms must find the same"),
        "write it into the file that prepares the data".to_owned(),
    ))
}

/// Why commands of `mysql` and `sqlite3` are refused, and what to do.
const OF_A_PROGRAM: &str = "this is a command of a client program, not SQL";
const TAKE_OUT: &str = "remove it; statements that prepare data belong in the file that prepares them";

/// True for a `COPY` into a file of the server or into a program.
fn copies_into_a_file(statement: &str, flavour: Flavour) -> bool {
    let words: Vec<String> = words(statement, flavour).map(str::to_ascii_uppercase).collect();
    let is_file = |at: usize| words.get(at + 1).is_none_or(|word| word != "STDOUT");
    words.iter().rposition(|word| word == "TO").is_some_and(is_file)
}

/// Functions that change the server or other sessions, and no rows.
const MAINTAINING: [&str; 19] = [
    "lo_export",
    "pg_backup_start",
    "pg_backup_stop",
    "pg_cancel_backend",
    "pg_create_logical_replication_slot",
    "pg_create_physical_replication_slot",
    "pg_create_restore_point",
    "pg_drop_replication_slot",
    "pg_logical_slot_get_changes",
    "pg_promote",
    "pg_reload_conf",
    "pg_replication_slot_advance",
    "pg_rotate_logfile",
    "pg_start_backup",
    "pg_stop_backup",
    "pg_switch_wal",
    "pg_terminate_backend",
    "pg_wal_replay_pause",
    "pg_wal_replay_resume",
];

/// True for the name of a function that changes the server or other sessions, and no rows.
pub fn maintains(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Functions with `get` in their name read when statistics were reset.
    let resets = name.starts_with("pg_stat_") && !name.starts_with("pg_stat_get_") && name.contains("reset");
    resets || MAINTAINING.contains(&name.as_str())
}

/// Functions whose effect lasts as long as the session.
const LASTING: [&str; 6] = [
    "get_lock",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "set_config",
];

/// True for the name of a function whose effect lasts as long as the session.
pub fn lasts(name: &str) -> bool {
    LASTING.iter().any(|lasting| name.eq_ignore_ascii_case(lasting))
}

/// True if a statement about transactions removes their read-only mode.
pub fn makes_writable(statement: &str, flavour: Flavour) -> bool {
    let words: Vec<String> = words(statement, flavour).map(str::to_ascii_uppercase).collect();
    words.iter().any(|word| word.ends_with("READ_ONLY")) || words.windows(2).any(|pair| pair == ["READ", "WRITE"])
}

/// True if rows of a query go into a table or a file, and not into variables.
fn makes_what_it_selects_into(statement: &str, flavour: Flavour) -> bool {
    let words: Vec<String> = words(statement, flavour).map(str::to_ascii_uppercase).collect();
    let inserts = |word: &str| ["INSERT", "REPLACE", "MERGE", "IGNORE"].contains(&word);
    let makes = |three: &[String]| three[1] == "INTO" && !inserts(&three[0]) && !three[2].starts_with('@');
    words.windows(3).any(makes)
}

/// First words of statements that begin, end or configure a transaction.
const CONTROL: [&str; 10] =
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "SHOW"];

/// True for a statement that begins, ends or configures a transaction.
pub fn is_control(statement: &str, flavour: Flavour) -> bool {
    words(statement, flavour).next().is_some_and(|word| CONTROL.contains(&word.to_ascii_uppercase().as_str()))
}

/// The effect of a statement on a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Nothing.
    None,
    /// Begins one.
    Begins,
    /// Ends one, or might.
    Ends,
}

/// The effect of `statement` on a transaction.
pub fn bound(statement: &str, flavour: Flavour) -> Bound {
    let mut words = words(statement, flavour).map(str::to_ascii_uppercase);
    let [first, second, third] = std::array::from_fn(|_| words.next().unwrap_or_default());
    match (first.as_str(), second.as_str(), third.as_str()) {
        ("ROLLBACK", "TO", _) | ("ROLLBACK", "WORK" | "TRANSACTION", "TO") => Bound::None,
        ("BEGIN" | "START", ..) => Bound::Begins,
        // Procedures and two-phase commits end an open transaction, and so do table locks in MySQL.
        ("COMMIT" | "END" | "ROLLBACK" | "ABORT" | "CALL" | "DO" | "XA", ..) => Bound::Ends,
        ("LOCK", ..) if flavour == Flavour::MySql => Bound::Ends,
        _ => Bound::None,
    }
}

/// Every name in a statement, of tables or of anything else, as written and in lower case.
pub fn names(statement: &str, flavour: Flavour) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = words(statement, flavour).map(str::to_owned).collect();
    names.extend(words(statement, flavour).map(str::to_lowercase));
    let (mut at, mut quotes, mut quoted) = (0, Quotes::new(flavour), None);
    while at < statement.len() {
        let rest = &statement[at..];
        let was_inside = quotes.inside();
        let length = quotes.step(rest).min(rest.len());
        match (was_inside, quotes.inside()) {
            (false, true) if rest.starts_with(['"', '`']) => quoted = Some(at + 1),
            (true, false) => names.extend(quoted.take().map(|from| statement[from..at].to_owned())),
            _ => {}
        }
        at += length;
    }
    names
}

/// True for a statement that can change data, according to its text.
pub fn writes(statement: &str, flavour: Flavour) -> bool {
    /// First words of statements that only read.
    const READS: [&str; 14] = [
        "SELECT",
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SHOW",
        "VALUES",
        "TABLE",
        "SET",
        "EXPLAIN",
    ];
    /// Words that make a statement write, at any place in it.
    const WRITES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "NEXTVAL"];
    let all: Vec<String> = words(statement, flavour).map(str::to_ascii_uppercase).collect();
    let first = all.first().map_or("", String::as_str);
    let reads = READS.contains(&first) || first == "WITH";
    // Without INTO it is a function, unless the statement begins with it.
    let replaces = all.windows(2).any(|pair| pair == ["REPLACE", "INTO"]);
    !reads || replaces || all.iter().any(|word| WRITES.contains(&word.as_str()))
}

/// The place of the first placeholder in `statement` that only a driver gives a value: `$1`, and `?` in MariaDB and
/// MySQL.
pub fn placeholder(statement: &str, flavour: Flavour) -> Option<usize> {
    let (mut at, mut quotes) = (0, Quotes::new(flavour));
    while at < statement.len() {
        let rest = &statement[at..];
        let is_placeholder = match flavour {
            Flavour::Postgres => {
                rest.strip_prefix('$').is_some_and(|behind| behind.starts_with(|sign: char| sign.is_ascii_digit()))
            }
            // In PostgreSQL it is an operator.
            Flavour::MySql => rest.starts_with('?'),
        };
        if is_placeholder && !quotes.inside() {
            return Some(at);
        }
        at += quotes.step(rest).min(rest.len());
    }
    None
}

/// The place of the first variable in psql's `:'name'` or `:"name"` in `statement`, which pgbench does not have.
pub fn quoted_variable(statement: &str, flavour: Flavour) -> Option<usize> {
    let (mut at, mut quotes) = (0, Quotes::new(flavour));
    while at < statement.len() {
        let rest = &statement[at..];
        // `a::"char"` is a cast, `a[1:"n"]` a slice.
        let begins = statement[..at].ends_with(|sign: char| sign.is_whitespace() || "(,=<>".contains(sign));
        let quoted = [(":'", '\''), (":\"", '"')]
            .into_iter()
            .find_map(|(opens, closes)| rest.strip_prefix(opens)?.split_once(closes));
        if begins
            && !quotes.inside()
            && let Some((name, _)) = quoted
            && is_valid(name)
        {
            return Some(at);
        }
        at += quotes.step(rest).min(rest.len());
    }
    None
}

/// Words of a statement, outside quotes and comments.
fn words(statement: &str, flavour: Flavour) -> impl Iterator<Item = &str> {
    let (mut at, mut quotes) = (0, Quotes::new(flavour));
    std::iter::from_fn(move || {
        while at < statement.len() {
            let rest = &statement[at..];
            let was_inside = quotes.inside();
            let variable = rest.bytes().take_while(|byte| *byte == b'@').count();
            let length = variable + quotes.step(&rest[variable..]).min(rest.len() - variable);
            at += length;
            let word = &rest[..length];
            // The beginning of a comment that MySQL runs ends with a version.
            let is_word = word.ends_with(|sign: char| sign == '_' || sign.is_alphanumeric()) && !word.starts_with('/');
            if !was_inside && !quotes.inside() && is_word {
                return Some(word);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outlasts_a_transaction_is_refused() {
        for refused in [
            "SET work_mem = '1GB'",
            "set session characteristics as transaction read only",
            "CREATE TEMP TABLE t (a int)",
            "DROP TABLE t",
            "PRAGMA synchronous = OFF",
            "SELECT pg_stat_statements_reset()",
            "SELECT pg_catalog.PG_TERMINATE_BACKEND(pid) FROM pg_stat_activity",
            "ANALYZE t",
            "CHECKPOINT",
            "START REPLICA",
            "COPY t FROM STDIN",
            "COPY t TO '/tmp/t'",
            "COPY (SELECT a, b, c, d FROM t) TO PROGRAM 'cat >/tmp/t' WITH (FORMAT csv)",
            ".mode csv\nSELECT 1",
            "delimiter //\nSELECT 1 //",
            "SELECT pg_advisory_lock(1)",
            "SELECT pg_try_advisory_lock_shared(1)",
            "SELECT set_config('a.b', 'c', false)",
            "SELECT set_config ('a.b', 'c', false)",
            "SET @@session.sql_mode = ''",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
            "SET LOCAL transaction_read_only = off",
            "SELECT a INTO copied FROM t",
            "WITH x AS (SELECT 1 AS a) SELECT a INTO TEMP copied FROM x",
            "SELECT a FROM t INTO OUTFILE '/tmp/a'",
        ] {
            assert!(refuses(refused, Flavour::Postgres).is_some(), "{refused}");
        }
        for taken in [
            "SET LOCAL work_mem = '1GB'",
            "SET TRANSACTION READ ONLY",
            "CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1",
            "COPY t TO STDOUT WITH (FORMAT csv)",
            "COPY t FROM '/tmp/t'",
            "START TRANSACTION READ ONLY",
            "ANALYZE FORMAT=JSON SELECT 1",
            "SELECT 'DROP TABLE t'",
            "SELECT stats_reset, 'pg_reload_conf' FROM pg_stat_database",
            "SELECT pg_stat_get_db_stat_reset_time(oid) FROM pg_database",
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT pg_try_advisory_xact_lock(1)",
            "SELECT set_config('a.b', 'pg_advisory_lock', true)",
            "SET @a = 1",
            "/* SET */ SELECT 1",
            "SELECT a INTO @a FROM t",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT a FROM x",
        ] {
            assert_eq!(refuses(taken, Flavour::Postgres), None, "{taken}");
        }
    }

    #[test]
    fn a_return_to_a_savepoint_ends_no_transaction() {
        let of = |statement| bound(statement, Flavour::Postgres);
        for statement in ["ROLLBACK TO a", "rollback work to savepoint a", "ROLLBACK TRANSACTION TO SAVEPOINT a"] {
            assert_eq!(of(statement), Bound::None, "{statement}");
        }
        for statement in ["ROLLBACK", "ROLLBACK WORK", "COMMIT"] {
            assert_eq!(of(statement), Bound::Ends, "{statement}");
        }
        // In PostgreSQL a lock is a part of its transaction.
        assert_eq!(of("LOCK TABLE t IN SHARE MODE"), Bound::None);
        assert_eq!(bound("LOCK TABLES t WRITE", Flavour::MySql), Bound::Ends);
    }

    #[test]
    fn locks_of_tables_last_in_mysql_and_not_in_postgresql() {
        for refused in ["LOCK TABLES t WRITE", "SELECT GET_LOCK ('a', 1)"] {
            let (_, help) = refuses(refused, Flavour::MySql).expect("it lasts");
            assert_eq!(help, "leave it out: statements lock the rows that they change", "{refused}");
        }
        assert_eq!(refuses("LOCK TABLE t IN SHARE MODE", Flavour::Postgres), None);
    }

    #[test]
    fn strings_end_as_in_the_server() {
        let written = "SELECT 'it\\'s' AS a, 'DELETE' AS b";
        assert!(!writes(written, Flavour::MySql) && writes(written, Flavour::Postgres));
        let read = r"SELECT 'it''s', E'it\'s' AS a, 'DELETE' AS b";
        assert!(!writes(read, Flavour::Postgres));
        let into = r"SELECT '\'', a INTO OUTFILE '/tmp/a'";
        assert!(refuses(into, Flavour::MySql).is_some() && refuses(into, Flavour::Postgres).is_none());
        // A comment of PostgreSQL may contain others, and one of MySQL may begin with a number sign.
        assert!(writes("SELECT 1 /* /* */; DELETE FROM t", Flavour::MySql));
        assert!(!writes("SELECT 1 /* /* */ DELETE */", Flavour::Postgres));
        assert!(!writes("SELECT 1 # DELETE", Flavour::MySql));
    }

    #[test]
    fn comments_that_the_server_runs_are_read_as_statements() {
        for refused in [
            "/*!40101 SET NAMES utf8 */",
            "/*M!100201 SET sql_mode = '' */",
            "/*! DROP TABLE t */",
            "SELECT a FROM t /*!50000 INTO OUTFILE '/tmp/a' */",
        ] {
            assert!(refuses(refused, Flavour::MySql).is_some(), "{refused}");
            assert_eq!(refuses(refused, Flavour::Postgres), None, "{refused}");
        }
        for taken in [
            "SELECT /*!40001 SQL_NO_CACHE */ a FROM t",
            "/*M!999999\\- enable the sandbox mode */ SELECT 1",
            "/*+ SET_VAR(sort_buffer_size = 1) */ SELECT 1",
            "SELECT 1 /*!50000 /* DROP */ + 1 */",
        ] {
            assert_eq!(refuses(taken, Flavour::MySql), None, "{taken}");
        }
        assert!(writes("SELECT 1 /*!50000 FROM (DELETE) */", Flavour::MySql));
        assert!(names("SELECT /*!40001 SQL_NO_CACHE */ a", Flavour::MySql).contains("SQL_NO_CACHE"));
    }

    #[test]
    fn placeholders_of_drivers_are_found_outside_of_quotes() {
        assert_eq!(placeholder("SELECT '$1', a$1 FROM t WHERE b = $2", Flavour::Postgres), Some(34));
        assert_eq!(placeholder("SELECT $$ $1 $$, a ? 'b' FROM t", Flavour::Postgres), None);
        assert_eq!(placeholder("SELECT '?' FROM t WHERE a = ? -- ?", Flavour::MySql), Some(28));
    }

    #[test]
    fn variables_of_psql_in_quotes_are_told_from_casts_and_slices() {
        let found = |statement| quoted_variable(statement, Flavour::Postgres);
        assert_eq!(found("SELECT a FROM t WHERE b = :'name'"), Some(26));
        assert_eq!(found("SELECT :\"column\" FROM t"), Some(7));
        for none in ["SELECT a::\"char\", b[1:\"n\"]", "SELECT ' = :\"x\"', :name", "SELECT a = :'no name'"] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn names_are_words_and_what_is_quoted_as_one() {
        let told = |statement| names(statement, Flavour::Postgres).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(
            told("SELECT \"Order Lines\".a, 'x y' FROM Shop.t -- b"),
            "FROM Order Lines SELECT Shop a from select shop t"
        );
        assert_eq!(told("SELECT `it` FROM t"), "FROM SELECT from it select t");
    }

    #[test]
    fn statements_that_write_are_known() {
        for written in [
            "UPDATE t SET a = 1",
            "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
            "CALL p()",
            "REPLACE t VALUES (1)",
            "WITH x AS (SELECT 1) REPLACE INTO t SELECT * FROM x",
        ] {
            assert!(writes(written, Flavour::Postgres), "{written}");
        }
        let function = "SELECT replace(a, 'b', 'c') FROM t";
        for read in ["SELECT 'UPDATE'", "WITH x AS (SELECT 1) SELECT * FROM x", "BEGIN", "END", function] {
            assert!(!writes(read, Flavour::Postgres), "{read}");
        }
    }
}
