//! Does a client only see and change the rows of its own tenant?

use tithe_machine::{fault::Fault, launch::Server, observation::Observation};
use tithe_plugin::{
    checks::canary::key_value,
    evidence::{Check, CheckContext, CheckEntry},
    session::{Connection as _, Discard, Request, SqlSession as _},
    setup::Setup,
};

use crate::{
    evidence::marked::marker,
    postgres::{
        schema::{MEMBERS_SUFFIX, YCSB_DIALECT},
        session::PostgresSession,
        target::PRODUCT,
    },
    target::is_local,
};

/// The column with the tenant.
pub const TENANT: &str = "tithe_tenant";

/// The setting with which a client names its tenant.
pub const ASKED_FOR: &str = "tithe.tenant";

/// How many rows are counted in a table: the check only needs to know whether there are any.
const ROWS: u32 = 1000;

/// Works as a measured client, on every table of the workload. It asks the server whether policies apply to this
/// account and counts the rows that it sees. Then it does the same as another tenant, and as that tenant tries to
/// change a row and to insert one for someone else. All changes are rolled back.
pub struct RowsApart;

impl Check for RowsApart {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rows-apart")
    }

    fn claim(&self) -> String {
        "a client sees and changes rows of its own tenant, and of no other".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut client = client(context.server, context.setup)?;
        let (tables, space) = (tables(&mut client, &context.setup.space)?, &context.setup.space);
        // Of records by key one row at least is there, whatever was loaded.
        let has_records = tables.contains(&context.table.name);
        let planted = if has_records { Some(plant(context)?) } else { None };
        let looks: Result<Vec<Look>, Fault> = tables
            .iter()
            .map(|table| Look::at(&mut client, table.clone(), &YCSB_DIALECT.qualified(space, &named(table))))
            .collect();
        if let Some(key) = planted {
            key_value(context.connect()?)?.call(&Request::Delete { key: key.as_bytes() }, &mut Discard)?;
        }
        let account = client.value(
            "SELECT format('%I%s%s', rolname, CASE WHEN rolsuper THEN ', a superuser' END, CASE WHEN rolbypassrls AND \
             NOT rolsuper THEN ', which has BYPASSRLS' END) FROM pg_roles WHERE rolname = current_user",
        )?;
        Ok(judged(&looks?, &account))
    }
}

/// The table called `name`.
fn named(name: &str) -> tithe_plugin::session::Table {
    tithe_plugin::session::Table { name: name.to_owned(), fields: 0, field_prefix: String::new() }
}

/// A session as the measured clients have it.
pub(super) fn client(server: &Server, setup: &Setup) -> Result<PostgresSession, Fault> {
    let mut session = PostgresSession::open(&PRODUCT.target(server, setup)?, is_local(server))?;
    setup.session_statements.iter().try_for_each(|statement| session.run_statement(statement))?;
    Ok(session)
}

/// The workload's tables in the schema `space`.
pub(super) fn tables(session: &mut PostgresSession, space: &str) -> Result<Vec<String>, Fault> {
    let listed = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = '{space}'::regnamespace AND relkind = 'r' AND relname NOT \
         LIKE '%{MEMBERS_SUFFIX}' AND relname <> 'tithe_undo' ORDER BY relname"
    );
    Ok(session.run(&listed)?.into_iter().flatten().flatten().collect())
}

/// Inserts a record as a client does; its key.
fn plant(context: &CheckContext<'_>) -> Result<String, Fault> {
    let key = marker(context);
    let values: Vec<(usize, &[u8])> = (0..context.table.fields).map(|field| (field, &b"row"[..])).collect();
    key_value(context.connect()?)?.call(&Request::Insert { key: key.as_bytes(), values: &values }, &mut Discard)?;
    Ok(key)
}

/// What one table showed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    table: String,
    /// The server reports that policies apply to this account on it.
    active: bool,
    /// Rows that the client sees as itself, [`ROWS`] at most.
    own: u64,
    /// Rows that it sees as another tenant.
    other: u64,
    /// Rows that it could change as another tenant; only one is tried.
    changed: u64,
    /// It put a row in as another tenant's.
    given_away: bool,
}

