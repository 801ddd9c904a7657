//! What distinguishes the arm of a protection from the plain one: a statement with its answer, or a named check.

use std::time::{Duration, Instant};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    catalogue::PATIENCE_S,
    experiment::{Claim, FilePlace, NamedCheck, Says},
    record,
};

use crate::{
    checks::{
        canary::{Canaries, Targets, key_value},
        disk_canary::DiskCanary,
        scan::Places,
        wire_canary::WireCanary,
    },
    database::{Row, Speaker},
    evidence::{Check, CheckContext, CheckEntry},
    session::answered_within,
    setup::{Selection, Setup, in_space, with_files},
};

/// Product-specific parts of named claims.
pub struct Probes {
    /// The check that clients without the password are refused; `None` if the product has no passwords.
    pub password: Option<fn() -> Box<dyn Check>>,
    /// Counts the lines like a pattern that its log gains from the check's own statements, 100 each of `INSERT`,
    /// `SELECT`, `UPDATE` and `DELETE`; the inner error is why they cannot be counted. `None` if Tithe cannot read its
    /// log.
    pub count_in_log: Option<CountInLog>,
}

/// See [`Probes::count_in_log`].
pub type CountInLog = fn(&CheckContext<'_>, &str) -> Result<Result<u64, String>, Fault>;

impl Probes {
    /// The probes of a product without passwords and logs.
    pub const NONE: Self = Self { password: None, count_in_log: None };
}

/// The check of `claim` about a product with these `probes`.
pub fn check(claim: &Claim, probes: &'static Probes) -> Box<dyn Check> {
    match claim {
        Claim::Statement { statement, says } => {
            Box::new(StatementSays { statement: statement.clone(), says: says.clone() })
        }
        Claim::Check(NamedCheck::CanaryNotInFiles(places)) => {
            Box::new(DiskCanary::new(places_of(places), Targets::Everything))
        }
        Claim::Check(NamedCheck::ValuesNotInFiles(places)) => {
            Box::new(DiskCanary::new(places_of(places), Targets::Fields(Selection::of_share(1.0))))
        }
        Claim::Check(NamedCheck::RemovedNotInFiles(places)) => Box::new(DiskCanary::removed(places_of(places))),
        Claim::Check(NamedCheck::RemovedFound { statement }) => Box::new(RemovedFound { statement: statement.clone() }),
        Claim::Check(NamedCheck::NotOnTheWire) => Box::new(WireCanary::new(Targets::Everything)),
        Claim::Check(NamedCheck::RefusedWithoutPassword) => Box::new(PasswordNeeded(probes)),
        Claim::Check(NamedCheck::CountedInLog { pattern, count }) => {
            Box::new(CountedInLog { pattern: pattern.clone(), count: *count, probes })
        }
        Claim::Check(NamedCheck::RefusedAs { account, statement, words }) => {
            Box::new(RefusedAs { account: account.clone(), statement: statement.clone(), words: words.clone() })
        }
    }
}

fn places_of(places: &[FilePlace]) -> Places {
    let has = |place| places.contains(&place);
    Places { data: has(FilePlace::Data), journal: has(FilePlace::Journal), logs: has(FilePlace::Logs) }
}

/// The name of every claim by statement or count.
const YOUR_CLAIM: CheckEntry = CheckEntry::claim(record::YOUR_CLAIM);

/// A statement, and its expected answer.
struct StatementSays {
    statement: String,
    says: Says,
}

impl Check for StatementSays {
    fn entry(&self) -> CheckEntry {
        YOUR_CLAIM
    }

    fn claim(&self) -> String {
        format!("`{}` {}", self.statement, self.says)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(match (&self.says, said(context, context.setup, &self.statement)?) {
            (_, Err(Failure::Slow)) => {
                Observation::Unknown(format!("the statement has not ended within {PATIENCE_S} s"))
            }
            (Says::FailsWith(words), Err(Failure::Said(error))) if error.contains(words.as_str()) => {
                seen(context, true, error)
            }
            (_, Err(Failure::Said(error))) => Observation::Unknown(format!("the statement failed: {error}")),
            (says, Ok(rows)) => seen(context, says.is_met(&words_of(&rows), rows.len() as u64), told(&rows)),
        })
    }
}

/// Another account is refused a statement that a measured client is not. The plain arm is not asked: the account need
/// not exist there.
struct RefusedAs {
    account: String,
    statement: String,
    words: String,
}

impl Check for RefusedAs {
    fn entry(&self) -> CheckEntry {
        YOUR_CLAIM.own_control()
    }

    fn claim(&self) -> String {
        let Self { account, statement, words } = self;
        format!(
            "`{statement}` as {account} fails with `{words}`, and not as a measured client (the plain arm is not asked)"
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if let Err(failure) = said(context, context.setup, &self.statement)? {
            return Ok(Observation::Unknown(format!("as a measured client it fails, too: {failure}")));
        }
        let account = Some(self.account.clone());
        let other = Setup { account, session_statements: Vec::new(), ..context.setup.clone() };
        let answered = said(context, &other, &self.statement).map_err(|fault| fault.of(&self.account))?;
        Ok(match answered {
            Ok(rows) => Observation::Exposed(told(&rows)),
            Err(Failure::Said(error)) if error.contains(&self.words) => Observation::Protected(error),
            Err(failure) => Observation::Unknown(failure.to_string()),
        })
    }
}

/// A statement finds data that a client replaced and removed.
struct RemovedFound {
    statement: String,
}

impl Check for RemovedFound {
    fn entry(&self) -> CheckEntry {
        YOUR_CLAIM
    }

    fn claim(&self) -> String {
        format!("`{}` finds what a client replaced and removed", self.statement)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let canaries = Canaries::new(context, "removed-found");
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        canaries.remove(session.as_mut())?;
        drop(session);
        for (value, how) in canaries.replaced_and_removed() {
            match said(context, context.setup, &self.statement.replace("{canary}", &value))? {
                Ok(rows) if rows.is_empty() => {
                    return Ok(Observation::Exposed(format!("the value that {how} is not found")));
                }
                Ok(_) => {}
                // On the plain arm nothing keeps removed data, so the searched place may not exist.
                Err(Failure::Said(error)) if !context.protected => return Ok(Observation::Exposed(error)),
                Err(failure) => return Ok(Observation::Unknown(failure.to_string())),
            }
        }
        Ok(seen(context, true, "both are found".to_owned()))
    }
}

/// Why a statement returned no rows.
enum Failure {
    /// The server's words.
    Said(String),
    /// It did not end within [`PATIENCE_S`].
    Slow,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said(words) => formatter.write_str(words),
            Self::Slow => write!(formatter, "it has not ended within {PATIENCE_S} s"),
        }
    }
}

