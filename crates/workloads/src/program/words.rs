//! The words of a command line, without a shell: blanks separate words, and text in single or double quotes belongs to
//! one word, whatever it contains. Nothing else is special.

use tithe_model::catalogue::{Properties, PropertyProblem};

/// The variables in the property `define`: words of `name=value`, as pgbench's -D takes them. Adds its problems to
/// `problems`.
pub fn defined(
    properties: &Properties,
    is_name: impl Fn(&str) -> bool,
    problems: &mut Vec<PropertyProblem>,
) -> Vec<(String, String)> {
    let mut problem = |problem: String| {
        let help = "write for example `define = \"naccounts=100000 days=7\"`".to_owned();
        problems.push(("define".to_owned(), problem, help));
    };
    let all = split(properties.get("define").map_or("", String::as_str)).unwrap_or_else(|why| {
        problem(why);
        Vec::new()
    });
    let mut pairs = Vec::new();
    for word in &all {
        match word.split_once('=') {
            Some((name, value)) if is_name(name) => pairs.push((name.to_owned(), value.to_owned())),
            _ => problem(format!("{word:?} is not `name=value`")),
        }
    }
    pairs
}

/// The words of `text`.
///
/// # Errors
/// An unclosed quote.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for sign in text.chars() {
        match quote {
            Some(open) if sign == open => quote = None,
            Some(_) => word.get_or_insert_default().push(sign),
            None if sign == '\'' || sign == '"' => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            None if sign.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("the quote {open} is not closed")),
        None => Ok(words),
    }
}

/// `word` with `{name}` replaced by the value of `name`.
///
/// # Errors
/// The first name that has no value.
pub fn fill(word: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else { return Err(format!("{{{after}")) };
        filled.push_str(&value(name).ok_or_else(|| format!("{{{name}}}"))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_told_apart_by_blanks_and_kept_together_by_quotes() {
        assert_eq!(split(" a  'b c' d\"e f\"g ''").expect("words"), ["a", "b c", "de fg", ""]);
        assert_eq!(split("a 'b").expect_err("open"), "the quote ' is not closed");
    }

    #[test]
    fn names_in_braces_are_filled_in() {
        let value = |name: &str| (name == "port").then(|| "5432".to_owned());
        assert_eq!(fill("-p{port}:{port}", &value), Ok("-p5432:5432".to_owned()));
        assert_eq!(fill("{host}", &value), Err("{host}".to_owned()));
        assert_eq!(fill("a{port", &value), Err("{port".to_owned()));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[^']{0,12}", 0..6)) {
            let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&text.join(" ")), Ok(words));
        }

        #[test]
        fn foreign_text_never_panics(text in "\\PC{0,60}") {
            let _ = split(&text);
            let _ = fill(&text, &|_| Some(String::new()));
        }
    }
}
