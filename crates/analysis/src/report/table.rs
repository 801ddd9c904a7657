//! Tables of fixed-width text: numbers are aligned at the decimal point with their intervals behind them; a second line
//! holds an entry's value in another unit; a table wider than the page is split into several blocks.
//!
//! It knows nothing of colour: the caller paints each finished entry, so that escapes never count as width.

use tithe_model::wrap::wrapped;

pub(super) use super::width::width;
use super::{number, tone::Tone, width::char_width};

const GAP: usize = 2;

/// A table. The first `sticky` columns name the row and are repeated if a table is split.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Columns, at least `sticky` of them.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Entry>>,
    /// Number of columns that name the row.
    pub sticky: usize,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// The number of observations of its figures (`n = 30`), or empty.
    pub note: String,
    /// True if its entries are numbers, to be aligned at the decimal point.
    pub figures: bool,
}

impl Column {
    pub(super) fn text(title: &str) -> Self {
        Self { title: title.to_owned(), note: String::new(), figures: false }
    }

    pub(super) fn figures(title: impl Into<String>, note: impl Into<String>) -> Self {
        Self { title: title.into(), note: note.into(), figures: true }
    }
}

/// One entry of a table: a text, or a number with its interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// The text, or the number with its unit.
    pub lead: String,
    /// The interval and the marks of footnotes; empty for a text.
    pub rest: String,
    /// The same in another unit: `+0.62 µs` and `[0.58, 0.66]`; empty if there is none.
    pub beside: (String, String),
    /// A shorter text with the same meaning, if there is one.
    pub short: Option<String>,
    /// Its tone.
    pub tone: Tone,
}

impl Entry {
    pub(super) fn text(text: impl Into<String>, tone: Tone) -> Self {
        Self { lead: text.into(), tone, ..Self::default() }
    }

    pub(super) fn figure(figure: number::Figure, tone: Tone) -> Self {
        Self { lead: figure.lead, rest: figure.rest, tone, ..Self::default() }
    }

    pub(super) fn absent() -> Self {
        Self::text("–", Tone::Faint)
    }
}

/// Lines of `table`, none wider than `page`; `paint` may add escapes, which have no width.
pub(super) fn lines(table: &Table, page: usize, paint: &dyn Fn(&str, Tone) -> String) -> Vec<String> {
    let shortened;
    let fits = |table: &Table| {
        let layouts = layouts(table, page);
        // The first block names the rows and gives the answer: it must not be split.
        let first: usize = layouts.iter().take(table.sticky + ANSWER).map(|layout| layout.width + GAP).sum();
        first <= page + GAP
    };
    let table = if fits(table) {
        table
    } else {
        shortened = shorter(table);
        &shortened
    };
    let layouts = layouts(table, page);
    let mut lines = Vec::new();
    for columns in blocks(table.sticky, &layouts, page) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let row = |entry: &dyn Fn(usize) -> (String, Tone)| {
            let last = columns.len() - 1;
            let cells = columns.iter().enumerate().map(|(place, &column)| {
                let (text, tone) = entry(column);
                let text = text.trim_end();
                let blanks = if place == last { 0 } else { layouts[column].width - width(text) };
                format!("{}{}", paint(text, tone), " ".repeat(blanks))
            });
            cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
        };
        lines.push(row(&|column| (layouts[column].heading(&table.columns[column].title), Tone::Strong)));
        if columns.iter().any(|&column| !table.columns[column].note.is_empty()) {
            lines.push(row(&|column| (layouts[column].heading(&table.columns[column].note), Tone::Faint)));
        }
        for entries in &table.rows {
            lines.push(row(&|column| (layouts[column].text(&entries[column]), entries[column].tone)));
            if columns.iter().any(|&column| !entries[column].beside.0.is_empty()) {
                lines.push(row(&|column| (layouts[column].beside(&entries[column]), entries[column].tone)));
            }
        }
    }
    lines
}

/// Columns after the sticky ones that must stay with them: a figure and its verdict.
const ANSWER: usize = 2;

fn layouts(table: &Table, page: usize) -> Vec<Layout> {
    (0..table.columns.len()).map(|column| Layout::of(table, column, page)).collect()
}

/// `table` with the shorter text of every entry that has one.
fn shorter(table: &Table) -> Table {
    let mut table = table.clone();
    for entry in table.rows.iter_mut().flatten() {
        if let Some(short) = entry.short.take() {
            entry.lead = short;
        }
    }
    table
}

/// Columns of each block: the sticky ones, then as many others as fit, at least one.
fn blocks(sticky: usize, layouts: &[Layout], page: usize) -> Vec<Vec<usize>> {
    let start: Vec<usize> = (0..sticky).collect();
    let start_width: usize = layouts[..sticky].iter().map(|layout| layout.width + GAP).sum();
    let (mut blocks, mut block, mut taken) = (Vec::new(), start.clone(), start_width);
    for (column, layout) in layouts.iter().enumerate().skip(sticky) {
        if block.len() > sticky && taken + layout.width > page {
            blocks.push(std::mem::replace(&mut block, start.clone()));
            taken = start_width;
        }
        block.push(column);
        taken += layout.width + GAP;
    }
    blocks.push(block);
    blocks
}

/// The width of a column, and of its parts: before the decimal point, after it, interval.
struct Layout {
    figures: bool,
    whole: usize,
    fraction: usize,
    width: usize,
}

