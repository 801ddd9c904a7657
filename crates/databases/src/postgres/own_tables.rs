//! Tables of the user's own on a running PostgreSQL.

mod production;

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    own_tables::{OwnStatement, OwnTable, OwnTables, Refusal, Survey},
    production::Production,
    session::{SqlSession as _, rows},
    setup::{Room, Setup},
};

use super::{
    Postgres,
    schema::{self, MARK, administrator, marked, run_unlocked},
    session::PostgresSession,
};

/// How long the check of a statement waits for a lock, s.
const LOCK_TIMEOUT_S: u16 = 2;

/// Error codes for names that the server does not know: table, schema, column, function (documentation, "PostgreSQL
/// Error Codes").
const UNKNOWN: [&str; 4] = ["42P01", "3F000", "42703", "42883"];

/// For a right that is missing: `insufficient_privilege`.
const DENIED: &str = "42501";

/// Schemas of the server's own, and of Tithe's.
const NOT_OF_USERS: &str = "nspname !~ '^pg_' AND nspname <> 'information_schema' AND obj_description(pg_namespace.oid, \
                            'pg_namespace') IS DISTINCT FROM 'made by tithe'";

struct Asking {
    session: PostgresSession,
    /// Where Tithe keeps its tables.
    space: String,
}

/// Opens a session that changes nothing.
fn asking(server: &Server, setup: &Setup) -> Result<Asking, Fault> {
    let mut session = administrator(server, setup)?;
    session.run("SET default_transaction_read_only = on")?;
    session.run(&format!("SET lock_timeout = '{LOCK_TIMEOUT_S}s'"))?;
    Ok(Asking { session, space: setup.space.clone() })
}

