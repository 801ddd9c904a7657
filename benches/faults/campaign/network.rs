//! Faults of the way to a server.

use super::{
    case::Case,
    fault::{Fault, How},
    product::Kind,
    relay::Harm,
};

const BARE: Fault = Fault { on: |kind| kind == Kind::Attached, ..Fault::BARE };

/// A run ends with what it has where a frame in three is spoiled, or fails.
const HARMED: &[i32] = &[4, 7, 5];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "relay delays by 20 ms",
        how: How::At(|_, case, _| harm(case, Harm::Delay(20))),
        statuses: HARMED,
        ..BARE
    },
    Fault {
        name: "relay swallows all",
        how: How::At(|_, case, _| harm(case, Harm::Swallow)),
        statuses: &[4],
        words: &["did not answer", "no answer", "no operation succeeded", "timed out", "within"],
        patience: std::time::Duration::from_secs(240),
        ..BARE
    },
    Fault {
        name: "relay cuts all",
        how: How::At(|_, case, _| harm(case, Harm::Cut)),
        statuses: &[4],
        words: &["connection", "closed", "reset"],
        spoils: true,
        ..BARE
    },
    Fault {
        name: "relay truncates a piece",
        how: How::At(|_, case, _| harm(case, Harm::Truncate)),
        statuses: HARMED,
        ..BARE
    },
    Fault {
        name: "relay doubles a piece",
        how: How::At(|_, case, _| harm(case, Harm::Double)),
        statuses: HARMED,
        ..BARE
    },
    Fault {
        name: "relay flips a bit",
        how: How::At(|_, case, draw| harm(case, Harm::Flip(draw.below(1 << 16)))),
        statuses: HARMED,
        ..BARE
    },
    Fault {
        name: "server answers with other values",
        how: How::At(|_, case, _| harm(case, Harm::OtherValues)),
        statuses: HARMED,
        words: &["wrong answer", "never written there", "no operation succeeded", "evidence"],
        noticed: true,
        ..BARE
    },
    Fault {
        name: "server does not end",
        how: How::At(|_, case, _| harm(case, Harm::Endless)),
        statuses: HARMED,
        ..BARE
    },
];

fn harm(case: &Case, harm: Harm) -> bool {
    let Some(attached) = &case.site.0 else { return false };
    attached.relay.harm(Some(harm));
    let relay = attached.relay.clone();
    case.when_over(move || relay.heal());
    true
}
