//! Lets the provider of a server switch it, and waits until the server confirms it.
//!
//! A command's exit status is not trusted. After it the server is asked repeatedly until it gives the expected answer,
//! over a connection like those of the coming side's clients, or by a command of the provider's if no connection can
//! ask. The original state is asked first, so that it can be restored. Nothing is measured here.

use std::time::{Duration, Instant};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Command, Server},
    observation::Observation,
    sandbox::process,
};
use tithe_model::{experiment::ProviderSwitch, quantity, record::Event};
use tithe_plugin::setup::Setup;

use super::{EventLog, Run, held_servers::HeldServers, sharing};

/// Time between two questions to a server that is being switched.
const PAUSE: Duration = Duration::from_millis(500);

/// Time between two reports about the switch.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// The names of the two arms in `switch`, by their numbers.
const NAMES: [&str; 2] = ["off", "on"];

/// The server that is both arms in turn.
pub(super) struct SwitchedServer<'r> {
    run: &'r Run<'r>,
    switch: &'r ProviderSwitch,
    /// Index of the cell.
    cell: u32,
    /// The server as the clients of each arm reach it.
    servers: Vec<(Server, Setup)>,
    /// Its identity when it was last reached, to prove that both arms are the same server.
    reached: Option<Reached>,
    /// Holds it against other runs.
    held: HeldServers,
    /// Environment variables that the commands do not get: they contain secrets of Tithe's.
    hidden: Vec<String>,
    /// The arm as which a killed run found it, if this run continues that one: see [`before_killed`].
    before: Option<usize>,
    /// The arm that it was originally; `None` before the first question.
    found: Option<usize>,
    /// The arm that it is; `None` if that is unknown.
    now: Option<usize>,
    /// How long the last switch to each arm took, as text.
    took: [String; 2],
}

/// A server that was reached by a URL.
struct Reached {
    /// The identity that it reports.
    identity: String,
    /// Its hosts, from the URL.
    place: String,
}

impl Reached {
    /// True for the `known` server. If its reported identity is that of a process (`of_process`), it changes with a
    /// restart, and the server is recognised by its place.
    fn is(&self, known: &Self, of_process: bool) -> bool {
        self.identity == known.identity || of_process && self.place == known.place
    }
}

impl<'r> SwitchedServer<'r> {
    /// For the cell of this number; `None` if no provider switches anything.
    pub fn of(run: &'r Run<'r>, cell: u32) -> Option<Self> {
        let switch = run.plan.experiment.switch()?;
        let arms = run.arms.iter();
        let servers = arms.filter_map(|arm| Some((sharing::at(arm.arm.url.as_ref()?), arm.bare_setup()))).collect();
        let column_keys = run.arms.iter().filter_map(|arm| arm.bare_setup().columns?.key_place.variable);
        let password = run.product.entry().password_variable.to_owned();
        let hidden = std::iter::once(password).chain(column_keys).filter(|name| !name.is_empty()).collect();
        let took = [String::new(), String::new()];
        Some(Self {
            run,
            switch,
            cell,
            servers,
            reached: None,
            held: HeldServers::default(),
            hidden,
            before: None,
            found: None,
            now: None,
            took,
        })
    }

    /// The same server, which a killed run found as the arm `before`: see [`before_killed`].
    #[must_use]
    pub fn left_by_killed(self, before: Option<usize>) -> Self {
        Self { before, ..self }
    }

    /// Holds the server, and asks it which arm it is, before anything is switched.
    ///
    /// # Errors
    /// When it is another run's, cannot be asked in either arm's way, or its answer is neither true nor false.
    pub fn find(&mut self) -> Result<(), Fault> {
        self.hold()?;
        let said = self.says(0).or_else(|fault| self.says(1).map_err(|_| fault));
        let found =
            said.map_err(|fault| fault.of(format_args!("`ready` of `switch`, `{}`", self.switch.question())))?;
        (self.found, self.now) = (Some(self.before.unwrap_or(found)), Some(found));
        Ok(())
    }

    /// Holds the server by its place, which stays the same, and by the identity by which others hold it.
    fn hold(&mut self) -> Result<(), Fault> {
        let product = self.run.product;
        let Some((server, setup)) = self.servers.first() else { return Ok(()) };
        let Address::Attached(url) = &server.address else { return Ok(()) };
        let port = sharing::port_of(product.endpoint(url), url);
        let identity = product.identity(server, setup).ok().flatten();
        let mut names = std::iter::once(sharing::place_of(url)).chain(identity);
        names.try_for_each(|name| self.held.hold(product.entry().id, &name, &port))
    }

