//! The whole server: which clients it lets in besides the account that was tried.

use std::net::IpAddr;

/// A client that the server lets in although it should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The place and text of the rule: `line 5: host all other all trust`.
    pub text: String,
    /// Only for clients on the server's own machine that use its loopback: their data does not cross a network.
    pub loopback: bool,
}

/// What the server's rules and lists show about all other clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Where all were checked.
    pub source: &'static str,
    /// Clients that are let in nevertheless.
    pub exceptions: Vec<Exception>,
    /// Why there may be more: with doubts, an empty list of exceptions proves nothing.
    pub doubts: Vec<String>,
}

impl Whole {
    /// What `source` shows without doubts.
    pub fn of(source: &'static str, exceptions: Vec<Exception>) -> Self {
        Self { source, exceptions, doubts: Vec::new() }
    }
}

/// The text that a claim about a whole server gets if only one account could be judged.
pub const THIS_ACCOUNT: &str = "for this account: the others could not be seen";

/// True when `host`, of a URL or a launched server, is this machine's loopback.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The `exceptions` that matter to clients that reach the server at `host`: an exception for the server's own loopback
/// only matters to clients that use it.
pub fn that_matter(exceptions: Vec<Exception>, host: &str) -> Vec<Exception> {
    // Connections to no address end at the loopback.
    let near = is_loopback(host) || host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    exceptions.into_iter().filter(|exception| near || !exception.loopback).collect()
}

/// At most three of `exceptions` in words, and how many there are more.
pub fn in_words(exceptions: &[Exception]) -> String {
    let mut words: Vec<&str> = exceptions.iter().take(3).map(|exception| exception.text.as_str()).collect();
    let more = exceptions.len().saturating_sub(3);
    let more = format!("and {more} more");
    if exceptions.len() > 3 {
        words.push(&more);
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions() -> Vec<Exception> {
        let exception =
            |number: usize| Exception { text: format!("line {number}"), loopback: number.is_multiple_of(2) };
        (1..=5).map(exception).collect()
    }

    #[test]
    fn loopback_matters_to_those_who_come_by_it() {
        for host in ["localhost", "127.0.0.1", "127.0.0.3", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"] {
            assert_eq!(that_matter(exceptions(), host).len(), 5, "{host}");
        }
        for host in ["db.example", "192.0.2.1", "::ffff:192.0.2.1", "127.example"] {
            assert_eq!(in_words(&that_matter(exceptions(), host)), "line 1; line 3; line 5");
        }
        assert_eq!(in_words(&exceptions()), "line 1; line 2; line 3; and 2 more");
    }
}
