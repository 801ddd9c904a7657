//! How the shared checks reach OpenSearch, and the checks that only it has.

pub mod audit;
pub mod documents;
pub mod internode;

use serde_json::Value;
use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    wire::Wire,
};

use super::{
    connection::{NO_HANDLER, OpenSearchConnection},
    store::{client, index_of},
    target::of_clients,
};
use crate::{
    evidence::{Attempt, ConnectionProbes, whole::Whole},
    target::Target,
};

/// How they do.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| opened(target),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "/_opendistro/_security/sslinfo",
    others,
};

/// A node has one listener for HTTP. Those of other nodes are as Tithe set them up, if it launched them.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let whole = Whole::of("the node's only listener for HTTP, which speaks TLS or plaintext", Vec::new());
    if !context.server.address.is_attached() {
        return Ok(whole);
    }
    let target = of_clients(context.server, context.setup)?;
    let asked = OpenSearchConnection::open(&target).and_then(|mut connection| other_nodes(&mut connection));
    Ok(Whole { doubts: asked.unwrap_or_else(|fault| vec![format!("other nodes ({fault})")]), ..whole })
}

/// Why the listener of the node that was asked is not all of the cluster's; nothing for a single node.
///
/// # Errors
/// The server's error.
pub fn other_nodes(connection: &mut OpenSearchConnection) -> Result<Vec<String>, Fault> {
    Ok(unseen_nodes(&connection.request("GET /_cluster/health")?))
}

fn unseen_nodes(health: &Value) -> Vec<String> {
    match health["number_of_nodes"].as_u64() {
        Some(1) => Vec::new(),
        _ => vec!["listeners of other nodes (plugins.security.ssl.http.enabled is a setting of each node)".to_owned()],
    }
}

/// Connects to `target`; returns how the client authenticated.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn opened(target: &Target) -> Result<String, Fault> {
    Ok(OpenSearchConnection::open(target)?.method().to_owned())
}

/// Connects in [`Target::in_plaintext`].
///
/// # Errors
/// As [`opened`].
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    opened(&target.in_plaintext())
}

/// What the server says about the TLS of the connection on which it is asked.
fn tls_of_server(_context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    tls_of(&mut OpenSearchConnection::open(target)?)
}

/// How [`tls_of`] begins without TLS.
pub const PLAINTEXT: &str = "plaintext";

/// What the server says about the TLS of `connection`.
///
/// # Errors
/// The server's error.
pub fn tls_of(connection: &mut OpenSearchConnection) -> Result<String, Fault> {
    match connection.request("GET /_opendistro/_security/sslinfo") {
        Ok(said) => Ok(tls_in(&said)),
        Err(Fault::Server(words)) if words.contains(NO_HANDLER) => Ok(format!("{PLAINTEXT}: no security plugin")),
        Err(fault) => Err(fault),
    }
}

fn tls_in(said: &Value) -> String {
    said["ssl_protocol"].as_str().map_or_else(
        || PLAINTEXT.to_owned(),
        |version| format!("{version} {}", said["ssl_cipher"].as_str().unwrap_or("of an unknown cipher")),
    )
}

/// A connection that leads to the process of the node.
fn dial(context: &CheckContext<'_>) -> Result<Wire, Fault> {
    Ok(client(context.server, context.setup)?.into_http().into_wire())
}

/// As the measured account: reads a document of another index, and the list of accounts, which must be refused. Then
/// searches Tithe's index, which must be served. Nothing is changed. Id `rights-enforced`.
pub struct RightsEnforced;