impl Look {
    /// Looks at the table `name`, which is written as `quoted` in statements.
    fn at(session: &mut PostgresSession, table: String, quoted: &str) -> Result<Self, Fault> {
        let count = format!("SELECT count(*) FROM (SELECT FROM {quoted} LIMIT {ROWS}) AS seen");
        let column = format!(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{quoted}'::regclass AND attnum = 1"
        );
        let column = session.value(&column)?;
        let number = |session: &mut PostgresSession, sql: &str| -> Result<u64, Fault> {
            let text = session.value(sql)?;
            text.parse().map_err(|_| Fault::Wrong(format!("no number: {text}")))
        };
        let active = session.value(&format!("SELECT row_security_active('{quoted}')"))? == "t";
        let own = number(session, &count)?;
        let given_away = own > 0 && given_away(session, quoted)?;
        session.run("BEGIN")?;
        session.run(&format!("SET LOCAL {ASKED_FOR} = 'another'"))?;
        let other = number(session, &count)?;
        let change = format!(
            "WITH changed AS (UPDATE {quoted} SET {column} = {column} WHERE ctid = (SELECT ctid FROM {quoted} LIMIT 1) \
             RETURNING 1) SELECT count(*) FROM changed"
        );
        let changed = number(session, &change);
        session.run("ROLLBACK")?;
        Ok(Self { table, active, own, other, changed: changed?, given_away })
    }

    /// What is wrong with it, in words.
    fn flaws(&self) -> Vec<String> {
        let mut flaws = Vec::new();
        if !self.active {
            flaws.push("no policy holds the account".to_owned());
        }
        if self.other > 0 {
            flaws.push(format!("another tenant sees {} of {} rows", self.other, self.own));
        }
        if self.changed > 0 {
            flaws.push("another tenant changes a row".to_owned());
        }
        if self.given_away {
            flaws.push("a row can be put in as another tenant's".to_owned());
        }
        flaws
    }
}

/// The server's error for a duplicate key (documentation, "PostgreSQL Error Codes": `unique_violation`). It comes only
/// after the policies have let the row pass.
const UNIQUE: &str = "23505";

/// Tries to insert a row of the client again, as another tenant's, into the table `quoted`; true if no policy refuses
/// it.
fn given_away(session: &mut PostgresSession, quoted: &str) -> Result<bool, Fault> {
    let columns = session.value(&format!(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = \
         '{quoted}'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> '{TENANT}'"
    ))?;
    session.run("BEGIN")?;
    let given = session
        .run(&format!("INSERT INTO {quoted} ({columns}, {TENANT}) SELECT {columns}, 'another' FROM {quoted} LIMIT 1"));
    session.run("ROLLBACK")?;
    Ok(has_passed(given))
}

/// True if a row that was to be inserted has passed the policies.
fn has_passed<T>(given: Result<T, Fault>) -> bool {
    match given {
        Err(Fault::Server(words)) => words.starts_with(UNIQUE),
        given => given.is_ok(),
    }
}

