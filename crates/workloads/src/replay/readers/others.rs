//! Files of servers and their tools that are no logs of statements: what they are, and what to name in their place.

use crate::replay::{entry::Problem, lines::timestamp};

/// One kind of such files.
struct Other {
    /// True for its first lines.
    shows: fn(&[&str]) -> bool,
    what: &'static str,
    help: &'static str,
}

const OTHERS: &[Other] = &[
    Other {
        shows: |lines| lines[0].starts_with("\u{fffd}\u{fffd}") && lines[0].contains('\0'),
        what: "is UTF-16, as `>` of PowerShell writes it",
        help: "save it as UTF-8",
    },
    Other {
        shows: |lines| lines[0].starts_with("\u{fffd}bin") || lines.iter().any(|line| is_of_binary_log(line)),
        what: "is a binary log, in which statements that only read are missing",
        help: "name the general log, or the slow log with long_query_time = 0",
    },
    Other {
        shows: |lines| {
            lines[0].starts_with("# ") && lines[0].contains(" user time, ")
                || lines[0].starts_with("Count: ") && lines[0].contains(" Time=")
        },
        what: "is a summary of a slow log, by pt-query-digest or mysqldumpslow",
        help: "name the slow log itself",
    },
    Other {
        shows: |lines| has_columns(lines[0], &["query", "calls"]) || has_columns(lines[0], &["digest_text"]),
        what: "is an export of statements that a server has counted, without their values",
        help: "ask the server itself: `like_production = \"calls\"` (`--like-production`)",
    },
    Other {
        shows: |lines| {
            let general = ["event_time", "command_type"];
            has_columns(lines[0], &general) || has_columns(lines[0], &["start_time", "query_time"])
        },
        what: "is an export of the table mysql.general_log or mysql.slow_log",
        help: "set log_output = FILE on the server, and name the file",
    },
    Other {
        shows: |lines| lines[0].replace('@', "") == "timestamp,message" || is_object(lines[0], "\"textPayload\":"),
        what: "is an export of a cloud's service for logs",
        help: "name a file with the server's own lines: those of message or textPayload",
    },
    Other {
        shows: |lines| is_object(lines[0], "\"log\":") && lines[0].contains("\"stream\":"),
        what: "is a file of a container's engine, with the server's lines in JSON",
        help: "name a file with the output of `docker logs`",
    },
    Other {
        shows: |lines| lines.iter().any(|line| is_stamped(line) || is_of_compose(line)),
        what: "has words of a container's engine before the server's lines",
        help: "name a file with the output of `docker logs` or `kubectl logs`, without `--timestamps`",
    },
    Other {
        shows: |lines| lines.iter().any(|line| is_of_syslog(line)),
        what: "is a log of syslog or the journal, which mark the server's lines and cut long ones",
        help: "name a file that the server writes itself, or the output of `journalctl -o cat`",
    },
    Other {
        shows: |lines| is_error_log(lines[0]),
        what: "is the error log of MariaDB or MySQL, which has no statements",
        help: "name the general log, or the slow log with long_query_time = 0",
    },
    Other {
        shows: |lines| ["[", "{"].contains(&lines[0].trim()) || lines[0].starts_with("[{"),
        what: "is JSON over several lines, as clouds print it",
        help: "name a file with the server's own lines, as `jq -r` takes them out of their field",
    },
    Other {
        shows: |lines| {
            let begin = lines[0].trim_start().to_ascii_lowercase();
            ["<?xml", "<!doctype", "<html", "<audit"].iter().any(|sign| begin.starts_with(sign))
        },
        what: "is XML or a page: an audit log of MySQL, or a report about a log",
        help: "name the server's own log: PostgreSQL's, or the general or slow log",
    },
    Other {
        shows: |lines| {
            let is_of_mongodb = is_object(lines[0], "\"t\":{\"$date\"");
            is_of_mongodb || lines[0].starts_with("Type: ") || lines.iter().any(|line| is_monitored(line))
        },
        what: "is a log of Redis, Cassandra or MongoDB, and replays are of SQL",
        help: "measure them with YCSB",
    },
];

