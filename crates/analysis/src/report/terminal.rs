//! The report for a terminal: plain text of a given width, coloured on request.
//!
//! Colour only repeats what the words say. A program that writes to something that may not be a terminal requests
//! colour and lets `anstream` remove it again.

use anstyle::{AnsiColor, Style};

use super::{
    summary::{self, Summary},
    table,
    view::{self, Block, Claim, Form, Note, Tone},
    words,
};
use crate::Analysis;

/// Smallest width of a page that a report is laid out for, columns.
pub const WIDTH_MIN: usize = 60;

/// Layout options of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The amount of detail.
    pub form: Form,
    /// Width of the page, columns; a value below [`WIDTH_MIN`] means [`WIDTH_MIN`].
    pub width: usize,
    /// True to add colours as ANSI escapes.
    pub colour: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { form: Form::Short, width: 100, colour: false }
    }
}

/// The report on `analysis`, ending with a line break.
pub fn render(analysis: &Analysis, options: Options) -> String {
    laid_out(&view::document(analysis, options.form), options)
}

/// `blocks` on a page, ending with a line break.
pub(super) fn laid_out(blocks: &[Block], options: Options) -> String {
    let mut page = Page { width: options.width.max(WIDTH_MIN), colour: options.colour, text: String::new() };
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 && apart(&blocks[index - 1], block) {
            page.push("");
        }
        page.block(block);
    }
    page.text
}

/// True if an empty line belongs between two blocks: not below a heading, nor if the second continues the first.
fn apart(before: &Block, after: &Block) -> bool {
    match (before, after) {
        (_, Block::Table(_) | Block::Heading(..)) => true,
        (Block::Heading(..), _) | (_, Block::Verbatim(_)) => false,
        _ => true,
    }
}

/// Indent of everything below a heading, columns.
const INDENT: usize = 2;

struct Page {
    width: usize,
    colour: bool,
    text: String,
}

