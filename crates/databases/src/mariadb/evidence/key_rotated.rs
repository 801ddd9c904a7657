//! Does another key replace the old one, in every page?

use std::path::Path;

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    rotation::Rotator as _,
    setup::Setup,
};

use super::innodb_file::{Cipher, Keys, examine};
use crate::mariadb::{
    access::ACCESS,
    at_rest::write_table,
    rotation::{KEYS, KeyRotator},
};

/// Changes the key once, as it is changed during the measurement, and examines each table before and afterwards. It
/// reads which key the server names and, in the table's file, which of the two keys opens its record pages. Id
/// `key-rotated`.
///
/// The control of the new key is the old one, which must have opened all pages before and must open none afterwards.
pub struct KeyRotated {
    cipher: Cipher,
}

impl KeyRotated {
    /// A check of `cipher`, as `file_key_management_encryption_algorithm` names it.
    pub fn new(cipher: &str) -> Self {
        Self { cipher: if cipher == "AES_CBC" { Cipher::Cbc } else { Cipher::Ctr } }
    }

    /// Every measured table, from the server's report and from its file.
    fn state(&self, context: &CheckContext<'_>) -> Result<Vec<Table>, Fault> {
        let keys = KeyRotator::new(context.server, context.setup)?.keys()?;
        let mut session = ACCESS.administrator(context.server, context.setup)?;
        let page_bytes = session.value("SELECT @@innodb_page_size")?;
        let page_bytes =
            page_bytes.parse().map_err(|_| Fault::Wrong("the size of a page is not a number".to_owned()))?;
        let folder = session.value("SELECT @@datadir")?;
        let mut tables = Vec::with_capacity(keys.len());
        for (name, number) in keys {
            write_table(&mut session, &format!("`tithe`.`{name}`"))?;
            let file = Path::new(&folder).join("tithe").join(format!("{name}.ibd"));
            let seen = examine(&file, page_bytes, self.cipher, &secrets(context.setup)?)?;
            tables.push(Table { name, number, seen });
        }
        Ok(tables)
    }
}

impl Check for KeyRotated {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("key-rotated")
    }

    fn claim(&self) -> String {
        "every table gets another key, which opens all its pages of records, and the old one opens none of them"
            .to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if context.setup.at_rest.is_none() {
            return Ok(Observation::Exposed("tables have no key that could be changed".to_owned()));
        }
        let before = self.state(context)?;
        // The server answered, so this is a result: `Unknown` is for what could not be asked.
        if let Err(Fault::Server(words)) = KeyRotator::new(context.server, context.setup)?.rotate() {
            return Ok(Observation::Exposed(format!("the server does not change the key: {words}")));
        }
        Ok(judged(&before, &self.state(context)?))
    }
}

/// What the tables show `before` and `after` a change of their keys.
fn judged(before: &[Table], after: &[Table]) -> Observation {
    let changed = before.iter().zip(after).all(|(before, after)| before.number != after.number);
    let whole = before.iter().chain(after).all(Table::is_whole);
    let reported: Vec<String> =
        before.iter().zip(after).map(|(before, after)| format!("{before}; then {}", after.reported())).collect();
    let quotation = reported.join(". ");
    if changed && whole { Observation::Protected(quotation) } else { Observation::Exposed(quotation) }
}

/// The two keys, in the order of their numbers.
fn secrets(setup: &Setup) -> Result<[&Secret; 2], Fault> {
    let at_rest = setup.at_rest.as_ref().ok_or_else(|| Fault::Wrong("the arm has no key".to_owned()))?;
    Ok([&at_rest.key, &setup.credentials.second_key])
}

/// One table at one moment.
struct Table {
    name: String,
    /// The number of its key, as reported by the server.
    number: u32,
    seen: Keys,
}

impl Table {
    /// True if the file names the same key as the server, and this key alone opens all its record pages.
    fn is_whole(&self) -> bool {
        let expected = KEYS.map(|number| if number == self.number { self.seen.pages } else { 0 });
        self.seen.named == self.number && self.seen.pages > 0 && self.seen.opened == expected
    }

    fn reported(&self) -> String {
        let Keys { named, pages, opened } = &self.seen;
        let [first, second] = KEYS;
        format!(
            "key {}, in the file key {named}; of {pages} pages of records {} open with key {first}, {} with key {second}",
            self.number, opened[0], opened[1]
        )
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.name, self.reported())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_rotated_when_it_alone_opens_every_page_of_every_table() {
        let table =
            |number, named, pages, opened| Table { name: "t".to_owned(), number, seen: Keys { named, pages, opened } };
        let [first, second] = KEYS;
        let (before, after) = (|| table(first, first, 9, [9, 0]), || table(second, second, 9, [0, 9]));
        let holds =
            |before: Vec<Table>, after: Vec<Table>| matches!(judged(&before, &after), Observation::Protected(_));
        assert!(holds(vec![before()], vec![after()]) && holds(vec![after()], vec![before()]));
        assert!(holds(vec![before(), after()], vec![after(), before()]));
        assert!(!holds(vec![before()], vec![before()]), "the same key");
        assert!(!holds(vec![before(), before()], vec![after(), before()]), "one of two tables keeps its key");
        for wrong in [
            table(second, first, 9, [0, 9]),
            table(second, second, 9, [1, 9]),
            table(second, second, 9, [0, 8]),
            table(second, second, 9, [9, 0]),
            table(second, second, 0, [0, 0]),
        ] {
            let words = wrong.reported();
            assert!(!holds(vec![before()], vec![wrong]), "{words}");
        }
        assert!(!holds(vec![table(first, first, 9, [9, 1])], vec![after()]), "the new key had opened a page before");
        assert_eq!(
            judged(&[before()], &[after()]).quotation(),
            "t: key 1, in the file key 1; of 9 pages of records 9 open with key 1, 0 with key 2; then key 2, in the \
             file key 2; of 9 pages of records 0 open with key 1, 9 with key 2"
        );
    }
}
