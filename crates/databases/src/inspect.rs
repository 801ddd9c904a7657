//! What the inspections of all servers share: trying doors that must be closed.

use tithe_harness::{
    fault::Fault,
    inspect::{Feature, Observation, State},
};

use crate::{evidence::Attempt, target::Target};

/// Opens and closes one connection with something read in between; returns the method of authentication.
pub type Open = fn(&Target) -> Result<String, Fault>;

/// Comes without a password, where the user's URL has one.
pub fn authentication(target: &Target, method: &str, open: Open) -> Observation {
    let (state, seen) = if target.password.is_none() || method == "none" {
        (State::Off, "let in without a password".to_owned())
    } else {
        match Attempt::of(open(&Target { password: None, must_ask: false, ..target.clone() })) {
            Ok(Attempt::Refused(words)) => {
                (State::Enforced, format!("by {method}; without a password: refused ({words})"))
            }
            Ok(Attempt::Served) => (State::Available, format!("by {method}; without a password: served too")),
            Err(fault) => (State::Unseen, format!("by {method}; without a password: {fault}")),
        }
    };
    Observation::new(Feature::Authentication, state, seen)
}

/// Comes in the clear, where the user's URL asks for TLS; else asks whether the server `offers` it. Both rows of the matrix
/// that are about clients say the same for a product whose clients talk to one server.
pub fn transport(target: &Target, tls: &str, offers: Result<bool, Fault>, open: Open) -> [Observation; 2] {
    let (state, seen) = if target.tls.is_some() {
        match Attempt::of(open(&Target { tls: None, ..target.clone() })) {
            Ok(Attempt::Refused(words)) => (State::Enforced, format!("{tls}; plaintext: refused ({words})")),
            Ok(Attempt::Served) => (State::Available, format!("{tls}; plaintext: served too")),
            Err(fault) => (State::Unseen, format!("{tls}; plaintext: {fault}")),
        }
    } else {
        match offers {
            Ok(true) => (State::Available, "plaintext: served; the server has TLS as well".to_owned()),
            Ok(false) => (State::Off, "plaintext: served; the server has no TLS".to_owned()),
            Err(fault) => (State::Available, format!("plaintext: served; whether TLS is there: {fault}")),
        }
    };
    [Feature::Transport, Feature::ClientToNode].map(|feature| Observation::new(feature, state, seen.clone()))
}

/// Features that a product does not have.
pub fn not_offered(features: &[(Feature, &str)]) -> Vec<Observation> {
    features.iter().map(|(feature, why)| Observation::new(*feature, State::NotOffered, *why)).collect()
}

/// A look that may fail: then the cell says why.
pub fn observe(feature: Feature, look: impl FnOnce() -> Result<(State, String), Fault>) -> Observation {
    let (state, seen) = look().unwrap_or_else(|fault| (State::Unseen, fault.to_string()));
    Observation::new(feature, state, seen)
}
