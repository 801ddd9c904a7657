//! The differences in configuration that a protection makes.

use tithe_model::record::ArmFacts;

/// The lines that only the plain arm has (with `-`), then those that only the protected arm has (with `+`).
pub(super) fn difference(plain: &ArmFacts, protected: &ArmFacts) -> Vec<String> {
    let only = |here: &ArmFacts, there: &ArmFacts, sign: char| -> Vec<String> {
        let lines = here.configuration.iter().filter(|line| !there.configuration.contains(line));
        lines.map(|line| format!("{sign}{line}")).collect()
    };
    [only(plain, protected, '-'), only(protected, plain, '+')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_lines_are_left_out() {
        let facts = |lines: &[&str]| ArmFacts {
            configuration: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..ArmFacts::default()
        };
        let (plain, protected) = (facts(&["port = 1", "ssl = off"]), facts(&["ssl = on", "port = 1", "cipher = x"]));
        assert_eq!(difference(&plain, &protected), ["-ssl = off", "+ssl = on", "+cipher = x"]);
        assert_eq!(difference(&plain, &plain), [""; 0]);
    }
}
