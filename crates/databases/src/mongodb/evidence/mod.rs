//! Checks that only MongoDB has: one file each.

pub mod audit_complete;
pub mod encryption_in_force;

use mongodb::bson::doc;
use tithe_machine::fault::Fault;
use tithe_plugin::evidence::CheckContext;

use super::{
    build::{at, topology, unread},
    link::Link,
    probe::probe,
    store::administrator,
    target::{DATABASE, direct, door, mechanism, mechanism_name},
};
use crate::{
    evidence::{ConnectionProbes, whole::Whole},
    target::Target,
};

/// How the shared checks reach MongoDB.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| door(context.server, context.setup),
    open: |context, target| knock(target, mechanism(context.setup)),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "serverStatus (connections by TLS version), and the client's own view",
    others,
};

/// All clients of a port are treated alike. Servers that Tithe launched have the same options.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let whole = Whole::of("the port asks for TLS before any login", Vec::new());
    if !context.server.address.is_attached() {
        return Ok(whole);
    }
    let topology = topology(&administrator(context.server, context.setup)?)?;
    Ok(Whole { doubts: unread(&topology).map(str::to_owned).into_iter().collect(), ..whole })
}

/// As [`knock`], [`Target::in_plaintext`].
///
/// # Errors
/// As [`knock`].
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    knock(&target.in_plaintext(), None)
}

/// Opens and closes one connection for `target`, with a read in between. The driver offers every version of TLS that it
/// knows, so versions and certificates are first tried by a greeting of Tithe's own.
///
/// # Errors
/// The refusal or the broken connection.
pub fn knock(target: &Target, mechanism: Option<mongodb::options::AuthMechanism>) -> Result<String, Fault> {
    probe(target)?;
    let link = Link::new(direct(target, mechanism))?;
    link.run(DATABASE, doc! { "find": "knock", "limit": 1 }).map_err(|fault| match fault {
        Fault::Refused(words) if target.password.is_none() => {
            Fault::Refused(format!("the server asks for a password: {words}"))
        }
        fault => fault,
    })?;
    let credential = link.options().credential.as_ref();
    Ok(credential.map_or_else(
        || "none".to_owned(),
        |credential| credential.mechanism.as_ref().map_or("SCRAM", mechanism_name).to_owned(),
    ))
}

/// Where the server counts connections by version.
const COUNTED: [(&str, &str); 2] = [("1.3", "TLSv1.3"), ("1.2", "TLSv1.2")];

/// A version, and how many connections have it, if the server says so.
type Count = (&'static str, Option<String>);

/// MongoDB counts its connections by version of TLS; a new connection has raised the count of its version.
fn tls_of_server(context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let administrator = administrator(context.server, context.setup)?;
    let counts = || -> Result<Vec<Count>, Fault> {
        let status = administrator.admin(doc! { "serverStatus": 1 })?;
        Ok(COUNTED.map(|(name, title)| (title, at(&status, &["transportSecurity", name]))).into())
    };
    let before = counts()?;
    let client = probe(target)?;
    knock(target, mechanism(context.setup))?;
    let after = counts()?;
    let client = client.tls.map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    by_counts(&before, &after, &client)
}

/// The version of a `client` by the counts `before` it connected and `after`.
///
/// # Errors
/// [`Fault::Wrong`] if the counts show no single version, [`Fault::Server`] if there are none.
fn by_counts(before: &[Count], after: &[Count], client: &str) -> Result<String, Fault> {
    let raised: Vec<&str> =
        before.iter().zip(after).filter(|(before, after)| before != after).map(|(_, after)| after.0).collect();
    match (raised.as_slice(), after.iter().any(|(_, count)| count.is_some())) {
        ([version], _) => Ok(format!("{version}, as the server counts ({client})")),
        (_, true) => Err(Fault::Wrong(format!(
            "the server's counts of TLS connections rose in {} ({client})",
            raised.join(", ")
        ))),
        (_, false) => Err(Fault::Server(format!("it does not count connections by TLS version ({client})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_only_count_that_rose() {
        let counts = |of_1_3: &str, of_1_2: &str| {
            [("TLSv1.3", of_1_3), ("TLSv1.2", of_1_2)].map(|(title, count)| (title, Some(count.to_owned())))
        };
        let before = counts("7", "3");
        let version = |after: &[Count]| by_counts(&before, after, "TLSv1.3 x");
        assert_eq!(version(&counts("8", "3")), Ok("TLSv1.3, as the server counts (TLSv1.3 x)".to_owned()));
        assert_eq!(version(&counts("7", "4")), Ok("TLSv1.2, as the server counts (TLSv1.3 x)".to_owned()));
        assert!(matches!(version(&before), Err(Fault::Wrong(_))), "the connection was none of TLS");
        assert!(matches!(version(&counts("8", "4")), Err(Fault::Wrong(_))), "another client came");
        let uncounted = [("TLSv1.3", None), ("TLSv1.2", None)];
        assert!(matches!(by_counts(&uncounted, &uncounted, "plaintext"), Err(Fault::Server(_))));
    }
}
