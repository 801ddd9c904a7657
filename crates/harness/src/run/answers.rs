//! Checks that every arm does the same work: with the same seed, transactions get the same answers, whatever protects
//! the server.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_model::{record::Phase, statement};
use tithe_plugin::workload::{Answered, Load, Workload};

use super::{EpochPlan, EventLog, Run};
use crate::load::frame::StartedArm;

/// The answers of one pass, by transaction.
type Pass = Vec<Vec<Answered>>;

impl Run<'_> {
    /// Runs the first transactions twice on the plain arm and once on every other arm, outside of the load, and
    /// compares their answers. Those that differ on the plain arm itself are left out.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with the statement and both answers if an arm answers differently.
    pub(super) fn check_answers(
        &self,
        part: &EpochPlan<'_>,
        phase: Phase,
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let workload = self.workloads[part.cell.workload].as_ref();
        // After the load, each arm's data have had as many transactions as that arm did.
        if workload.texts().is_empty() || (phase == Phase::After && workload.writes()) {
            return Ok(());
        }
        let pass = |arm: &StartedArm| self.pass(part, arm, workload);
        let (Some(plain), Some(again)) = (pass(&arms[0])?, pass(&arms[0])?) else { return Ok(()) };
        let failed = |answers: &Vec<Answered>| answers.last().is_some_and(|answer| answer.failed);
        if let Some(first) = plain.first().filter(|_| plain.iter().all(failed)).and_then(|answers| answers.last()) {
            return Err(Fault::Refused(format!("no transaction ends: {}", first.words)));
        }
        let by_nature = by_nature(&plain, &again);
        for (number, arm) in arms.iter().enumerate().skip(1) {
            let Some(seen) = pass(arm)? else { continue };
            if let Some((operation, of_plain, of_arm)) = difference(&plain, &seen, &by_nature) {
                let name = &self.plan.experiment.arms[number].name;
                let text = workload.texts().get(operation).map_or(String::new(), |text| statement::shown(text));
                return Err(Fault::Wrong(format!(
                    "arm {name} does other work than the plain arm: {} `{text}` answered {of_plain} there and {of_arm} here",
                    workload.operations()[operation]
                )));
            }
            let left_out: Vec<&str> = by_nature.iter().map(|operation| workload.operations()[*operation]).collect();
            let compared = plain.iter().flatten().filter(|answer| !by_nature.contains(&answer.operation)).count();
            let left_out = match left_out.is_empty() {
                true => String::new(),
                false => format!("; left out, because they differ on one server too: {}", left_out.join(", ")),
            };
            let claim = "with the same seed, statements return the same answers as on the plain arm";
            let same = format!("{compared} answers of {} transactions are the same{left_out}", plain.len());
            let control = "none: a different answer ends the cell";
            event_log.found(self.disclosed(part, (phase, number), ("same-answers", claim), (same, control)))?;
        }
        Ok(())
    }

    fn pass(&self, part: &EpochPlan<'_>, arm: &StartedArm, workload: &dyn Workload) -> Result<Option<Pass>, Fault> {
        let Load::Clients(clients) = workload.offered_by() else { return Ok(None) };
        let setup = super::proof::of_measured_sessions(arm);
        let mut session = self.session_of(&arm.server, &setup, workload)?;
        clients.answers(&mut session, part.cell.seed)
    }
}

/// The statements to which two passes on one arm get different answers, and those after one that took another branch.
fn by_nature(one: &[Vec<Answered>], other: &[Vec<Answered>]) -> BTreeSet<usize> {
    let mut differing = BTreeSet::new();
    for (one, other) in one.iter().zip(other) {
        let same_way = one.iter().zip(other).take_while(|(one, other)| one.operation == other.operation).count();
        let of_both = one.iter().zip(other).take(same_way).filter(|(one, other)| one.digest != other.digest);
        differing.extend(of_both.map(|(one, _)| one.operation));
        differing.extend(one[same_way..].iter().chain(&other[same_way..]).map(|answer| answer.operation));
    }
    differing
}

/// The first statement with a different answer on an arm than on the plain one, with both answers. Statements that
/// differ by nature are left out.
fn difference<'a>(
    plain: &'a [Vec<Answered>],
    seen: &'a [Vec<Answered>],
    by_nature: &BTreeSet<usize>,
) -> Option<(usize, &'a str, &'a str)> {
    let determined = |answers: &'a [Answered]| {
        answers.iter().filter(|answer| !by_nature.contains(&answer.operation)).collect::<Vec<_>>()
    };
    for (plain, seen) in plain.iter().zip(seen) {
        let (plain, seen) = (determined(plain), determined(seen));
        for (plain, seen) in plain.iter().zip(&seen) {
            if (plain.operation, plain.digest) != (seen.operation, seen.digest) {
                return Some((plain.operation, &plain.words, &seen.words));
            }
        }
        match (plain.get(seen.len()), seen.get(plain.len())) {
            (Some(more), _) => return Some((more.operation, &more.words, "nothing")),
            (_, Some(more)) => return Some((more.operation, "nothing", &more.words)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(answers: &[&[(usize, u64)]]) -> Pass {
        let answer = |(operation, digest): &(usize, u64)| Answered {
            operation: *operation,
            digest: *digest,
            words: format!("({digest})"),
            failed: false,
        };
        answers.iter().map(|transaction| transaction.iter().map(answer).collect()).collect()
    }

    #[test]
    fn what_differs_on_one_server_is_left_out_and_everything_else_must_be_the_same() {
        let plain = pass(&[&[(1, 7), (2, 100)], &[(1, 8), (2, 101)]]);
        let again = pass(&[&[(1, 7), (2, 200)], &[(1, 8), (2, 101)]]);
        let by_nature = by_nature(&plain, &again);
        assert_eq!(by_nature, [2].into());
        assert_eq!(difference(&plain, &again, &by_nature), None);
        let other = pass(&[&[(1, 7), (2, 5)], &[(1, 9), (2, 6)]]);
        assert_eq!(difference(&plain, &other, &by_nature), Some((1, "(8)", "(9)")));
        let less = pass(&[&[(1, 7), (2, 5)], &[(2, 6)]]);
        assert_eq!(difference(&plain, &less, &by_nature), Some((1, "(8)", "nothing")));
    }

    #[test]
    fn statements_behind_one_that_decides_by_chance_are_left_out() {
        let one = pass(&[&[(1, 7), (2, 1), (4, 1)]]);
        let other = pass(&[&[(1, 7), (3, 1), (4, 1)]]);
        assert_eq!(by_nature(&one, &other), [2, 3, 4].into());
    }

    #[test]
    fn an_arm_that_does_more_is_told_as_one_that_does_less() {
        let (short, long) = (pass(&[&[(1, 7)]]), pass(&[&[(1, 7), (2, 8)]]));
        let none = BTreeSet::new();
        assert_eq!(difference(&short, &long, &none), Some((2, "nothing", "(8)")));
        assert_eq!(difference(&long, &short, &none), Some((2, "(8)", "nothing")));
        assert_eq!(difference(&long, &long, &none), None);
        assert_eq!(difference(&short, &long, &[2].into()), None);
    }
}
