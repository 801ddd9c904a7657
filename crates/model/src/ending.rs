//! Why the measurement of a cell ended, as a type for the run and as text for files and reports. When it ends is
//! decided elsewhere.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Why a cell ended. Files and reports contain the text of its `Display`, which its `FromStr` reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellEnding {
    /// Every interval is as narrow as requested: `precision`.
    Precision,
    /// Every arm's answer is certain: `decided`.
    Decided,
    /// The load budget of the cell is used up: `budget`.
    Budget,
    /// The user stopped the run: `interrupted`. It is reported, but not stored for the cell, which continues with the
    /// run.
    Interrupted,
    /// It could not be measured to its end: `failed: ` and the reason.
    Failed(String),
}

const FAILED: &str = "failed: ";

impl fmt::Display for CellEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Precision => f.write_str("precision"),
            Self::Decided => f.write_str("decided"),
            Self::Budget => f.write_str("budget"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed(reason) => write!(f, "{FAILED}{reason}"),
        }
    }
}

/// A text that is not an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEnding(String);

impl fmt::Display for UnknownEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an ending of a cell that this version of Tithe knows", self.0)
    }
}

impl std::error::Error for UnknownEnding {}

impl FromStr for CellEnding {
    type Err = UnknownEnding;

    fn from_str(text: &str) -> Result<Self, UnknownEnding> {
        if let Some(reason) = text.strip_prefix(FAILED) {
            return Ok(Self::Failed(reason.to_owned()));
        }
        [Self::Precision, Self::Decided, Self::Budget, Self::Interrupted]
            .into_iter()
            .find(|ending| ending.to_string() == text)
            .ok_or_else(|| UnknownEnding(text.to_owned()))
    }
}

impl Serialize for CellEnding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CellEnding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// For fields of cells that may not have ended: the ending's text, or an empty one.
pub mod or_empty {
    use super::{CellEnding, Deserialize, Deserializer, Error, Serializer};

    /// Writes an empty text if the cell has not ended.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(ending: &Option<CellEnding>, serializer: S) -> Result<S::Ok, S::Error> {
        match ending {
            Some(ending) => serializer.collect_str(ending),
            None => serializer.serialize_str(""),
        }
    }

    /// Reads an empty text as a cell that has not ended.
    ///
    /// # Errors
    /// When the text is no ending.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CellEnding>, D::Error> {
        let text = String::deserialize(deserializer)?;
        (!text.is_empty()).then(|| text.parse()).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn endings() -> impl Strategy<Value = CellEnding> {
        use CellEnding::{Budget, Decided, Failed, Interrupted, Precision};
        let fixed = proptest::sample::select(vec![Precision, Decided, Budget, Interrupted]);
        prop_oneof![fixed, ".*".prop_map(Failed), "(failed: |budget|precision){0,2}".prop_map(Failed)]
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Cell(#[serde(with = "or_empty")] Option<CellEnding>);

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ending in endings()) {
            let text = ending.to_string();
            prop_assert_eq!(text.parse(), Ok(ending.clone()));
            let json = serde_json::to_string(&ending).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&text).unwrap());
            prop_assert_eq!(serde_json::from_str::<CellEnding>(&json).unwrap(), ending.clone());
            prop_assert_eq!(serde_json::to_string(&Cell(Some(ending.clone()))).unwrap(), json.clone());
            prop_assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), Cell(Some(ending)));
        }
    }

    #[test]
    fn a_cell_that_has_not_ended_has_an_empty_text() {
        assert_eq!(serde_json::to_string(&Cell(None)).unwrap(), "\"\"");
        assert_eq!(serde_json::from_str::<Cell>("\"\"").unwrap(), Cell(None));
        assert!("".parse::<CellEnding>().is_err(), "what has ended says why");
        let refused = serde_json::from_str::<Cell>("\"bored\"").expect_err("no ending").to_string();
        assert!(
            refused.starts_with("`bored` is not an ending of a cell that this version of Tithe knows"),
            "{refused}"
        );
    }
}
