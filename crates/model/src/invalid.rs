//! Why a frame must not be used, as a type for the run and as text for records and reports. The checks that find the
//! reason are where frames are measured.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a frame must not be used. Files, messages and reports contain the text of its `Display`, which [`Invalid::read`]
/// reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// No operation of an arm succeeded: its server, or the disk below it, stalled.
    NothingDone,
    /// The servers' usage was not read in time in `any slot`, or `3 of 4 blocks`: the reading machine was too busy.
    NotRead(String),
    /// Agents received the first slot after it had begun.
    ToldTooLate,
    /// The clock of an agent or observer was known less precisely than slots need.
    ClockUnsure {
        /// `agent rack7`
        whose: String,
        /// Precision of the clock, µs.
        known_us: u64,
        /// Precision that is needed, µs.
        most_us: u64,
    },
    /// A problem of the arm with this index.
    OfArm(usize, Box<Invalid>),
    /// A problem that the observer of this name reported in place of its readings.
    OfObserver(String, Box<Invalid>),
    /// Anything else, in words, possibly a server's.
    Other(String),
}

const NOTHING_DONE: &str = "no operation succeeded";
const NOT_READ: &str = "what servers used was not read in time in ";
const TOLD_TOO_LATE: &str = "agents were told too late when the first slot begins";
const CLOCK: [&str; 4] = ["the clock of ", " is known within ", " µs, and ", " µs is the most"];
const ARM: &str = "arm ";
const OBSERVER: &str = "refused: observer ";

impl Invalid {
    /// True if the machine was busy for some seconds: the next frame may be usable.
    pub fn is_of_a_busy_machine(&self) -> bool {
        match self {
            Self::NothingDone | Self::NotRead(_) | Self::ToldTooLate | Self::ClockUnsure { .. } => true,
            Self::OfArm(_, why) | Self::OfObserver(_, why) => why.is_of_a_busy_machine(),
            Self::Other(_) => false,
        }
    }

    /// Reads the printed form `text`.
    pub fn read(text: &str) -> Self {
        let other = |words: &str| Self::Other(words.to_owned());
        let told = |words: &str| Box::new(Self::read_alone(words).unwrap_or_else(|| other(words)));
        let of_arm = || {
            let (arm, why) = text.strip_prefix(ARM)?.split_once(": ")?;
            Some(Self::OfArm(arm.parse().ok()?, told(why)))
        };
        let of_observer = || {
            let (name, why) = text.strip_prefix(OBSERVER)?.split_once(": ")?;
            Some(Self::OfObserver(name.to_owned(), told(why)))
        };
        let read = Self::read_alone(text).or_else(of_arm).or_else(of_observer);
        // Text that looks like this form but is never printed so, `arm +1: …`, stays a text.
        read.filter(|read| read.to_string() == text).unwrap_or_else(|| other(text))
    }

    /// Reads the printed form `text` of a problem without an arm or observer, if it has a variant here.
    fn read_alone(text: &str) -> Option<Self> {
        let clock = || {
            let [of, within, most, end] = CLOCK;
            let (whose, bounds) = text.strip_prefix(of)?.strip_suffix(end)?.split_once(within)?;
            let (known_us, most_us) = bounds.split_once(most)?;
            let (known_us, most_us) = (known_us.parse().ok()?, most_us.parse().ok()?);
            Some(Self::ClockUnsure { whose: whose.to_owned(), known_us, most_us })
        };
        match text {
            NOTHING_DONE => Some(Self::NothingDone),
            TOLD_TOO_LATE => Some(Self::ToldTooLate),
            _ => text.strip_prefix(NOT_READ).map(|place| Self::NotRead(place.to_owned())).or_else(clock),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingDone => f.write_str(NOTHING_DONE),
            Self::NotRead(place) => write!(f, "{NOT_READ}{place}"),
            Self::ToldTooLate => f.write_str(TOLD_TOO_LATE),
            Self::ClockUnsure { whose, known_us, most_us } => {
                let [of, within, most, end] = CLOCK;
                write!(f, "{of}{whose}{within}{known_us}{most}{most_us}{end}")
            }
            Self::OfArm(arm, why) => write!(f, "{ARM}{arm}: {why}"),
            Self::OfObserver(name, why) => write!(f, "{OBSERVER}{name}: {why}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl Serialize for Invalid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Invalid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::read(&text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reasons with an arm, an observer or neither; with words as in servers' errors and Tithe's own.
    fn reasons() -> impl Strategy<Value = Invalid> {
        let clock = ("(agent|observer) [a-z0-9-]{1,9}", any::<u64>(), any::<u64>());
        let alone = prop_oneof![
            Just(Invalid::NothingDone),
            Just(Invalid::ToldTooLate),
            "(any slot|[0-9]{1,4} of [0-9]{1,4} blocks)".prop_map(Invalid::NotRead),
            clock.prop_map(|(whose, known_us, most_us)| Invalid::ClockUnsure { whose, known_us, most_us }),
            "(server|connection|wrong answer): .*".prop_map(Invalid::Other),
        ];
        prop_oneof![
            alone.clone(),
            (any::<usize>(), alone.clone()).prop_map(|(arm, why)| Invalid::OfArm(arm, Box::new(why))),
            ("[a-z0-9-]{1,9}", alone).prop_map(|(name, why)| Invalid::OfObserver(name, Box::new(why))),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(why in reasons()) {
            let text = why.to_string();
            prop_assert_eq!(Invalid::read(&text), why.clone());
            let json = serde_json::to_string(&why).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&text).unwrap());
            prop_assert_eq!(serde_json::from_str::<Invalid>(&json).unwrap(), why);
        }

        #[test]
        fn what_is_read_is_printed_as_it_was(
            text in "((arm |refused: observer |the clock of | is known within | µs, and | µs is the most)?[ :+a-c0-2]{0,3}){0,6}"
        ) {
            prop_assert_eq!(Invalid::read(&text).to_string(), text);
        }
    }

    #[test]
    fn a_machine_is_busy_by_what_the_reason_is_and_not_by_words_in_it() {
        let is_busy = |text: &str| Invalid::read(text).is_of_a_busy_machine();
        for text in [
            "arm 1: no operation succeeded",
            "what servers used was not read in time in any slot",
            "what servers used was not read in time in 3 of 4 blocks",
            "refused: observer db1: what servers used was not read in time in any slot",
            "agents were told too late when the first slot begins",
            "the clock of agent rack1 is known within 1606 µs, and 1601 µs is the most",
        ] {
            assert!(is_busy(text), "{text}");
        }
        for text in [
            "arm 1: server: no operation succeeded",
            "arm 1: no transaction succeeded",
            "arm 1: more than 1 % of the operations failed, the first with: server: what servers used was not read in time",
            "arm 0: server: the clock of agent rack1 is known within 1606 µs, and 1601 µs is the most",
            "agent rack1 was lost",
            "",
        ] {
            assert!(!is_busy(text), "{text}");
        }
    }
}
