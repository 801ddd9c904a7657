//! Short names of transactions, for reports and for tags of histograms, which have no blanks.

use super::{
    recording::Class,
    sql::{Flavour, Kind, kind},
};

/// The longest name, characters.
const LENGTH: usize = 40;

/// A name for transactions whose statements have the shapes in `text`: the action and table of the first one, and how
/// many follow. Unique among the classes `taken`.
pub fn name(text: &str, taken: &[Class]) -> String {
    let steps = text.split("; ").filter(|step| !matches!(kind(step, Flavour::Postgres), Kind::Begin | Kind::End));
    let steps: Vec<&str> = steps.collect();
    let mut base: String = action(steps.first().unwrap_or(&text)).chars().take(LENGTH).collect();
    if steps.len() > 1 {
        base.push_str(&format!("+{}", steps.len() - 1));
    }
    let is_taken = |name: &str| taken.iter().any(|class| class.name == name);
    let mut names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}#{number}")));
    names.find(|name| !is_taken(name)).unwrap_or(base)
}

/// `update-accounts` of `UPDATE accounts SET …`.
fn action(step: &str) -> String {
    let mut words = step.split(' ').filter(|word| !word.is_empty());
    let verb = words.next().unwrap_or_default().to_ascii_lowercase();
    let leads = |word: &str| ["from", "into", "table"].iter().any(|lead| word.eq_ignore_ascii_case(lead));
    let table = match verb.as_str() {
        "update" | "call" => words.next(),
        _ => words.find(|word| leads(word)).and_then(|_| words.next()),
    };
    let name = table.unwrap_or_default().split('(').next().unwrap_or_default();
    let is_usual = |sign: &char| sign.is_alphanumeric() || matches!(sign, '_' | '.');
    let [verb, name] = [verb.as_str(), name].map(|word| word.chars().filter(is_usual).collect::<String>());
    match (verb.is_empty(), name.is_empty()) {
        (true, _) => "statement".to_owned(),
        (false, true) => verb,
        (false, false) => format!("{verb}-{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_the_first_statement_does() {
        let named = |text| name(text, &[]);
        assert_eq!(named("BEGIN; UPDATE \"my accounts\" SET a = ?; SELECT ?; COMMIT"), "update-my+1");
        assert_eq!(named("select count(*) from public.t where a = ?"), "select-public.t");
        assert_eq!(named("INSERT INTO t(a, b) VALUES (?)"), "insert-t");
        assert_eq!(named("SELECT ?"), "select");
        assert_eq!(named("((?))"), "statement");
        let class = |name: &str| Class { name: name.to_owned(), text: String::new() };
        assert_eq!(name("SELECT ?", &[class("select"), class("select#2")]), "select#3");
    }
}
