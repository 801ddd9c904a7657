//! Reads the text of a Java `.properties` file, the form in which YCSB workloads are written.
//!
//! The rules are those of `java.util.Properties.load(Reader)`: comments, three kinds of separator, lines that continue
//! after a backslash, escapes. A file that is not UTF-8 is read as ISO 8859-1, as YCSB reads every file. From a single
//! backslash at the end of the text Java sometimes makes a property without a name; here it is ignored. The meaning of
//! the properties is in [`super::config`].

use std::{collections::BTreeMap, iter::Peekable, str::Chars};

use tithe_model::catalogue::{BYTE_ORDER_MARK, LineProblem, Properties, PropertyFile, PropertyProblem};

/// As [`parse`], for the catalogue: problems come with the number of their line, from 1.
///
/// # Errors
/// As [`parse`]; a file in UTF-16.
pub fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = &decode(file.bytes).map_err(|problem| vec![problem])?;
    let line_of = |key: &str| text.lines().position(|line| line.contains(key)).map_or(1, |line| line + 1);
    let located = |(key, problem, help): PropertyProblem| (line_of(&key), problem, help);
    parse(text).map_err(|problems| problems.into_iter().map(located).collect())
}

/// The text of a file: UTF-8, or else ISO 8859-1, in which every byte is a character. A byte order mark is ignored.
fn decode(bytes: &[u8]) -> Result<String, LineProblem> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err((1, "is UTF-16, which YCSB does not read".to_owned(), "save the file as UTF-8".to_owned()));
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let latin = || bytes.iter().map(|&byte| char::from(byte)).collect();
    Ok(std::str::from_utf8(bytes).map_or_else(|_| latin(), str::to_owned))
}

/// Key and value of every property in `text`; of two with the same key the later one is used.
///
/// # Errors
/// Every malformed `\u` escape; Java refuses the whole file because of one.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, Vec<PropertyProblem>> {
    let mut properties = BTreeMap::new();
    let mut problems = Vec::new();
    for line in logical_lines(text) {
        let (key, value) = split(&line);
        match (unescape(key), unescape(value)) {
            (Ok(key), Ok(value)) => {
                properties.insert(key, value);
            }
            (Err(problem), _) | (_, Err(problem)) => problems.push((
                key.to_owned(),
                problem,
                "write \\u and four hexadecimal digits, a character above \\uffff as a pair of them".to_owned(),
            )),
        }
    }
    if problems.is_empty() { Ok(properties) } else { Err(problems) }
}

/// The white space of a properties file within a line.
const BLANK: [char; 3] = [' ', '\t', '\x0c'];

/// Lines without comments, blank lines and leading blanks, with continuation lines joined. Escapes remain.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for natural in natural_lines(text) {
        let rest = natural.trim_start_matches(BLANK);
        if current.is_empty() && (rest.starts_with(['#', '!']) || rest.is_empty()) {
            // After a line of nothing but a backslash there can be a comment too, as in Java.
            continue;
        }
        let continues = ends_with_escape(rest);
        current.push_str(if continues { &rest[..rest.len() - 1] } else { rest });
        if !continues {
            lines.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
    lines
}

/// The lines as they are in the file, ended by a line feed, a carriage return or both.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// True if an odd number of backslashes ends `line`: the last of them is not itself escaped.
fn ends_with_escape(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Key and value of a logical line: the first unescaped `=`, `:` or blank ends the key, and blanks around one `=` or
/// `:` are ignored.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|character| {
        let ends = !escaped && (BLANK.contains(&character) || character == '=' || character == ':');
        escaped = character == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANK);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(BLANK))
}

/// Replaces escapes; a backslash before any other character is removed.
fn unescape(text: &str) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            result.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => result.push('\t'),
            Some('n') => result.push('\n'),
            Some('r') => result.push('\r'),
            Some('f') => result.push('\x0c'),
            Some('u') => result.push(unicode(&mut characters)?),
            Some(other) => result.push(other),
            None => {}
        }
    }
    Ok(result)
}

/// The character of a `\u` escape whose `\u` has been read, with a second escape if the first is half a pair.
fn unicode(characters: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    let mut units = vec![code_unit(characters)?];
    if (0xD800..0xDC00).contains(&units[0]) && characters.next_if_eq(&'\\').is_some() {
        if characters.next() != Some('u') {
            return Err("half a surrogate pair".to_owned());
        }
        units.push(code_unit(characters)?);
    }
    let mut decoded = char::decode_utf16(units);
    match decoded.next() {
        Some(Ok(character)) => Ok(character),
        _ => Err("half a surrogate pair".to_owned()),
    }
}

