//! The functions and operators of expressions, as `evalStandardFunc` and `evalLazyFunc` of pgbench compute them.

/// A function or operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the language say it")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Less,
    LessOrEqual,
    Equal,
    Unequal,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Not,
    Is,
    Case,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// A function that a script calls by name.
#[derive(Debug)]
pub struct Entry {
    name: &'static str,
    /// What it computes.
    pub function: Function,
    least: usize,
    most: usize,
    /// The number of arguments to which the default seed is added as one more.
    pub seeded_from: Option<usize>,
}

/// Most arguments of any function.
pub const MOST: usize = 16;

const fn entry(name: &'static str, function: Function, arguments: usize) -> Entry {
    Entry { name, function, least: arguments, most: arguments, seeded_from: None }
}

const fn seeded(name: &'static str, function: Function, least: usize) -> Entry {
    Entry { name, function, least, most: least + 1, seeded_from: Some(least) }
}

const FUNCTIONS: [Entry; 21] = [
    entry("abs", Function::Abs, 1),
    entry("debug", Function::Debug, 1),
    entry("double", Function::Double, 1),
    entry("exp", Function::Exp, 1),
    Entry { name: "greatest", function: Function::Greatest, least: 1, most: MOST, seeded_from: None },
    seeded("hash", Function::HashMurmur2, 1),
    seeded("hash_fnv1a", Function::HashFnv1a, 1),
    seeded("hash_murmur2", Function::HashMurmur2, 1),
    entry("int", Function::Int, 1),
    Entry { name: "least", function: Function::Least, least: 1, most: MOST, seeded_from: None },
    entry("ln", Function::Ln, 1),
    entry("mod", Function::Modulo, 2),
    seeded("permute", Function::Permute, 2),
    entry("pi", Function::Pi, 0),
    entry("pow", Function::Power, 2),
    entry("power", Function::Power, 2),
    entry("random", Function::Random, 2),
    entry("random_exponential", Function::RandomExponential, 3),
    entry("random_gaussian", Function::RandomGaussian, 3),
    entry("random_zipfian", Function::RandomZipfian, 3),
    entry("sqrt", Function::Sqrt, 1),
];

/// The function called `name`, in any case.
pub fn find(name: &str) -> Option<&'static Entry> {
    FUNCTIONS.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

impl Entry {
    /// Checks whether it takes `count` arguments.
    ///
    /// # Errors
    /// The problem with the number.
    pub fn check(&self, count: usize) -> Result<(), String> {
        let name = self.name;
        match (count, self.most) {
            (0, MOST) => Err(format!("at least one argument expected ({name})")),
            (_, MOST) if count > MOST => Err(format!("too many function arguments, maximum is {MOST} ({name})")),
            _ if count < self.least || count > self.most => Err(format!("unexpected number of arguments ({name})")),
            _ => Ok(()),
        }
    }
}
