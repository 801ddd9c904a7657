//! The variables of scripts: known by number, so that none is searched by name during measurement.

use super::value::Value;

/// The names of all variables of a workload's scripts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    names: Vec<String>,
    /// Those that a script or a definition sets.
    set: Vec<bool>,
}

impl Names {
    /// The number of the variable `name`, which is read in a script.
    pub fn read(&mut self, name: &str) -> usize {
        if let Some(number) = self.find(name) {
            return number;
        }
        self.names.push(name.to_owned());
        self.set.push(false);
        self.names.len() - 1
    }

    /// The number of the variable `name`, which a script sets.
    pub fn set(&mut self, name: &str) -> usize {
        let number = self.read(name);
        self.set[number] = true;
        number
    }

    /// The number of the variable `name`, if it exists.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// True when something sets variable `number`.
    pub fn is_set(&self, number: usize) -> bool {
        self.set[number]
    }

    /// The name of variable `number`.
    pub fn name(&self, number: usize) -> &str {
        &self.names[number]
    }
}

/// True for the name of a variable: letters, digits and `_`, no digit first.
pub fn is_valid(name: &str) -> bool {
    let of_name = is_of_name;
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(of_name)
}

/// The variables of one client.
#[derive(Debug, Clone)]
pub struct Variables {
    values: Vec<Option<Value>>,
    names: std::sync::Arc<Names>,
}

impl Variables {
    /// Variables without values.
    pub fn new(names: std::sync::Arc<Names>) -> Self {
        Self { values: vec![None; names.names.len()], names }
    }

    /// Gives variable `number` a value.
    #[inline]
    pub fn put(&mut self, number: usize, value: Value) {
        self.values[number] = Some(value);
    }

    /// Gives the variable called `name` a value, if anything reads or sets one.
    pub fn put_named(&mut self, name: &str, value: Value) {
        if let Some(number) = self.names.find(name) {
            self.put(number, value);
        }
    }

    /// The value of variable `number`.
    ///
    /// # Errors
    /// If it was never set.
    #[inline]
    pub fn get(&self, number: usize) -> Result<&Value, String> {
        self.values[number].as_ref().ok_or_else(|| format!("undefined variable \"{}\"", self.names.name(number)))
    }

    /// The value of variable `number` in an expression.
    ///
    /// # Errors
    /// If it is undefined, or contains text that is no value.
    pub fn value(&self, number: usize) -> Result<Value, String> {
        let value = self.get(number)?;
        value.read().map_err(|problem| {
            problem.replacen(
                "malformed variable value",
                &format!("malformed variable \"{}\" value", self.names.name(number)),
                1,
            )
        })
    }
}

/// True for a byte of a name: letters, digits, `_`, and everything that is not ASCII.
pub fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