fn code_unit(characters: &mut Peekable<Chars<'_>>) -> Result<u16, String> {
    let digits: String = characters.take(4).collect();
    let all_hexadecimal = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u16::from_str_radix(&digits, 16) {
        Ok(unit) if all_hexadecimal => Ok(unit),
        _ => Err(format!("malformed escape \"\\u{digits}\"")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&format!("{:?}", parse(text)));
    }

    #[test]
    fn separators_comments_and_blank_lines() {
        check(
            "# comment\\\n  ! another\n\na=1\nb : 2 \nc\t3\n  d  =  = 4\ne\nf=\n:g\n",
            &expect![[r#"Ok({"": "g", "a": "1", "b": "2 ", "c": "3", "d": "= 4", "e": "", "f": ""})"#]],
        );
    }

    #[test]
    fn lines_go_on_after_an_odd_number_of_backslashes() {
        check(
            "a = one \\\n    two\\\r\n\tthree\nb = c:\\\\\nd = e\\\\\\\n f\nlast = g\\",
            &expect![[r#"Ok({"a": "one twothree", "b": "c:\\", "d": "e\\f", "last": "g"})"#]],
        );
    }

    #[test]
    fn escapes() {
        check(
            "a\\ b\\=c\\:d = \\t\\n\\r\\f\\q\\\\\\u0041\\ud83d\\ude00",
            &expect![[r#"Ok({"a b=c:d": "\t\n\r\u{c}q\\A😀"})"#]],
        );
    }

    #[test]
    fn every_malformed_escape_is_named() {
        check(
            "a=\\u12\nok=1\nb=\\ud83d\nc=\\u+123",
            &expect![[
                r#"Err([("a", "malformed escape \"\\u12\"", "write \\u and four hexadecimal digits, a character above \\uffff as a pair of them"), ("b", "half a surrogate pair", "write \\u and four hexadecimal digits, a character above \\uffff as a pair of them"), ("c", "malformed escape \"\\u+123\"", "write \\u and four hexadecimal digits, a character above \\uffff as a pair of them")])"#
            ]],
        );
    }

    /// As written by Windows editors, with comments in other languages than English.
    #[test]
    fn files_are_read_in_the_encodings_that_people_have() {
        let one =
            |bytes| format!("{:?}", read(&PropertyFile { name: "a", weight: None, number: 1, bytes, protocol: None }));
        expect![[r#"Ok({"readproportion": "1.0", "recordcount": "2000"})"#]]
            .assert_eq(&one(b"\xef\xbb\xbf# by Windows\r\nrecordcount=2000\r\nreadproportion=1.0\r\n"));
        expect![[r#"Ok({"recordcount": "2000"})"#]].assert_eq(&one(b"\xef\xbb\xbfrecordcount=2000\r"));
        expect![[r#"Ok({"recordcount": "2000"})"#]].assert_eq(&one(b"# d\xe9j\xe0 vu\nrecordcount=2000\n"));
        expect![[r#"Ok({"table": "café"})"#]].assert_eq(&one(b"table=caf\xe9"));
        expect![[r#"Ok({"table": "café"})"#]].assert_eq(&one("table=café".as_bytes()));
        expect![[r#"Err([(1, "is UTF-16, which YCSB does not read", "save the file as UTF-8")])"#]]
            .assert_eq(&one(b"\xff\xfer\0e\0"));
    }

    /// Writes `text` so that it reads back unchanged, in one of the ways that Java allows for each character.
    fn escape(text: &str, as_unicode: bool) -> String {
        let mut result = String::new();
        for character in text.chars() {
            if as_unicode || (!character.is_ascii_graphic() && !character.is_alphanumeric()) {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    result.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                if !character.is_alphanumeric() {
                    result.push('\\');
                }
                result.push(character);
            }
        }
        result
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn texts_of_special_characters_are_read_or_refused(text in "[\\\\u0a=: #!\\r\\n\\t\u{0c}]{0,60}") {
            let lines = text.split(['\n', '\r']).count();
            if let Ok(properties) = parse(&text) {
                prop_assert!(properties.len() <= lines);
            }
        }

        #[test]
        fn escaped_properties_read_back(
            properties in prop::collection::btree_map(".{0,12}", "(?s).{0,20}", 0..6),
            separator in prop::sample::select(vec!["=", ":", " ", " = ", "\t:\t", "=\\\n  "]),
            end in prop::sample::select(vec!["\n", "\r", "\r\n", "\n# comment\n", "\n\n"]),
            as_unicode: bool,
        ) {
            let mut text = String::new();
            for (key, value) in &properties {
                text.push_str(&escape(key, as_unicode));
                // A line without key and sign would be blank.
                text.push_str(if key.is_empty() || value.is_empty() { "=" } else { separator });
                text.push_str(&escape(value, as_unicode));
                text.push_str(end);
            }
            prop_assert_eq!(parse(&text), Ok(properties));
        }
    }
}
