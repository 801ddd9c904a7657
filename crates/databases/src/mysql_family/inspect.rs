//! The security matrix of a running server: the rows that are looked at in the same way on both products.

use std::path::{Path, PathBuf};

use tithe_harness::{
    database::{Paths, Server},
    fault::Fault,
    inspect::{Feature, Observation, State},
    protection::Setup,
    session::SqlSession as _,
    workload::Table,
};

use super::{Flavour, proof::CACHING_SHA2, schema::tls_of, session::WireSession};
use crate::inspect::{Open, authentication, not_offered, observe, transport};

/// A row that each product looks at in its own way.
pub type Look = fn(&mut WireSession) -> Result<(State, String), Fault>;

/// How one product looks at its own rows.
pub struct Looks {
    /// Opens and closes a connection.
    pub open: Open,
    /// True for a grant, in the words of `SHOW GRANTS`, that lets an account read the table of accounts.
    pub is_of_administrator: fn(&str) -> bool,
    /// Encryption at rest.
    pub at_rest: Look,
    /// Auditing.
    pub auditing: Look,
}

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(
    flavour: &'static Flavour,
    looks: &Looks,
    server: &Server,
    setup: &Setup,
) -> Result<Vec<Observation>, Fault> {
    let target = flavour.product.target(server, setup)?;
    let mut session = flavour.open(&target)?;
    let method = session.method().to_owned();
    let tls = tls_of(&mut session)?;
    let mut seen = vec![authentication(&target, &method, looks.open)];
    seen.extend(transport(&target, &tls, Ok(session.offers_tls()), looks.open));
    seen.push(observe(Feature::Authorisation, || authorisation(&mut session, looks.is_of_administrator)));
    seen.push(observe(Feature::AtRest, || (looks.at_rest)(&mut session)));
    seen.push(observe(Feature::Auditing, || (looks.auditing)(&mut session)));
    seen.push(observe(Feature::ProxyRoles, || proxies(&mut session)));
    seen.push(observe(Feature::NodeToNode, || {
        Ok((State::Unseen, "what replicas speak is known to them, not to this server".to_owned()))
    }));
    seen.push(if method == CACHING_SHA2 {
        Observation::new(Feature::AuthenticationCaching, State::Enforced, format!("by {method}"))
    } else {
        Observation::new(Feature::AuthenticationCaching, State::NotOffered, format!("not by {method}"))
    });
    seen.extend(not_offered(&[(Feature::JmxAuthentication, "no Java virtual machine")]));
    Ok(seen)
}

/// The table of accounts is readable by administrators only.
fn authorisation(session: &mut WireSession, is_of_administrator: fn(&str) -> bool) -> Result<(State, String), Fault> {
    let grants = session.run("SHOW GRANTS")?;
    if grants.iter().flatten().flatten().any(|grant| is_of_administrator(grant)) {
        return Ok((State::Unseen, "the account has all privileges: nothing is refused to it".to_owned()));
    }
    Ok(match session.run("SELECT COUNT(*) FROM mysql.user") {
        Err(fault @ Fault::Refused(_)) => (State::Enforced, format!("the table of accounts: {fault}")),
        Err(fault) => (State::Unseen, fault.to_string()),
        Ok(_) => (State::Available, "an account without all privileges reads the table of accounts".to_owned()),
    })
}

fn proxies(session: &mut WireSession) -> Result<(State, String), Fault> {
    let count = session.value("SELECT COUNT(*) FROM mysql.proxies_priv WHERE User <> 'root'")?;
    let state = if count == "0" { State::Off } else { State::Available };
    Ok((state, format!("{count} grants that let an account act as another (GRANT PROXY)")))
}

/// The value of a global setting; empty where the server has none of this name.
///
/// # Errors
/// The server's error.
pub fn setting(session: &mut WireSession, name: &str) -> Result<String, Fault> {
    session.shown("GLOBAL VARIABLES", name).map(Option::unwrap_or_default)
}

/// The file of `table` in `folder`, the parts of the `journal` and the `log`; `None` where the file cannot be seen from here.
/// Its name is unlike that of every other server's, so that it is the one of this server.
pub fn files(folder: &Path, journal: Vec<PathBuf>, log: Option<&str>, table: &Table) -> Option<Paths> {
    let file = folder.join("tithe").join(format!("{}.ibd", table.name));
    file.metadata().ok()?;
    Some(Paths { data: vec![file], journal, logs: log.map(|log| folder.join(log)).into_iter().collect() })
}
