//! Does the server cache passwords, roles and rights as the arm requests?

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::cassandra::store::{administrator, settings};

/// Settings for how long lookups are cached; the default is 2 s.
pub const VALIDITIES: [&str; 3] = ["credentials_validity", "permissions_validity", "roles_validity"];

/// Reads the server's own values for how long it caches. Without caching all must be 0, with caching none may be 0. Id
/// `auth-caching`.
pub struct Caching {
    /// What the arm requests.
    pub asked: bool,
}

impl Check for Caching {
    fn entry(&self) -> CheckEntry {
        // A plain server has the product's defaults, which are those of an arm with caching, so it cannot be a control.
        CheckEntry::claim("auth-caching").own_control()
    }

    fn claim(&self) -> String {
        let how = if self.asked { "remembers passwords, roles and rights" } else { "looks up rights at each request" };
        format!("the server {how}")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(judged(&settings(&mut administrator(context.server, context.setup)?)?, self.asked))
    }
}

/// The observation from the `settings` of a server, which must cache if `asked`, and must not otherwise.
fn judged(settings: &BTreeMap<String, String>, asked: bool) -> Observation {
    let mut words = Vec::new();
    let mut remembered = Vec::new();
    for name in VALIDITIES {
        let Some(value) = settings.get(name) else {
            return Observation::Unknown(format!("the server has no setting {name}"));
        };
        words.push(format!("{name} = {value}"));
        remembered.push(is_positive(value));
    }
    let quotation = format!("system_views.settings: {}", words.join(", "));
    let as_asked = remembered.iter().all(|remembered| *remembered == asked);
    if as_asked { Observation::Protected(quotation) } else { Observation::Exposed(quotation) }
}

/// True for a duration of more than nothing: `2s`, `2000ms`, `2000`.
fn is_positive(value: &str) -> bool {
    value.trim_end_matches(|unit: char| unit.is_ascii_alphabetic()).parse::<u64>().is_ok_and(|number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_cached_or_nothing() {
        let seen = |values: [&str; 3], asked: bool| {
            let pairs = VALIDITIES.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.to_owned()));
            let settings: BTreeMap<String, String> = pairs.collect();
            judged(&settings, asked)
        };
        let quotation = |values: &str| format!("system_views.settings: {values}");
        let all = "credentials_validity = 2s, permissions_validity = 2s, roles_validity = 2s";
        assert_eq!(seen(["2s"; 3], true), Observation::Protected(quotation(all)));
        assert_eq!(seen(["2s"; 3], false), Observation::Exposed(quotation(all)));
        assert!(matches!(seen(["0ms"; 3], false), Observation::Protected(_)));
        assert!(matches!(seen(["0ms"; 3], true), Observation::Exposed(_)));
        for mixed in [["0s", "2s", "2s"], ["2s", "0s", "2s"], ["2s", "2s", "0s"], ["0s", "0s", "2s"]] {
            for asked in [false, true] {
                assert!(matches!(seen(mixed, asked), Observation::Exposed(_)), "{mixed:?} {asked}");
            }
        }
        let words = "the server has no setting credentials_validity".to_owned();
        assert_eq!(judged(&BTreeMap::new(), false), Observation::Unknown(words));
    }

    #[test]
    fn durations_are_read_with_any_unit() {
        assert_eq!(
            ["2s", "2000ms", "2000", "0ms", "0s", "null", ""].map(is_positive),
            [true, true, true, false, false, false, false]
        );
    }
}
