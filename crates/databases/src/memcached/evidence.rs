//! How the shared checks connect to memcached, and which of its listeners have TLS. memcached has no check of its own.

use std::collections::BTreeMap;

use tithe_machine::fault::Fault;
use tithe_plugin::{claim::Probes, evidence::CheckContext};

use super::{
    connection::MemcachedConnection,
    inspect::{doors_beside, offers, plaintext},
    store::open,
    target::PRODUCT,
};
use crate::{
    evidence::{
        ConnectionProbes,
        password_asked::PasswordAsked,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How they do.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| PRODUCT.target(context.server, context.setup),
    open: |_, target| Ok(MemcachedConnection::open(target)?.method().to_owned()),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "the client's own view, and stats settings",
    others,
};

/// How memcached answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes { password: Some(|| Box::new(PasswordAsked(&PROBES))), count_in_log: None };

/// Which listeners of the server have no TLS.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    Ok(whole(&open(context.server, context.setup)?.stats("settings")?))
}

fn whole(settings: &BTreeMap<String, String>) -> Whole {
    let source = "stats settings (ssl_enabled, inter, udpport), and a listener with TLS speaks nothing else";
    match offers(settings) {
        Ok(_) => {
            let doors = doors_beside(settings).into_iter();
            Whole::of(source, doors.map(|text| Exception { text, loopback: false }).collect())
        }
        Err(fault) => Whole { doubts: vec![fault.to_string()], ..Whole::of(source, Vec::new()) },
    }
}

/// memcached does not report the transport of one connection; its listeners have TLS or plaintext, never both.
fn tls_of_server(context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let mut connection = MemcachedConnection::open(target)?;
    let seen = connection.tls_facts().map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    let settings = open(context.server, context.setup)?.stats("settings")?;
    let told = ["ssl_enabled", "ssl_min_version", "ssl_verify_mode"]
        .iter()
        .filter_map(|name| Some(format!("{name} {}", settings.get(*name)?)))
        .collect::<Vec<_>>();
    connection.line("version")?;
    Ok(format!("{seen}, which the client sees; the server reports {}", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use tithe_machine::observation::Observation;
    use tithe_plugin::evidence::seen_by;

    use super::*;
    use crate::{
        memcached::{
            Memcached,
            test_server::{Told, tight},
        },
        test_setup::as_arm,
    };

    fn seen<T>(told: &Told, look: impl FnOnce(&mut CheckContext<'_>) -> T) -> T {
        told.seen(|server| as_arm(&Memcached, server, look))
    }

    #[test]
    fn a_password_is_asked_for_where_clients_without_it_are_refused() {
        let check = CLAIMS.password.expect("it has passwords")();
        let asks = seen(&tight(), |context| seen_by(&*check, context));
        assert!(matches!(asks, Observation::Protected(_)), "{asks:?}");
        let open = seen(&tight().open(), |context| seen_by(&*check, context));
        assert_eq!(open, Observation::Exposed("without a password: served".to_owned()));
    }

    #[test]
    fn the_settings_say_which_listeners_have_no_tls() {
        let doors = |told: &Told| {
            let whole = seen(told, |context| (PROBES.others)(context).expect("the settings"));
            assert_eq!(whole.doubts, Vec::<String>::new());
            (whole.exceptions.len(), whole.exceptions.iter().any(|door| door.loopback))
        };
        let with_tls = tight().with("ssl_enabled", "yes");
        assert_eq!([doors(&tight()), doors(&with_tls)], [(1, false), (0, false)]);
        assert_eq!(doors(&with_tls.with("inter", "a,notls:127.0.0.1:1").with("udpport", "1")), (2, false));
    }

    #[test]
    fn the_server_is_quoted_beside_what_the_client_sees() {
        let told = |told: Told| {
            seen(&told, |context| {
                let target = (PROBES.target)(context).expect("a target");
                (PROBES.tls_of_server)(context, &target).expect("an answer")
            })
        };
        let seen = "plaintext, which the client sees; the server reports ssl_enabled";
        assert_eq!(told(tight()), format!("{seen} no"));
        let mutual = tight().with("ssl_enabled", "yes").with("ssl_verify_mode", "3");
        assert_eq!(told(mutual), format!("{seen} yes, ssl_verify_mode 3"));
    }

    #[test]
    fn settings_that_are_not_shown_are_a_doubt() {
        let of = |pairs: &[(&str, &str)]| {
            let settings = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let Whole { exceptions, doubts, .. } = whole(&settings);
            (exceptions.len(), doubts.len())
        };
        assert_eq!(of(&[]), (0, 1));
        assert_eq!(of(&[("tcpport", "11211")]), (1, 0), "it was built without TLS");
        assert_eq!(of(&[("tcpport", "11211"), ("ssl_enabled", "yes"), ("udpport", "0")]), (0, 0));
    }
}
