//! Are TLS sessions resumed if that was requested?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::ConnectionProbes;
use crate::target::Handshakes;

/// Connections that the check opens. The first may find nothing yet to resume.
const CONNECTIONS: u64 = 3;

/// Opens connections as the measured clients do, and reports the kinds of their handshakes, and of those of all
/// connections so far, including the measured ones. A disclosure: a server that resumes nothing protects equally well.
/// Id `tls-resumed`.
pub struct TlsResumed {
    probes: &'static ConnectionProbes,
}

impl TlsResumed {
    /// A check that connects by `probes`.
    pub fn new(probes: &'static ConnectionProbes) -> Self {
        Self { probes }
    }
}

impl Check for TlsResumed {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("tls-resumed").own_control()
    }

    fn claim(&self) -> String {
        "new connections resume the TLS session of an earlier one".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let target = (self.probes.target)(context)?;
        let before = target.handshakes();
        for _ in 0..CONNECTIONS {
            (self.probes.open)(context, &target)?;
        }
        Ok(conclude(before, target.handshakes()))
    }
}

fn conclude(before: Handshakes, after: Handshakes) -> Observation {
    let resumed = after.resumed - before.resumed;
    let so_far = format!("of all connections so far {} were resumed, {} were not", after.resumed, after.full);
    if resumed + 1 >= CONNECTIONS {
        Observation::Protected(format!("{resumed} of {CONNECTIONS} new connections were resumed; {so_far}"))
    } else {
        Observation::Exposed(format!(
            "{resumed} of {CONNECTIONS} new connections were resumed: the server offers no resumption or takes none; {so_far}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(before: (u64, u64), after: (u64, u64), expected: Expect) {
        let handshakes = |(full, resumed)| Handshakes { full, resumed };
        expected.assert_eq(&format!("{:?}", conclude(handshakes(before), handshakes(after))));
    }

    #[test]
    fn what_the_handshakes_were_is_told() {
        check(
            (0, 0),
            (1, 2),
            expect![[
                r#"Protected("2 of 3 new connections were resumed; of all connections so far 2 were resumed, 1 were not")"#
            ]],
        );
        check(
            (7, 900),
            (7, 903),
            expect![[
                r#"Protected("3 of 3 new connections were resumed; of all connections so far 903 were resumed, 7 were not")"#
            ]],
        );
        check(
            (40, 0),
            (43, 0),
            expect![[
                r#"Exposed("0 of 3 new connections were resumed: the server offers no resumption or takes none; of all connections so far 0 were resumed, 43 were not")"#
            ]],
        );
        check(
            (40, 0),
            (42, 1),
            expect![[
                r#"Exposed("1 of 3 new connections were resumed: the server offers no resumption or takes none; of all connections so far 1 were resumed, 42 were not")"#
            ]],
        );
    }
}