    /// Switches the server to `arm`, and checks whether it is the same server as for the other arm. If the run was
    /// stopped meanwhile, it may be neither.
    ///
    /// # Errors
    /// As [`SwitchedServer::turn`]; when the URLs lead to two servers, or to one that cannot be measured.
    pub fn reach(&mut self, arm: usize, setup: &Setup, event_log: &mut EventLog<'_>) -> Result<(), Fault> {
        self.turn(arm, event_log)?;
        let Some(described) = self.run.plan.experiment.arms.get(arm) else { return Ok(()) };
        let Some(url) = described.url.as_ref().filter(|_| self.now == Some(arm)) else { return Ok(()) };
        let identity = sharing::identity(self.run.product, described, url, setup)?;
        let reached = Reached { identity, place: sharing::place_of(url) };
        if let Some(known) = &self.reached
            && !reached.is(known, self.run.product.entry().identity_of_process)
        {
            return Err(Fault::Refused(format!(
                "arm {} has another server than the first arm: with `switch`, both arms are one server",
                described.name
            )));
        }
        self.reached = Some(reached);
        Ok(())
    }

    /// Switches the server to `arm`. If the run is stopped during the wait for the server, it may not be that arm yet.
    ///
    /// # Errors
    /// When the provider's command fails, and when the server does not confirm it in time.
    pub fn turn(&mut self, arm: usize, event_log: &mut EventLog<'_>) -> Result<(), Fault> {
        let switched = self.turn_unless(arm, &|run: &Run<'_>| run.cancelled(), event_log)?;
        switched.map_or(Ok(()), |event| event_log.add(event))
    }

    /// Switches the server to `arm`, even after the run was stopped, and even if that cannot be recorded.
    ///
    /// # Errors
    /// As [`SwitchedServer::turn`].
    pub fn turn_back(&mut self, arm: usize, event_log: &mut EventLog<'_>) -> Result<(), Fault> {
        if let Some(event) = self.turn_unless(arm, &|_| false, event_log)? {
            // A folder that cannot be written ends the run at the next write.
            let _ = event_log.add(event);
        }
        Ok(())
    }

    /// Restores the server's original state. If that fails, reports and returns what to do.
    ///
    /// # Errors
    /// When the run folder cannot be written.
    pub fn leave(&mut self, event_log: &mut EventLog<'_>) -> Result<Option<Fault>, Fault> {
        let Some(found) = self.found else { return Ok(None) };
        let Err(fault) = self.turn_back(found, event_log) else { return Ok(None) };
        let name = NAMES[found];
        let words = format!(
            "the server was {name} before the run, and may not be so now: {fault}; switch it by hand: {}",
            self.command(found).join(" ")
        );
        event_log.warn(words.clone())?;
        Ok(Some(Fault::Machine(words)))
    }

    /// The server's own report while it is to be `arm`, as one observation of that arm.
    pub fn observe(&self, arm: usize) -> Observation {
        match self.says(arm) {
            Ok(1) => Observation::Protected(format!("`ready` answers that it is on{}", self.took[1])),
            Ok(_) => Observation::Exposed(format!("`ready` answers that it is off{}", self.took[0])),
            Err(fault) => Observation::from(fault),
        }
    }

    /// The event to record; `None` if the server was `arm` already, or if the run was stopped.
    fn turn_unless(
        &mut self,
        arm: usize,
        stopped: &dyn Fn(&Run<'_>) -> bool,
        event_log: &mut EventLog<'_>,
    ) -> Result<Option<Event>, Fault> {
        if self.now == Some(arm) {
            return Ok(None);
        }
        let (began, timeout) = (Instant::now(), Duration::from_secs_f64(self.switch.timeout_s));
        // Whatever happens, its state is unknown from here on.
        self.now = None;
        let mut watch = Watch { cell: self.cell, arm: arm as u32, began, timeout, told: None };
        let command = command_of(self.command(arm));
        let ended = process::run_own(&command, &self.hidden, timeout, &mut || watch.report(event_log));
        let printed = ended.map_err(|fault| fault.of(format_args!("`{}` of `switch`", NAMES[arm])))?;
        let deadline = Instant::now() + timeout;
        loop {
            let last = match self.says(arm) {
                Ok(said) if said == arm => break,
                Ok(said) => format!("it answers that it is {}", NAMES[said]),
                Err(fault) => fault.to_string(),
            };
            if stopped(self.run) {
                return Ok(None);
            }
            if Instant::now() > deadline {
                // Some programs print an error and succeed, such as redis-cli.
                let printed = match process::tail(&printed) {
                    words if words.is_empty() => "it printed nothing".to_owned(),
                    words => format!("it printed: {words}"),
                };
                return Err(Fault::Machine(format!(
                    "the server did not report that it is {} within {} after the provider's command had succeeded \
                     ({printed}): {last}",
                    NAMES[arm],
                    quantity::precise_duration(self.switch.timeout_s)
                )));
            }
            watch.report(event_log);
            std::thread::sleep(PAUSE);
        }
        let took_s = began.elapsed().as_secs_f64();
        self.now = Some(arm);
        self.took[arm] = format!(", {} after the command", quantity::precise_duration(took_s));
        Ok(Some(Event::Switched { cell: self.cell, arm: arm as u32, took_s }))
    }

    fn command(&self, arm: usize) -> &'r [String] {
        if arm == 1 { &self.switch.on } else { &self.switch.off }
    }

    /// The arm that the server reports, asked like the clients of `arm` reach it, or by the provider's command.
    fn says(&self, arm: usize) -> Result<usize, Fault> {
        let answer = if self.switch.ready_command.is_empty() { self.asked(arm)? } else { self.told()? };
        let answer = answer.ok_or_else(|| Fault::Refused("it has no answer".to_owned()))?;
        let is_on = truth(&answer)
            .ok_or_else(|| Fault::Refused(format!("its answer is {answer:?}, which is neither true nor false")))?;
        Ok(usize::from(is_on))
    }

    /// The server's own answer to the question, asked like the clients of `arm` reach it.
    fn asked(&self, arm: usize) -> Result<Option<String>, Fault> {
        let (server, setup) =
            self.servers.get(arm).ok_or_else(|| Fault::Machine(format!("there is no arm {arm} to ask")))?;
        self.run.product.ask(server, setup, &self.switch.ready)
    }

    /// The last line of the output of the provider's command.
    fn told(&self) -> Result<Option<String>, Fault> {
        let timeout = Duration::from_secs_f64(self.switch.timeout_s);
        let text = process::run_own(&command_of(&self.switch.ready_command), &self.hidden, timeout, &mut || ())?;
        Ok(text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned))
    }
}

