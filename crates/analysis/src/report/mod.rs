//! Reports: an [`Analysis`](crate::Analysis) in, text out.
//!
//! [`view`] decides what is said and in which order, as a list of blocks that know no medium; [`terminal`] and
//! [`markdown`] only lay the blocks out; [`html`] draws. [`json`], [`csv`], [`benchstat`], [`ycsb`], [`bencher`] and
//! [`otava`] are for programs; of these [`json`] and [`csv`] are the whole analysis, with nothing rounded and nothing
//! left out, and from [`json`] every other report but [`ycsb`] can be made again. [`oscal`] and [`sarif`] tell
//! auditors what was seen, one [`observation`] at a time, with the [`controls`] that it is about. [`history`] is
//! about many runs, [`comparison`] about a few. [`live`] is the status line while a run is under way, [`summary`]
//! what stands last. [`number`] (on [`quantity`](tithe_model::quantity)) and [`words`] (with [`cell_name`]) are the
//! only places that turn figures and outcomes into text, so that every medium says the same thing in the same words.
//!
//! [`matrix`] is what tasks on many hosts say together, in its own formats.
//!
//! All of it is pure, and none of it decides anything: proofs, verdicts and flags come from the analysis.

pub mod bencher;
pub mod benchstat;
pub mod calibration;
pub mod cell_name;
pub mod claims;
pub mod comparison;
pub mod controls;
pub mod csv;
pub mod history;
pub mod html;
pub mod json;
pub mod live;
pub mod markdown;
pub mod matrix;
pub mod number;
pub mod observation;
pub mod oscal;
pub mod otava;
pub mod sarif;
pub mod summary;
pub mod terminal;
pub mod tone;
pub mod view;
pub mod words;
pub mod ycsb;

mod headline;
mod table;
mod width;

#[cfg(test)]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{html, json, markdown, sample, terminal, view::Form};

    /// The lines of `text` that hold `what`, with nothing before and little behind it.
    fn around(text: &str, what: &str) -> String {
        let from = |line: &str| line.find(what).map(|begin| line[begin..].chars().take(130).collect::<String>());
        text.lines().filter_map(from).map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_level_of_too_few_frames_says_so_in_every_form() {
        let mut analysis = sample::full();
        for level in &mut analysis.cells[0].arms[0].levels {
            (level.low, level.high) = (f64::NEG_INFINITY, f64::INFINITY);
        }
        let long = terminal::Options { form: Form::Long, ..terminal::Options::default() };
        let text = terminal::render(&analysis, long);
        let paste = markdown::render(&analysis, Form::Long);
        let page = html::render(&analysis, &html::PageData::default());
        let all = [("text", &text), ("markdown", &paste), ("page", &page)];
        let told: String = all.iter().map(|(form, text)| format!("{form}\n{}", around(text, "48,310 op/s"))).collect();
        expect![[r#"
            text
            48,310 op/s [not enough data]
            48,310 op/s [not enough data]  33,317 op/s [32,618, 34,017]
            markdown
            48,310 op/s [not enough data] |
            48,310 op/s [not enough data] | 33,317 op/s [32,618, 34,017] | *(42,790 op/s [41,891, 43,689])* | *(48,118 op/s [47,107, 49,128])*
            page
            48,310 op/s</title><path class="bar" d="M0 2H111.7V10H0z"/></svg><span class="v">48,310 op/s <small>[not enough data]</small> </sp
        "#]]
        .assert_eq(&told);
        assert!(all.iter().all(|(_, text)| !text.contains('∞')));
        let report: serde_json::Value =
            serde_json::from_str(&json::render(&analysis, &html::PageData::default())).expect("JSON");
        let level = &report["tithe_report"]["cells"][0]["arms"][0]["levels"][1];
        expect![[r#"{"count":30,"high":null,"low":null,"name":"net","unit":"µs","value":38.42}"#]]
            .assert_eq(&level.to_string());
    }
}
