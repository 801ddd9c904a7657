//! A server that commands of its provider switch: a file holds what it is.

use std::fs;

use tithe_machine::observation::Observation;
use tithe_model::experiment::{ProviderSwitch, Url};

use super::*;

/// The arms to which the server was switched, and all warnings.
#[derive(Default)]
struct Told {
    switched: Vec<u32>,
    warnings: Vec<String>,
}

impl EventListener for Told {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Switched { arm, .. } => self.switched.push(*arm),
            Event::Warning { message } => self.warnings.push(message.clone()),
            _ => {}
        }
    }

    fn frame(&mut self, _frame: &Frame, _slots: &[Slot]) -> Advice {
        Advice::default()
    }
}

/// Scripts that switch the server on and off.
const SCRIPTS: [&str; 2] = ["echo yes > FILE", "echo no > FILE"];

/// Does `work` on a server with these scripts, whose state is `before`, in a run that may be `cancelled`. Returns the
/// result, the server's state afterwards, and the events.
fn with<T>(
    before: &str,
    scripts: [&str; 2],
    cancelled: bool,
    work: impl FnOnce(&mut SwitchedServer<'_>, &mut EventLog<'_>) -> T,
) -> (T, String, Told) {
    with_killed(before, None, scripts, cancelled, work)
}

/// The same for a server that was the arm `original` before a run that was killed.
fn with_killed<T>(
    before: &str,
    original: Option<usize>,
    [on, off]: [&str; 2],
    cancelled: bool,
    work: impl FnOnce(&mut SwitchedServer<'_>, &mut EventLog<'_>) -> T,
) -> (T, String, Told) {
    let mut planned = Planned::with("");
    let state = planned.folder.path().join("state");
    fs::write(&state, before).expect("written");
    let file = state.display().to_string();
    let shell = |script: &str| vec!["/bin/sh".to_owned(), "-c".to_owned(), script.replace("FILE", &file)];
    let arms = &mut planned.plan.experiment.arms;
    arms.truncate(2);
    // Of each test one: a server has one run at a time.
    let place = planned.folder.path().file_name().unwrap_or_default().to_string_lossy();
    arms.iter_mut().for_each(|arm| arm.url = Some(Url::new(format!("simulated://{place}:1"))));
    arms[1].switch = Some(ProviderSwitch {
        on: shell(on),
        off: shell(off),
        ready: String::new(),
        ready_command: shell("cat FILE"),
        side_s: 60.0,
        timeout_s: 60.0,
    });
    let cancelled = AtomicBool::new(cancelled);
    let installs = vec![Install::default()];
    let run = Run::new(&Simulated, installs, &planned.plan, &planned.workloads, &cancelled).expect("a run");
    let created = RunFolder::create(&planned.path(), EXPERIMENT, &planned.plan, &Machine::default());
    let (mut folder, mut told) = (created.expect("a run folder"), Told::default());
    let mut server = SwitchedServer::of(&run, 0).expect("a switch").left_by_killed(original);
    let made = work(&mut server, &mut EventLog { folder: &mut folder, listener: &mut told });
    let refused = SwitchedServer::of(&run, 0).expect("a switch").find().expect_err("it has its run").to_string();
    assert!(refused.contains("another run of Tithe uses this server"), "{refused}");
    (made, fs::read_to_string(&state).expect("a text").trim().to_owned(), told)
}

#[test]
fn a_server_is_switched_only_to_what_it_is_not_and_left_as_it_was_found() {
    // Blank lines are no answer.
    for (before, turns, switched) in
        [("no\n\n", vec![0, 1, 1, 0, 1], vec![1, 0, 1, 0]), ("yes", vec![0], vec![0, 1]), ("no", vec![0], vec![])]
    {
        let ((), after, told) = with(before, SCRIPTS, false, |server, event_log| {
            server.find().expect("it answers");
            turns.iter().for_each(|arm| server.turn(*arm, event_log).expect("switched"));
            server.leave(event_log).expect("left");
        });
        assert_eq!((told.switched, after.as_str()), (switched, before.trim()));
        assert_eq!(told.warnings, [""; 0]);
    }
}

