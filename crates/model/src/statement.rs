//! Statements as reports show them: one short line without values.

/// Longest shown statement, in characters.
const SHOWN: usize = 72;

/// The words of the statement `sql` on one line of at most [`SHOWN`] characters. `?` replaces every literal: numbers
/// and everything between quotes, also double ones, which some products take for text. Comments are removed. If
/// products disagree about the end of a literal, the text after it is not shown.
pub fn shown(sql: &str) -> String {
    let mut words = String::new();
    let mut left = sql;
    while let Some(sign) = left.chars().next() {
        let rest = &left[sign.len_utf8()..];
        let in_name = words.ends_with(is_of_name);
        left = match sign {
            '-' | '/' if after_comment(left).is_some() => after_comment(left).unwrap_or_default(),
            '#' if !in_name && words.is_empty() => after_line(rest),
            '\'' | '"' => {
                take_prefix(&mut words);
                words.push('?');
                match after_quote(rest, sign) {
                    Some(after) => after,
                    None => {
                        words.push('…');
                        ""
                    }
                }
            }
            '$' if !in_name && dollar_quoted(left).is_some() => {
                words.push('?');
                dollar_quoted(left).unwrap_or_default()
            }
            '0'..='9' if !in_name && !words.ends_with(['$', ':']) => {
                words.push('?');
                rest.trim_start_matches(|sign: char| is_of_name(sign) || sign == '.')
            }
            '.' if !in_name
                && !words.ends_with(['`', '?', ')'])
                && rest.starts_with(|it: char| it.is_ascii_digit()) =>
            {
                rest
            }
            _ if sign.is_whitespace() || sign.is_control() => {
                if !words.ends_with(' ') && !words.is_empty() {
                    words.push(' ');
                }
                rest
            }
            _ => {
                words.push(sign);
                rest
            }
        };
    }
    let words = words.trim_end().trim_end_matches(';').trim_end();
    if words.chars().count() <= SHOWN {
        return words.to_owned();
    }
    words.chars().take(SHOWN - 1).chain(['…']).collect()
}

/// What an assignment of `SET` begins with if its setting is that of the whole server.
const OF_SERVER: [&str; 6] = ["GLOBAL ", "PERSIST ", "PERSIST_ONLY ", "@@GLOBAL.", "@@PERSIST.", "@@PERSIST_ONLY."];

/// True if the statement `text` changes settings of the whole server, which all clients have and which outlive its
/// session.
pub fn changes_server(text: &str) -> bool {
    let is_of_server = |assigned: &str| OF_SERVER.iter().any(|scope| assigned.trim_start().starts_with(scope));
    without_comments(text).split(';').any(|one| {
        let words = one.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase();
        words.starts_with("ALTER SYSTEM ")
            || words.starts_with("CONFIG SET ")
            || words.strip_prefix("SET ").is_some_and(|assigned| assigned.split(',').any(is_of_server))
    })
}

/// True if a server forgets the effect of the statement `text` when it is restarted on its data.
pub fn lasts_until_restart(text: &str) -> bool {
    let begin = without_comments(text).trim_start().to_ascii_uppercase();
    (changes_server(text) && !begin.starts_with("ALTER SYSTEM ")) || begin.starts_with("ACL SETUSER ")
}

/// `text` without its comments, and with `?` in place of each literal. The text of a comment that MySQL runs
/// (`/*!80000 … */`) stays.
fn without_comments(text: &str) -> String {
    let (mut kept, mut left) = (String::new(), text);
    while let Some(sign) = left.chars().next() {
        let rest = &left[sign.len_utf8()..];
        let begins = || kept.rsplit(';').next().is_none_or(|one| one.trim().is_empty());
        let (word, behind) = match sign {
            // In PostgreSQL it is an operator within a statement.
            '#' if begins() => (" ", after_line(rest)),
            '/' if rest.starts_with("*!") || rest.starts_with("*M!") => {
                (" ", rest.trim_start_matches(|sign: char| "*M!".contains(sign) || sign.is_ascii_digit()))
            }
            '-' | '/' if after_comment(left).is_some() => (" ", after_comment(left).unwrap_or_default()),
            '\'' | '"' => match after_quote(rest, sign) {
                Some(behind) => ("?", behind),
                None => (left, ""),
            },
            _ => (&left[..sign.len_utf8()], rest),
        };
        kept.push_str(word);
        left = behind;
    }
    kept
}

/// What follows the comment that `text` begins with, `-- …` or `/* … */`; `None` if it begins with something else.
fn after_comment(text: &str) -> Option<&str> {
    let of_line = || text.strip_prefix("--").map(after_line);
    let of_block = || text.strip_prefix("/*").map(|rest| rest.split_once("*/").map_or("", |(_, behind)| behind));
    of_line().or_else(of_block)
}

