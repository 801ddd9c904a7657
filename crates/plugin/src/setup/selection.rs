//! Which fields of records by key are encrypted.

use tithe_machine::fault::Fault;

use crate::session::Table;

/// Fields of records by key: those with these names, or without names a share of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Share of the fields, from the first on, 0–1.
    pub share: f64,
    /// Names, as `field0`; empty if the share decides.
    pub names: Vec<String>,
}

impl Selection {
    /// The first `share` of the fields.
    pub fn of_share(share: f64) -> Self {
        Self { share, names: Vec::new() }
    }

    /// True if no field is selected, which measures the cost of the session wrapper alone.
    pub fn is_none(&self) -> bool {
        self.share == 0.0 && self.names.is_empty()
    }

    /// The numbers of the selected fields of `table`, ascending.
    pub fn of(&self, table: &Table) -> Vec<usize> {
        if self.names.is_empty() {
            return (0..of_share(self.share, table.fields)).collect();
        }
        (0..table.fields).filter(|field| self.names.contains(&table.field(*field))).collect()
    }

    /// Checks that every name is that of a field of `table`.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the first that is not.
    pub fn check(&self, table: &Table) -> Result<(), Fault> {
        let known: Vec<String> = (0..table.fields).map(|field| table.field(field)).collect();
        match self.names.iter().find(|name| !known.contains(name)) {
            Some(name) => Err(Fault::Refused(format!("no field is called `{name}`: there are {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// The selection in a claim: `value of the first 20 % of the fields`.
    pub fn noun(&self) -> String {
        match self.names.as_slice() {
            [] if self.share == 1.0 => "field value".to_owned(),
            [] => format!("value of the first {:.0} % of the fields", self.share * 100.0),
            names => format!("value of {}", names.join(", ")),
        }
    }
}

/// How many of `fields` are in the share, to the nearest whole field.
fn of_share(share: f64, fields: usize) -> usize {
    ((share.clamp(0.0, 1.0) * fields as f64).round() as usize).min(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table { name: "usertable".to_owned(), fields: 10, field_prefix: "field".to_owned() }
    }

    #[test]
    fn a_share_is_rounded_to_whole_fields() {
        let counts = [0.0, 0.04, 0.05, 0.2, 0.25, 1.0].map(|share| Selection::of_share(share).of(&table()).len());
        assert_eq!(counts, [0, 0, 1, 2, 3, 10]);
    }

    #[test]
    fn names_are_those_of_fields_or_refused() {
        let named =
            |names: &[&str]| Selection { share: 1.0, names: names.iter().map(|name| (*name).to_owned()).collect() };
        let some = named(&["field3", "field0"]);
        assert_eq!((some.of(&table()), some.check(&table())), (vec![0, 3], Ok(())));
        assert_eq!(some.noun(), "value of field3, field0");
        for wrong in ["field10", "field01", "c_last"] {
            let refusal = named(&["field0", wrong]).check(&table()).expect_err("refused").to_string();
            assert!(refusal.contains(&format!("no field is called `{wrong}`: there are field0, field1")), "{refusal}");
        }
    }
}
