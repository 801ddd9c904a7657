//! The state of the walk through a statement.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::{ast::Ident, tokenizer::Location};

use super::{Place, Refusal, place};
use crate::setup::OwnColumn;

/// The remedy if the server would have to read the value.
pub(super) const CLIENT: &str = "only clients read it: select it as it is, and compute from it elsewhere";

/// The remedy if equal values look different.
pub(super) const EQUAL: &str = "name it by the option `equal`, so that equal values look equal";

/// The remedy for a value that is not a parameter.
pub(super) const VARIABLE: &str = "make it a variable: by \\set, \\gset or `define`";

/// The name in ON CONFLICT of the row that was to be inserted.
pub(super) const EXCLUDED: &str = "excluded";

/// Where a query's results go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    /// The client.
    Client,
    /// The rest of the statement.
    Statement,
    /// Nowhere: only their existence is tested.
    Nothing,
}

/// A table that names of columns may refer to.
pub(super) struct Relation {
    /// Its name in the statement, in lower case.
    pub(super) name: String,
    /// The table if it has encrypted columns, in lower case.
    pub(super) hidden: Option<String>,
}

/// The walk through one statement.
pub(super) struct Walk<'a> {
    pub(super) own: &'a [OwnColumn],
    /// The tables of each query around the current place, the outermost first.
    pub(super) scopes: Vec<Vec<Relation>>,
    /// Places of names that were understood.
    pub(super) seen: BTreeSet<Place>,
    /// Further names that refer to encrypted columns or tables.
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
