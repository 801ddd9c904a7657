//! The security matrix of one running server: ten features, each with what was seen and tried.
//!
//! The rows are those of a published table that compares products by their documentation; here nothing is taken from a
//! documentation but whether a product offers a feature at all. Looking changes nothing on the server: settings are read,
//! and logins are tried that must be refused, which a server may log.

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
            Self::Unseen => "could not look",
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
    /// What was seen or tried, or why nothing was.
    pub seen: String,
}

impl Observation {
    /// A cell.
    pub fn new(feature: Feature, state: State, seen: impl Into<String>) -> Self {
        Self { feature, state, seen: seen.into() }
    }
}
