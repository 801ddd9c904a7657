//! Which accounts can become which: one graph for all products.
//!
//! A product reads its edges ("may act as", "may give itself the rights of", "may run as") and names the accounts that
//! may do everything. The closure over all edges and the shortest path of each account are computed here. Each account
//! is visited once, so that ten thousand roles are fast.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
};

/// Accounts, and the edges by which one becomes another.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// For each account, the accounts that can become it, in the order in which the edges were added.
    before: Vec<Vec<Edge>>,
}

#[derive(Debug, Clone)]
struct Edge {
    from: usize,
    reason: String,
}

/// The shortest path of every account to one of some goals.
#[derive(Debug, Clone)]
pub struct Ways<'a> {
    reach: &'a Reach,
    /// For each account that reaches a goal, its next account and why; `None` for a goal itself.
    next: HashMap<usize, Option<(usize, &'a str)>>,
}

/// How one account reaches a goal; displayed as `app → dba (membership) → postgres (membership)`, and a goal itself as
/// its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way<'a> {
    /// The account at its start.
    pub account: &'a str,
    /// The accounts that it becomes, each with the reason; none for a goal itself.
    pub steps: Vec<(&'a str, &'a str)>,
}

impl Reach {
    /// Adds that `from` can become `to`, with the `reason` in one or two words: `membership`.
    pub fn edge(&mut self, from: &str, to: &str, reason: impl Into<String>) {
        let (from, to) = (self.number(from), self.number(to));
        self.before[to].push(Edge { from, reason: reason.into() });
    }

    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        self.before.push(Vec::new());
        number
    }

    /// The paths to `goals`. Of several shortest paths, the one whose edges were added first is used.
    pub fn ways<'a>(&mut self, goals: impl IntoIterator<Item = &'a str>) -> Ways<'_> {
        let goals: Vec<usize> = goals.into_iter().map(|name| self.number(name)).collect();
        let mut next: HashMap<usize, Option<(usize, &str)>> = goals.iter().map(|goal| (*goal, None)).collect();
        let mut queue = VecDeque::from(goals);
        while let Some(to) = queue.pop_front() {
            for Edge { from, reason } in &self.before[to] {
                next.entry(*from).or_insert_with(|| {
                    queue.push_back(*from);
                    Some((to, reason))
                });
            }
        }
        Ways { reach: self, next }
    }
}

impl Ways<'_> {
    /// True if `account` reaches a goal; the path may be long.
    pub fn has(&self, account: &str) -> bool {
        self.reach.numbers.get(account).is_some_and(|number| self.next.contains_key(number))
    }

    /// The path of `account`; `None` if it reaches no goal.
    pub fn of(&self, account: &str) -> Option<Way<'_>> {
        let (account, mut number) = self.reach.numbers.get_key_value(account).map(|(name, number)| (name, *number))?;
        let mut step = self.next.get(&number)?;
        let mut steps = Vec::new();
        while let Some((to, reason)) = step {
            steps.push((self.reach.names[*to].as_str(), *reason));
            number = *to;
            step = &self.next[&number];
        }
        Some(Way { account, steps })
    }
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.account)?;
        self.steps.iter().try_for_each(|(name, reason)| write!(formatter, " → {name} ({reason})"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_way_is_told_with_its_reasons() {
        let mut reach = Reach::default();
        reach.edge("app", "dba", "membership");
        reach.edge("dba", "postgres", "CREATEROLE");
        reach.edge("report", "reader", "membership");
        let ways = reach.ways(["postgres", "other admin"]);
        let words = |account: &str| ways.of(account).map(|way| way.to_string());
        assert_eq!(words("app").as_deref(), Some("app → dba (membership) → postgres (CREATEROLE)"));
        assert_eq!(words("postgres").as_deref(), Some("postgres"));
        assert_eq!(words("other admin").as_deref(), Some("other admin"));
        assert_eq!((words("report"), words("nobody")), (None, None));
    }

    #[test]
    fn ten_thousand_accounts_in_a_ring_and_a_star() {
        let mut reach = Reach::default();
        for number in 0..10_000 {
            reach.edge(&format!("a{number}"), &format!("a{}", (number + 1) % 10_000), "ring");
            reach.edge(&format!("a{number}"), "hub", "star");
        }
        assert_eq!(reach.ways(["a0"]).of("a1").expect("a way").steps.len(), 9_999);
        assert_eq!(reach.ways(["hub"]).of("a1").expect("a way").steps, [("hub", "star")]);
    }

    /// Distances between all pairs of `count` accounts over `edges`, by trying all intermediate accounts (Floyd and
    /// Warshall).
    fn distances(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<Option<usize>>> {
        let mut all = vec![vec![None; count]; count];
        edges.iter().for_each(|(from, to)| all[*from][*to] = Some(1));
        (0..count).for_each(|own| all[own][own] = Some(0));
        for between in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let over = all[from][between].zip(all[between][to]).map(|(one, other)| one + other);
                    all[from][to] = [all[from][to], over].into_iter().flatten().min();
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn every_way_is_there_and_none_is_shorter(
            edges in prop::collection::vec((0..8usize, 0..8usize), 0..24),
            goals in prop::collection::btree_set(0..8usize, 0..3),
        ) {
            let name = |number: usize| format!("a{number}");
            let mut reach = Reach::default();
            edges.iter().for_each(|(from, to)| reach.edge(&name(*from), &name(*to), format!("{from}-{to}")));
            let names: Vec<String> = goals.iter().map(|goal| name(*goal)).collect();
            let all = distances(8, &edges);
            let ways = reach.ways(names.iter().map(String::as_str));
            for (account, steps) in all.iter().enumerate() {
                let shortest = goals.iter().filter_map(|goal| steps[*goal]).min();
                let own = name(account);
                let way = ways.of(&own);
                prop_assert_eq!(way.as_ref().map(|way| way.steps.len()), shortest);
                prop_assert_eq!(way.is_some(), ways.has(&own));
                let Some(way) = way else { continue };
                // Each step is an edge that was added, and the last leads to a goal.
                let mut at = account;
                for (to, reason) in &way.steps {
                    let edge = edges.iter().find(|(from, end)| *from == at && name(*end) == *to);
                    let (from, end) = edge.expect("a step is an edge");
                    prop_assert_eq!(*reason, format!("{from}-{end}"));
                    at = *end;
                }
                prop_assert!(goals.contains(&at));
            }
        }
    }
}
