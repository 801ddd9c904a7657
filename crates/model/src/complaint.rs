//! What is wrong with an input, where, and what to do about it.
//!
//! Libraries collect complaints; only the command line renders them.

use std::ops::Range;

/// One problem in a text that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Byte range in the text; `None` when the problem is not in one place (a missing server, a full disk).
    pub range: Option<Range<usize>>,
    /// What is wrong, in one sentence without a full stop.
    pub problem: String,
    /// What to do about it, in one sentence without a full stop.
    pub help: String,
}

impl Complaint {
    /// A complaint about the text in `range`.
    pub fn at(range: Range<usize>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { range: Some(range), problem: problem.into(), help: help.into() }
    }

    /// A complaint that points at no place in the text.
    pub fn general(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { range: None, problem: problem.into(), help: help.into() }
    }
}