impl Layout {
    fn of(table: &Table, column: usize, page: usize) -> Self {
        let described = &table.columns[column];
        let entries = || table.rows.iter().map(|row| &row[column]);
        let heading = width(&described.title).max(width(&described.note));
        if !described.figures {
            // A long name must leave room for one column of numbers.
            let widest = entries().map(|entry| width(&entry.lead)).max().unwrap_or(0).max(heading);
            let most = if column < table.sticky { page * 2 / (5 * table.sticky.max(1)) + 8 } else { page * 3 / 5 };
            return Self { figures: false, whole: 0, fraction: 0, width: widest.min(most) };
        }
        let figures = || entries().flat_map(|entry| [(&entry.lead, &entry.rest), (&entry.beside.0, &entry.beside.1)]);
        let whole = figures().map(|(lead, _)| width(at_point(lead).0)).max().unwrap_or(0);
        let fraction = figures().map(|(lead, _)| width(at_point(lead).1)).max().unwrap_or(0);
        let rest = figures().map(|(_, rest)| width(rest)).max().unwrap_or(0);
        let gap = usize::from(rest > 0);
        let numbers = whole + fraction + gap + rest;
        Self { figures: true, whole, fraction, width: numbers.max(heading.min(page / 2)) }
    }

    fn heading(&self, text: &str) -> String {
        cut(text, self.width)
    }

    fn text(&self, entry: &Entry) -> String {
        if !self.figures {
            return cut(&entry.lead, self.width);
        }
        self.figure(&entry.lead, &entry.rest)
    }

    /// The line below an entry.
    fn beside(&self, entry: &Entry) -> String {
        let (lead, rest) = &entry.beside;
        if lead.is_empty() { String::new() } else { self.figure(lead, rest) }
    }

    fn figure(&self, lead: &str, rest: &str) -> String {
        let (whole, fraction) = at_point(lead);
        let indent = " ".repeat(self.whole.saturating_sub(width(whole)));
        format!("{indent}{whole}{} {rest}", pad(fraction, self.fraction))
    }
}

/// A number split after its whole part: `+3` and `.1 %`, `24,310` and ` op/s`.
pub(super) fn at_point(text: &str) -> (&str, &str) {
    let Some(first) = text.find(|character: char| character.is_ascii_digit()) else { return (text, "") };
    let whole = text[first..].find(|character: char| !(character.is_ascii_digit() || character == ','));
    text.split_at(whole.map_or(text.len(), |end| first + end))
}

/// `text` with spaces appended up to `to` columns.
pub(super) fn pad(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

/// `text`, shortened with `…` if it is wider than `to`.
pub(super) fn cut(text: &str, to: usize) -> String {
    if width(text) <= to {
        return text.to_owned();
    }
    let mut shortened = String::new();
    let mut taken = 1;
    for character in text.chars() {
        taken += char_width(character);
        if taken > to {
            break;
        }
        shortened.push(character);
    }
    if to > 0 {
        shortened.push('…');
    }
    shortened
}

/// `text` broken at spaces into lines of at most `to` columns; a longer word is cut.
pub(super) fn wrap(text: &str, to: usize) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(|word| cut(word, to)).collect();
    wrapped(&words.join(" "), ["", ""], to, width)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn table() -> Table {
        let column = |title: &str, note: &str, figures| Column { title: title.into(), note: note.into(), figures };
        let entry = |lead: &str, rest: &str| Entry { lead: lead.into(), rest: rest.into(), ..Entry::default() };
        Table {
            columns: vec![column("arm", "", false), column("time", "n = 30", true), column("rate", "n = 30", true)],
            rows: vec![
                vec![entry("plain", ""), entry("41.2 µs", "[40.8, 41.9]"), entry("24,310 op/s", "[24,100, 24,500]")],
                vec![entry("tls", ""), entry("+3.1 %", "[2.6, 3.7]"), entry("987 op/s", "[960, 1,014]")],
                vec![entry("暗号化", ""), entry("~", "-3.0 % to +5.1 %"), entry("–", "")],
            ],
            sticky: 1,
        }
    }

    #[test]
    fn numbers_align_at_the_decimal_point() {
        let lines = lines(&table(), 80, &|text, _| text.to_owned());
        expect![[r#"
            arm     time                      rate
                    n = 30                    n = 30
            plain   41.2 µs [40.8, 41.9]      24,310 op/s [24,100, 24,500]
            tls     +3.1 %  [2.6, 3.7]           987 op/s [960, 1,014]
            暗号化   ~      -3.0 % to +5.1 %       –"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_wide_table_is_split_and_names_its_rows_again() {
        let lines = lines(&table(), 40, &|text, _| text.to_owned());
        expect![[r#"
            arm     time
                    n = 30
            plain   41.2 µs [40.8, 41.9]
            tls     +3.1 %  [2.6, 3.7]
            暗号化   ~      -3.0 % to +5.1 %

            arm     rate
                    n = 30
            plain   24,310 op/s [24,100, 24,500]
            tls        987 op/s [960, 1,014]
            暗号化       –"#]]
        .assert_eq(&lines.join("\n"));
    }

    proptest! {
        #[test]
        fn cut_keeps_the_width_and_the_beginning(text in "\\PC{0,40}", to in 0_usize..50) {
            let shortened = cut(&text, to);
            prop_assert!(width(&shortened) <= to);
            prop_assert!(text.starts_with(shortened.trim_end_matches('…')) || text.contains('…'));
        }

        #[test]
        fn wrap_loses_no_word(words in proptest::collection::vec("[a-z]{1,20}", 0..30), to in 20_usize..60) {
            let lines = wrap(&words.join("  "), to);
            prop_assert!(lines.iter().all(|line| width(line) <= to));
            prop_assert_eq!(lines.join(" "), words.join(" "));
        }
    }
}
