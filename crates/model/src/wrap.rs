//! Text broken into lines at blanks, with a prefix for each line.

/// `text` in lines of at most `columns`, measured by `width`, if no word is longer. The first line begins with the
/// first of `leads`, all others with the second. Never an empty line.
pub fn wrapped(text: &str, leads: [&str; 2], columns: usize, width: impl Fn(&str) -> usize) -> Vec<String> {
    let [first, further] = leads;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            last => {
                let lead = if last.is_none() { first } else { further };
                lines.push(format!("{lead}{word}"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fill_lines_behind_their_leads_and_long_ones_stand_alone() {
        let lines = |text| wrapped(text, ["* ", "  "], 10, |text| text.chars().count());
        assert_eq!(
            lines("one two three  fourteenthirteen five"),
            ["* one two", "  three", "  fourteenthirteen", "  five"]
        );
        assert_eq!(lines(" \n"), Vec::<String>::new());
    }
}
