//! A column of a table of the user's own that clients encrypt.

/// A column of a table of the user's own that clients encrypt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnColumn {
    /// Its table, as statements name it.
    pub table: String,
    /// Its name.
    pub name: String,
    /// `table.name`: its ciphertext is bound to this.
    pub whole: String,
    /// Statements compare it by `=`: equal values look equal.
    pub is_compared: bool,
}

impl OwnColumn {
    /// The column called `name`, as `accounts.iban`; `None` if it names no table.
    pub fn new(name: &str, is_compared: bool) -> Option<Self> {
        let (table, column) = name.rsplit_once('.')?;
        let (table, name) = (table.to_owned(), column.to_owned());
        let whole = format!("{table}.{name}").to_lowercase();
        Some(Self { table, name, whole, is_compared })
    }
}
