//! Is the server set to record data that a protection hides, even in logs that are not called audit logs?

use tithe_machine::{fault::Fault, observation::Observation};

use crate::{
    evidence::{Check, CheckContext, CheckEntry},
    recording::{Recording, Sent},
};

/// Names the recorders that write clients' data in the clear. It only reads settings, so it is a disclosure. Id
/// `recorders`.
pub struct Recorders(pub Sent);

impl Check for Recorders {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("recorders").own_control()
    }

    fn claim(&self) -> String {
        match self.0 {
            Sent::Values => "no setting makes the server record values as they are sent".to_owned(),
            Sent::Passwords => "no setting makes the server record passwords that statements set".to_owned(),
        }
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let recording = context.database.recording(context.server, context.setup, self.0)?;
        Ok(conclude(recording.as_ref()))
    }
}

fn conclude(recording: Option<&Recording>) -> Observation {
    let Some(Recording { repeats, doubts }) = recording else {
        return Observation::Unknown("Tithe does not know the recorders of this product".to_owned());
    };
    let doubted = if doubts.is_empty() { String::new() } else { format!("not judged: {}", doubts.join(", ")) };
    match (repeats.is_empty(), doubts.is_empty()) {
        (true, true) => Observation::Protected("none of the known recorders is on".to_owned()),
        (true, false) => Observation::Unknown(doubted),
        (false, true) => Observation::Exposed(repeats.join("; ")),
        (false, false) => Observation::Exposed(format!("{}; {doubted}", repeats.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_was_not_judged_is_never_taken_for_nothing() {
        let of = |repeats: &[&str], doubts: &[&str]| {
            let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            format!("{:?}\n", conclude(Some(&Recording { repeats: own(repeats), doubts: own(doubts) })))
        };
        let text = [
            of(&[], &[]),
            of(&[], &["single roles"]),
            of(&["the slow log repeats values", "MONITOR"], &[]),
            of(&["the slow log repeats values"], &["single roles"]),
            format!("{:?}\n", conclude(None)),
        ];
        expect![[r#"
            Protected("none of the known recorders is on")
            Unknown("not judged: single roles")
            Exposed("the slow log repeats values; MONITOR")
            Exposed("the slow log repeats values; not judged: single roles")
            Unknown("Tithe does not know the recorders of this product")
        "#]]
        .assert_eq(&text.concat());
    }
}