#[test]
fn a_server_that_a_killed_run_has_switched_is_left_as_that_run_found_it() {
    let started = || Event::RunStarted { tithe: String::new(), resumed: false };
    let switched = |arm| Event::Switched { cell: 0, arm, took_s: 1.0 };
    let done = || Event::RunDone { interrupted: true };
    assert_eq!(before_killed(&[started()]), None, "it was not switched");
    assert_eq!(before_killed(&[started(), switched(1), switched(0)]), Some(0));
    assert_eq!(before_killed(&[started(), switched(0)]), Some(1));
    assert_eq!(before_killed(&[started(), switched(1), switched(0), done()]), None, "it was restored");
    assert_eq!(before_killed(&[started(), switched(1), started(), switched(0)]), Some(0), "killed twice");
    assert_eq!(before_killed(&[started(), switched(1), done(), started(), switched(0)]), Some(1));
    for (before, expected) in [(None, "yes"), (Some(0), "no"), (Some(1), "yes")] {
        let ((), after, _) = with_killed("yes", before, SCRIPTS, false, |server, event_log| {
            server.find().expect("it answers");
            server.leave(event_log).expect("left");
        });
        assert_eq!(after, expected, "{before:?}");
    }
}

#[test]
fn what_a_server_answers_is_evidence_of_what_it_is() {
    let (seen, ..) = with("no", SCRIPTS, false, |server, event_log| {
        server.find().expect("it answers");
        let before = server.observe(1);
        server.turn(1, event_log).expect("switched");
        [before, server.observe(1)]
    });
    let [before, after] = seen;
    assert_eq!(before, Observation::Exposed("`ready` answers that it is off".to_owned()));
    let words = after.quotation();
    assert!(words.starts_with("`ready` answers that it is on, ") && words.ends_with(" after the command"), "{words}");
    assert!(matches!(after, Observation::Protected(_)));
}

#[test]
fn a_server_that_needs_time_is_waited_for() {
    let (turned, after, told) = with("no", ["(sleep 1; echo yes > FILE) &", SCRIPTS[1]], false, |server, event_log| {
        server.find().expect("it answers");
        server.turn(1, event_log)
    });
    assert_eq!((turned, after.as_str(), told.switched), (Ok(()), "yes", vec![1]));
}

#[test]
fn a_switch_that_fails_is_told_and_undone_as_far_as_it_can_be() {
    let turned = |scripts: [&str; 2], cancelled: bool| {
        let (turned, after, told) = with("no", scripts, cancelled, |server, event_log| {
            server.find().expect("it answers");
            let turned = server.turn(1, event_log);
            let left = server.leave(event_log).expect("reported");
            assert_eq!(left.is_some(), scripts[1] == "exit 3", "a run that leaves it otherwise fails");
            turned
        });
        (turned.map_err(|fault| fault.to_string()).err().unwrap_or_default(), after, told)
    };
    // Half of it may be done.
    let (why, after, told) = turned(["echo yes > FILE; echo no quota; exit 3", SCRIPTS[1]], false);
    assert!(why.starts_with("`on` of `switch`: /bin/sh failed") && why.contains("no quota"), "{why}");
    assert_eq!((after.as_str(), told.switched, told.warnings), ("no", vec![0], Vec::new()));
    let (why, after, told) = turned([SCRIPTS[0], "exit 3"], false);
    assert_eq!((why.as_str(), after.as_str(), told.switched), ("", "yes", vec![1]));
    let warnings = told.warnings.concat();
    assert!(warnings.starts_with("the server was off before the run, and may not be so now: "), "{warnings}");
    assert!(warnings.ends_with("; switch it by hand: /bin/sh -c exit 3"), "{warnings}");
    // A run that is stopped does not wait for it.
    let (why, after, told) = turned(["true", SCRIPTS[1]], true);
    assert_eq!((why.as_str(), after.as_str(), told.switched), ("", "no", vec![0]));
}

#[test]
fn a_server_that_does_not_say_what_it_is_is_not_switched() {
    for (before, words) in
        [("maybe", "its answer is \"maybe\", which is neither true nor false"), ("\n \n", "it has no answer")]
    {
        let (why, after, told) = with(before, SCRIPTS, false, |server, event_log| {
            let why = server.find().expect_err("no answer").to_string();
            server.leave(event_log).expect("left");
            why
        });
        assert!(why.starts_with("refused: `ready` of `switch`, `/bin/sh -c cat /") && why.ends_with(words), "{why}");
        assert_eq!((after.as_str(), told.switched), (before.trim(), Vec::new()));
    }
}
