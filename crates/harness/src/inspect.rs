//! The security matrix of one running server: ten features, each with what was seen and tried.
//!
//! The rows are those of a published table that compares products by their documentation; here nothing is taken from a
//! documentation but whether a product offers a feature at all. Looking changes nothing on the server: settings are read,
//! and logins are tried that must be refused, which a server may log. Only [`with_canary`] writes: into a table of its own,
//! which it removes.
//!
//! Every answer has a [`Scope`]: what one account met at the door says nothing of other accounts, so a server is judged
//! whole only where the account may read the rules and lists of it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{
    database::{Database, Paths, Server},
    evidence::{Evidence, Scene, Sight, canary::Targets, disk_canary::DiskCanary, scan::Places},
    fault::Fault,
    protection::Setup,
    workload::Table,
};

/// A row of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Clients must say who they are.
    Authentication,
    /// Accounts may do only what they were granted.
    Authorisation,
    /// Bytes between client and server cannot be read.
    Transport,
    /// Files cannot be read without a key.
    AtRest,
    /// Who did what is recorded.
    Auditing,
    /// The management port of a Java virtual machine asks who comes.
    JmxAuthentication,
    /// Proofs of who a client is are remembered.
    AuthenticationCaching,
    /// An account may act in the name of another.
    ProxyRoles,
    /// Bytes between the servers of a cluster cannot be read.
    NodeToNode,
    /// Bytes between a client and each server of a cluster cannot be read.
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

/// How it stands with a feature on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is on, and nobody gets round it.
    Enforced,
    /// It is there, and can be gone round or is not complete.
    Available,
    /// The product has it, and this server does not use it.
    Off,
    /// The product does not have it.
    NotOffered,
    /// It could not be seen.
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

/// How much of a server an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every account, database and file: the server's own rules and lists were read.
    Server,
    /// What this account met and was shown; others may meet something else.
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
pub struct Observation {
    /// The row.
    pub feature: Feature,
    /// How it stands.
    pub state: State,
    /// Of how much that was seen.
    pub scope: Scope,
    /// What was seen or tried, or why nothing was.
    pub seen: String,
}

impl Observation {
    /// A cell.
    pub fn new(feature: Feature, state: State, scope: Scope, seen: impl Into<String>) -> Self {
        Self { feature, state, scope, seen: seen.into() }
    }
}

/// Finds out what canaries can show on a running server with a table of Tithe's. Fails when the server refuses.
pub type FindCanaryChecks = fn(&Server, &Setup, &Table) -> Result<CanaryChecks, Fault>;

/// What canaries can show on a running server.
pub struct CanaryChecks {
    /// Where the server's files are on this machine; empty where they cannot be seen, or may be another server's.
    pub paths: Paths,
    /// A check of the log that the server's settings name; `None` where they name none.
    pub audit: Option<Box<dyn Evidence>>,
}

/// Writes canaries into a table of its own, and adds what becomes of them to `cells`. What settings promise and a canary
/// disproves is no longer called enforced, and neither is what a canary was to show and could not be looked at: that is
/// "cannot tell". A canary that is not found raises no state, because files that were not looked into may hold it. Where Tithe
/// does not know where to look, nothing is written, and that is said.
///
/// # Errors
/// When the table cannot be made or removed.
pub fn with_canary(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    cells: &mut [Observation],
) -> Result<(), Fault> {
    let Some(find) = database.canary_checks() else {
        let looked_for = |cell: &&mut Observation| [Feature::AtRest, Feature::Auditing].contains(&cell.feature);
        cells
            .iter_mut()
            .filter(looked_for)
            .for_each(|cell| cell.seen.push_str("; canary: none is known for this product"));
        return Ok(());
    };
    let nonce = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let table = Table { name: format!("tithe_inspect_{nonce:016x}"), fields: 2, field_prefix: "field".to_owned() };
    database.create(server, setup, &table)?;
    let looked = find(server, setup, &table).map(|CanaryChecks { paths, audit }| {
        let server = Server { paths, ..server.clone() };
        let on_disk = |places| -> (Feature, Box<dyn Evidence>) {
            (Feature::AtRest, Box::new(DiskCanary::new(places, Targets::Everything)))
        };
        let of_log = audit.map(|check| (Feature::Auditing, check));
        let checks = [on_disk(Places::DATA), on_disk(Places::JOURNAL)].into_iter().chain(of_log);
        for (number, (feature, check)) in (0..).zip(checks) {
            let nonce = nonce.wrapping_add(number);
            let sight = check.look(&mut Scene {
                database,
                server: &server,
                setup,
                table: &table,
                guarded: true,
                nonce,
                narrowed: None,
            });
            cells.iter_mut().filter(|cell| cell.feature == feature).for_each(|cell| cell.add(&check.claim(), &sight));
        }
    });
    // Whatever was seen or not, nothing of it stays.
    database.remove(server, setup, &table).and(looked)
}

impl Observation {
    fn add(&mut self, claim: &str, sight: &Sight) {
        let word = match sight {
            Sight::Protected(_) => "holds",
            Sight::Exposed(_) => "does not hold",
            Sight::Unknown(_) => "could not be looked at",
        };
        self.seen.push_str(&format!("; canary: {claim}: {word} ({})", sight.quotation()));
        self.state = match (self.state, sight) {
            (State::Enforced | State::Unseen, Sight::Exposed(_)) => State::Available,
            (State::Enforced, Sight::Unknown(_)) => State::Unseen,
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
            for sight in [Sight::Protected, Sight::Exposed, Sight::Unknown] {
                let mut cell = Observation::new(Feature::AtRest, state, Scope::Server, "set");
                cell.add("nothing is readable", &sight("0 of 9".to_owned()));
                text += &format!("{}: {}\n", cell.state.words(), cell.seen);
            }
        }
        expect![[r#"
            enforced: set; canary: nothing is readable: holds (0 of 9)
            available but not enforced: set; canary: nothing is readable: does not hold (0 of 9)
            cannot tell: set; canary: nothing is readable: could not be looked at (0 of 9)
            cannot tell: set; canary: nothing is readable: holds (0 of 9)
            available but not enforced: set; canary: nothing is readable: does not hold (0 of 9)
            cannot tell: set; canary: nothing is readable: could not be looked at (0 of 9)
            off: set; canary: nothing is readable: holds (0 of 9)
            off: set; canary: nothing is readable: does not hold (0 of 9)
            off: set; canary: nothing is readable: could not be looked at (0 of 9)
            not offered by this product: set; canary: nothing is readable: holds (0 of 9)
            not offered by this product: set; canary: nothing is readable: does not hold (0 of 9)
            not offered by this product: set; canary: nothing is readable: could not be looked at (0 of 9)
        "#]]
        .assert_eq(&text);
    }
}
