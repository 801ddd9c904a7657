//! A security feature of one database that can be off or on, and its changes to the set-up of an arm.
//!
//! Protections are next to their database: TLS of PostgreSQL and TLS of Redis share nothing but the idea. A
//! protection's set-up does not depend on the workload; its evidence may use one: its tables, its statements, its
//! program.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{catalogue::ProtectionEntry, experiment};

use crate::{evidence::Check, setup::Setup, sql::SqlTable, workload::Workload};

/// A security feature. One file next to its database, one line in its list.
pub trait Protection: Sync {
    /// Its description, in words and as data.
    fn entry(&self) -> &'static ProtectionEntry;

    /// What this installation lacks for it.
    ///
    /// # Errors
    /// Where it was searched for, and how to install it.
    fn needs(&self, _install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        Ok(())
    }

    /// Changes the set-up of a plain server into a protected one. Pure.
    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup);

    /// The checks that prove that it was on.
    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>>;

    /// The checks if the workload uses `tables`; none for records by key.
    fn evidence_on(&self, chosen: &experiment::Protection, _tables: &'static [SqlTable]) -> Vec<Box<dyn Check>> {
        self.evidence(chosen)
    }

    /// The checks if the clients are those of `workload`.
    fn evidence_in<'a>(&self, chosen: &experiment::Protection, workload: &'a dyn Workload) -> Vec<Box<dyn Check + 'a>> {
        self.evidence_on(chosen, workload.tables())
    }
}

/// Every way to choose `protection`: its defaults, and each word and switch of each option in turn. For tests.
#[cfg(any(test, feature = "test-bench"))]
pub fn ways(protection: &dyn Protection) -> Vec<experiment::Protection> {
    use tithe_model::{
        catalogue::{DefaultValue, OptionEntry, OptionKind},
        experiment::OptionValue,
    };

    let usual = |option: &OptionEntry| match (option.default.map(DefaultValue::value), option.kind) {
        (Some(value), _) => value,
        (None, OptionKind::Choice(words)) => OptionValue::Text(words[0].to_owned()),
        (None, kind) => panic!("an example for {}: {kind:?}", option.name),
    };
    let options = protection.entry().options.iter().map(|option| (option.name.to_owned(), usual(option))).collect();
    let first = experiment::Protection::listed(protection.entry().id, options);
    let mut all = vec![first.clone()];
    for option in protection.entry().options {
        let values: Vec<OptionValue> = match option.kind {
            OptionKind::Choice(words) => words.iter().map(|word| OptionValue::Text((*word).to_owned())).collect(),
            OptionKind::Flag => [true, false].map(OptionValue::Flag).into(),
            OptionKind::Number { .. } | OptionKind::Text => Vec::new(),
        };
        let others = values.into_iter().filter(|value| first.options.get(option.name) != Some(value));
        all.extend(others.map(|value| {
            let mut way = first.clone();
            way.options.insert(option.name.to_owned(), value);
            way
        }));
    }
    all
}
