//! Takes passwords out of the text of an experiment file.
//!
//! The text itself is shown next to a diagnostic and kept in the run folder, so it must not hold the password
//! of a URL. Every byte of the text keeps its place: ranges of diagnostics fit the masked text as well.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Url;

/// `text` with everything that may be a password in a URL, and the values of keys for passwords, replaced by `*`, byte
/// for byte.
///
/// A file that parsed before parses afterwards. Works on any text, also one that is not TOML. Statements and other
/// settings are not masked: a password in them cannot be distinguished from other text.
pub fn mask_passwords(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (document, _) = DeTable::parse_recoverable(text);
    mask_table(document.get_ref(), text, &mut bytes);
    lines(&String::from_utf8_lossy(&bytes))
}

/// The same by lines, for text without a structure: masks in each line what follows `://`, a key `url` or a key for
/// passwords, if it may contain a password.
pub(crate) fn lines(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let address = line.find("://").map(|at| at + "://".len());
        if let Some(scheme_end) =
            address.or_else(|| line.find("url").and_then(|at| Some(at + line[at..].find('=')? + 1)))
            && holds_more(&line[scheme_end..])
        {
            fill(&mut bytes, start + scheme_end..start + end_of(line));
        } else if let Some(at) = word_in(line) {
            fill(&mut bytes, start + at..start + end_of(line));
        }
        start += line.len();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where the value in `line` ends.
fn end_of(line: &str) -> usize {
    line.trim_end_matches(['\n', '\r', ' ', '\t', '"', '\'', ']', '}', ',']).len()
}

/// True for a key or an option whose value is a password.
fn is_for_password(name: &str) -> bool {
    const ENDS: [&str; 7] = ["password", "passwd", "pwd", "pass", "masterauth", "secret", "token"];
    let name = name.to_ascii_lowercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

/// True for an argument that is a password by the option `before` it, or by its own name: `--password=…`.
pub(crate) fn is_password_of(before: &str, text: &str) -> bool {
    let is_flag = |option: &str| ["--no-", "--skip-"].iter().any(|begin| option.starts_with(begin));
    let names_one = |option: &str| option.starts_with("--") && !is_flag(option) && is_for_password(option);
    let own = text.split_once('=').is_some_and(|(name, value)| names_one(name) && !value.is_empty());
    own || names_one(before) && !text.starts_with('-')
}

/// The problem with a setting `name` whose `value` is or holds a password, and the remedy.
pub(crate) fn secret_setting(name: &str, value: &str) -> Option<(String, &'static str)> {
    const FLAGS: [&str; 6] = ["on", "off", "true", "false", "yes", "no"];
    let lower = value.to_ascii_lowercase();
    let is_flag = FLAGS.contains(&lower.as_str()) || lower.bytes().all(|byte| byte.is_ascii_digit());
    (is_for_password(name) && !is_flag || holds_password(value)).then(|| {
        let problem = format!("`{}` would show its password in records and reports", name.escape_debug());
        (problem, "leave it out, or have the server read the password from a file that only you can read")
    })
}

/// True for text with `password=`, as in libpq's form of an address.
fn holds_password(text: &str) -> bool {
    text.to_ascii_lowercase().contains("password=")
}

/// True if an option in the line `command` gives a password: `--password x`, `--token=x`.
pub fn gives_password(command: &str) -> bool {
    let mut before = "";
    command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).any(|word| {
        let value = word.split_once('=').map_or(word, |(_, value)| value);
        // Placeholders and a shell's variables are no passwords.
        let gives = is_password_of(before, word) && !value.starts_with(['$', '{', '`']);
        before = word;
        gives
    })
}

/// Where the value of a key for passwords begins in `line`, unless it is masked already or a flag, which TOML has
/// without quotes.
fn word_in(line: &str) -> Option<usize> {
    const AROUND: [char; 4] = [' ', '\t', '"', '\''];
    let (key, value) = line.split_once('=')?;
    let word = value.trim_start_matches(AROUND);
    let first = word.split([' ', '\t', '\r', '\n', '"', '\'', ',', '}', '#']).next().unwrap_or_default();
    let is_masked = !first.is_empty() && first.bytes().all(|byte| byte == b'*');
    let is_shown = is_masked || ["true", "false"].contains(&first);
    let is_open = is_for_password(key.trim_matches(AROUND)) && !is_shown;
    is_open.then_some(key.len() + 1 + value.len() - word.len())
}

/// True for an address with an account, options or a password.
fn holds_more(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    lower.contains(['@', '?']) || lower.contains("password") || lower.contains("pwd")
}

fn mask_table(table: &DeTable<'_>, text: &str, bytes: &mut [u8]) {
    for (key, value) in table.iter() {
        mask_value(key.get_ref(), value, text, bytes);
    }
}

fn mask_value(key: &str, value: &Spanned<DeValue<'_>>, text: &str, bytes: &mut [u8]) {
    match value.get_ref() {
        DeValue::String(string) => mask_string(key, string, value.span(), text, bytes),
        DeValue::Array(array) => {
            let mut before = "";
            for value in array.iter() {
                let word = value.get_ref().as_str().unwrap_or_default();
                // A password among the arguments of a command.
                let key = if is_password_of(before, word) { "password" } else { key };
                mask_value(key, value, text, bytes);
                before = word;
            }
        }
        DeValue::Table(table) => mask_table(table, text, bytes),
        _ => {}
    }
}

/// Masks a string from its `://` to its closing quote, or the whole string if escapes hide the `://` or it is a
/// password.
fn mask_string(key: &str, string: &str, span: Range<usize>, text: &str, bytes: &mut [u8]) {
    let address = key == "url" || string.contains("://");
    let is_word = is_for_password(key) || gives_password(string) || !address && holds_password(string);
    if !is_word && (!address || Url::new(string).is_bare()) {
        return;
    }
    let Some(raw) = text.get(span.clone()) else { return };
    let inside = raw.trim_matches(['"', '\'']);
    let start = raw.len() - raw.trim_start_matches(['"', '\'']).len();
    let hidden = inside.find("://").filter(|_| !is_word).map_or(0, |at| at + "://".len());
    fill(bytes, span.start + start + hidden..span.start + start + inside.len());
}

/// Overwrites `range` with `*`, except line ends: places in the text do not move.
fn fill(bytes: &mut [u8], range: Range<usize>) {
    if let Some(part) = bytes.get_mut(range) {
        part.iter_mut().filter(|byte| !matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b'*');
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&mask_passwords(text));
    }

    #[test]
    fn addresses_are_masked_and_the_rest_stays() {
        check(
            r#"
# see https://www.postgresql.org/docs and not postgres://user:hunter2@host
arm = [{ name = "a@b", url = "postgres://user:hunter2@host/db", on = ["SET x = 'a://b'"] }, { url = "pg://host/db" }]
url = 'postgres://user@host/db?password=hunter2' # comment
"#,
            expect![[r#"

                # see https://************************************************************
                arm = [{ name = "a@b", url = "postgres://********************", on = ["SET x = 'a://*'"] }, { url = "pg://host/db" }]
                url = 'postgres://*****************************' # comment
            "#]],
        );
    }

    #[test]
    fn values_of_keys_for_passwords_are_masked() {
        check(
            "[[arm]]\npassword = \"hunter2\" # mine\nsettings = { password_encryption = \"md5\" }\n\
             properties = { \"db.passwd\" = 'hunter2' }\n\
             on = [\"a\", \"--new-password\", \"hunter2\", \"--token=x\"]\n",
            expect![[r#"
                [[arm]]
                password = "*******" # mine
                settings = { password_encryption = "md5" }
                properties = { "db.passwd" = '*******' }
                on = ["a", "--new-password", "*******", "*********"]
            "#]],
        );
        check(
            "password = hunter2\nuser = \"a\"\npassword = *!hunter2\npassword = '#hunter2\n",
            expect![[r#"
                password = *******
                user = "a"
                password = *********
                password = '********
            "#]],
        );
        check(
            "api_token = \"hunter2\"\non = [\"a\", \"--requirepass\", \"hunter2\"]\n",
            expect![[r#"
                api_token = "*******"
                on = ["a", "--requirepass", "*******"]
            "#]],
        );
        check(
            "run = \"bench --password hunter2 {host}\"\nrun2 = 'bench --token=hunter2'\n",
            expect![[r#"
                run = "*******************************"
                run2 = '*********************'
            "#]],
        );
        assert!(!["a --no-password x", "a --skip-password x", "a --password $(cat x)"].into_iter().any(gives_password));
        check(
            "tls-key-file-pass = \"hunter2\"\nprimary_conninfo = \"user=a password=hunter2\"\n",
            expect![[r#"
                tls-key-file-pass = "*******"
                primary_conninfo = "***********************"
            "#]],
        );
        let flag = "[settings]\ndisconnect_on_expired_password = false # as before\n";
        assert_eq!(mask_passwords(flag), flag);
    }

    #[test]
    fn text_without_a_structure_is_masked_from_its_sign_on() {
        let text = "one url = ann:hunter2@db\na pg://ann:hunter2@db\nurl = plain\nx url=password \n\
                    url=Db;Pwd=hunter2\n";
        expect![[r#"
            one url =***************
            a pg://**************
            url = plain
            x url=******** 
            url=**************
        "#]]
        .assert_eq(&lines(text));
    }

    #[test]
    fn escapes_lines_and_missing_schemes_hide_nothing() {
        check(
            "url = \"postgres:\\u002f/user:hunter2@host\"\nurl2 = 1",
            expect![[r#"
            url = "*********************************"
            url2 = 1"#]],
        );
        check(
            "url = \"\"\"postgres://user:\\\n  hunter2@host\"\"\"\nrecords = 1",
            expect![[r#"
            url = """postgres://******
            **************"""
            records = 1"#]],
        );
        check("url = \"user:hunter2@host\"", expect![[r#"url = "*****************""#]]);
        check("url = = \"postgres://user:hunter2@host", expect![[r#"url = = "postgres://*****************"#]]);
    }
}
