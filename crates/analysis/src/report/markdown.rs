//! The report as GitHub-flavoured Markdown, for a pull request.

use super::{
    summary::{Row, Summary},
    view::{self, Block, Claim, Entry, Form, Note, Table, Tone},
};
use crate::Analysis;

/// The report on `analysis`, ending with a line break. Quotations are never cut.
pub fn render(analysis: &Analysis, form: Form) -> String {
    laid_out(&view::document(analysis, form))
}

/// `blocks` one below the other, ending with a line break.
pub(super) fn laid_out(blocks: &[Block]) -> String {
    let blocks: Vec<String> = blocks.iter().map(block).collect();
    format!("{}\n", blocks.join("\n\n"))
}

fn block(block: &Block) -> String {
    match block {
        // A report is usually pasted below another title.
        Block::Heading(level, text) => format!("{} {}", "#".repeat(usize::from(*level) + 1), escape(text)),
        Block::Paragraph(text) => escape(text),
        Block::Facts(facts) => lines(facts.iter().map(|(label, text)| match label.as_str() {
            "" => format!("  - {}", escape(text)),
            label => format!("- **{}**: {}", escape(label), escape(text)),
        })),
        Block::Table(table) => self::table(table),
        Block::Claims(claims) => lines(claims.iter().map(claim)),
        Block::Summary(cells) => cells.iter().map(summary).collect::<Vec<_>>().join("\n\n"),
        Block::Verbatim(verbatim) => {
            let fence = "`".repeat(longest_ticks(&verbatim.join("\n")).max(2) + 1);
            format!("{fence}diff\n{}\n{fence}", verbatim.join("\n"))
        }
        Block::Notes(notes) => lines(notes.iter().map(note)),
    }
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

fn table(table: &Table) -> String {
    let heading = table.columns.iter().map(|column| match column.note.as_str() {
        "" => escape(&column.title),
        note => format!("{} ({})", escape(&column.title), escape(note)),
    });
    let ruler = table.columns.iter().map(|column| if column.figures { "---:" } else { "---" }.to_owned());
    let rows = table.rows.iter().map(|entries| row(entries.iter().map(entry)));
    lines([row(heading), row(ruler)].into_iter().chain(rows))
}

/// The lines of one cell as a table.
fn summary(cell: &Summary) -> String {
    let of = |line: &Row| {
        let Row { mark, arm, cost, adds, words, .. } = line;
        let cost = format!("{} {}", cost.0, cost.1);
        row([format!("{mark} {}", escape(arm)), escape(&cost), escape(adds), escape(words)].into_iter())
    };
    let head = [
        row(["arm", "cost", "adds", ""].map(str::to_owned).into_iter()),
        row(["---", "---:", "---:", "---"].map(str::to_owned).into_iter()),
    ];
    format!("{}\n\n{}", escape(&cell.cell), lines(head.into_iter().chain(cell.rows.iter().map(of))))
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn entry(entry: &Entry) -> String {
    let beside = match entry.beside.0.trim() {
        "" => String::new(),
        lead => format!("; {lead} {}", entry.beside.1),
    };
    let text = format!("{} {}{beside}", entry.lead.trim(), entry.rest);
    match (text.trim(), entry.tone) {
        ("", _) => String::new(),
        (text, Tone::Strong | Tone::Bad | Tone::Caution) => format!("**{}**", escape(text)),
        (text, Tone::Faint) => format!("*{}*", escape(text)),
        (text, Tone::Normal | Tone::Good) => escape(text),
    }
}

fn claim(claim: &Claim) -> String {
    let when = if claim.when.is_empty() { String::new() } else { format!(" · {}", claim.when) };
    let mut text = format!("- {} **{}**: {}{when}", claim.mark, claim.word, escape(&claim.claim));
    for seen in &claim.seen {
        for (label, quotation) in [("protected", &seen.protected), ("control", &seen.control)] {
            if !quotation.is_empty() {
                text.push_str(&format!("\n  - {label}: {}", code(quotation)));
            }
        }
    }
    text
}

fn note(note: &Note) -> String {
    let mark = if note.tone == Tone::Caution && note.mark == "!" { "⚠" } else { &note.mark };
    format!("- {} {}", escape(mark), escape(&note.text))
}

/// `text` as inline code, for any number of backticks in it (CommonMark 0.31, section 6.1).
fn code(text: &str) -> String {
    let fence = "`".repeat(longest_ticks(text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

fn longest_ticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// `text` with everything escaped that Markdown would interpret in its place, and nothing else: the source is also
/// read, in mails and in diffs. Terminal control characters are made harmless, and a line break becomes a space.
pub(super) fn escape(text: &str) -> String {
    let mut text = text.to_owned();
    view::clean(&mut text);
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let markup = match character {
            '\\' | '`' | '*' | '<' | '|' => true,
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '~' => !after.is_whitespace(),
            ']' => matches!(after, '(' | '['),
            '#' | '>' => escaped.is_empty(),
            _ => false,
        };
        if markup {
            escaped.push('\\');
        }
        escaped.push(character);
        before = character;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::report::sample;

    #[test]
    fn a_full_cell() {
        expect_file!["golden/full.short.md"].assert_eq(&render(&sample::full(), Form::Short));
        expect_file!["golden/full.long.md"].assert_eq(&render(&sample::full(), Form::Long));
    }

    #[test]
    fn a_failed_cell() {
        expect_file!["golden/failed.short.md"].assert_eq(&render(&sample::failed(), Form::Short));
    }

    #[test]
    fn a_plain_arm_again_and_several_cells() {
        expect_file!["golden/controlled.short.md"].assert_eq(&render(&sample::controlled(), Form::Short));
    }

    #[test]
    fn an_open_loop() {
        expect_file!["golden/open_loop.short.md"].assert_eq(&render(&sample::open_loop(), Form::Short));
    }

    #[test]
    fn no_cells() {
        expect_file!["golden/empty.short.md"].assert_eq(&render(&sample::empty(), Form::Short));
    }

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(escape("a|b *c* <d> TAIL_DRIVEN _e_"), "a\\|b \\*c\\* \\<d> TAIL_DRIVEN \\_e\\_");
        assert_eq!(escape("~ -3.0 % [1, 2] [x](y) ~~z~~"), "~ -3.0 % [1, 2] [x\\](y) \\~\\~z\\~~");
        assert_eq!(escape("# 1 # > 2"), "\\# 1 # > 2");
    }

    #[test]
    fn code_holds_any_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`"), "`` ` ``");
    }

    #[test]
    fn quotations_are_whole() {
        let text = render(&sample::full(), Form::Long);
        for finding in sample::full().cells.iter().flat_map(|cell| &cell.arms).flat_map(|arm| &arm.findings) {
            assert!(finding.protected.contains('\u{1b}') || text.contains(&finding.protected), "{}", finding.protected);
        }
    }
}
