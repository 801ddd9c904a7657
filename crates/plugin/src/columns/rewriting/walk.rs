//! What the walk through a statement knows.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::{ast::Ident, tokenizer::Location};

use super::{Place, Refusal, place};
use crate::setup::OwnColumn;

/// What to do with what the server would have to read.
pub(super) const CLIENT: &str = "only clients read it: select it as it is, and compute from it elsewhere";

/// What to do where equal values look different.
pub(super) const EQUAL: &str = "name it by the option `equal`, so that equal values look equal";

/// What to do with a value that is not a parameter.
pub(super) const VARIABLE: &str = "make it a variable: by \\set, \\gset or `define`";

/// What ON CONFLICT calls the row that was to be inserted.
pub(super) const EXCLUDED: &str = "excluded";

/// What a query's results are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    /// The client.
    Client,
    /// The rest of the statement.
    Statement,
    /// Nothing: only whether there are any is asked.
    Nothing,
}

/// A table that names of columns may be about.
pub(super) struct Relation {
    /// What the statement calls it, in small letters.
    pub(super) name: String,
    /// The table where it has encrypted columns, in small letters.
    pub(super) hidden: Option<String>,
}

/// The walk through one statement.
pub(super) struct Walk<'a> {
    pub(super) own: &'a [OwnColumn],
    /// The tables of each query around the place in hand, the outermost first.
    pub(super) scopes: Vec<Vec<Relation>>,
    /// Places of names that were understood.
    pub(super) seen: BTreeSet<Place>,
    /// Further names that stand for what is encrypted.
    pub(super) names: BTreeMap<String, String>,
    /// Parameters that are encrypted, and for which column.
    pub(super) parameters: Vec<(Place, usize)>,
    /// As [`Plan::results`](super::Plan::results).
    pub(super) results: Vec<Option<usize>>,
    pub(super) refusals: Vec<Refusal>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(own: &'a [OwnColumn]) -> Self {
        Self {
            own,
            scopes: Vec::new(),
            seen: BTreeSet::new(),
            names: BTreeMap::new(),
            parameters: Vec::new(),
            results: Vec::new(),
            refusals: Vec::new(),
        }
    }

    pub(super) fn refuse(&mut self, at: Location, problem: String, help: &str) {
        let (line, column) = (at.line.max(1) as usize, at.column.max(1) as usize);
        self.refusals.push(Refusal { line, column, problem, help: help.to_owned() });
    }

    pub(super) fn see(&mut self, name: &Ident) {
        self.seen.insert(place(name.span.start));
    }

    /// The name of column `number`.
    pub(super) fn name(&self, number: usize) -> String {
        let column = &self.own[number];
        format!("{}.{}", column.table, column.name)
    }
}
