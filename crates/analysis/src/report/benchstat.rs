//! The costs as columns like those of Go's benchstat: name, plain, protected, delta.
//!
//! As in benchstat, `~` means that no difference was found or that it is too noisy to tell. Additions to benchstat's
//! format: the interval of the delta, a word if the protection was not proven to be on or the set-up is not symmetric,
//! and a mark for an A/A arm.

use tithe_model::direction::turns;

use super::{number, table};
use crate::{Analysis, ArmAnalysis, Estimate, Outcome, Proof};

/// The costs that have levels, one per line, ending with a line break.
pub fn render(analysis: &Analysis) -> String {
    let mut rows = vec![["name", "plain", "protected", "delta", ""].map(str::to_owned)];
    for cell in &analysis.cells {
        for arm in &cell.arms {
            for estimate in &arm.estimates {
                let Some((plain, protected)) = estimate.levels else { continue };
                let name = format!("{}/{}/{}", cell.id, arm.name, estimate.name);
                let [plain, protected] =
                    [plain, protected].map(|level| number::amount(level, &estimate.unit).replace(' ', ""));
                rows.push([one_word(&name), plain, protected, delta(estimate), about(estimate, arm)]);
            }
        }
    }
    let width = |column: usize| rows.iter().map(|row| table::width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 5]| {
        let parts: Vec<String> = row.iter().zip(&widths).map(|(text, width)| table::pad(text, *width)).collect();
        format!("{}  {}", parts.join("  "), row[4]).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Scripts split lines at spaces.
fn one_word(name: &str) -> String {
    let apart = |letter: char| letter.is_whitespace() || letter.is_control() || turns(letter);
    name.chars().map(|letter| if apart(letter) { '-' } else { letter }).collect()
}

fn delta(estimate: &Estimate) -> String {
    match estimate.verdict {
        Outcome::Costs | Outcome::Gains => number::cost(&estimate.change(), estimate.verdict).lead,
        Outcome::NoneFound | Outcome::TooNoisy => "~".to_owned(),
    }
}

fn about(estimate: &Estimate, arm: &ArmAnalysis) -> String {
    let figure = number::cost(&estimate.change(), estimate.verdict);
    let asymmetric = (!estimate.is_symmetric()).then_some("set-up not symmetric");
    let words: Vec<&str> = what_it_is(arm).into_iter().chain(asymmetric).collect();
    let known = format!("({}, n={})", figure.rest, estimate.count);
    if words.is_empty() { known } else { format!("{known} {}", words.join(", ")) }
}

/// A word for an arm without a proven protection.
fn what_it_is(arm: &ArmAnalysis) -> Option<&'static str> {
    match arm.proof {
        _ if arm.aa => Some("A/A, the plain arm again: its true cost is zero"),
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => None,
        Proof::Unproven(_) => Some("unproven"),
        Proof::ToldByProvider(_) => Some("reported by the provider"),
        Proof::Disproven(_) => Some("disproven"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::{Flag, report::sample};

    #[test]
    fn a_line_for_each_cost() {
        expect_file!["golden/full.benchstat.txt"].assert_eq(&render(&sample::full()));
        expect_file!["golden/controlled.benchstat.txt"].assert_eq(&render(&sample::controlled()));
        assert_eq!(render(&sample::empty()).lines().count(), 1);
    }

    #[test]
    fn a_set_up_that_is_not_symmetric_is_named() {
        let mut analysis = sample::full();
        for arm in &mut analysis.cells[0].arms[1..3] {
            arm.estimates[0].flags.push(Flag::Asymmetric);
        }
        let text = render(&analysis);
        let line = |name: &str| {
            let found = text.lines().find(|line| line.split(' ').next() == Some(name));
            found.expect("a line").to_owned()
        };
        assert!(line("c/in-memory/tls/net").ends_with(", n=30) set-up not symmetric"), "{text}");
        assert!(line("c/in-memory/audit/net").ends_with(") unproven, set-up not symmetric"), "{text}");
        assert!(line("c/in-memory/tls/cpu").ends_with(", n=30)"), "{text}");
    }
}
