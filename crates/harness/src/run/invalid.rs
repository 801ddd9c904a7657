//! When to stop spending the budget of a cell: its frames are invalid, one after the other.

use tithe_machine::fault::Fault;
use tithe_model::invalid::Invalid;

/// Invalid frames in a row, for one reason, after which a cell is given up.
const MOST: u32 = 3;
/// Invalid frames in a row, for any reasons, after which a cell is given up.
const MOST_OF_ANY: u32 = 8;

/// The invalid frames at the end of the measured ones, as far as their reasons are the same.
#[derive(Debug, Default)]
pub(super) struct InvalidInARow {
    reason: String,
    count: u32,
    /// With any reasons.
    in_all: u32,
}

impl InvalidInARow {
    /// Adds the next frame, and why it is invalid.
    ///
    /// # Errors
    /// The reason, once three frames in a row have had it, or eight any reason. A disk that hangs for some seconds does
    /// not end the cell. Neither does a machine that is too busy to be watched or to run its agents: [such
    /// reasons](Invalid::is_of_a_busy_machine) count only among the eight.
    pub(super) fn add(&mut self, invalid: Option<&Invalid>) -> Result<(), Fault> {
        let reason = invalid.map_or(String::new(), |why| without_numbers(&why.to_string()));
        self.count = match invalid {
            None => 0,
            Some(_) if self.reason == reason => self.count + 1,
            Some(_) => 1,
        };
        self.reason = reason;
        self.in_all = if invalid.is_some() { self.in_all + 1 } else { 0 };
        match invalid {
            Some(why) if self.count >= MOST && !why.is_of_a_busy_machine() => {
                Err(Fault::Machine(format!("{MOST} frames in a row were invalid for the same reason: {why}")))
            }
            Some(why) if self.in_all >= MOST_OF_ANY => {
                Err(Fault::Machine(format!("{MOST_OF_ANY} frames in a row were invalid, the last because of: {why}")))
            }
            _ => Ok(()),
        }
    }
}

/// `text` with all numbers made equal: the same reason may have other counts, ports and times.
fn without_numbers(text: &str) -> String {
    let mut same = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if !letter.is_ascii_digit() => same.push(letter),
            _ if same.ends_with('0') => {}
            _ => same.push('0'),
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `frames` are measured, and the reason for which the cell then ends.
    fn check(frames: &[Option<&str>]) -> (usize, Option<String>) {
        let mut invalid = InvalidInARow::default();
        for (number, frame) in frames.iter().enumerate() {
            if let Err(fault) = invalid.add(frame.map(Invalid::read).as_ref()) {
                return (number + 1, Some(fault.to_string()));
            }
        }
        (frames.len(), None)
    }

    #[test]
    fn three_in_a_row_for_one_reason_are_enough() {
        let told = |words: &str| Some(format!("3 frames in a row were invalid for the same reason: {words}"));
        let (late, other) = (Some("arm 1: 17 of 20 late"), Some("arm 1: wrong answer"));
        assert_eq!(check(&[late, late, late, late]), (3, told("arm 1: 17 of 20 late")));
        let numbers = [late, Some("arm 2: 9 of 2000 late"), Some("arm 0: 1 of 1 late")];
        assert_eq!(check(&numbers), (3, told("arm 0: 1 of 1 late")));
        assert_eq!(check(&[late, late, None, late, late]), (5, None));
        assert_eq!(check(&[late, late, other, late, late, other]), (6, None));
        assert_eq!(check(&[None, None, None, None]), (4, None));
        let refused = Some("arm 1: server: no operation succeeded");
        assert_eq!(check(&[refused; 4]).0, 3, "a server's words are no busy machine's");
        let unwatched = Some("what servers used was not read in time in any slot");
        assert_eq!(check(&[unwatched; 4]), (4, None));
        let badly_known = Some("the clock of agent rack1 is known within 1606 µs, and 1601 µs is the most");
        assert_eq!(check(&[badly_known; 4]), (4, None));
        let seven = [Some("arm 1: no operation succeeded"); 7];
        assert_eq!(check(&[&seven[..], &[None], &seven[..]].concat()), (15, None));
        assert_eq!(check(&[&seven[..], &seven[..1]].concat()).0, 8);
        let mixed = [late, other].repeat(5);
        let words = "8 frames in a row were invalid, the last because of: arm 1: wrong answer";
        assert_eq!(check(&mixed), (8, Some(words.to_owned())));
        assert_eq!(check(&[&mixed[..7], &[None], &mixed[..7]].concat()), (15, None));
    }
}