/// Lines to read.
const LINES: usize = 3;

/// The problem with a file that begins with `text`, if it is one of these.
pub fn problem(text: &str) -> Option<Problem> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).take(LINES).collect();
    let other = OTHERS.iter().filter(|_| !lines.is_empty()).find(|other| (other.shows)(&lines))?;
    Some(Problem::new(1, other.what, other.help))
}

/// True for the first lines of the output of `mysqlbinlog`.
fn is_of_binary_log(line: &str) -> bool {
    let begins = ["/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=", "# The proper term is pseudo_replica_mode"];
    begins.iter().any(|begin| line.starts_with(*begin))
}

/// True for names of columns, all of `wanted` among them.
fn has_columns(line: &str, wanted: &[&str]) -> bool {
    let is_header = line.chars().all(|sign| is_of_name(sign) || "\",;\t| ".contains(sign));
    let has = |wanted: &str| line.split(|sign: char| !is_of_name(sign)).any(|name| name.eq_ignore_ascii_case(wanted));
    is_header && wanted.iter().all(|&wanted| has(wanted))
}

fn is_of_name(sign: char) -> bool {
    sign == '_' || sign.is_ascii_alphanumeric()
}

/// True for a line of JSON with `part` in it.
fn is_object(line: &str, part: &str) -> bool {
    line.starts_with('{') && line.contains(part)
}

/// True for a line with the time of a container's engine before it: `2026-11-28T05:36:07.075123456Z stdout F …`.
fn is_stamped(line: &str) -> bool {
    let behind = timestamp(line).and_then(|(_, behind)| behind.strip_prefix("Z "));
    behind.is_some_and(|behind| {
        let is_of_stream = ["stdout ", "stderr "].iter().any(|stream| behind.starts_with(stream));
        is_of_stream || timestamp(behind).is_some()
    })
}

/// True for a line of `docker compose logs`: `db-1  | 2026-11-28 05:36:07.075 UTC [7] LOG:  …`.
fn is_of_compose(line: &str) -> bool {
    line.split_once(" | ").is_some_and(|(name, rest)| {
        let name = name.trim_end();
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
        !name.is_empty() && name.chars().all(is_name) && (timestamp(rest).is_some() || rest.trim().is_empty())
    })
}

/// True for a line of syslog: `Nov 28 05:36:07 db postgres[7]: [3-1] …`, or with the date of ISO 8601.
fn is_of_syslog(line: &str) -> bool {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
    let is_program = |at: usize| {
        let parts = words.get(at).and_then(|word| word.strip_suffix("]:")?.split_once('['));
        parts.is_some_and(|(name, id)| !name.is_empty() && id.bytes().all(|it| it.is_ascii_digit()))
    };
    let has_month = words.first().is_some_and(|word| MONTHS.contains(word));
    let has_date = timestamp(line).is_some() && line.as_bytes().get(10) == Some(&b'T');
    has_month && is_program(4) || has_date && is_program(2)
}

/// True for a line of an error log: `2026-11-28T05:36:07.075123Z 0 [System] [MY-010116] …`.
fn is_error_log(line: &str) -> bool {
    let Some((before, behind)) = line.split_once(" [") else { return false };
    let is_level = ["Note] ", "Warning] ", "ERROR] ", "System] "].iter().any(|level| behind.starts_with(level));
    // Time and number of the thread alone: a general log has its command there.
    let is_thread = before.rsplit(' ').next().is_some_and(|word| word.parse::<u64>().is_ok());
    is_level && is_thread && line.starts_with(|sign: char| sign.is_ascii_digit())
}

