//! What a running PostgreSQL has counted in `pg_stat_statements`, and its column statistics in `pg_stats`.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_model::catalogue::WireProtocol;
use tithe_plugin::{
    own_tables::Survey as _,
    production::{ColumnValues, Counted, Production},
    session::{SqlSession as _, rows},
};

use super::{Asking, NOT_OF_USERS, array};

/// How to make a server count statements.
const COUNTS: &str = "have shared_preload_libraries name pg_stat_statements, restart the server, and run `CREATE EXTENSION \
                      pg_stat_statements` in this database";

impl Asking {
    /// Missing privileges: to see the statements of others and, if that is missing, to read the tables that they may
    /// name.
    fn lacking(&mut self) -> Result<Vec<String>, Fault> {
        if self.session.value("SELECT pg_has_role('pg_read_all_stats', 'USAGE')")? == "t" {
            return Ok(Vec::new());
        }
        let tables = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')";
        let tables = rows(&mut self.session, tables)?.into_iter().map(|[name]: [String; 1]| name).collect();
        let mut grants: BTreeSet<String> = self.named(&tables)?.into_iter().flat_map(|table| table.grants).collect();
        grants.insert(self.session.value("SELECT format('GRANT pg_read_all_stats TO %I', current_user)")?);
        Ok(grants.into_iter().collect())
    }
}

impl Production for Asking {
    fn protocol(&self) -> WireProtocol {
        WireProtocol::Postgres
    }

    fn sources(&self) -> (&'static str, &'static str) {
        ("pg_stat_statements", "pg_stats")
    }

    fn counted(&mut self) -> Result<Vec<Counted>, Fault> {
        let schema = "SELECT format('%I', nspname), current_setting('server_version_num') FROM pg_extension JOIN pg_namespace \
                      ON pg_namespace.oid = extnamespace WHERE extname = 'pg_stat_statements'";
        let Some([schema, version]) = rows(&mut self.session, schema)?.into_iter().next() else {
            return Err(Fault::Refused(format!("the server counts no statements in this database: {COUNTS}")));
        };
        let version: u32 = version.parse().unwrap_or_default();
        let lacking = self.lacking()?;
        if !lacking.is_empty() {
            let words = format!("the account may not see what was counted: run `{}`", lacking.join("; "));
            return Err(Fault::Refused(words));
        }
        let took = if version >= 130_000 { "total_exec_time" } else { "total_time" };
        let top = if version >= 140_000 { " AND toplevel" } else { "" };
        let sql = format!(
            "SELECT query, sum(calls)::bigint, (sum({took}) * 1e6)::bigint, sum(rows)::bigint FROM \
             {schema}.pg_stat_statements WHERE query IS NOT NULL AND dbid = (SELECT oid FROM pg_database WHERE datname = \
             current_database()){top} GROUP BY query ORDER BY 3 DESC, 1"
        );
        let counted = rows(&mut self.session, &sql).map_err(|fault| match fault {
            Fault::Server(words) => Fault::Refused(format!("pg_stat_statements says {words}: {COUNTS}")),
            fault => fault,
        })?;
        Ok(counted.into_iter().map(Counted::of).collect())
    }

    fn columns(&mut self, names: &BTreeSet<String>) -> Result<Vec<ColumnValues>, Fault> {
        let sql = format!(
            "SELECT relname, named.attname, is_whole, is_key, coalesce(kind, ''), coalesce(value, ''), coalesce(share, '') \
             FROM (SELECT nspname, relname, attname, attnum, atttypid IN (20, 21, 23) AS is_whole, EXISTS (SELECT 1 FROM \
             pg_index WHERE indrelid = pg_class.oid AND indisunique AND attnum = ANY(indkey)) AS is_key FROM pg_class JOIN \
             pg_namespace ON pg_namespace.oid = relnamespace JOIN pg_attribute ON attrelid = pg_class.oid WHERE relkind IN \
             ('r', 'p', 'm', 'f') AND {NOT_OF_USERS} AND pg_table_is_visible(pg_class.oid) AND relname = ANY({0}) AND attname \
             = ANY({0}) AND attnum > 0 AND NOT attisdropped) AS named LEFT JOIN (SELECT schemaname, tablename, attname, 'v' AS \
             kind, value, share::text, place FROM pg_stats, unnest(most_common_vals::text::text[], most_common_freqs) WITH \
             ORDINALITY AS common (value, share, place) WHERE tablename = ANY({0}) UNION ALL SELECT schemaname, tablename, \
             attname, 'b', value, '', place FROM pg_stats, unnest(histogram_bounds::text::text[]) WITH ORDINALITY AS bounds \
             (value, place) WHERE tablename = ANY({0})) AS known ON schemaname = nspname AND tablename = relname AND \
             known.attname = named.attname ORDER BY relname, attnum, kind, place",
            array(names)
        );
        let mut columns: Vec<ColumnValues> = Vec::new();
        for [table, column, is_whole, is_key, kind, value, share] in rows::<7>(&mut self.session, &sql)? {
            if columns.last().is_none_or(|last| (&last.table, &last.column) != (&table, &column)) {
                let (is_whole, is_key) = (is_whole == "t", is_key == "t");
                columns.push(ColumnValues { table, column, is_whole, is_key, ..ColumnValues::default() });
            }
            let Some(last) = columns.last_mut() else { continue };
            match kind.as_str() {
                "v" => last.common.push((value, share.parse().unwrap_or_default())),
                "b" => last.bounds.push(value),
                _ => {}
            }
        }
        Ok(columns)
    }

    fn grants(&mut self, _statements: &[&Counted], names: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault> {
        Ok(self.named(names)?.into_iter().flat_map(|table| table.grants).collect())
    }

    fn refuses(&mut self, text: &str) -> Result<Option<String>, Fault> {
        match self.session.run(&format!("PREPARE tithe_asks AS {}", text.trim_end().trim_end_matches(';'))) {
            Ok(_) => self.session.run("DEALLOCATE tithe_asks").map(|_| None),
            Err(Fault::Server(words) | Fault::Refused(words)) => Ok(Some(words)),
            Err(fault) => Err(fault),
        }
    }
}
