//! Tables of the user's own on a running PostgreSQL.
//!
//! Which tables a statement names is seen by the locks that its preparation takes: parsing locks every table and view
//! that it names in the mode of what it does there, and nothing is carried out. EXPLAIN would say less: where a
//! parameter is NULL, the planner leaves out tables of which no row can match.

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    own_tables::{OwnTable, OwnTables, Touched, is_control, keyword, refuse_namesakes, rights},
    session::SqlSession as _,
    setup::Setup,
};

use super::{
    Postgres,
    schema::{self, administrator, marked},
    session::PostgresSession,
};

/// Modes in which a statement locks what it reads.
const READS: &str = "AccessShareLock";

impl OwnTables for Postgres {
    fn touched(&self, server: &Server, setup: &Setup, statement: &str, _parameters: usize) -> Result<Touched, Fault> {
        let mut touched = Touched::default();
        if is_control(statement) {
            return Ok(touched);
        }
        let mut session = administrator(server, setup)?;
        session.run("BEGIN READ ONLY")?;
        session.run(&format!("PREPARE tithe_asks AS {}", statement.trim_end().trim_end_matches(';')))?;
        // The catalogue is locked as well. The tables of a view are read with the rights of its owner.
        let locks = "SELECT nspname, relname, mode FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_namespace \
                     ON pg_namespace.oid = relnamespace WHERE pid = pg_backend_pid() AND relkind IN ('r', 'p', 'v', 'm', \
                     'f') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND (mode <> 'AccessShareLock' OR \
                     NOT EXISTS (SELECT FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid JOIN pg_locks AS of_view ON \
                     of_view.relation = ev_class WHERE of_view.pid = pg_backend_pid() AND refobjid = pg_class.oid AND \
                     ev_class <> pg_class.oid))";
        for row in session.run(locks)? {
            let Ok([Some(schema), Some(name), Some(mode)]) = <[_; 3]>::try_from(row) else { continue };
            let table = OwnTable { schema, name };
            if mode == READS {
                touched.reads.insert(table);
            } else {
                let word = keyword(statement);
                touched.needs.extend(rights(&word).iter().map(|right| (*right, table.clone())));
                // Rows that are locked only are written by nobody: SELECT … FOR UPDATE.
                let set = if mode == "RowShareLock" { &mut touched.reads } else { &mut touched.writes };
                set.insert(table);
            }
        }
        // Ends the transaction too.
        session.run("ROLLBACK")?;
        Ok(touched)
    }

    fn missing(&self, server: &Server, setup: &Setup, touched: &Touched) -> Result<Vec<String>, Fault> {
        let mut session = administrator(server, setup)?;
        let reads = touched.reads.union(&touched.writes).map(|table| ("SELECT", table));
        let others = touched.needs.iter().map(|(right, table)| (*right, table));
        let all: BTreeSet<(&OwnTable, &str)> = reads.chain(others).map(|(right, table)| (table, right)).collect();
        let (mut schemas, mut grants) = (BTreeSet::new(), BTreeSet::new());
        for (table, right) in all {
            let (schema, name) = (literal(&table.schema), literal(&table.name));
            let usage = session.value(&format!("SELECT has_schema_privilege({schema}, 'USAGE')"))?;
            if usage != "t" {
                schemas.insert(
                    session
                        .value(&format!("SELECT format('GRANT USAGE ON SCHEMA %I TO %I', {schema}, current_user)"))?,
                );
            }
            // By number, because a name is not found in a schema that may not be used.
            let may = format!(
                "SELECT has_table_privilege(pg_class.oid, '{right}') OR ('{right}' <> 'DELETE' AND \
                 has_any_column_privilege(pg_class.oid, '{}')) FROM \
                 pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = {schema} AND relname = {name}",
                // No column can be deleted by itself.
                if right == "DELETE" { "SELECT" } else { right }
            );
            if session.value(&may)? != "t" {
                grants.insert(session.value(&format!(
                    "SELECT format('GRANT {right} ON %I.%I TO %I', {schema}, {name}, current_user)"
                ))?);
            }
        }
        Ok(schemas.into_iter().chain(grants).collect())
    }

    fn copy(&self, server: &Server, setup: &Setup, tables: &BTreeSet<OwnTable>) -> Result<(), Fault> {
        refuse_namesakes(tables)?;
        let mut session = schema::own_schema(server, setup)?;
        tables.iter().try_for_each(|table| copy(&mut session, &setup.space, table))
    }
}

fn copy(session: &mut PostgresSession, space: &str, table: &OwnTable) -> Result<(), Fault> {
    let quoted = |session: &mut PostgresSession, schema: &str| {
        session.value(&format!("SELECT format('%I.%I', {}, {})", literal(schema), literal(&table.name)))
    };
    let (from, to) = (quoted(session, &table.schema)?, quoted(session, space)?);
    let kind = session.value(&format!("SELECT relkind FROM pg_class WHERE oid = {}::regclass", literal(&from)))?;
    if kind != "r" && kind != "p" {
        return Err(Fault::Refused(format!(
            "{table} is no table, and a copy of what it shows would not follow the copies of its tables: let the \
             statements name tables"
        )));
    }
    schema::run_unlocked(session, space, &format!("DROP TABLE IF EXISTS {to}"))?;
    session.run(&marked(&format!("CREATE TABLE {to} (LIKE {from} INCLUDING ALL)"), &to))?;
    // Generated columns take no values.
    let columns = session.value(&format!(
        "SELECT string_agg(format('%I', attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = {}::regclass AND \
         attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        literal(&from)
    ))?;
    session.run(&format!("INSERT INTO {to} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {from}"))?;
    own_sequences(session, space, (&from, &to))?;
    session.run(&format!("ANALYZE {to}")).map(drop)
}

/// Gives the copy `to` sequences of its own, in place of those of the original `from`, which would go on; all bear
/// Tithe's mark.
fn own_sequences(session: &mut PostgresSession, space: &str, (from, to): (&str, &str)) -> Result<(), Fault> {
    let drawn = format!(
        "SELECT quote_ident(attname), quote_ident(attname || '_' || md5(attrelid::regclass::text)), attidentity <> '' FROM \
         pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = {}::regclass AND attnum \
         > 0 AND NOT attisdropped AND (attidentity <> '' OR pg_get_expr(adbin, adrelid) LIKE 'nextval(%')",
        literal(to)
    );
    for row in session.run(&drawn)? {
        let Ok([Some(column), Some(sequence), Some(identity)]) = <[_; 3]>::try_from(row) else { continue };
        let name = if identity == "t" {
            session.value(&format!(
                "SELECT pg_get_serial_sequence({}, {})",
                literal(to),
                literal(column.trim_matches('"'))
            ))?
        } else {
            let name = format!("{space}.{sequence}");
            session.run(&format!(
                "CREATE SEQUENCE {name} OWNED BY {to}.{column}; ALTER TABLE {to} ALTER {column} SET DEFAULT \
                 nextval({}::regclass)",
                literal(&name)
            ))?;
            name
        };
        session.run(&format!("COMMENT ON SEQUENCE {name} IS '{}'", schema::MARK))?;
        session.run(&format!(
            "SELECT setval({}::regclass, coalesce(max({column}), 0) + 1, false) FROM {from}",
            literal(&name)
        ))?;
    }
    Ok(())
}

/// `text` as a literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
