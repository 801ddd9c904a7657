//! Figures in JSON, which has no infinity.
//!
//! `null` stands for a figure that is not known or for an open end of an interval: NaN as an estimate, −∞ as a lower
//! end, ∞ as an upper end. Any other value that is not finite is the text `Infinity`, `-Infinity` or `NaN`, as in the
//! JSON of Protocol Buffers; an example is the estimate ∞ of an amount that only the protected arm has. So every value
//! survives a round trip.

use std::fmt;

use serde::{
    Serializer,
    de::{Error, Visitor},
};

/// Values that are not finite and that `null` does not stand for.
const WORDS: [(&str, f64); 3] = [("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY), ("NaN", f64::NAN)];

/// A module for `#[serde(with)]` of figures whose `null` means `$null`.
macro_rules! figure {
    ($name:ident, $null:expr) => {
        /// For `#[serde(with)]`.
        pub mod $name {
            /// Writes a figure.
            ///
            /// # Errors
            /// The errors of `serializer`.
            pub fn serialize<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
                super::write(*value, $null, serializer)
            }

            /// Reads a figure.
            ///
            /// # Errors
            /// If the value is neither a figure nor one of the words, and the errors of `deserializer`.
            pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
                deserializer.deserialize_any(super::Reader { null: $null })
            }
        }
    };
}

figure!(or_unknown, f64::NAN);
figure!(or_minus_infinity, f64::NEG_INFINITY);
figure!(or_infinity, f64::INFINITY);

/// Compares with NaN equal to NaN.
fn same(one: f64, other: f64) -> bool {
    one == other || (one.is_nan() && other.is_nan())
}

fn write<S: Serializer>(value: f64, null: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if same(value, null) {
        return serializer.serialize_none();
    }
    match WORDS.iter().find(|(_, infinite)| same(*infinite, value)) {
        Some((word, _)) => serializer.serialize_str(word),
        None => serializer.serialize_f64(value),
    }
}

struct Reader {
    null: f64,
}

impl Visitor<'_> for Reader {
    type Value = f64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, null, \"Infinity\", \"-Infinity\" or \"NaN\"")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_unit<E: Error>(self) -> Result<f64, E> {
        Ok(self.null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let known = WORDS.iter().find(|(word, _)| *word == text);
        known.map(|(_, value)| *value).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::interval::Interval;

    fn again(interval: Interval) -> (String, Interval) {
        let text = serde_json::to_string(&interval).expect("JSON");
        let back = serde_json::from_str(&text).expect("an interval");
        (text, back)
    }

    #[test]
    fn what_is_not_finite_comes_back() {
        const INFINITY: f64 = f64::INFINITY;
        for (interval, expected) in [
            ((0.5, -INFINITY, INFINITY), r#"{"estimate":0.5,"low":null,"high":null}"#),
            ((f64::NAN, -INFINITY, INFINITY), r#"{"estimate":null,"low":null,"high":null}"#),
            ((INFINITY, INFINITY, INFINITY), r#"{"estimate":"Infinity","low":"Infinity","high":null}"#),
            ((-INFINITY, -INFINITY, -INFINITY), r#"{"estimate":"-Infinity","low":null,"high":"-Infinity"}"#),
            ((0.0, f64::NAN, f64::NAN), r#"{"estimate":0.0,"low":"NaN","high":"NaN"}"#),
        ] {
            let (estimate, low, high) = interval;
            let (text, back) = again(Interval { estimate, low, high });
            assert_eq!(text, expected);
            assert!(super::same(back.estimate, estimate) && super::same(back.low, low) && super::same(back.high, high));
        }
        let whole: Interval = serde_json::from_str(r#"{"estimate":2,"low":-3,"high":4}"#).expect("whole numbers");
        assert_eq!(whole, Interval { estimate: 2.0, low: -3.0, high: 4.0 });
        let refused = serde_json::from_str::<Interval>(r#"{"estimate":"much","low":1,"high":2}"#).unwrap_err();
        assert!(refused.to_string().contains("invalid value: string \"much\", expected a number"), "{refused}");
        assert!(serde_json::from_str::<Interval>(r#"{"estimate":1,"low":1}"#).is_err(), "an end is missing");
    }

    proptest! {
        #[test]
        fn every_number_comes_back_to_its_last_bit(bits in any::<[u64; 3]>()) {
            let [estimate, low, high] = bits.map(f64::from_bits);
            let (_, back) = again(Interval { estimate, low, high });
            for (one, other) in [(estimate, back.estimate), (low, back.low), (high, back.high)] {
                prop_assert!(one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan()), "{} {}", one, other);
            }
        }
    }
}
