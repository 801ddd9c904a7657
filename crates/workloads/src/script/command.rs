//! A parsed script: commands with their places.

use super::{expression::Expression, statement::Template};

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its name: that of its file.
    pub name: String,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    /// Its commands, in order.
    pub commands: Vec<Command>,
}

/// A place in a script, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its line.
    pub line: usize,
    /// Its column, characters.
    pub column: usize,
}

/// A problem: something that is not understood or not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The place.
    pub place: Place,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub help: String,
}

/// One command, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Where it begins.
    pub place: Place,
    /// Its action.
    pub action: Action,
}

/// The action of a command. Jumps name the next command.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sends a statement.
    Sql(Sql),
    /// Gives a variable the value of an expression.
    Set(usize, Expression),
    /// Waits.
    Sleep(Duration),
    /// Continues with the next command if the expression is true, else with that one.
    If(Expression, usize),
    /// Continues with that one.
    Jump(usize),
    /// Begins a pipeline.
    StartPipeline,
    /// Ends it, and waits for all its answers.
    EndPipeline,
}

/// A statement, or several that are sent together.
#[derive(Debug, Clone, PartialEq)]
pub struct Sql {
    /// Each of them.
    pub parts: Vec<Template>,
    /// The use of its rows.
    pub rows: Keep,
}

/// The use of a statement's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// They are read and discarded.
    Nothing,
    /// The one row of the last statement becomes variables with this prefix.
    Last(String),
    /// The last row of each statement becomes variables with this prefix.
    All(String),
}

/// The longest pause, µs: it delays the clients of a lane, in slots of milliseconds.
pub const LONGEST_SLEEP_US: u64 = 10_000_000;

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration {
    /// The number of units.
    pub amount: Amount,
    /// Length of a unit, µs.
    pub unit_us: u64,
}

/// A number in the script or in a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// In the script.
    Constant(u64),
    /// The value of this variable.
    Variable(usize),
}