impl Check for RightsEnforced {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused other indices and what manages the server".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut connection = client(context.server, context.setup)?;
        let (mut words, mut served) = (Vec::new(), false);
        for (name, request) in [
            ("an index of someone else", "GET /someone-else/_doc/1"),
            ("the list of accounts", "GET /_plugins/_security/api/internalusers"),
        ] {
            words.push(match attempted(connection.request(request))? {
                Attempt::Refused(refusal) => format!("{name}: refused ({refusal})"),
                Attempt::Served => {
                    served = true;
                    format!("{name}: not refused")
                }
            });
        }
        let index = index_of(&context.setup.space, context.table);
        connection.request(&format!("GET /{index}/_search?size=0"))?;
        let quotation = format!("{}; Tithe's own index: served", words.join("; "));
        Ok(if served { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }
}

/// The outcome of a request that must be refused. A server without the plugin has no accounts to list; one that looks
/// for the index has let the client pass.
///
/// # Errors
/// As [`Attempt::of`].
fn attempted<T>(outcome: Result<T, Fault>) -> Result<Attempt, Fault> {
    match outcome {
        Err(Fault::Server(_)) => Ok(Attempt::Served),
        outcome => Attempt::of(outcome),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        opensearch::{
            OpenSearch,
            test_server::{Told, tight},
        },
        test_setup::{as_arm, observed},
    };

    fn seen<T>(told: &Told, look: impl FnOnce(&mut CheckContext<'_>) -> T) -> T {
        told.seen(|server| as_arm(&OpenSearch, server, look))
    }

    #[test]
    fn rights_are_enforced_where_all_else_is_refused_and_the_own_index_is_served() {
        const OTHER: &str = "GET /someone-else/_doc/1";
        const ACCOUNTS: &str = "GET /_plugins/_security/api/internalusers";
        const OWN: &str = "GET /tithe-tithe_canary/_search";
        let told = |told: Told| told.seen(|server| observed(&OpenSearch, server, &RightsEnforced));
        let limited = || tight().refusing(OTHER).refusing(ACCOUNTS).telling(OWN, json!({}));
        assert_eq!(told(limited()), "protected");
        assert_eq!(told(limited().telling(OTHER, json!({}))), "exposed");
        assert_eq!(told(limited().missing(OTHER)), "exposed", "it looked for the index");
        assert_eq!(told(limited().telling(ACCOUNTS, json!({}))), "exposed");
        assert_eq!(told(limited().refusing(OWN)), "unknown", "an account without any right shows nothing");
    }

    #[test]
    fn what_the_node_reports_of_its_tls_is_quoted_and_other_nodes_are_doubts() {
        let told = |told: Told| {
            seen(&told, |context| {
                let target = (PROBES.target)(context).expect("a target");
                let tls = (PROBES.tls_of_server)(context, &target).map_err(|fault| fault.to_string());
                let Whole { exceptions, doubts, .. } = (PROBES.others)(context).expect("an answer");
                (tls, exceptions.len(), doubts.len())
            })
        };
        const TLS: &str = "GET /_opendistro/_security/sslinfo";
        const HEALTH: &str = "GET /_cluster/health";
        let with_tls = json!({ "ssl_protocol": "TLSv1.3", "ssl_cipher": "TLS_AES_256_GCM_SHA384" });
        let words = |words: &str| Ok::<_, String>(words.to_owned());
        assert_eq!(told(tight().telling(TLS, with_tls)), (words("TLSv1.3 TLS_AES_256_GCM_SHA384"), 0, 0));
        assert_eq!(told(tight()), (words("plaintext"), 0, 0));
        assert_eq!(told(tight().bare()), (words("plaintext: no security plugin"), 0, 0));
        assert_eq!(told(tight().refusing(TLS)).0, Err("refused: no permissions".to_owned()));
        assert_eq!(told(tight().telling(HEALTH, json!({ "number_of_nodes": 3 }))).2, 1);
        assert_eq!(told(tight().refusing(HEALTH)).2, 1);
    }

    #[test]
    fn a_node_behind_what_ends_tls_reports_plaintext() {
        let with = json!({ "ssl_protocol": "TLSv1.3", "ssl_cipher": "TLS_AES_256_GCM_SHA384" });
        assert_eq!(tls_in(&with), "TLSv1.3 TLS_AES_256_GCM_SHA384");
        assert_eq!(tls_in(&json!({ "ssl_protocol": null, "ssl_cipher": null })), PLAINTEXT);
    }

    #[test]
    fn a_server_that_looks_for_what_is_forbidden_has_let_the_client_pass() {
        let of_error = |fault: fn(String) -> Fault| attempted(Err::<(), _>(fault("no such index".to_owned())));
        assert!(matches!(attempted(Ok(())), Ok(Attempt::Served)));
        assert!(matches!(of_error(Fault::Server), Ok(Attempt::Served)));
        assert!(matches!(of_error(Fault::Refused), Ok(Attempt::Refused(_))));
        assert!(matches!(of_error(Fault::Connection), Err(Fault::Connection(_))));
    }

    #[test]
    fn a_cluster_has_listeners_that_were_not_asked() {
        let doubts = |health: Value| unseen_nodes(&health).len();
        assert_eq!(doubts(json!({ "number_of_nodes": 1 })), 0);
        assert_eq!(doubts(json!({ "number_of_nodes": 3 })), 1);
        assert_eq!(doubts(json!({})), 1);
    }
}
