//! Values that are longer than many logs keep, with a mark at either end: a log that truncates them only has the first
//! mark.

use tithe_machine::secret::hex;

/// The content of fields that are not long.
pub const SHORT: &str = "marked";

/// Length of a long value in bytes: more than the default of `server_audit_query_log_limit`, and more than common
/// limits of other logs.
const LENGTH: usize = 4000;
/// Characters that loggers quote or escape, or may read as the end of something.
const UNUSUAL: &str = "'\",;|%s \\ -- */ ";

/// A long value marked by `marker`.
pub fn value(marker: &str) -> String {
    let [begin, end] = ends(marker);
    let filler = UNUSUAL.chars().cycle().take(LENGTH.saturating_sub(begin.len() + end.len()));
    format!("{begin}{}{end}", filler.collect::<String>())
}

/// The first and the last characters of its text.
fn ends(marker: &str) -> [String; 2] {
    [format!("begin-of-{marker}"), format!("end-of-value-{marker}")]
}

/// True if the beginning of some value is in `text`.
pub fn begins(text: &str, marker: &str) -> bool {
    lines_with(text, &ends(marker)[0]) > 0
}

/// What happened to `count` long values in a log that gained `text`, if it has values at all; `None` if all of them are
/// complete.
pub fn lost(text: &str, marker: &str, count: usize) -> Option<String> {
    let [begun, whole] = ends(marker).map(|end| lines_with(text, &end));
    if whole >= count || begun == 0 && lines_with(text, SHORT) == 0 {
        return None;
    }
    let (cut, left_out) = (begun.saturating_sub(whole), count.saturating_sub(begun));
    let mut words = format!("of {count} values of {LENGTH} bytes {whole} are whole in the log");
    for (number, what) in [(cut, "are cut"), (left_out, "are left out")] {
        if number > 0 {
            words.push_str(&format!(", {number} {what}"));
        }
    }
    Some(words)
}

/// Lines of `text` that hold `mark` as text or, as PostgreSQL writes bytes, in hexadecimal digits.
fn lines_with(text: &str, mark: &str) -> usize {
    let digits = hex(mark.as_bytes());
    text.lines().filter(|line| line.contains(mark) || line.contains(&digits)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_or_left_out_is_told_from_what_is_whole() {
        let long = value("audit-1-g-0");
        assert_eq!(long.len(), LENGTH);
        let lost = |lines: &[&str]| lost(&lines.join("\n"), "audit-1-g", 2);
        let (cut, digits) = (&long[..60], hex(long.as_bytes()));
        assert_eq!(lost(&[&long, &digits]), None);
        assert_eq!(lost(&[&long, cut]).as_deref(), Some("of 2 values of 4000 bytes 1 are whole in the log, 1 are cut"));
        assert_eq!(
            lost(&[&digits[..100], "x = marked"]).as_deref(),
            Some("of 2 values of 4000 bytes 0 are whole in the log, 1 are cut, 1 are left out")
        );
        assert_eq!(
            lost(&["x = marked"]).as_deref(),
            Some("of 2 values of 4000 bytes 0 are whole in the log, 2 are left out")
        );
        // A log without any values, or with those of another check.
        assert_eq!(lost(&["INSERT INTO t VALUES (?)", &value("audit-2-g-0")]), None);
        assert!(begins(cut, "audit-1-g") && !begins(cut, "audit-2-g"));
    }
}
