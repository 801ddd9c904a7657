//! What a script comes to when it is read: commands with their places.

use super::{expression::Expression, statement::Template};

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What it is called: the name of its file.
    pub name: String,
    /// How often it is drawn beside the others.
    pub weight: u32,
    /// What it does, in order.
    pub commands: Vec<Command>,
}

/// Where something stands in a script, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its line.
    pub line: usize,
    /// Its column, characters.
    pub column: usize,
}

/// Something that is not understood, or not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: String,
    /// What to do.
    pub help: String,
}

/// One command, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Where it begins.
    pub place: Place,
    /// What it does.
    pub action: Action,
}

/// What a command does. Jumps name the command to go on with.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sends a statement.
    Sql(Sql),
    /// Gives a variable the value of an expression.
    Set(usize, Expression),
    /// Waits.
    Sleep(Duration),
    /// Goes on with the next command where the expression holds, else with that one.
    If(Expression, usize),
    /// Goes on with that one.
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
    /// What becomes of its rows.
    pub rows: Keep,
}

/// What becomes of the rows of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// They are read and thrown away.
    Nothing,
    /// The one row of the last statement becomes variables, whose names begin so.
    Last(String),
    /// The last row of each statement becomes variables, whose names begin so.
    All(String),
}

/// The longest wait, µs: it holds up the clients of a lane, in slots of milliseconds.
pub const LONGEST_SLEEP_US: u64 = 10_000_000;

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration {
    /// So many units.
    pub amount: Amount,
    /// Length of a unit, µs.
    pub unit_us: u64,
}

/// A number that is written or in a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Written.
    Constant(u64),
    /// Of this variable.
    Variable(usize),
}
