//! pgbench's built-in scripts and their tables, on every product.

use std::sync::atomic::{AtomicU64, Ordering};

use tithe_machine::fault::Fault;
use tithe_model::catalogue::Preset;
use tithe_plugin::{
    session::{Discard, Parameter, SqlSession, Statement},
    sql::{Column, ColumnType, Sensitivity, SqlTable, insert},
};

/// Rows of `pgbench_accounts` for each unit of scale.
const ACCOUNTS: u64 = 100_000;
/// Rows of `pgbench_tellers` for each unit of scale.
const TELLERS: u64 = 10;

const TPCB_LIKE: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
";

const SIMPLE_UPDATE: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
";

const SELECT_ONLY: &str = "\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

/// The prefix of a built-in script's name.
pub const PREFIX: &str = "builtin:";

/// The scripts by name, as sets of properties.
pub const PRESETS: &[Preset] = &[
    (
        "builtin:tpcb-like",
        "pgbench's: three updates, a select and an insert in a transaction",
        &[("script", TPCB_LIKE), ("file", "builtin:tpcb-like")],
    ),
    (
        "builtin:simple-update",
        "The same without the tables that all clients update",
        &[("script", SIMPLE_UPDATE), ("file", "builtin:simple-update")],
    ),
    ("builtin:select-only", "One select by key", &[("script", SELECT_ONLY), ("file", "builtin:select-only")]),
];

const fn number(name: &'static str) -> Column {
    Column::new(name, ColumnType::Integer, Sensitivity::Figure)
}

const fn filler(length: usize) -> Column {
    Column::new("filler", ColumnType::Text(length), Sensitivity::Remark).nullable()
}

/// The tables of the built-in scripts.
pub static TABLES: [SqlTable; 4] = [
    SqlTable {
        name: "pgbench_branches",
        columns: &[number("bid"), number("bbalance").nullable(), filler(88)],
        key: &["bid"],
        indexes: &[],
    },
    SqlTable {
        name: "pgbench_tellers",
        columns: &[number("tid"), number("bid").nullable(), number("tbalance").nullable(), filler(84)],
        key: &["tid"],
        indexes: &[],
    },
    SqlTable {
        name: "pgbench_accounts",
        columns: &[number("aid"), number("bid").nullable(), number("abalance").nullable(), filler(84)],
        key: &["aid"],
        indexes: &[],
    },
    SqlTable {
        name: "pgbench_history",
        columns: &[
            number("tid").nullable(),
            number("bid").nullable(),
            number("aid").nullable(),
            number("delta").nullable(),
            Column::new("mtime", ColumnType::Text(40), Sensitivity::Remark).nullable(),
            filler(22),
        ],
        key: &[],
        indexes: &[],
    },
];

/// Rows of all tables at `scale`.
pub fn rows(scale: u64) -> u64 {
    scale * (1 + TELLERS + ACCOUNTS)
}

/// Rows in one request.
const AT_ONCE: u64 = 1000;

/// Loads part `partition` of `of` of the tables at `scale`.
///
/// # Errors
/// The first fault.
pub fn load(
    scale: u64,
    session: &mut dyn SqlSession,
    (partition, of): (u64, u64),
    done: &AtomicU64,
) -> Result<(), Fault> {
    // Letters because pgbench leaves the fillers of branches and tellers NULL, and pads that of accounts.
    let padding = [b' '; 84];
    for (table, (each, padded)) in TABLES.iter().zip([(1, false), (TELLERS, false), (ACCOUNTS, true)]) {
        let filler = if padded { Parameter::Text(&padding) } else { Parameter::Null };
        let mut several: Option<Statement> = None;
        let rows = each * scale;
        for batch in (0..rows.div_ceil(AT_ONCE)).filter(|batch| batch % of == partition) {
            let (first, behind) = (batch * AT_ONCE, ((batch + 1) * AT_ONCE).min(rows));
            let mut values = Vec::new();
            for row in first..behind {
                values.push(Parameter::Integer(row as i64 + 1));
                if each > 1 {
                    values.push(Parameter::Integer((row / each) as i64 + 1));
                }
                values.extend([Parameter::Integer(0), filler]);
            }
            if session.submit_copy(table, &values)? {
                session.finish(&mut Discard)?;
            } else {
                let count = behind - first;
                let statement = match several.filter(|_| count == AT_ONCE) {
                    Some(statement) => statement,
                    None => {
                        let statement = session.prepare(&anonymous(&insert(table, count as usize)))?;
                        several = (count == AT_ONCE).then_some(statement);
                        statement
                    }
                };
                session.call(statement, &values, &mut Discard)?;
            }
            done.fetch_add(behind - first, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// `sql` with `?` for each `?name`.
fn anonymous(sql: &str) -> String {
    let mut parts = sql.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "?" + part.trim_start_matches(|sign: char| sign.is_ascii_alphanumeric() || sign == '_')
    })
}
