//! Properties of a workload with few of them, each with its default: read from a file of `name=value` lines, and
//! resolved.

use std::collections::BTreeMap;

use tithe_model::catalogue::{LineProblem, Properties, PropertyFile, PropertyProblem};

/// A property: its name, its default and one sentence.
pub type Known = (&'static str, &'static str, &'static str);

/// Resolves properties one by one, and collects every problem.
pub struct Reader<'a> {
    known: &'static [Known],
    properties: &'a Properties,
    problems: Vec<PropertyProblem>,
}

impl<'a> Reader<'a> {
    /// For the workload called `title`, whose properties are `known`.
    pub fn new(title: &str, known: &'static [Known], properties: &'a Properties) -> Self {
        let unknown = properties.keys().filter(|name| known.iter().all(|(known, ..)| known != name));
        let problem = |name: &String| {
            let known: Vec<&str> = known.iter().map(|(known, ..)| *known).collect();
            (name.clone(), format!("is not a property of {title}"), format!("known are {}", known.join(", ")))
        };
        Self { known, properties, problems: unknown.map(problem).collect() }
    }

    /// The value of the property `name`, parsed by `parse`.
    pub fn get<T>(&mut self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (_, default, help) = self.known.iter().find(|(known, ..)| *known == name)?;
        let written = self.properties.get(name).map_or(*default, String::as_str).trim();
        let parsed = parse(written);
        if parsed.is_none() {
            self.refuse(name, format!("`{written}` is not possible"), help);
        }
        parsed
    }

    /// The property `name` as a number from `low` to `high`; `low` if it is none.
    pub fn number(&mut self, name: &str, low: u64, high: u64) -> u64 {
        self.get(name, |text| text.parse().ok().filter(|number| (low..=high).contains(number))).unwrap_or(low)
    }

    /// Adds a problem of the property `name`.
    pub fn refuse(&mut self, name: &str, problem: String, help: &str) {
        self.problems.push((name.to_owned(), problem, help.to_owned()));
    }

    /// Returns `resolved`.
    ///
    /// # Errors
    /// Every problem.
    pub fn end<T>(self, resolved: T) -> Result<T, Vec<PropertyProblem>> {
        if self.problems.is_empty() { Ok(resolved) } else { Err(self.problems) }
    }
}

/// Reads lines of `name=value`, `#` before a comment.
///
/// # Errors
/// Every line that is neither.
pub fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = file.text()?;
    let mut properties = BTreeMap::new();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once('=') {
            Some((name, value)) => {
                if properties.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
                    let problem = format!("gives `{}` a second time", name.trim());
                    problems.push((number, problem, "remove one of the two".to_owned()));
                }
            }
            None => problems.push((number, "is not `name=value`".to_owned(), "put a `=` between them".to_owned())),
        }
    }
    if problems.is_empty() { Ok(properties) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_utf_16_without_a_mark_is_refused_by_its_encoding() {
        let bytes = b"# a\nm\0i\0x\0=\x001\0";
        let file = PropertyFile { name: "mine", weight: None, number: 1, bytes, protocol: None };
        let problem = (2, "has a zero byte, as UTF-16 has".to_owned(), "save the file as UTF-8".to_owned());
        assert_eq!(read(&file), Err(vec![problem]));
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_by_its_line() {
        let bytes = b"\xef\xbb\xbf# mine\r\nmix=1\r\nitems=30\r\n mix = 2\r\n";
        let file = PropertyFile { name: "mine", weight: None, number: 1, bytes, protocol: None };
        let problem = (4, "gives `mix` a second time".to_owned(), "remove one of the two".to_owned());
        assert_eq!(read(&file), Err(vec![problem]));
    }
}
