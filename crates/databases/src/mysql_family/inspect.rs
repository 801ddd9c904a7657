//! The security matrix of a running server: the rows that are looked at in the same way on both products.

use std::path::{Path, PathBuf};

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    session::{SqlSession as _, Table},
    setup::Setup,
};

use super::{
    Flavour,
    access::Access,
    accounts::{self, Account, Gate, ReadAccounts},
    proof::CACHING_SHA2,
    schema::{YCSB_DIALECT, tls_of},
    session::WireSession,
};
use crate::{
    inspect::{Judgement, Open, Rules, authentication, client_rows, inspect_feature, not_offered, transport},
    target::is_local,
};

/// A row that each product looks at in its own way.
pub type InspectionQuery = fn(&mut WireSession) -> Result<Judgement, Fault>;

/// How one product looks at its own rows.
pub struct InspectionQueries {
    /// Opens and closes a connection.
    pub open: Open,
    /// As [`Access::plaintext`].
    pub plaintext: Open,
    /// True for a grant, in the words of `SHOW GRANTS`, that lets an account read the table of accounts.
    pub is_of_administrator: fn(&str) -> bool,
    /// All accounts that may log in.
    pub accounts: ReadAccounts,
    /// Encryption at rest.
    pub at_rest: InspectionQuery,
    /// Auditing.
    pub auditing: InspectionQuery,
}

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(flavour: &Flavour, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let queries = flavour.queries;
    let target = flavour.access.product.target(server, setup)?;
    let mut session = flavour.access.open(&target)?;
    let method = session.method().to_owned();
    let tls = tls_of(&mut session)?;
    let accounts = (queries.accounts)(&mut session);
    let gate = Gate::read(&mut session)?;
    let of_all =
        |judge: &dyn Fn(&[Account]) -> Rules| accounts.as_ref().map(|accounts| judge(accounts)).map_err(Clone::clone);
    let authentication = authentication(&target, &method, queries.open);
    let mut transport = transport(&target, &tls, Ok(session.offers_tls()), queries.plaintext);
    // Where the server has no TLS at all, every account says the same.
    if transport.state != State::Off {
        let rules = of_all(&|accounts| accounts::of_transport(accounts, gate));
        transport = transport.with_rules(rules, accounts::RIGHT);
    }
    let rules = of_all(&accounts::of_authentication);
    let mut seen = vec![authentication.with_rules(rules, accounts::RIGHT).of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(inspect_feature(Feature::Authorisation, || {
        authorisation(&mut session, queries.is_of_administrator, &accounts)
    }));
    seen.push(inspect_feature(Feature::AtRest, || (queries.at_rest)(&mut session)));
    seen.push(inspect_feature(Feature::Auditing, || (queries.auditing)(&mut session)));
    seen.push(inspect_feature(Feature::ProxyRoles, || proxies(&mut session)));
    seen.push(inspect_feature(Feature::NodeToNode, || {
        Ok(Judgement::unseen("what replicas speak is known to them, not to this server"))
    }));
    let caching = if method == CACHING_SHA2 { State::Enforced } else { State::NotOffered };
    let words = if method == CACHING_SHA2 { format!("by {method}") } else { format!("not by {method}") };
    seen.push(Judgement::account(caching, words).of(Feature::AuthenticationCaching));
    seen.extend(not_offered(&[(Feature::JmxAuthentication, "no Java virtual machine")]));
    Ok(seen)
}

/// The table of accounts is readable by administrators only, and by those who were granted it.
fn authorisation(
    session: &mut WireSession,
    is_of_administrator: fn(&str) -> bool,
    accounts: &Result<Vec<Account>, Fault>,
) -> Result<Judgement, Fault> {
    if let Ok(accounts) = accounts {
        return Ok(accounts::of_authorisation(accounts));
    }
    let grants = session.run("SHOW GRANTS")?;
    if grants.iter().flatten().flatten().any(|grant| is_of_administrator(grant)) {
        return Ok(Judgement::unseen("the account has all privileges: nothing is refused to it"));
    }
    Ok(match session.run("SELECT COUNT(*) FROM mysql.user") {
        Err(fault @ Fault::Refused(_)) => {
            Judgement::account(State::Enforced, format!("the table of accounts: {fault}"))
        }
        Err(fault) => Judgement::unseen(fault.to_string()),
        Ok(_) => Judgement::account(State::Available, "an account without all privileges reads the table of accounts"),
    })
}

fn proxies(session: &mut WireSession) -> Result<Judgement, Fault> {
    let count = session.value("SELECT COUNT(*) FROM mysql.proxies_priv WHERE User <> 'root'")?;
    let state = if count == "0" { State::Off } else { State::Available };
    Ok(Judgement::whole(state, format!("{count} grants that let an account act as another (GRANT PROXY)")))
}

/// Logs that repeat statements in the clear beside encrypted tables, as exceptions.
///
/// # Errors
/// The server's error.
pub fn logs_in_the_clear(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let output = session.setting("log_output")?;
    let mut open = Vec::new();
    for name in ["general_log", "slow_query_log"] {
        if session.setting(name)? == "ON" && output != "NONE" {
            open.push(format!("{name} = ON (log_output = {output}) writes statements in the clear"));
        }
    }
    Ok(open)
}

/// A table that is not InnoDB's, and what stands in the list of tables about it.
pub struct OtherTable {
    /// `database.table`.
    pub name: String,
    /// Storage engine.
    pub engine: String,
    /// `ROW_FORMAT`.
    pub row_format: String,
}

/// Tables outside the server's own databases that other engines keep in files; `Err` in the second place where this
/// account is not shown the tables of all databases.
///
/// # Errors
/// The server's error.
pub fn other_tables(session: &mut WireSession) -> Result<(Vec<OtherTable>, Vec<String>), Fault> {
    let sql = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), ENGINE, IFNULL(ROW_FORMAT, '') FROM information_schema.TABLES \
               WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN \
               ('mysql', 'information_schema', 'performance_schema', 'sys') AND ENGINE NOT IN \
               ('InnoDB', 'MEMORY', 'BLACKHOLE', 'MRG_MyISAM', 'SEQUENCE', 'PERFORMANCE_SCHEMA', 'FEDERATED', 'SPIDER') \
               ORDER BY 1";
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    let tables = rows.map(|row| {
        let [name, engine, row_format] = row.map(Option::unwrap_or_default);
        OtherTable { name, engine, row_format }
    });
    let tables = tables.collect();
    // Other accounts are shown the tables that they have a right to.
    let grants = session.run("SHOW GRANTS")?;
    let all = |grant: &str| {
        grant.contains(" ON *.* ")
            && (grant.contains("ALL PRIVILEGES") || grant.split(" ON ").next().is_some_and(selects))
    };
    let doubts = if grants.iter().flatten().flatten().any(|grant| all(grant)) {
        Vec::new()
    } else {
        vec!["tables that this account is not shown (it needs GRANT SELECT ON *.*)".to_owned()]
    };
    Ok((tables, doubts))
}

