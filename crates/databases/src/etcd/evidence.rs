//! How the shared checks reach etcd, and the check that only it has.

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::{
    connection::EtcdConnection,
    inspect::{UNADVERTISED, doors_beside, plaintext, without_scheme},
    messages::{STATUS, USER_LIST},
    store::{administrator, client, members},
    target::of_clients,
};
use crate::{
    evidence::{
        ConnectionProbes, rights,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How they do.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| Ok(EtcdConnection::open(target)?.method().to_owned()),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "the client's own view, and the list of members",
    others,
};

/// Which listeners of the cluster have no TLS.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let listed = members(&mut administrator(context.server, context.setup)?)?;
    let exceptions = doors_beside(&listed).into_iter().map(|text| Exception { text, loopback: false }).collect();
    let whole = Whole::of("the list of members (clientURLs), and a listener with TLS speaks nothing else", exceptions);
    let doubts = match context.server.address.is_attached() {
        true => [vec![UNADVERTISED.to_owned()], without_scheme(&listed)].concat(),
        false => Vec::new(),
    };
    Ok(Whole { doubts, ..whole })
}

/// etcd does not report the transport of one connection; its listeners have TLS or plaintext, never both.
fn tls_of_server(_context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let mut connection = EtcdConnection::open(target)?;
    let seen = connection.tls_facts().map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    connection.call(STATUS, |_| {})?;
    let urls: Vec<String> = members(&mut connection)?.into_iter().flat_map(|member| member.clients).collect();
    Ok(format!("{seen}, which the client sees; the server reports {}", urls.join(", ")))
}

/// As the measured account: reads a key outside Tithe's and asks for the list of accounts, which must be refused. Then
/// reads one of Tithe's keys, which must be served. Neither changes anything. Id `rights-enforced`.
pub struct RightsEnforced;

impl Check for RightsEnforced {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused other keys and what manages the server".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut connection = client(context.server, context.setup)?;
        let tried = [
            ("a key of someone else", connection.range(b"someone/else", b"", 1)),
            ("all keys", connection.range(b"\0", b"\0", 1)),
            ("the list of accounts", connection.call(USER_LIST, |_| {})),
        ];
        rights(tried, || connection.range(context.setup.space.as_bytes(), b"", 1).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        etcd::{
            Etcd,
            test_server::{Told, tight},
        },
        test_setup::{as_arm, observed},
    };

    fn seen<T>(told: &Told, look: impl FnOnce(&mut CheckContext<'_>) -> T) -> T {
        told.seen(|server| as_arm(&Etcd, server, look))
    }

    #[test]
    fn rights_are_enforced_where_all_else_is_refused_and_the_own_keys_are_served() {
        let told = |refused| Told { refused, ..tight() }.seen(|server| observed(&Etcd, server, &RightsEnforced));
        assert_eq!(told(&["someone/else", "\0", USER_LIST]), "protected");
        const SERVED: [&[&str]; 4] = [&["\0", USER_LIST], &["someone/else", USER_LIST], &["someone/else", "\0"], &[]];
        for refused in SERVED {
            assert_eq!(told(refused), "exposed", "refused: {refused:?}");
        }
        let nothing = told(&["someone/else", "\0", USER_LIST, "tithe"]);
        assert_eq!(nothing, "unknown", "an account without any right shows nothing");
    }

    #[test]
    fn the_list_of_members_says_which_listeners_have_no_tls() {
        let told = |members| {
            seen(&Told { members, ..tight() }, |context| {
                let target = (PROBES.target)(context).expect("a target");
                let tls = (PROBES.tls_of_server)(context, &target).expect("an answer");
                let Whole { exceptions, doubts, .. } = (PROBES.others)(context).expect("an answer");
                (tls, exceptions.len(), doubts)
            })
        };
        let words = |urls: &str| format!("plaintext, which the client sees; the server reports {urls}");
        let doubts = || vec![UNADVERTISED.to_owned()];
        assert_eq!(told(&[("https://a:2380", "https://a:2379")]), (words("https://a:2379"), 0, doubts()));
        let both = told(&[("https://a:2380", "https://a:2379"), ("https://b:2380", "http://b:2379")]);
        assert_eq!(both, (words("https://a:2379, http://b:2379"), 1, doubts()));
    }
}