impl Page {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(level, text) => self.heading(*level, text),
            Block::Paragraph(text) => self.wrapped("", text, Tone::Normal),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => {
                let lines = table::lines(table, self.width - INDENT, &|text, tone| self.paint(text, tone));
                lines.iter().for_each(|line| self.line(line));
            }
            Block::Claims(claims) => claims.iter().for_each(|claim| self.claim(claim)),
            Block::Summary(cells) => self.summary(cells),
            Block::Verbatim(lines) => {
                for line in lines {
                    self.line(&format!("  {}", table::cut(line, self.width - INDENT - 2)));
                }
            }
            Block::Notes(notes) => notes.iter().for_each(|note| self.note(note)),
        }
    }

    fn heading(&mut self, level: u8, text: &str) {
        let text = table::cut(text, self.width - INDENT);
        match level {
            1 => self.push(&self.paint(&text, Tone::Strong)),
            2 => {
                let rule = "─".repeat(self.width.saturating_sub(table::width(&text) + 1));
                self.push(&format!("{} {}", self.paint(&text, Tone::Strong), self.paint(&rule, Tone::Faint)));
            }
            _ => self.push(&format!("  {}", self.paint(&text, Tone::Strong))),
        }
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        let labels = facts.iter().map(|(label, _)| table::width(label)).max().unwrap_or(0).min(self.width / 3);
        for (label, text) in facts {
            self.wrapped(&format!("{}  ", table::pad(&table::cut(label, labels), labels)), text, Tone::Normal);
        }
    }

    fn note(&mut self, note: &Note) {
        self.wrapped(&format!("{} ", note.mark), &note.text, note.tone);
    }

    fn summary(&mut self, cells: &[Summary]) {
        let ends = summary::ends(cells);
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.push("");
            }
            self.wrapped("", &cell.cell, Tone::Normal);
            let room = self.width - INDENT;
            let lines = summary::lines(&cell.rows, room, ends, &|text, tone| self.paint(text, tone));
            lines.iter().for_each(|line| self.line(line));
        }
    }

    /// One line for the outcome, two for what the first check saw; text that does not fit is in the other reports.
    fn claim(&mut self, claim: &Claim) {
        let outcome = self.paint(&table::pad(&format!("{} {}", claim.mark, claim.word), 13), claim.tone);
        let when = if claim.when.is_empty() { String::new() } else { format!(" · {}", claim.when) };
        let lines = table::wrap(&format!("{}{when}", claim.claim), self.width - INDENT - 15);
        for (index, line) in lines.iter().enumerate() {
            let before = if index == 0 { outcome.clone() } else { " ".repeat(13) };
            self.line(&format!("{before}  {line}"));
        }
        if let Some(seen) = claim.seen.first() {
            for (label, quotation) in [("protected", &seen.protected), ("control", &seen.control)] {
                if !quotation.is_empty() {
                    let quotation = table::cut(quotation, self.width - INDENT - 26);
                    let line = format!("{}{label:9}  {quotation}", " ".repeat(15));
                    self.line(&self.paint(&line, Tone::Faint));
                }
            }
        }
        if claim.seen.len() > 1 {
            let others = words::plural(claim.seen.len() as u64 - 1, "other look");
            let line = format!("{}and {others}, quoted in the Markdown and JSON reports", " ".repeat(15));
            self.line(&self.paint(&line, Tone::Faint));
        }
    }

    /// `text` after `label`, with further lines indented by the label's width.
    fn wrapped(&mut self, label: &str, text: &str, tone: Tone) {
        let indent = table::width(label);
        for (index, line) in table::wrap(text, self.width - INDENT - indent).iter().enumerate() {
            if index == 0 {
                self.line(&self.paint(&format!("{label}{line}"), tone));
            } else {
                self.line(&self.paint(&format!("{}{line}", " ".repeat(indent)), tone));
            }
        }
    }

    fn line(&mut self, text: &str) {
        if text.is_empty() {
            self.push("");
        } else {
            self.push(&format!("{}{text}", " ".repeat(INDENT)));
        }
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        let style = style(tone);
        if self.colour && style != Style::new() && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Normal => Style::new(),
        Tone::Strong => Style::new().bold(),
        Tone::Faint => Style::new().dimmed(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Caution => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{ExpectFile, expect, expect_file};

    use super::*;
    use crate::report::sample;

    fn check(analysis: &Analysis, form: Form, expected: ExpectFile) {
        expected.assert_eq(&render(analysis, Options { form, ..Options::default() }));
    }

    #[test]
    fn a_full_cell() {
        check(&sample::full(), Form::Answer, expect_file!["golden/full.answer.txt"]);
        check(&sample::full(), Form::Long, expect_file!["golden/full.long.txt"]);
    }

    #[test]
    fn a_narrow_page() {
        let text = render(&sample::full(), Options { width: 80, ..Options::default() });
        expect_file!["golden/full.narrow.txt"].assert_eq(&text);
    }

    #[test]
    fn a_plain_arm_again_and_several_cells() {
        check(&sample::controlled(), Form::Answer, expect_file!["golden/controlled.answer.txt"]);
        check(&sample::controlled(), Form::Long, expect_file!["golden/controlled.long.txt"]);
    }

    #[test]
    fn two_versions() {
        check(&sample::versions(), Form::Answer, expect_file!["golden/versions.answer.txt"]);
    }

    #[test]
    fn an_open_loop() {
        check(&sample::open_loop(), Form::Answer, expect_file!["golden/open_loop.answer.txt"]);
        check(&sample::open_loop(), Form::Long, expect_file!["golden/open_loop.long.txt"]);
    }

    #[test]
    fn a_failed_cell() {
        check(&sample::failed(), Form::Answer, expect_file!["golden/failed.answer.txt"]);
    }

    #[test]
    fn no_cells() {
        check(&sample::empty(), Form::Answer, expect_file!["golden/empty.answer.txt"]);
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for analysis in sample::all() {
            for form in [Form::Answer, Form::Short, Form::Long] {
                for width in WIDTH_MIN..200 {
                    let text = render(&analysis, Options { form, width, colour: false });
                    for line in text.lines() {
                        assert!(table::width(line) <= width, "{width}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn colour_changes_no_word_and_no_blank() {
        for analysis in sample::all() {
            let plain = render(&analysis, Options { form: Form::Long, ..Options::default() });
            let coloured = render(&analysis, Options { form: Form::Long, colour: true, ..Options::default() });
            assert_ne!(plain, coloured);
            assert_eq!(plain, without_escapes(&coloured));
        }
    }

    #[test]
    fn colour_follows_the_meaning() {
        let text = render(&sample::full(), Options { colour: true, ..Options::default() });
        let first = |line: &str| line.split("  ").filter(|part| !part.is_empty()).take(3).collect::<Vec<_>>().join("|");
        let rows: Vec<String> = text.lines().skip(12).take(7).map(first).collect();
        expect![[r#"
            ESC[1marmESC[0m|ESC[1mproofESC[0m|ESC[1mnet time per opESC[0m
            ESC[2mn = 30ESC[0m
            ESC[1mplainESC[0m|baseline| 38.4 µs
            ESC[1mtlsESC[0m|ESC[32mprovenESC[0m|+40.5 %
             +15.6 µs|[14.9, 16.3]
            ESC[1mauditESC[0m|ESC[33mUNPROVENESC[0m| ESC[2m(+12.9 %
            ESC[2m (+5.0 µs|[3.2, 6.8])ESC[0m"#]]
        .assert_eq(&rows.join("\n").replace('\u{1b}', "ESC"));
    }

    #[test]
    fn what_a_server_says_cannot_steer_the_terminal() {
        let text = render(&sample::full(), Options { form: Form::Long, ..Options::default() });
        assert!(!text.contains('\u{1b}'));
        let quotation = text.lines().find(|line| line.contains("T1the")).unwrap_or_default().trim();
        expect![[r#"protected  canary "T1the-7f3a\u{1b}[31m" at 0x4f2200 of base/16384/16401"#]].assert_eq(quotation);
    }

    fn without_escapes(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
    }
}