/// The answer of `statement`, which changes nothing, to a client with `setup`.
fn said(context: &CheckContext<'_>, setup: &Setup, statement: &str) -> Result<Result<Vec<Row>, Failure>, Fault> {
    let statement = with_files(&in_space(statement, &setup.space), &context.server.folder);
    let began = Instant::now();
    let rows = answered_within(PATIENCE_S + 2, || {
        let mut client = context.database.statements(context.server, setup, &context.how(), Speaker::CarefulClient)?;
        Ok::<_, Fault>(client.rows(&statement))
    })?;
    let is_slow = began.elapsed() >= Duration::from_secs(PATIENCE_S.into());
    Ok(rows.map_err(|fault| if is_slow { Failure::Slow } else { Failure::Said(fault.to_string()) }))
}

/// `rows` in the words of an observation.
fn told(rows: &[Row]) -> String {
    if rows.is_empty() { "it returns no rows".to_owned() } else { format!("it answers {}", words_of(rows)) }
}

/// The observation of a claim on the arm of `context`.
fn seen(context: &CheckContext<'_>, met: bool, told: String) -> Observation {
    match (met, context.protected) {
        (true, true) => Observation::Protected(told),
        (true, false) => Observation::Protected(format!("{told}: the claim holds on the plain arm, too")),
        (false, _) => Observation::Exposed(told),
    }
}

/// In the form of claims: `, ` between the values of a row, `; ` between rows.
fn words_of(rows: &[Row]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
    let row = |row: &Row| row.iter().map(value).collect::<Vec<_>>().join(", ");
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

/// The product's own check of passwords.
struct PasswordNeeded(&'static Probes);

impl Check for PasswordNeeded {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("password-asked")
    }

    fn claim(&self) -> String {
        "clients without the password, and with a wrong one, are refused; the right one is served".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        match self.0.password {
            Some(check) => check().observe(context),
            None => Ok(Observation::Unknown(format!("{} has no passwords", context.database.title()))),
        }
    }
}

/// This many lines of the log match a pattern.
struct CountedInLog {
    pattern: String,
    count: u64,
    probes: &'static Probes,
}

impl Check for CountedInLog {
    fn entry(&self) -> CheckEntry {
        YOUR_CLAIM
    }

    fn claim(&self) -> String {
        let Self { pattern, count, .. } = self;
        format!(
            "100 statements each of INSERT, SELECT, UPDATE and DELETE bring {count} lines like `{pattern}` into the log"
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(count_in_log) = self.probes.count_in_log else {
            return Ok(Observation::Unknown(format!("Tithe does not read the log of {}", context.database.title())));
        };
        Ok(match count_in_log(context, &self.pattern)? {
            Ok(count) => seen(context, count == self.count, format!("{count} such lines")),
            Err(why) => Observation::Unknown(why),
        })
    }
}

#[cfg(test)]
mod tests;