/// The arm as which the run with these `events` found its server, if that run was killed before it restored the arm.
/// `None` if the run ended by itself, or never switched the server.
pub(super) fn before_killed(events: &[Event]) -> Option<usize> {
    let (mut before, mut has_ended) = (None, false);
    for event in events {
        match event {
            Event::RunStarted { .. } => {
                // A killed run may have been continued by another one.
                before = before.filter(|_| !has_ended);
                has_ended = false;
            }
            Event::Switched { arm, .. } => before = before.or(Some(usize::from(*arm == 0))),
            Event::RunDone { .. } => has_ended = true,
            _ => {}
        }
    }
    before.filter(|_| !has_ended)
}

/// The command for a program and its arguments.
fn command_of(words: &[String]) -> Command {
    Command {
        program: words.first().map(String::as_str).unwrap_or_default().into(),
        arguments: words.iter().skip(1).cloned().collect(),
        environment: Default::default(),
    }
}

/// Reports to the listener how long a switch has taken.
struct Watch {
    cell: u32,
    arm: u32,
    began: Instant,
    timeout: Duration,
    told: Option<Instant>,
}

impl Watch {
    fn report(&mut self, event_log: &mut EventLog<'_>) {
        if self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let (done_s, at_most_s) = (self.began.elapsed().as_secs_f64(), 2.0 * self.timeout.as_secs_f64());
        event_log.listener.event(&Event::Switching { cell: self.cell, arm: self.arm, done_s, at_most_s });
    }
}

/// True and false in the words of servers; `None` for anything else.
fn truth(answer: &str) -> Option<bool> {
    match answer.trim().to_ascii_lowercase().as_str() {
        "t" | "true" | "1" | "on" | "yes" => Some(true),
        "f" | "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_started_anew_is_known_by_its_place_where_it_calls_itself_otherwise() {
        let reached = |identity: &str, place: &str| Reached { identity: identity.to_owned(), place: place.to_owned() };
        let known = reached("run 1", "db:1");
        for of_process in [false, true] {
            assert!(reached("run 1", "other:1").is(&known, of_process));
            assert!(!reached("run 2", "other:1").is(&known, of_process));
            assert_eq!(reached("run 2", "db:1").is(&known, of_process), of_process);
        }
    }

    #[test]
    fn what_servers_call_true_and_false() {
        for (answer, expected) in [
            ("t", Some(true)),
            ("1", Some(true)),
            ("ON", Some(true)),
            ("yes\n", Some(true)),
            ("f", Some(false)),
            ("0", Some(false)),
            ("off", Some(false)),
            ("No", Some(false)),
            ("none", None),
            ("all", None),
            ("", None),
        ] {
            assert_eq!(truth(answer), expected, "{answer:?}");
        }
    }
}
