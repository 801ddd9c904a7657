//! Values of columns, drawn from a server's statistics.

use tithe_model::schedule::SplitMix64;
use tithe_plugin::production::ColumnValues;

use crate::replay::sql::Flavour;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// Values with the cumulative sum of their shares.
    common: Vec<(String, f64)>,
    bounds: Vec<String>,
    is_whole: bool,
}

impl Values {
    /// The values to draw for `column`; `None` if the server knows none.
    pub fn of(column: &ColumnValues) -> Option<Self> {
        let mut sum = 0.0;
        let common: Vec<(String, f64)> = column
            .common
            .iter()
            .map(|(value, share)| {
                sum += share;
                (value.clone(), sum)
            })
            .collect();
        let values = Self { common, bounds: column.bounds.clone(), is_whole: column.is_whole };
        (!values.common.is_empty() || !values.bounds.is_empty()).then_some(values)
    }

    /// Writes a value as a literal of `flavour` to `out`.
    pub fn draw(&self, random: &mut SplitMix64, flavour: Flavour, out: &mut String) {
        let all = self.common.last().map_or(0.0, |(_, sum)| *sum);
        // The rest are other values and NULL, which no comparison finds.
        let of = if self.bounds.is_empty() { all } else { all.max(1.0) };
        let drawn = random.next_f64() * of;
        match self.common.iter().find(|(_, sum)| drawn < *sum).or(self.common.last().filter(|_| self.bounds.is_empty()))
        {
            Some((value, _)) => literal(value, self.is_whole, flavour, out),
            None => self.between(random, flavour, out),
        }
    }

    /// A value between two adjacent bounds; if values between them cannot be made, one of the bounds.
    fn between(&self, random: &mut SplitMix64, flavour: Flavour, out: &mut String) {
        let part = random.below(self.bounds.len().saturating_sub(1).max(1) as u64) as usize;
        let low = self.bounds[part].as_str();
        let high = self.bounds.get(part + 1).map_or(low, String::as_str);
        let whole = |text: &str| text.parse::<i64>().ok().filter(|_| self.is_whole);
        match (whole(low), whole(high)) {
            (Some(low), Some(high)) if low < high => {
                let value = low.saturating_add_unsigned(random.below(high.abs_diff(low).saturating_add(1).max(1)));
                literal(&value.to_string(), true, flavour, out);
            }
            _ => literal(if random.below(2) == 0 { low } else { high }, self.is_whole, flavour, out),
        }
    }
}

/// Writes `value` as a literal.
fn literal(value: &str, is_whole: bool, flavour: Flavour, out: &mut String) {
    if is_whole {
        // After a minus sign another one would begin a comment.
        let (open, close) = if value.starts_with('-') { ("(", ")") } else { ("", "") };
        [open, value, close].into_iter().for_each(|text| out.push_str(text));
        return;
    }
    out.push('\'');
    for sign in value.chars() {
        if sign == '\'' || sign == '\\' && flavour == Flavour::MySql {
            out.push(sign);
        }
        out.push(sign);
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn values(common: &[(&str, f64)], bounds: &[&str], is_whole: bool) -> Option<Values> {
        Values::of(&ColumnValues {
            is_whole,
            common: common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect(),
            bounds: bounds.iter().map(|bound| (*bound).to_owned()).collect(),
            ..ColumnValues::default()
        })
    }

    /// Checks that of 10,000 draws as many give each value as `expected`, within five standard deviations.
    fn check(values: Option<Values>, expected: &[(&str, f64)]) {
        let (values, mut random) = (values.expect("some are known"), SplitMix64::new(5));
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for _ in 0..10_000 {
            let mut literal = String::new();
            values.draw(&mut random, Flavour::Postgres, &mut literal);
            *counts.entry(literal).or_default() += 1.0;
        }
        assert_eq!(counts.len(), expected.len(), "{counts:?}");
        for (value, count) in expected {
            let seen = counts.get(*value).copied().unwrap_or(0.0);
            assert!((seen - count).abs() < 5.0 * count.sqrt(), "{value}: {counts:?}");
        }
    }

    #[test]
    fn values_are_as_frequent_as_the_server_says() {
        let common = [("1", 0.2), ("-2", 0.3)];
        // Half of the rows have other values, here one of three whole numbers.
        let others = [("10", 5000.0 / 3.0), ("11", 5000.0 / 3.0), ("12", 5000.0 / 3.0)];
        check(values(&common, &["10", "12"], true), &[[("1", 2000.0), ("(-2)", 3000.0)].as_slice(), &others].concat());
        // The rest is NULL.
        check(values(&common, &[], true), &[("1", 4000.0), ("(-2)", 6000.0)]);
        check(values(&[], &["a", "c", "e"], false), &[("'a'", 2500.0), ("'c'", 5000.0), ("'e'", 2500.0)]);
        check(values(&[], &["7", "7"], true), &[("7", 10_000.0)]);
        check(values(&[], &["7"], false), &[("'7'", 10_000.0)]);
        assert_eq!(values(&[], &[], true), None);
    }
}
