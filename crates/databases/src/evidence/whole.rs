//! The whole server: whom it lets in beside the account that was tried.

use std::net::IpAddr;

/// Somebody whom the server lets in although it should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Where it says so: `line 5: host all other all trust`.
    pub text: String,
    /// Only for those who come from the server's own machine by its loopback: nothing of theirs travels.
    pub loopback: bool,
}

/// What the server's rules and lists say about everybody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Where all were checked.
    pub source: &'static str,
    /// Who is let in all the same.
    pub exceptions: Vec<Exception>,
    /// Why somebody else may be, too: then that there are no exceptions says nothing.
    pub doubts: Vec<String>,
}

impl Whole {
    /// What `source` says beyond doubt.
    pub fn of(source: &'static str, exceptions: Vec<Exception>) -> Self {
        Self { source, exceptions, doubts: Vec::new() }
    }
}

/// The words that a claim about a whole server gets where only one account could be judged.
pub const THIS_ACCOUNT: &str = "for this account: the others could not be seen";

/// True when `host`, of a URL or a launched server, is this machine's loopback.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Those of `exceptions` that matter to clients that reach the server at `host`: what is let in over the server's own
/// loopback matters to those who come that way.
pub fn that_matter(exceptions: Vec<Exception>, host: &str) -> Vec<Exception> {
    let near = is_loopback(host);
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
        for host in ["localhost", "127.0.0.1", "127.0.0.3", "::1"] {
            assert_eq!(that_matter(exceptions(), host).len(), 5, "{host}");
        }
        for host in ["db.example", "192.0.2.1", "127.example"] {
            assert_eq!(in_words(&that_matter(exceptions(), host)), "line 1; line 3; line 5");
        }
        assert_eq!(in_words(&exceptions()), "line 1; line 2; line 3; and 2 more");
    }
}
