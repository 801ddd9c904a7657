//! Was the product itself measured, or a substitute that speaks its protocol?

use std::collections::BTreeSet;

use tithe_model::{fact::Fact, record::ArmFacts};

/// One sentence for each substitute that answered in place of the product on any arm.
pub(super) fn stand_ins<'a>(arms: impl Iterator<Item = &'a ArmFacts>) -> Vec<String> {
    let named: BTreeSet<&str> = arms.filter_map(|arm| arm.reported(Fact::StandIn)).collect();
    named.into_iter().map(|stand_in| format!("{stand_in}: no figure here is the product's")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_named_once() {
        let real = ArmFacts { version: "A 1".to_owned(), ..ArmFacts::default() };
        let mut other = real.clone();
        other.set(Fact::StandIn, "B, in place of A".to_owned());
        assert_eq!(stand_ins([&real].into_iter()), [""; 0]);
        let told = stand_ins([&real, &other, &other].into_iter());
        assert_eq!(told, ["B, in place of A: no figure here is the product's"]);
    }
}
