//! Lists of parameters and of rows that reuse their memory for the next statement.

use std::ops::Range;

use tithe_machine::fault::Fault;
use tithe_plugin::session::{Parameter, Rows};

#[derive(Debug, Clone)]
enum Value {
    Integer(i64),
    Text(Range<usize>),
    Null,
}

/// The parameters of a statement, copied.
#[derive(Debug, Default)]
pub struct Parameters {
    values: Vec<Value>,
    bytes: Vec<u8>,
    /// Empty between uses; keeps its capacity.
    room: Vec<Parameter<'static>>,
}

impl Parameters {
    /// Clears the list, keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }

    /// Adds a number.
    pub fn integer(&mut self, number: impl TryInto<i64>) -> &mut Self {
        // All numbers of TPC-C are far below 2⁶³.
        self.values.push(Value::Integer(number.try_into().unwrap_or(i64::MAX)));
        self
    }

    /// Adds the text that `write` appends.
    pub fn text_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.values.push(Value::Text(start..self.bytes.len()));
        self
    }

    /// Adds a text.
    pub fn text(&mut self, text: &[u8]) -> &mut Self {
        self.text_by(|out| out.extend_from_slice(text))
    }

    /// Adds SQL's NULL.
    pub fn null(&mut self) -> &mut Self {
        self.values.push(Value::Null);
        self
    }

    /// Adds a copy of `parameter`.
    pub fn push(&mut self, parameter: Parameter<'_>) {
        match parameter {
            Parameter::Integer(number) => self.integer(number),
            Parameter::Text(text) | Parameter::Bytes(text) => self.text(text),
            Parameter::Null => self.null(),
        };
    }

    /// The number of parameters.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Passes all of them to `use_them`.
    pub fn with<T>(&mut self, use_them: impl FnOnce(&[Parameter<'_>]) -> T) -> T {
        let mut list: Vec<Parameter<'_>> = std::mem::take(&mut self.room);
        list.extend(self.values.iter().map(|value| match value {
            Value::Integer(number) => Parameter::Integer(*number),
            Value::Text(range) => Parameter::Text(&self.bytes[range.clone()]),
            Value::Null => Parameter::Null,
        }));
        let result = use_them(&list);
        list.clear();
        // An empty list borrows nothing; collecting a mapped vector of the same element size reuses its memory.
        self.room = list.into_iter().map(|_| Parameter::Null).collect();
        result
    }
}

/// The rows of an answer, copied.
#[derive(Debug, Default)]
pub struct Answer {
    rows: usize,
    fields: Vec<Option<Range<usize>>>,
    bytes: Vec<u8>,
}

impl Answer {
    /// Clears the list, keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.fields.clear();
        self.bytes.clear();
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The value in `column` of `row`; `None` is SQL's NULL.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if there is no such row or column.
    pub fn value(&self, row: usize, column: usize) -> Result<Option<&[u8]>, Fault> {
        let width = self.fields.len().checked_div(self.rows).unwrap_or(0);
        let field = (row < self.rows && column < width).then(|| &self.fields[row * width + column]);
        let field = field.ok_or_else(|| Fault::Wrong(format!("no column {column} of row {row} in the answer")))?;
        Ok(field.as_ref().map(|range| &self.bytes[range.clone()]))
    }

    /// The text in `column` of `row`.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if it is NULL or missing.
    pub fn text(&self, row: usize, column: usize) -> Result<&[u8], Fault> {
        self.value(row, column)?.ok_or_else(|| Fault::Wrong(format!("column {column} is NULL and must not be")))
    }

    /// The number in `column` of `row`.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if it is NULL, missing or not a number.
    pub fn integer(&self, row: usize, column: usize) -> Result<i64, Fault> {
        number(self.text(row, column)?)
    }
}

/// The number in `text`.
///
/// # Errors
/// [`Fault::Wrong`] if it is not a number.
pub fn number(text: &[u8]) -> Result<i64, Fault> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Fault::Wrong(format!("`{}` is not a whole number", text.escape_ascii())))
}

impl Rows for Answer {
    fn row(&mut self, _key: Option<&[u8]>) {
        self.rows += 1;
    }

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.fields.push(value.map(|_| start..self.bytes.len()));
    }
}