impl OwnTables for Postgres {
    fn survey(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Survey>, Fault> {
        Ok(Box::new(asking(server, setup)?))
    }

    fn production(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Production>, Fault> {
        Ok(Box::new(asking(server, setup)?))
    }

    fn copy(&self, server: &Server, setup: &Setup, name: &str) -> Result<(), Fault> {
        let from = administrator(server, setup)?.value(&format!(
            "SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
             WHERE pg_class.oid = {}::regclass",
            literal(name)
        ))?;
        let (mut session, space) = (schema::own_schema(server, setup)?, &setup.space);
        let to = format!("{space}.{name}");
        run_unlocked(&mut session, space, &schema::removal(&to))?;
        session.run(&marked(&format!("CREATE TABLE {to} (LIKE {from} INCLUDING ALL)"), &to))?;
        // Generated columns cannot be given values.
        let columns = session.value(&format!(
            "SELECT string_agg(format('%I', attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = \
             {}::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
            literal(&from)
        ))?;
        session.run(&format!("INSERT INTO {to} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {from}"))?;
        own_sequences(&mut session, space, &to)
    }
}

/// Gives the copy `to` its own sequences in the schema `space`, because it would otherwise advance those of the
/// original. All have Tithe's mark.
fn own_sequences(session: &mut PostgresSession, space: &str, to: &str) -> Result<(), Fault> {
    let drawn = format!(
        "SELECT quote_ident(attname), quote_ident('tithe_' || attrelid || '_' || attnum), \
         coalesce(pg_get_serial_sequence({0}, attname), '') FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND \
         adnum = attnum WHERE attrelid = {0}::regclass AND attnum > 0 AND NOT attisdropped AND (attidentity <> '' OR \
         pg_get_expr(adbin, adrelid) LIKE 'nextval(%')",
        literal(to)
    );
    for [column, sequence, of_identity] in rows(session, &drawn)? {
        let name = if of_identity.is_empty() {
            let name = format!("{space}.{sequence}");
            session.run(&format!(
                "CREATE SEQUENCE {name} OWNED BY {to}.{column}; ALTER TABLE {to} ALTER {column} SET DEFAULT \
                 nextval({}::regclass)",
                literal(&name)
            ))?;
            name
        } else {
            of_identity
        };
        session.run(&format!("COMMENT ON SEQUENCE {name} IS '{MARK}'"))?;
        let next =
            format!("SELECT setval({}::regclass, coalesce(max({column}), 0) + 1, false) FROM {to}", literal(&name));
        session.run(&next)?;
    }
    Ok(())
}

impl Survey for Asking {
    fn refusal(&mut self, statement: &OwnStatement) -> Result<Option<Refusal>, Fault> {
        let prepare = format!("PREPARE tithe_asks AS {}", statement.text.trim_end().trim_end_matches(';'));
        let values = vec!["NULL"; statement.parameters].join(", ");
        let values = if values.is_empty() { values } else { format!("({values})") };
        // Parsing resolves tables and columns; only a plan that is about to run checks privileges.
        let looked = self.session.run(&prepare).and_then(|_| {
            let looked = self.session.run(&format!("EXPLAIN EXECUTE tithe_asks{values}"));
            self.session.run("DEALLOCATE tithe_asks")?;
            looked
        });
        match looked {
            Err(Fault::Server(words) | Fault::Refused(words)) => {
                let is = |code: &&str| words.starts_with(*code);
                Ok(match (UNKNOWN.iter().any(is), is(&DENIED)) {
                    (true, _) => Some(Refusal::Unknown(words)),
                    (_, true) => Some(Refusal::Denied { words, grant: None }),
                    _ => None,
                })
            }
            Err(fault) => Err(fault),
            Ok(_) => Ok(None),
        }
    }

    fn named(&mut self, names: &BTreeSet<String>) -> Result<Vec<OwnTable>, Fault> {
        let sql = format!(
            "SELECT format('%I.%I', nspname, relname), format('%I', relname), relkind IN ('r', 'p'), \
             pg_table_is_visible(pg_class.oid), CASE WHEN has_schema_privilege(pg_namespace.oid, 'USAGE') THEN '' ELSE \
             format('GRANT USAGE ON SCHEMA %I TO %I', nspname, current_user) END, CASE WHEN \
             has_any_column_privilege(pg_class.oid, 'SELECT') THEN '' ELSE format('GRANT SELECT ON %I.%I TO %I', nspname, \
             relname, current_user) END FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind IN \
             ('r', 'p', 'v', 'm', 'f') AND {NOT_OF_USERS} AND relname = ANY({0}) AND (nspname = ANY({0}) OR nspname = \
             ANY(string_to_array(replace(replace(current_setting('search_path'), '\"', ''), '$user', current_user), ', '))) \
             ORDER BY 1",
            array(names)
        );
        let table = |[name, short, is_table, is_visible, usage, select]: [String; 6]| OwnTable {
            name,
            short,
            is_table: is_table == "t",
            is_visible: is_visible == "t",
            grants: [usage, select].into_iter().filter(|grant| !grant.is_empty()).collect(),
        };
        Ok(rows(&mut self.session, &sql)?.into_iter().map(table).collect())
    }

    fn changeable(&mut self, allowed: &[&OwnTable]) -> Result<Vec<String>, Fault> {
        let sql = format!(
            "SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
             WHERE relkind IN ('r', 'p', 'v', 'f') AND {NOT_OF_USERS} AND (has_table_privilege(pg_class.oid, 'INSERT, \
             UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(pg_class.oid, 'INSERT, UPDATE')) ORDER BY 1"
        );
        let all = rows(&mut self.session, &sql)?.into_iter().map(|[name]: [String; 1]| name);
        Ok(all.filter(|name| allowed.iter().all(|table| table.name != *name)).collect())
    }

    fn side_effects(&mut self, tables: &[&OwnTable], names: &BTreeSet<String>) -> Result<Vec<String>, Fault> {
        let changed: BTreeSet<String> = tables.iter().map(|table| table.name.clone()).collect();
        let of_changed = format!("ANY({}::regclass[])", array(&changed));
        let sql = format!(
            "SELECT format('foreign key %s of %s', conname, conrelid::regclass) FROM pg_constraint WHERE contype = 'f' AND \
             confrelid = {of_changed} AND conrelid <> ALL({0}::regclass[]) AND (confupdtype NOT IN ('a', 'r') OR confdeltype \
             NOT IN ('a', 'r')) UNION ALL SELECT format('trigger %s of %s', tgname, tgrelid::regclass) FROM pg_trigger JOIN \
             pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal AND prosecdef AND tgrelid = {of_changed} UNION ALL SELECT \
             format('rule %s of %s', rulename, ev_class::regclass) FROM pg_rewrite WHERE ev_type <> '1' AND ev_class = \
             {of_changed} UNION ALL SELECT format('table %s, which inherits from %s,', inhrelid::regclass, \
             inhparent::regclass) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent WHERE relkind = 'r' AND inhparent \
             = {of_changed} AND inhrelid <> ALL({0}::regclass[]) UNION ALL SELECT format('function %s', \
             pg_proc.oid::regproc) FROM pg_proc JOIN pg_namespace ON \
             pg_namespace.oid = pronamespace WHERE prosecdef AND {NOT_OF_USERS} AND proname = ANY({1})",
            array(&changed),
            array(names)
        );
        Ok(rows(&mut self.session, &sql)?.into_iter().map(|[words]: [String; 1]| words).collect())
    }

    fn room(&mut self, tables: &[&OwnTable]) -> Result<Room, Fault> {
        let names = tables.iter().map(|table| table.name.clone()).collect();
        // The parts of a partitioned table have its rows.
        let sql = format!(
            "SELECT coalesce(sum(pg_total_relation_size(own) + coalesce((SELECT sum(pg_total_relation_size(relid)) FROM \
             pg_partition_tree(own) WHERE relid <> own), 0)), 0)::bigint, CASE WHEN pg_has_role('pg_read_all_settings', \
             'USAGE') THEN current_setting('data_directory') ELSE '' END FROM unnest({}::regclass[]) AS own",
            array(&names)
        );
        let known = rows(&mut self.session, &sql)?.into_iter().next();
        Ok(known.map_or(Room::default(), |[bytes, folder]: [String; 2]| Room {
            bytes: bytes.parse().unwrap_or_default(),
            folder: (!folder.is_empty()).then(|| folder.into()),
        }))
    }

    fn makes_tables(&mut self) -> Result<bool, Fault> {
        Ok(may_create(&mut self.session, &self.space)? && self.session.value("SELECT pg_is_in_recovery()")? == "f")
    }

    fn account(&mut self, tables: &[&OwnTable], changed: &[&OwnTable]) -> String {
        let list = |tables: &[&OwnTable]| tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut text = format!("CREATE ROLE careful LOGIN PASSWORD '…'; GRANT SELECT ON {} TO careful", list(tables));
        if changed.is_empty() {
            let database = self.session.value("SELECT quote_ident(current_database())").unwrap_or_default();
            text += &format!("; GRANT CREATE ON DATABASE {database} TO careful");
        } else {
            text += &format!("; GRANT INSERT, UPDATE, DELETE ON {} TO careful", list(changed));
        }
        text
    }
}

/// True if the account may create objects in the schema `space`.
///
/// # Errors
/// The server's error.
pub fn may_create(session: &mut PostgresSession, space: &str) -> Result<bool, Fault> {
    let may = session.value(&format!(
        "SELECT has_database_privilege(current_database(), 'CREATE') OR EXISTS (SELECT 1 FROM pg_namespace WHERE \
         nspname = '{space}' AND has_schema_privilege(oid, 'CREATE'))"
    ))?;
    Ok(may == "t")
}

/// `text` as a literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `all` as an array of text.
fn array(all: &BTreeSet<String>) -> String {
    format!("ARRAY[{}]::text[]", all.iter().map(|text| literal(text)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use tithe_plugin::production::{ColumnValues, Counted};

    use super::*;
    use crate::{
        postgres::told::server,
        test_setup::plain,
        told::{Answer, Rows, Told},
    };

    fn shop() -> Told {
        let answers: Vec<Answer> = vec![
            ("PREPARE tithe_asks AS SELECT a FROM stock WHERE b = $1", Ok(&[])),
            ("EXPLAIN EXECUTE tithe_asks(NULL)", Ok(&[])),
            ("DEALLOCATE tithe_asks", Ok(&[])),
        ];
        server(Vec::new(), answers)
    }

    /// What an account learns from a server.
    fn asked<T>(told: &Told, look: impl FnOnce(&mut Asking) -> T) -> T {
        told.seen(|server| look(&mut asking(server, &plain()).expect("a session")))
    }

    fn table(name: &str, grants: &[&str]) -> OwnTable {
        let grants = grants.iter().map(|grant| (*grant).to_owned()).collect();
        OwnTable { name: format!("shop.{name}"), short: name.to_owned(), is_table: true, is_visible: false, grants }
    }

    #[test]
    fn a_statement_is_refused_for_names_and_privileges_alone() {
        let refusal = |told: &Told| {
            let text = "SELECT a FROM stock WHERE b = $1;".to_owned();
            let statement = OwnStatement { place: String::new(), text, parameters: 1 };
            asked(told, |asking| asking.refusal(&statement)).expect("a connection")
        };
        assert_eq!(refusal(&shop()), None);
        for words in ["PREPARE", "EXPLAIN"] {
            assert_eq!(refusal(&shop().failing(words, ("22P02", "it depends on the value"))), None, "{words}");
            for code in ["42P01", "3F000", "42703", "42883"] {
                let seen = refusal(&shop().failing(words, (code, "unknown")));
                assert!(matches!(seen, Some(Refusal::Unknown(_))), "{words} {code}: {seen:?}");
            }
            let seen = refusal(&shop().refusing(words));
            assert!(matches!(seen, Some(Refusal::Denied { grant: None, .. })), "{words}: {seen:?}");
        }
    }

    #[test]
    fn tables_are_listed_with_the_grants_that_the_account_lacks() {
        let told = shop().telling(
            "has_any_column_privilege",
            &[
                &["shop.stock", "stock", "t", "f", "GRANT USAGE", "GRANT SELECT"],
                &["shop.seen", "seen", "f", "t", "", ""],
            ],
        );
        let named = asked(&told, |asking| asking.named(&BTreeSet::from(["stock".to_owned()])));
        let seen = OwnTable { is_table: false, is_visible: true, ..table("seen", &[]) };
        assert_eq!(named, Ok(vec![table("stock", &["GRANT USAGE", "GRANT SELECT"]), seen]));
    }

    #[test]
    fn only_what_the_user_named_may_be_changed() {
        let told = shop().telling("has_table_privilege", &[&["shop.stock"], &["shop.orders"]]);
        let changeable = |allowed: &[&OwnTable]| asked(&told, |asking| asking.changeable(allowed)).expect("an answer");
        let [stock, orders] = ["stock", "orders"].map(|name| table(name, &[]));
        assert_eq!(changeable(&[]), ["shop.stock", "shop.orders"]);
        assert_eq!(changeable(&[&stock]), ["shop.orders"]);
        assert_eq!(changeable(&[&orders, &stock]), [""; 0]);
    }

    #[test]
    fn an_account_makes_tables_where_it_may_and_the_server_is_no_standby() {
        let rows = |told: &str| -> Rows { if told == "t" { &[&["t"]] } else { &[&["f"]] } };
        for (may, standby, makes) in [("t", "f", true), ("t", "t", false), ("f", "f", false), ("f", "t", false)] {
            let told = shop().telling("has_database_privilege", rows(may)).telling("pg_is_in_recovery", rows(standby));
            assert_eq!(asked(&told, |asking| asking.makes_tables()), Ok(makes), "{may} {standby}");
        }
    }

    #[test]
    fn the_folder_of_tables_is_known_if_the_account_may_see_it() {
        let room = |rows: Rows| asked(&shop().telling("pg_total_relation_size", rows), |asking| asking.room(&[]));
        assert_eq!(room(&[&["70", "/data"]]), Ok(Room { bytes: 70, folder: Some("/data".into()) }));
        assert_eq!(room(&[&["70", ""]]), Ok(Room { bytes: 70, folder: None }));
    }

    #[test]
    fn a_server_that_counts_nothing_or_shows_nothing_is_refused() {
        const COUNTER: &str = "extname = 'pg_stat_statements'";
        const SEES: &str = "pg_has_role('pg_read_all_stats', 'USAGE')";
        let told = shop()
            .telling(".pg_stat_statements WHERE query", &[&["SELECT $1", "5", "7000", "12"]])
            .telling(COUNTER, &[&["public", "170000"]])
            .telling(SEES, &[&["t"]]);
        let counted = |told: Told| asked(&told, |asking| asking.counted()).map_err(|fault| fault.to_string());
        let one = Counted { text: "SELECT $1".to_owned(), calls: 5, ns: 7000, rows: 12 };
        assert_eq!(counted(told.clone()), Ok(vec![one]));
        let none = counted(told.clone().telling(COUNTER, &[]));
        assert!(none.is_err_and(|words| words.starts_with("refused: the server counts no statements")));
        let hidden = told
            .clone()
            .telling(SEES, &[&["f"]])
            .telling("SELECT relname FROM pg_class WHERE relkind", &[&["stock"]])
            .telling("has_any_column_privilege", &[&["stock", "stock", "t", "t", "", "GRANT SELECT ON stock TO ann"]])
            .telling("format('GRANT pg_read_all_stats", &[&["GRANT pg_read_all_stats TO ann"]]);
        let run = "GRANT SELECT ON stock TO ann; GRANT pg_read_all_stats TO ann";
        assert_eq!(counted(hidden), Err(format!("refused: the account may not see what was counted: run `{run}`")));
        // The names of columns are those of its version.
        let versions: [(Rows, &str, &str, bool); 3] = [
            (&[&["public", "120000"]], "sum(total_time)", "sum(total_exec_time)", false),
            (&[&["public", "130000"]], "sum(total_exec_time)", "sum(total_time)", false),
            (&[&["public", "140000"]], "sum(total_exec_time)", "sum(total_time)", true),
        ];
        for (version, time, other, is_top) in versions {
            let told = told.clone().telling(COUNTER, version);
            let fails = |words| counted(told.clone().failing(words, ("42703", "no"))).is_err();
            assert_eq!([fails(time), fails(other), fails(" AND toplevel")], [true, false, is_top], "{version:?}");
        }
    }

    #[test]
    fn statistics_are_read_by_column() {
        let told = shop().telling(
            "FROM pg_stats",
            &[
                &["stock", "id", "t", "t", "b", "1", ""],
                &["stock", "id", "t", "t", "b", "9", ""],
                &["stock", "name", "f", "f", "v", "oak", "0.5"],
                &["stock", "name", "f", "f", "b", "elm", ""],
                &["trees", "name", "f", "f", "", "", ""],
            ],
        );
        let column = |table: &str, column: &str, is_whole, is_key| {
            let (table, column) = (table.to_owned(), column.to_owned());
            ColumnValues { table, column, is_whole, is_key, ..ColumnValues::default() }
        };
        let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<String>>();
        let common = vec![("oak".to_owned(), 0.5)];
        let expected = vec![
            ColumnValues { bounds: texts(&["1", "9"]), ..column("stock", "id", true, true) },
            ColumnValues { common, bounds: texts(&["elm"]), ..column("stock", "name", false, false) },
            column("trees", "name", false, false),
        ];
        assert_eq!(asked(&told, |asking| asking.columns(&BTreeSet::new())), Ok(expected));
    }

    #[test]
    fn a_counted_statement_is_left_out_if_the_server_cannot_prepare_it() {
        let refuses = |told: Told| asked(&told, |asking| asking.refuses("SELECT a FROM stock WHERE b = $1; "));
        assert_eq!(refuses(shop()), Ok(None));
        let unknown = refuses(shop().failing("PREPARE", ("42P01", "no stock")));
        assert_eq!(unknown, Ok(Some("42P01: no stock".to_owned())));
    }
}
