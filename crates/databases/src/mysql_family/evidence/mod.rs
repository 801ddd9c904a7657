//! Checks that mean the same on both products: one file each.

pub mod general_log;
pub mod logs_free;
pub mod served;

use std::time::Duration;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::CheckContext;

use super::{
    access::Access,
    accounts::{Gate, ReadAccounts, in_plaintext},
    session::WireSession,
};
use crate::evidence::{
    marked::{Counts, Gained, Log, LogGrowth, Tally, send},
    settled::{Patience, settled},
    whole::Whole,
};

/// Clients that the server accepts without TLS: none if it requires TLS of all, otherwise the `accounts` that do not
/// need it.
///
/// # Errors
/// The server's error: a client's account has no privilege to read the table of accounts.
pub fn others(access: &Access, context: &CheckContext<'_>, accounts: ReadAccounts) -> Result<Whole, Fault> {
    let mut session = access.administrator(context.server, context.setup)?;
    let gate = Gate::read(&mut session)?;
    if gate.requires_tls {
        return Ok(Whole::of("require_secure_transport = ON", Vec::new()));
    }
    Ok(Whole::of("the table of accounts", in_plaintext(&accounts(&mut session)?, gate)))
}

/// The switches that are not as `wanted`, each `name = value`.
///
/// # Errors
/// The server's error.
pub fn switches_off<'a>(
    session: &mut WireSession,
    wanted: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<String>, Fault> {
    let mut off = Vec::new();
    for (name, wanted) in wanted {
        let value = session.shown("GLOBAL VARIABLES", name)?.unwrap_or_else(|| "unknown".to_owned());
        if !value.eq_ignore_ascii_case(wanted) {
            off.push(format!("{name} = {}", value.to_ascii_uppercase()));
        }
    }
    Ok(off)
}

/// All of `names`, with commas between them.
pub fn all(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The first three of `names`, and how many there are more.
pub fn first(names: &[String]) -> String {
    match names.get(3..) {
        Some(more) if !more.is_empty() => format!("{} and {} more", all(&names[..3]), more.len()),
        _ => all(names),
    }
}

/// The server answers the client first, and writes its record then.
const PATIENCE: Patience = Patience {
    most: Duration::from_secs(5),
    afterwards: Duration::from_millis(200),
    nothing: Duration::from_millis(200),
    pause: Duration::from_millis(20),
};

/// What a log contains of the statements that were sent.
pub struct Marked {
    /// What was sent, and which of it is in the log.
    tally: Tally,
    /// Which of it must be in the log, no more and no less.
    pub expected: Counts,
    /// The text that was added to the log.
    pub text: String,
}

impl Marked {
    /// The resulting observation for an arm that is `protected`, or is not.
    pub fn observation(&self, protected: bool) -> Observation {
        self.tally.against(&self.expected, protected)
    }
}

/// Sends numbered statements of each kind from several sessions at once, and counts them in `log` with `count`, which
/// gets the added text and `mark`. The log must hold `expected` of what was sent. `Err` with the reason if the log
/// cannot be read.
///
/// # Errors
/// The first fault.
pub fn count_marked(
    context: &CheckContext<'_>,
    log: &Log,
    mark: &str,
    expected: impl FnOnce(&Counts) -> Counts,
    count: impl Fn(&str, &str) -> Counts,
) -> Result<Result<Marked, String>, Fault> {
    let growth = match LogGrowth::begin(context, log) {
        Ok(growth) => growth,
        Err(why) => return Ok(Err(why)),
    };
    let sent = send(context)?;
    let expected = expected(&sent);
    let look = || {
        let Gained { text, doubt } = growth.so_far(context)?;
        Ok((count(&text, mark), (text, doubt)))
    };
    let (logged, (text, doubt)) = settled(&expected, PATIENCE, look)?;
    let tally = Tally { sent, logged, doubt };
    Ok(Ok(Marked { tally, expected, text }))
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn three_names_are_told_and_further_ones_counted() {
        let told = |count: usize| first(&(1..=count).map(|number| number.to_string()).collect::<Vec<String>>());
        let expected = ["none", "1", "1, 2, 3", "1, 2, 3 and 1 more", "1, 2, 3 and 4 more"];
        assert_eq!([0, 1, 3, 4, 7].map(told), expected);
    }
}