fn selects(rights: &str) -> bool {
    rights.trim_start_matches("GRANT ").split(',').any(|right| right.trim() == "SELECT")
}

/// Has an attached server write all of Tithe's own `table` to its file.
///
/// # Errors
/// The server's error, with the rights that are missing.
pub fn write_out(access: &Access, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if is_local(server) {
        return Ok(());
    }
    let mut session = access.administrator(server, setup)?;
    let export = format!("FLUSH TABLES {} FOR EXPORT", YCSB_DIALECT.qualified(&setup.space, table));
    session.run(&export).map_err(|fault| match fault {
        Fault::Refused(words) => Fault::Refused(format!(
            "FLUSH TABLES … FOR EXPORT needs GRANT RELOAD ON *.* and GRANT SELECT, LOCK TABLES ON `tithe`.*: {words}"
        )),
        fault => fault,
    })?;
    session.run("UNLOCK TABLES").map(drop)
}

/// The file of `table` in `folder`, the parts of the `journal` and the `log`; `None` where the file cannot be seen from
/// here. Its name is unlike that of every other server's, so that it is the one of this server.
pub fn files(folder: &Path, journal: Vec<PathBuf>, log: Option<&str>, table: &Table) -> Option<Paths> {
    let file = folder.join("tithe").join(format!("{}.ibd", table.name));
    file.metadata().ok()?;
    Some(Paths { data: vec![file], journal, logs: log.map(|log| folder.join(log)).into_iter().collect() })
}
