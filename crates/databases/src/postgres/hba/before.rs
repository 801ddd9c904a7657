//! Which connections are taken by the rules before a given one: one bit per rule, so that thousands of rules are judged
//! quickly.

use std::collections::HashMap;

use super::rule::{EVERYWHERE, Hop, Range, Rule, Way};

/// The rules of which something is true: the bit of their number.
type Bits = Vec<u64>;

/// The rules so far, by the connections that they match.
#[derive(Default)]
pub struct Before<'a> {
    count: usize,
    databases: HashMap<&'a str, Bits>,
    users: HashMap<&'a str, Bits>,
    ranges: HashMap<(Way, Range), Bits>,
}

impl<'a> Before<'a> {
    /// Adds the rule that comes next.
    pub fn add(&mut self, rule: &'a Rule) {
        let number = self.count;
        self.count += 1;
        rule.databases.iter().for_each(|name| set(self.databases.entry(name).or_default(), number));
        rule.users.iter().for_each(|name| set(self.users.entry(name).or_default(), number));
        for way in rule.ways(true) {
            rule.ranges.iter().for_each(|range| set(self.ranges.entry((way, range.clone())).or_default(), number));
        }
    }

    /// True if some connection of `hop` by `way` that `rule` matches is not matched by any of these.
    pub fn leave(&self, rule: &Rule, hop: Hop, way: Way) -> bool {
        rule.databases_of(hop).any(|database| {
            let left = |user: &String, range| !self.take(way, database, user, range);
            rule.users.iter().any(|user| rule.ranges.iter().any(|range| left(user, range)))
        })
    }

    /// True when all connections by `way` to `database` as `user` from `range` match one of these.
    fn take(&self, way: Way, database: &str, user: &str, range: &Range) -> bool {
        let all_databases = (database != "replication").then_some("all");
        let databases = [Some(database), all_databases].map(|name| self.databases.get(name?));
        let users = [user, "all"].map(|name| self.users.get(name));
        let held = |lists: &[Option<&Bits>], at: usize| {
            lists.iter().flatten().fold(0, |held, bits| held | bits.get(at).copied().unwrap_or(0))
        };
        let one = |range: &Range| {
            range.covering().filter_map(|range| self.ranges.get(&(way, range))).any(|bits| {
                bits.iter().enumerate().any(|(at, bits)| bits & held(&databases, at) & held(&users, at) != 0)
            })
        };
        // The addresses of a host name are not known here.
        one(range) || matches!(range, Range::Named(_)) && EVERYWHERE.iter().all(one)
    }
}

fn set(bits: &mut Bits, number: usize) {
    let (at, bit) = (number / 64, number % 64);
    bits.resize(bits.len().max(at + 1), 0);
    bits[at] |= 1 << bit;
}
