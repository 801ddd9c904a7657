//! The observed state of a security feature on a running server: a row of the matrix, its state, and the part of the
//! server that this covers.

use tithe_machine::observation::Observation;

/// A row of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Clients must log in.
    Authentication,
    /// Accounts may do only what they were granted.
    Authorisation,
    /// Traffic between client and server cannot be read.
    Transport,
    /// Files cannot be read without a key.
    AtRest,
    /// Who did what is recorded.
    Auditing,
    /// The management port of a Java virtual machine requires a login.
    JmxAuthentication,
    /// Results of authentication are cached.
    AuthenticationCaching,
    /// An account may act in the name of another.
    ProxyRoles,
    /// Traffic between the servers of a cluster cannot be read.
    NodeToNode,
    /// Traffic between a client and each server of a cluster cannot be read.
    ClientToNode,
}

impl Feature {
    /// All of them, in the order of the matrix.
    pub const ALL: [Self; 10] = [
        Self::Authentication,
        Self::Authorisation,
        Self::Transport,
        Self::AtRest,
        Self::Auditing,
        Self::JmxAuthentication,
        Self::AuthenticationCaching,
        Self::ProxyRoles,
        Self::NodeToNode,
        Self::ClientToNode,
    ];

    /// Name on the command line and in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Authorisation => "authorisation",
            Self::Transport => "tls",
            Self::AtRest => "at-rest",
            Self::Auditing => "audit",
            Self::JmxAuthentication => "jmx-authentication",
            Self::AuthenticationCaching => "authentication-caching",
            Self::ProxyRoles => "proxy-roles",
            Self::NodeToNode => "node-to-node",
            Self::ClientToNode => "client-to-node",
        }
    }

    /// Name in the matrix.
    pub fn title(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Authorisation => "authorisation",
            Self::Transport => "transport encryption",
            Self::AtRest => "encryption at rest",
            Self::Auditing => "auditing",
            Self::JmxAuthentication => "JMX authentication",
            Self::AuthenticationCaching => "authentication caching",
            Self::ProxyRoles => "proxy roles",
            Self::NodeToNode => "node-to-node encryption",
            Self::ClientToNode => "client-to-node encryption",
        }
    }
}

/// The state of a feature on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is on, and cannot be bypassed.
    Enforced,
    /// It is there, but can be bypassed or is not complete.
    Available,
    /// The product has it, but this server does not use it.
    Off,
    /// The product does not have it.
    NotOffered,
    /// It is not visible.
    Unseen,
}

impl State {
    /// Its words in the matrix.
    pub fn words(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Available => "available but not enforced",
            Self::Off => "off",
            Self::NotOffered => "not offered by this product",
            Self::Unseen => "cannot tell",
        }
    }
}

/// The part of a server that an answer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every account, database and file: the server's own rules and lists were read.
    Server,
    /// What this account could observe; other accounts may get another result.
    Account,
}

impl Scope {
    /// Its words in the matrix.
    pub fn words(self) -> &'static str {
        match self {
            Self::Server => "whole server",
            Self::Account => "this account",
        }
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureStatus {
    /// The row.
    pub feature: Feature,
    /// Its state.
    pub state: State,
    /// The part of the server that was observed.
    pub scope: Scope,
    /// What was observed or tried, or why nothing was.
    pub seen: String,
    /// Findings that someone has to fix or to know, each by its stable name.
    pub findings: Vec<&'static FindingEntry>,
}

/// A finding of an inspection, with a name that is the same in every version: `PG-AUTHZ-SUPERUSERS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingEntry {
    /// Product, row and subject, in capitals.
    pub id: &'static str,
    /// The fact, one sentence.
    pub is: &'static str,
    /// Why it matters and how to fix it, for `tithe explain`.
    pub advice: &'static str,
}

impl FeatureStatus {
    /// A cell without findings.
    pub fn new(feature: Feature, state: State, scope: Scope, seen: impl Into<String>) -> Self {
        Self { feature, state, scope, seen: seen.into(), findings: Vec::new() }
    }
}

impl FeatureStatus {
    /// Adds the result of a canary. If the canary disproves the feature, or could not be checked, the state is no
    /// longer "enforced". A canary that is not found does not raise the state.
    pub fn add(&mut self, claim: &str, observation: &Observation) {
        let word = match observation {
            Observation::Protected(_) => "holds",
            Observation::Exposed(_) => "does not hold",
            Observation::Unknown(_) | Observation::OutOfReach(_) => "could not be checked",
        };
        self.seen.push_str(&format!("; canary: {claim}: {word} ({})", observation.quotation()));
        self.state = match (self.state, observation) {
            (State::Enforced | State::Unseen, Observation::Exposed(_)) => State::Available,
            (State::Enforced, Observation::Unknown(_) | Observation::OutOfReach(_)) => State::Unseen,
            (state, _) => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_canary_lowers_what_it_disproves_and_raises_nothing() {
        let mut text = String::new();
        for state in [State::Enforced, State::Unseen, State::Off, State::NotOffered] {
            for observation in [Observation::Protected, Observation::Exposed, Observation::Unknown] {
                let mut cell = FeatureStatus::new(Feature::AtRest, state, Scope::Server, "set");
                cell.add("nothing is readable", &observation("0 of 9".to_owned()));
                text += &format!("{}: {}\n", cell.state.words(), cell.seen);
            }
        }
        expect![[r#"
            enforced: set; canary: nothing is readable: holds (0 of 9)
            available but not enforced: set; canary: nothing is readable: does not hold (0 of 9)
            cannot tell: set; canary: nothing is readable: could not be checked (0 of 9)
            cannot tell: set; canary: nothing is readable: holds (0 of 9)
            available but not enforced: set; canary: nothing is readable: does not hold (0 of 9)
            cannot tell: set; canary: nothing is readable: could not be checked (0 of 9)
            off: set; canary: nothing is readable: holds (0 of 9)
            off: set; canary: nothing is readable: does not hold (0 of 9)
            off: set; canary: nothing is readable: could not be checked (0 of 9)
            not offered by this product: set; canary: nothing is readable: holds (0 of 9)
            not offered by this product: set; canary: nothing is readable: does not hold (0 of 9)
            not offered by this product: set; canary: nothing is readable: could not be checked (0 of 9)
        "#]]
        .assert_eq(&text);
    }
}