/// `text` from the end of its first line on.
fn after_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// Removes the letter before a quote that is the literal's prefix: `E'…'`, `x'…'`.
fn take_prefix(words: &mut String) {
    let start = words.trim_end_matches(is_of_name).len();
    if matches!(words[start..].to_ascii_lowercase().as_str(), "e" | "b" | "x" | "n") {
        words.truncate(start);
    }
}

/// The text after a literal that ends with `quote`; `None` if a backslash makes its end ambiguous, or if it does not
/// end.
fn after_quote(mut rest: &str, quote: char) -> Option<&str> {
    loop {
        let end = rest.find([quote, '\\'])?;
        if rest[end..].starts_with('\\') {
            return None;
        }
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(doubled) => rest = doubled,
            None => return Some(rest),
        }
    }
}

/// The text after the literal `$tag$…$tag$` at the beginning of `text`.
fn dollar_quoted(text: &str) -> Option<&str> {
    let tag = &text[1..1 + text[1..].find('$')?];
    let is_tag = !tag.starts_with(|sign: char| sign.is_ascii_digit()) && tag.chars().all(is_of_name);
    let mark = &text[..tag.len() + 2];
    let rest = &text[mark.len()..];
    is_tag.then(|| rest.find(mark).map_or("", |end| &rest[end + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_hidden_and_names_are_kept() {
        let seen: Vec<String> = [
            "UPDATE accounts\n   SET balance = balance + :delta -- secret\n WHERE aid = :aid;",
            "SELECT * FROM t1 WHERE name = 'O''Brien' AND card = 4111111111111111 AND x = -1.5e3 AND t1.id = $1",
            "INSERT INTO t VALUES (E'tab', x'00ff', \"text\", $$body$$, $a$it's$a$, .5, 0x1F)",
            "SELECT 'C:\\', 'secret'",
            "SELECT 'it\\'s', 'secret'",
            "SELECT /* secret */ `order` FROM pg_catalog.pg_class c2 WHERE c2.oid=1::oid",
            "SELECT 'open",
            "# secret\nSELECT a#b, c.5, t.\"x\".7, (1).5, :v1 - 2;;",
        ]
        .map(shown)
        .into();
        expect![[r#"
            UPDATE accounts SET balance = balance + :delta WHERE aid = :aid
            SELECT * FROM t1 WHERE name = ? AND card = ? AND x = -? AND t1.id = $1
            INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)
            SELECT ?…
            SELECT ?…
            SELECT `order` FROM pg_catalog.pg_class c2 WHERE c2.oid=?::oid
            SELECT ?…
            SELECT a#b, c.?, t.?.?, (?).?, :v1 - ?"#]]
        .assert_eq(&seen.join("\n"));
    }

    #[test]
    fn settings_of_a_server_and_of_a_session_are_distinguished() {
        for text in [
            "SET GLOBAL general_log = ON",
            "set session a = 1, @@global.b = 2",
            "SET a = 1;\n SET  PERSIST b = 1",
            "ALTER SYSTEM SET log_statement = 'all'",
            "config set appendonly yes",
            "-- of the server\nSET GLOBAL a = 1",
            "# of the server\nSET /* all */ GLOBAL a = 1",
            "/*!80000 SET GLOBAL a = 1 */",
        ] {
            assert!(changes_server(text), "{text}");
        }
        for text in ["SET log = 'read, write'", "SET a = @@GLOBAL.a", "SET SESSION global_a = 1", "RESET a", ""] {
            assert!(!changes_server(text), "{text}");
        }
        for text in ["SELECT 1 -- ; SET GLOBAL a = 1", "SET a = '; SET GLOBAL b = 1'", "SELECT '/*'", "SELECT 'a\\'"] {
            assert!(!changes_server(text), "{text}");
        }
        let of_memory = ["set global a = 1", "CONFIG SET a 1", "ACL SETUSER a on"];
        assert_eq!(of_memory.map(lasts_until_restart), [true; 3]);
        assert_eq!(["ALTER SYSTEM SET a = 1", "CREATE ROLE a", "SET a = 1"].map(lasts_until_restart), [false; 3]);
        assert!(!lasts_until_restart("/* ours */ ALTER SYSTEM SET a = 1"));
    }

    proptest! {
        #[test]
        fn any_text_is_shown_short_and_on_one_line(text in "\\PC*[-'\"$\\\\/*0-9a-z \n]{0,40}") {
            let shown = shown(&text);
            prop_assert!(shown.chars().count() <= SHOWN);
            prop_assert!(!shown.contains(['\n', '\t']));
        }

        #[test]
        fn no_literal_is_shown(secret in "[q-z]{6}", before in "[ (,=]", after in "[ ),]") {
            for literal in [format!("'{secret}'"), format!("\"{secret}\""), format!("$${secret}$$"), format!("1{secret}")] {
                let shown = shown(&format!("SELECT{before}{literal}{after}"));
                prop_assert!(!shown.contains(&secret), "{}", shown);
            }
        }
    }
}