/// What all tables show to `account`, and its other properties.
fn judged(looks: &[Look], account: &str) -> Observation {
    let flawed: Vec<String> = looks
        .iter()
        .filter(|look| !look.flaws().is_empty())
        .map(|look| format!("{}: {}", look.table, look.flaws().join(", ")))
        .collect();
    if !flawed.is_empty() {
        return Observation::Exposed(format!("as {account}: {}", flawed.join("; ")));
    }
    let rows: u64 = looks.iter().map(|look| look.own).sum();
    if rows == 0 {
        return Observation::Unknown(format!("as {account}: no table has a row to be seen"));
    }
    let some = looks.iter().map(|look| format!("{}: {} rows as itself, 0 as another tenant", look.table, look.own));
    Observation::Protected(format!(
        "as {account}: {} (of {ROWS} at most); another tenant changes no row, and none can be put in as its own",
        some.collect::<Vec<_>>().join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        postgres::told::server,
        told::{Rows, Told},
    };

    /// A server with one table, of which every tenant sees these rows, and changes none.
    fn showing(rows: Rows) -> Told {
        server(
            Vec::new(),
            vec![
                ("relkind = 'r'", Ok(&[&["orders"]])),
                ("SELECT quote_ident(attname)", Ok(&[&["id"]])),
                ("row_security_active", Ok(&[&["t"]])),
                ("AS seen", Ok(rows)),
                ("string_agg(quote_ident(attname)", Ok(&[&["id, amount"]])),
                ("INSERT INTO", Err(("42501", "new row violates row-level security policy"))),
                ("FROM changed", Ok(&[&["0"]])),
                ("rolbypassrls", Ok(&[&["ann"]])),
                ("BEGIN", Ok(&[])),
                ("ROLLBACK", Ok(&[])),
            ],
        )
    }

    #[test]
    fn each_flaw_of_a_table_is_seen_and_none_where_no_row_is() {
        let (seven, none) = (|| showing(&[&["7"]]), || showing(&[&["0"]]));
        let changes: [fn(Told) -> Told; 5] = [
            |told| told,
            |told| told.telling("row_security_active", &[&["f"]]),
            |told| told.telling("FROM changed", &[&["1"]]),
            |told| told.telling("INSERT INTO", &[]),
            |told| told.failing("INSERT INTO", ("23505", "duplicate key")),
        ];
        let given_away = "another tenant sees 7 of 7 rows, a row can be put in as another tenant's";
        let flaws = [
            "another tenant sees 7 of 7 rows",
            "no policy holds the account, another tenant sees 7 of 7 rows",
            "another tenant sees 7 of 7 rows, another tenant changes a row",
            given_away,
            given_away,
        ];
        for (change, flaws) in changes.into_iter().zip(flaws) {
            assert_eq!(change(seven()).observed(&RowsApart), format!("exposed: as ann: orders: {flaws}"));
        }
        // Without a row of its own a client puts none in for another tenant.
        let unknown = "unknown: as ann: no table has a row to be seen";
        let seen = [0, 3, 4].map(|change: usize| changes[change](none()).observed(&RowsApart));
        assert_eq!(seen, [unknown; 3]);
        let unprotected = changes[1](none()).observed(&RowsApart);
        assert_eq!(unprotected, "exposed: as ann: orders: no policy holds the account");
    }

    #[test]
    fn a_row_whose_key_alone_is_refused_has_passed_the_policies() {
        let of_error = |fault: fn(String) -> Fault, words: &str| has_passed(Err::<(), _>(fault(words.to_owned())));
        assert!(has_passed(Ok(())) && of_error(Fault::Server, "23505: duplicate key"));
        assert!(!of_error(Fault::Server, "42501: new row violates row-level security policy"));
        assert!(!of_error(Fault::Connection, "23505: duplicate key") && !of_error(Fault::Refused, "no right"));
    }

    #[test]
    fn one_flaw_on_one_table_is_enough() {
        let kept = Look { table: "a".to_owned(), active: true, own: 7, other: 0, changed: 0, given_away: false };
        let holds = |looks: &[Look]| match judged(looks, "x") {
            Observation::Protected(_) => Some(true),
            Observation::Exposed(_) => Some(false),
            _ => None,
        };
        assert_eq!(holds(&[kept.clone(), Look { own: 0, ..kept.clone() }]), Some(true));
        assert_eq!(holds(&[Look { own: 0, ..kept.clone() }]), None);
        assert_eq!(holds(&[]), None);
        for flawed in [
            Look { active: false, ..kept.clone() },
            Look { other: 1, ..kept.clone() },
            Look { changed: 1, ..kept.clone() },
            Look { given_away: true, ..kept.clone() },
        ] {
            assert_eq!(holds(&[kept.clone(), flawed]), Some(false));
        }
    }
}
