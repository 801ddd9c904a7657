//! Do the server's logs contain values, keys or passwords?

use std::time::{Duration, Instant};

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_model::record::Role;

use crate::{
    checks::{
        canary::{Canaries, Source, TOKEN_BYTES, Targets, key_value},
        needles::NEEDLE_BYTES,
        scan::{Places, Report, search, shows, unseen},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// Makes the server write `token` into its log, in the product's own way.
pub type Plant = fn(context: &CheckContext<'_>, token: &str) -> Result<(), Fault>;

/// Time limit for a server to write the planted log entry.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Searches for canaries, the data key and the password in the server's logs, raw, in hexadecimal and in base64. Its
/// control is a token that `plant` makes the server log, and that must be found. Id `logs-free`.
///
/// A password or key shorter than [`NEEDLE_BYTES`] is left out: it could be found by chance. So is the password of an
/// attached server's account, which an arm's credentials do not have.
pub struct LogsFree {
    role: Role,
    targets: Targets,
    plant: Plant,
    timeout: Duration,
}

impl LogsFree {
    /// A check of the logs for `targets` and secrets: a claim or a disclosure.
    pub fn new(role: Role, targets: Targets, plant: Plant) -> Self {
        Self { role, targets, plant, timeout: TIMEOUT }
    }
}

impl Check for LogsFree {
    fn entry(&self) -> CheckEntry {
        CheckEntry { role: self.role, ..CheckEntry::claim("logs-free").own_control() }
    }

    fn claim(&self) -> String {
        format!("the logs are free of every {}, of data keys and of passwords", self.targets.noun())
    }

    fn looks_into_files(&self) -> bool {
        true
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if context.server.address.is_attached() && !shows(context.server, Places::LOGS) {
            return Ok(unseen(context.server));
        }
        let is_searched = !context.server.address.is_attached() && is_long(&context.setup.credentials.password);
        if !is_searched {
            context.narrowed = Some(NOT_SEARCHED);
        }
        let canaries = Canaries::new(context, self.id());
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        drop(session);
        // Planted last: once it is in the log, so is everything logged before it.
        let token = Source::new(context, "logs-free control").text(TOKEN_BYTES);
        (self.plant)(context, &String::from_utf8_lossy(&token))?;

        let setup = context.setup;
        let at_rest = setup.at_rest.as_ref().map(|at_rest| ("data key", &at_rest.key));
        let columns = setup.columns.as_ref().map(|columns| ("data key", &columns.key));
        let credentials = &setup.credentials;
        let second = setup.rotates.then_some(("data key", &credentials.second_key));
        let ours = [Some(("data key", &credentials.key)), second, Some(("password", &credentials.password))];
        let secrets =
            ours.into_iter().chain([at_rest, columns]).flatten().map(|(what, secret)| (what, secret.expose()));
        let tokens = canaries.tokens(&self.targets);
        let secrets = secrets.filter(|(_, secret)| secret.len() >= NEEDLE_BYTES);
        let needles: Vec<_> = secrets.chain(tokens.iter().map(|token| ("canary", *token))).collect();
        let control = [("control token", token.as_slice())];
        let is_there = || Ok(search(context.server, Places::LOGS, &control)?.total().hits() > 0);
        let control = within(self.timeout, is_there)?;
        let report = search(context.server, Places::LOGS, &needles)?;
        Ok(conclude(&report, tokens.len(), control, if is_searched { " and no password" } else { "" }))
    }
}

/// What a claim is narrowed to if the password is left out.
const NOT_SEARCHED: &str = "the account's own password was not searched for";

fn is_long(secret: &Secret) -> bool {
    secret.expose().len() >= NEEDLE_BYTES
}

/// True as soon as `is_there`; false after the `timeout`.
fn within(timeout: Duration, mut is_there: impl FnMut() -> Result<bool, Fault>) -> Result<bool, Fault> {
    let start = Instant::now();
    loop {
        if is_there()? {
            return Ok(true);
        }
        if start.elapsed() > timeout {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `passwords`: what to add about them if none was found.
fn conclude(report: &Report, canaries: usize, control: bool, passwords: &str) -> Observation {
    let extent = report.extent();
    let none = format!("none of {canaries} canaries, no data key{passwords} in {extent}; the control token was found");
    match report.observation(none) {
        Observation::Protected(_) if !control => {
            Observation::Unknown(format!("the control token is not in the logs ({extent})"))
        }
        observation => observation,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;
    use crate::{
        setup::{AtRest, Columns, Setup},
        simulated::test_bench::Bench,
    };

    /// Adds `token` to the log of the server.
    fn append(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
        let log = &context.server.paths.logs[0];
        let text = fs::read_to_string(log)?;
        Ok(fs::write(log, format!("{text}LOG {token}\n"))?)
    }

    /// What the check finds in a log that holds this secret of an arm with all of them.
    fn seen_with(change: impl FnOnce(&mut Setup), secret: fn(&Setup) -> &Secret) -> Observation {
        let mut bench = Bench::plain();
        bench.setup.at_rest = Some(AtRest { cipher: String::new(), key: Secret::random(32) });
        bench.setup.columns = Some(Columns::of_share(1.0, Secret::random(32)));
        change(&mut bench.setup);
        fs::write(&bench.server.paths.logs[0], secret(&bench.setup).expose_hex() + "\n").expect("written");
        bench.observe(&LogsFree::new(Role::Disclosure, Targets::Everything, append))
    }

    #[test]
    fn each_secret_that_the_server_may_know_is_searched_for() {
        let secrets: [fn(&Setup) -> &Secret; 5] = [
            |setup| &setup.credentials.key,
            |setup| &setup.credentials.password,
            |setup| &setup.at_rest.as_ref().expect("it is set").key,
            |setup| &setup.columns.as_ref().expect("they are set").key,
            |setup| &setup.credentials.second_key,
        ];
        for (number, secret) in secrets.into_iter().enumerate() {
            let seen = seen_with(|setup| setup.rotates = true, secret);
            assert!(matches!(seen, Observation::Exposed(_)), "{number}: {seen:?}");
            // Only a server whose key is rotated gets the second one.
            let seen = seen_with(|setup| setup.rotates = false, secret);
            let exposed = matches!(seen, Observation::Exposed(_));
            assert_eq!(exposed, number != 4, "{number}: {seen:?}");
            assert!(exposed || matches!(seen, Observation::Protected(_)), "{number}: {seen:?}");
        }
    }

    #[test]
    fn a_password_that_may_be_met_by_chance_is_not_searched_for() {
        for length in [NEEDLE_BYTES - 1, NEEDLE_BYTES] {
            let password = Secret::random_text(length);
            let seen = seen_with(|setup| setup.credentials.password = password, |setup| &setup.credentials.password);
            assert_eq!(matches!(seen, Observation::Exposed(_)), length >= NEEDLE_BYTES, "{length}: {seen:?}");
            let left_out = matches!(&seen, Observation::Protected(words) if !words.contains("no password"));
            assert_eq!(left_out, length < NEEDLE_BYTES, "{length}: {seen:?}");
        }
    }

    #[test]
    fn a_log_that_is_written_later_is_waited_for() {
        let mut looks = [false, false, true].into_iter();
        assert_eq!(within(TIMEOUT, || Ok(looks.next().expect("the last look finds it"))), Ok(true));
        assert_eq!(within(Duration::ZERO, || Ok(false)), Ok(false));
    }

    #[test]
    fn a_server_that_does_not_log_the_control_proves_nothing() {
        let seen = |plant: Plant| {
            let bench = Bench::plain();
            std::fs::write(&bench.server.paths.logs[0], "started\n").expect("a log");
            let usual = LogsFree::new(Role::Disclosure, Targets::Everything, plant);
            bench.observe(&LogsFree { timeout: Duration::ZERO, ..usual })
        };
        let logged = seen(|context, token| {
            std::fs::write(&context.server.paths.logs[0], format!("LOG {token}\n")).expect("a log");
            Ok(())
        });
        assert!(matches!(logged, Observation::Protected(_)), "{logged:?}");
        let silent = seen(|_, _| Ok(()));
        let words = "the control token is not in the logs";
        assert!(matches!(&silent, Observation::Unknown(why) if why.starts_with(words)), "{silent:?}");
    }

    #[test]
    fn a_log_without_the_control_proves_nothing() {
        let empty = Report { files: 1, bytes: 812, ..Report::default() };
        expect![[r#"Unknown("the control token is not in the logs (1 file, 812 B)")"#]]
            .assert_eq(&format!("{:?}", conclude(&empty, 33, false, "")));
        let closed = Report { unreadable: vec!["server.log: Permission denied".to_owned()], ..Report::default() };
        expect![[r#"Unknown("cannot read server.log: Permission denied")"#]]
            .assert_eq(&format!("{:?}", conclude(&closed, 33, true, "")));
    }
}
