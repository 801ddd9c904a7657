//! The variables of a pgbench script: which it needs and which it sets, so that a plan reports errors that pgbench
//! would report in the first slice.

use std::collections::BTreeSet;

/// Variables that pgbench sets itself (PostgreSQL documentation, "pgbench", Automatic Variables).
const AUTOMATIC: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// Commands whose arguments are an expression.
const WITH_EXPRESSION: [&str; 4] = ["set", "if", "elif", "sleep"];

/// The variables that `script` needs, and that neither one of `scripts`, which share them, nor `defined` sets.
pub fn undefined<'t>(script: &str, scripts: impl Iterator<Item = &'t str>, defined: &[String]) -> BTreeSet<String> {
    let mut set: BTreeSet<&str> = AUTOMATIC.into();
    set.extend(defined.iter().filter_map(|word| Some(word.split_once('=')?.0)));
    let mut prefixes = Vec::new();
    for text in scripts {
        for line in commands(text) {
            set.extend(line.sets);
            prefixes.extend(line.prefix);
        }
    }
    let known = |name: &str| set.contains(name) || prefixes.iter().any(|prefix| name.starts_with(prefix));
    needed(script).into_iter().filter(|name| !known(name)).collect()
}

/// True for a character of a variable's name.
pub fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The variables that a command of a script sets.
struct Sets<'t> {
    /// A variable.
    sets: Option<&'t str>,
    /// Prefix of the variables for the columns of a row.
    prefix: Option<&'t str>,
}

/// Every command that sets something: `\set x 1`, and `\gset` and `\aset`, which end a statement and name a variable
/// for each of its columns.
fn commands(text: &str) -> impl Iterator<Item = Sets<'_>> {
    text.match_indices('\\').filter_map(|(at, _)| {
        let mut words = text[at + 1..].lines().next()?.split_ascii_whitespace();
        match words.next()? {
            "set" | "setshell" => Some(Sets { sets: words.next(), prefix: None }),
            "gset" | "aset" => Some(Sets { sets: None, prefix: Some(words.next().unwrap_or("")) }),
            _ => None,
        }
    })
}

/// The variables that `script` needs: in SQL `:name` outside of quotes and comments, and in expressions of commands.
fn needed(script: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let sql: String = script.lines().map(|line| format!("{}\n", expression_or_sql(line))).collect();
    let sql = without_quotes_and_comments(&sql);
    let mut before = ' ';
    let mut rest = sql.as_str();
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        // `a::text` is a cast, `x[1:n]` a slice, `:=` an argument's name.
        let may_begin = character == ':' && before != ':' && before != ']' && !is_of_name(before);
        if may_begin {
            let name: String = rest.chars().take_while(|&it| is_of_name(it)).collect();
            if name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
                names.insert(name);
            }
        }
        before = character;
    }
    names
}

/// A line of SQL unchanged, or the expression of a command; empty for other commands.
fn expression_or_sql(line: &str) -> &str {
    let Some(command) = line.trim_start().strip_prefix('\\') else { return line };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    if !WITH_EXPRESSION.contains(&name) {
        return "";
    }
    // A variable that is set is not needed.
    if name == "set" { rest.trim_start().split_once(char::is_whitespace).map_or("", |(_, value)| value) } else { rest }
}

/// SQL with a blank in place of every quoted text, quoted name and comment.
fn without_quotes_and_comments(sql: &str) -> String {
    let mut kept = String::new();
    let mut rest = sql;
    while let Some(character) = rest.chars().next() {
        let end = match character {
            '\'' | '"' => rest[1..].find(character).map(|at| at + 2),
            '-' if rest.starts_with("--") => rest.find('\n'),
            '/' if rest.starts_with("/*") => rest.find("*/").map(|at| at + 2),
            '$' => dollar_quote(rest),
            _ => {
                kept.push(character);
                rest = &rest[character.len_utf8()..];
                continue;
            }
        };
        kept.push(' ');
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    kept
}

/// The length of the dollar-quoted text at the beginning of `rest`; 1 if there is none.
fn dollar_quote(rest: &str) -> Option<usize> {
    let tag = rest[1..].find(|it: char| !is_of_name(it)).map(|at| at + 1).filter(|&at| rest[at..].starts_with('$'));
    let Some(tag) = tag else { return Some(1) };
    let quote = &rest[..=tag];
    rest[quote.len()..].find(quote).map(|at| at + 2 * quote.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(script: &str, defined: &[&str]) -> String {
        let defined: Vec<String> = defined.iter().map(|&word| word.to_owned()).collect();
        undefined(script, [script].into_iter(), &defined).into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_nobody_sets_is_found() {
        assert_eq!(told("\\set aid random(1, :naccounts)\nSELECT :aid;", &[]), "naccounts");
        assert_eq!(told("\\set aid random(1, :naccounts)\nSELECT :aid;", &["naccounts=9"]), "");
        assert_eq!(told("SELECT :a + :b, (:c), f(x=>:d);", &["b=1"]), "a c d");
        assert_eq!(told("\\if :kind > 80\nSELECT 1;\n\\elif :other\n\\endif", &[]), "kind other");
    }

    #[test]
    fn what_is_set_or_no_variable_is_not() {
        for script in [
            "\\set aid random(1, 100000 * :scale)\nSELECT 1 WHERE :client_id > 0;",
            "SELECT abalance FROM t WHERE aid = 1 \\gset\nSELECT :abalance;",
            "SELECT a FROM t \\gset p_\nSELECT :p_a;",
            "SELECT a FROM t\\;\nSELECT b FROM t \\aset\nSELECT :a, :b;",
            "SELECT x::text, '12:mm:ss', now()::date, x[1:n], \"a:b\" FROM t; -- :nobody\n/* :nor */",
            "SELECT $$ :text $$, $t$ :text $ $t$;",
            "CALL f(a := 1)",
            "\\setshell x echo 1\nSELECT :x;",
        ] {
            assert_eq!(told(script, &[]), "", "{script}");
        }
        assert_eq!(told("SELECT a FROM t \\gset p_\nSELECT :a;", &[]), "a");
        assert_eq!(told("SELECT $1, :a", &[]), "a");
    }

    proptest! {
        #[test]
        fn any_script_is_read(script in "(?s)[\\\\:'\"$/*\\-;a-z0-9_é \\n]{0,80}") {
            let _ = told(&script, &[]);
        }
    }
}