/// True for a line of Redis' MONITOR: `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`.
fn is_monitored(line: &str) -> bool {
    let time = line.split_once(" [").filter(|(_, rest)| rest.contains("] \"")).map(|(time, _)| time);
    time.and_then(|time| time.split_once('.'))
        .is_some_and(|(seconds, us)| [seconds, us].iter().all(|part| part.parse::<u64>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_logs_of_statements_are_told_by_their_first_lines() {
        for (text, expected) in [
            ("\u{fffd}\u{fffd}2\u{0}0\u{0}", "UTF-16"),
            ("\u{fffd}bin\u{0}", "binary log"),
            ("# The proper term is pseudo_replica_mode, but we use this compatibility alias\n", "binary log"),
            ("/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\n/*!50003 SET x=1*/;\n", "binary log"),
            ("\n# 150ms user time, 10ms system time, 25.33M rss, 111.11M vsz\n", "summary of a slow log"),
            ("Count: 1  Time=0.01s (0s)  Lock=0.00s (0s)  Rows=1.0 (1)\n", "summary of a slow log"),
            ("userid,dbid,queryid,query,calls\n10,5,-3,\"select $1\",7\n", "counted"),
            (" query | calls | mean_exec_time \n", "counted"),
            ("SCHEMA_NAME\tDIGEST\tDIGEST_TEXT\tCOUNT_STAR\n", "counted"),
            ("\"event_time\",\"user_host\",\"thread_id\",\"server_id\",\"command_type\",\"argument\"\n", "table"),
            ("timestamp,message\n1,x\n", "cloud"),
            ("{\"insertId\":\"x\",\"textPayload\":\"2026-11-28 …\"}\n", "cloud"),
            ("{\"log\":\"2026-11-28 …\\n\",\"stream\":\"stderr\",\"time\":\"…\"}\n", "container"),
            ("{\"t\":{\"$date\":\"2026-11-28T05:36:07.075Z\"},\"s\":\"I\",\"msg\":\"x\"}\n", "MongoDB"),
            ("OK\n1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"\n", "Redis"),
            ("Type: single-query\nQuery start time: 1530750927224\n", "Cassandra"),
            ("2026-11-28T05:36:07.075123456Z stderr F 2026-11-28 05:36:07.075 UTC [7] LOG:  x\n", "engine"),
            ("2026-11-28T05:36:07.075123456Z 2026-11-28 05:36:07.075 UTC [7] LOG:  x\n", "engine"),
            ("db-1  | \ndb-1  | 2026-11-28 05:36:07.075 UTC [7] LOG:  x\n", "engine"),
            ("Nov 28 05:36:07 db postgres[7]: [3-1] LOG:  x\n", "syslog"),
            ("2026-11-28T05:36:07.075123+01:00 db postgres[7]: [3-1] LOG:  x\n", "syslog"),
            ("2026-11-28T05:36:07.075123Z 0 [System] [MY-010116] [Server] mysqld starting\n", "error log"),
            ("2026-11-28  5:39:11 0 [Note] Starting MariaDB\n", "error log"),
            ("[\n  {\n    \"insertId\": \"x\",\n", "several lines"),
            ("<?xml version=\"1.0\"?>\n<AUDIT>\n", "XML"),
        ] {
            let told = problem(text).map(|problem| problem.what).unwrap_or_default();
            assert!(told.contains(expected), "{text}: {told}");
        }
        for log in [
            "2026-11-28 05:36:07.075 UTC [7] LOG:  statement: select query, calls from pg_stat_statements\n",
            "# Time: 261128  5:39:11\n# User@Host: root[root] @ localhost []\n",
            "261128  5:39:11\t     3 Query\tSET @@SESSION.PSEUDO_SLAVE_MODE=1\n",
            "2026-11-28T05:39:11.123456Z\t    3 Query\tselect ' [Note] '\n",
            "2026-11-28 05:36:07 UTC [7]: [1-1] u@d LOG:  statement: select 1 | 2026\n",
            "{\"timestamp\":\"2026-11-28 05:36:07.075 UTC\",\"message\":\"statement: select 1\"}\n",
            "",
        ] {
            assert_eq!(problem(log), None, "{log}");
        }
    }
}
