//! The layout of a document: one estimate, level, finding or moment per line; only long values are indented.
//!
//! This is half as large as a line for every figure, and can still be read and compared line by line.

/// Bytes up to which a list or an object is on one line, including its indent and without its name. An estimate with
/// all its figures has some 450.
const WIDTH: usize = 600;

/// The JSON text `compact`, which has no spaces between its parts, broken into lines, ending with a line break.
pub(super) fn laid_out(compact: &str) -> String {
    let mut lines = String::with_capacity(compact.len() + compact.len() / 8);
    let (mut rest, mut depth) = (compact, 0);
    while let Some(first) = rest.chars().next() {
        let whole = match first {
            '"' => text_length(rest),
            '{' | '[' => length_within(rest, WIDTH.saturating_sub(2 * depth)),
            _ => None,
        };
        let (part, after) = rest.split_at(whole.unwrap_or(first.len_utf8()));
        match first {
            '{' | '[' if whole.is_none() => {
                depth += 1;
                lines.push(first);
                break_line(&mut lines, depth);
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut lines, depth);
                lines.push(first);
            }
            ',' => {
                lines.push(first);
                break_line(&mut lines, depth);
            }
            ':' => lines.push_str(": "),
            _ => lines.push_str(part),
        }
        rest = after;
    }
    lines.push('\n');
    lines
}

fn break_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    lines.extend(std::iter::repeat_n("  ", depth));
}

/// Length in bytes of the JSON string at the start of `json`, both quotes included; `None` if it does not end.
fn text_length(json: &str) -> Option<usize> {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map(|end| end + 2)
}

/// Length in bytes of the list or object at the start of `json`; `None` if it is longer than `most`.
fn length_within(json: &str, most: usize) -> Option<usize> {
    let (mut at, mut open) = (0, 0);
    while at < most {
        match json.as_bytes().get(at)? {
            b'"' => {
                at += text_length(&json[at..])?;
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open == 1 => return Some(at + 1),
            b'}' | b']' => open -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn short_parts_stand_on_a_line() {
        let long = format!(r#"{{"a\\":[1,"}}\"",{{}}],"b":["{}",[],null],"é":{{"c":-1.5e3}}}}"#, "x".repeat(WIDTH));
        let told = laid_out(&long);
        expect![[r#"
            {
              "a\\": [1,"}\"",{}],
              "b": [
                "XS",
                [],
                null
              ],
              "é": {"c":-1.5e3}
            }
        "#]]
        .assert_eq(&told.replace(&"x".repeat(WIDTH), "XS"));
        let values = [&long, &told].map(|text| serde_json::from_str::<serde_json::Value>(text).expect("JSON"));
        assert_eq!(values[0], values[1]);
    }
}
