//! Reports: an [`Analysis`](crate::Analysis) in, text out.
//!
//! [`view`] decides content and order, as a list of blocks that are independent of the medium; [`terminal`] and
//! [`markdown`] only lay the blocks out; [`html`] draws. [`json`], [`csv`], [`benchstat`], [`ycsb`], [`bencher`] and
//! [`otava`] are for programs. Of these, [`json`] and [`csv`] are the whole analysis, without rounding or omissions,
//! and from [`json`] every other report but [`ycsb`] can be made. [`oscal`] and [`sarif`] are for auditors, one
//! [`observation`] at a time, with its [`controls`]. [`history`] is about many runs, [`comparison`] about a few.
//! [`live`] is the status during a run, [`summary`] the last lines of a report. Only [`number`] (on
//! [`quantity`](tithe_model::quantity)) and [`words`] (with [`cell_name`]) turn figures and outcomes into text, so that
//! all media use the same words.
//!
//! [`matrix`] combines tasks on many hosts, in its own formats.
//!
//! All of it is pure, and nothing is decided here: proofs, verdicts and flags come from the analysis.

pub mod atlas;
pub mod bencher;
pub mod benchstat;
pub mod calibration;
pub mod cell_name;
pub mod claims;
pub mod comparison;
mod connecting;
pub mod controls;
pub mod csv;
pub mod folded;
pub mod history;
pub mod html;
mod idle;
pub mod json;
pub mod live;
pub mod markdown;
pub mod matrix;
pub mod number;
pub mod observation;
pub mod oscal;
pub mod otava;
pub mod sarif;
pub mod statements;
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

    use super::{html, json, markdown, sample, terminal, view::Form, words};

    /// The lines of `text` that contain `what`, from that place on and shortened.
    fn around(text: &str, what: &str) -> String {
        let from = |line: &str| line.find(what).map(|begin| line[begin..].chars().take(130).collect::<String>());
        text.lines().filter_map(from).map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn what_stands_on_one_start_says_so_in_every_form() {
        let analysis = sample::on_one_start();
        let form = |width| terminal::Options { form: Form::Answer, width, colour: false };
        let page = sample::without_style(&html::render(&analysis, &html::PageData::default()));
        // Drawings show it on hover.
        assert!(page.contains("title=\"costs 40.5 % on this start\""));
        let written = |page: &str| {
            let lines = page.lines().filter(|line| !line.contains("<svg"));
            lines.map(|line| line.replace("</td><td>", " | ") + "\n").collect::<String>()
        };
        let all = [
            ("text", terminal::render(&analysis, form(120))),
            ("text of 80 columns", terminal::render(&analysis, form(80))),
            ("markdown", markdown::render(&analysis, Form::Short)),
            ("page", written(&page)),
        ];
        let told = |text: &str| {
            let few = |line: &&str| line.contains("on this start") || line.contains("on these 3 starts");
            text.lines().filter(few).map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
        };
        let told: String = all.iter().map(|(form, text)| format!("{form}\n{}", told(text))).collect();
        let others = sample::full();
        let both = [&analysis, &others].map(|it| &it.cells[0].arms[1].estimates[0]).into_iter();
        assert_eq!(words::on_starts_of(both), ", in part on this start");
        expect![[r#"
            text
              ✓ tls      +40.5 % [38.7, 42.3]      +15.6 µs   ····│··················●━  on this start
              ✓ fscrypt    ~     −3.0 % to +5.1 %             ··━━━━━━·················  too noisy to tell on this start
              ✓ luks      +0.4 % [−0.2, +0.8]       +0.15 µs  ····●····················  no cost found on this start
              ✓ auth      −4.9 % [−6.8, −3.0]       −1.9 µs   ━●━·│····················  saves on these 3 starts: check set-up
            text of 80 columns
              ✓ tls      +40.5 % [38.7, 42.3]      +15.6 µs   on this start
              ✓ luks      +0.4 % [−0.2, +0.8]       +0.15 µs  no cost found on this start
              ✓ auth      −4.9 % [−6.8, −3.0]       −1.9 µs   saves on these 3 starts: chec…
            markdown
            | **tls** | proven | +40.5 % [38.7, 42.3]; +15.6 µs [14.9, 16.3] | costs 40.5 % on this start | +46.3 % [45.0, 47.6]; +15.8 µs [15.3, 16.2] | +38.4 % [37.9, 38.9]; +14.2 µs [14.0, 14.4] | +9.8 % [2.0, 18.2]¹; +21 µs [4, 39] | 33,300 op/s [32,600, 34,000] |
            | **luks** | proven | +0.4 % [−0.2, +0.8]; +0.15 µs [−0.08, +0.31] | no cost found on this start, at most 0.8 % | +0.2 % [0.1, 0.3]; +0.07 µs [0.03, 0.10] | *–* | *–* | 48,100 op/s [47,100, 49,100] |
            | **fscrypt** | proven | *~ −3.0 % to +5.1 %; ~ −1.2 to +2.0 µs* | *too noisy to tell on this start* | +0.6 % [−0.1, +1.3]; +0.2 µs [0.0, +0.4] | *–* | *–* | 47,800 op/s [46,800, 48,800] |
            | **auth** | proven | **−4.9 % [−6.8, −3.0]; −1.9 µs [−2.6, −1.2]** | **saves 4.9 % on these 3 starts: check set-up** | **−0.4 % [−0.6, −0.2]; −0.14 µs [−0.21, −0.08]** | *–* | *–* | 50,900 op/s [49,800, 51,900] |
            | ✓ tls | +40.5 % [38.7, 42.3] | +15.6 µs | on this start |
            | ✓ fscrypt | ~ −3.0 % to +5.1 % |  | too noisy to tell on this start |
            | ✓ luks | +0.4 % [−0.2, +0.8] | +0.15 µs | no cost found on this start |
            | ✓ auth | −4.9 % [−6.8, −3.0] | −1.9 µs | saves on these 3 starts: check set-up |
            page
            <p class="answer"><b>tls</b> adds 14.9 to 16.3 µs to an operation (+38.7 % to +42.3 %), in net time per op on this start. No cost found on this start: <b>luks</b> (at most 0.8 %). <b>auth</b> saves 4.9 % [−6.8, −3.0], −1.9 µs [−2.6, −1.2] on these 3 starts (check the set-up). 1 of 4 comparisons is too noisy to tell.</p><div class="plots">
            <figure class="plot"><figcaption><b>reads only</b> <span>38.4 µs an operation without protection (net time per op) · measured on this start</span></figcaption>
            <tr class="costs"><th scope="row">tls <span class="mark good"><span aria-hidden="true">✓</span> proven</span></th><td class="dots" title="costs 40.5 % on this start">
            <tr class="noisy"><th scope="row">fscrypt <span class="mark good"><span aria-hidden="true">✓</span> proven</span></th><td class="dots" title="too noisy to tell on this start">
            <tr class="nil"><th scope="row">luks <span class="mark good"><span aria-hidden="true">✓</span> proven</span></th><td class="dots" title="no cost found on this start, at most 0.8 %">
            <tr class="gains"><th scope="row">auth <span class="mark good"><span aria-hidden="true">✓</span> proven</span></th><td class="dots" title="saves 4.9 % on these 3 starts: check set-up">
            <tr><th scope="row">tls</th><td class="costs" data-of="CPU per op" title="costs 46.3 % on this start">
            <tr><th scope="row">luks</th><td class="costs" data-of="CPU per op" title="costs 0.2 % on this start, below margin">
            <tr><th scope="row">fscrypt</th><td class="nil" data-of="CPU per op" title="no cost found on this start, at most 1.3 %">
            <tr><th scope="row">auth</th><td class="gains" data-of="CPU per op" title="saves 0.4 % on these 3 starts: check set-up">
            <tr class="costs"><th scope="row"><b>net time per op</b></th><td>+40.5 % [38.7, 42.3] | +15.6 µs [14.9, 16.3] | +44.1 % [39.0, 49.4] | 30 | 38.4 → 54.0 µs | costs 40.5 % on this start | </td></tr>
            <tr class="costs"><th scope="row">time per op</th><td>+45.4 % [43.4, 47.4] | +18.7 µs [17.9, 19.5] |  | 30 | 41.2 → 59.9 µs | costs 45.4 % on this start | NEIGHBOURS_IN_TAIL</td></tr>
            <tr class="costs"><th scope="row">CPU per op</th><td>+46.3 % [45.0, 47.6] | +15.8 µs [15.3, 16.2] |  | 30 | 34.1 → 49.9 µs | costs 46.3 % on this start | </td></tr>
            <tr class="costs"><th scope="row">throughput</th><td>−31.2 % [−32.2, −30.3] |  |  | 30 | 48,300 → 33,200 op/s | 31.2 % fewer operations on this start | </td></tr>
            <tr class="costs"><th scope="row">READ p50</th><td>+38.4 % [37.9, 38.9] | +14.2 µs [14.0, 14.4] |  | 30 | 36.9 → 51.1 µs | costs 38.4 % on this start | </td></tr>
            <tr class="costs"><th scope="row">READ p99</th><td>+9.8 % [2.0, 18.2] | +21 µs [4, 39] |  | 12 | 212 → 233 µs | costs 9.8 % on this start | NEIGHBOURS_IN_TAIL</td></tr>
            <tr class="noisy"><th scope="row">READ p99.9</th><td>~ not enough data |  |  | 4 | 7.51 → 7.66 ms | too noisy to tell on this start | NEIGHBOURS_IN_TAIL, NOT_ENOUGH_DATA</td></tr>
            <tr class="costs"><th scope="row">bytes sent</th><td>+35.5 % [35.4, 35.6] | +22.0 bytes [21.9, 22.1] |  | 30 | 62.0 → 84.0 bytes/op | costs 35.5 % on this start | </td></tr></tbody>
            <tr class="nil"><th scope="row"><b>net time per op</b></th><td>+0.4 % [−0.2, +0.8] | +0.15 µs [−0.08, +0.31] | +0.5 % [−1.9, +2.8] | 30 | 38.4 → 38.6 µs | no cost found on this start, at most 0.8 % | </td></tr>
            <tr class="costs"><th scope="row">CPU per op</th><td>+0.2 % [0.1, 0.3] | +0.07 µs [0.03, 0.10] |  | 30 | 34.1 → 34.2 µs | costs 0.2 % on this start, below margin | </td></tr></tbody>
            <tr class="noisy"><th scope="row"><b>net time per op</b></th><td>~ −3.0 % to +5.1 % | ~ −1.2 to +2.0 µs | +2.0 % [−6.0, +10.7] | 30 | 38.4 → 38.8 µs | too noisy to tell on this start | </td></tr>
            <tr class="nil"><th scope="row">CPU per op</th><td>+0.6 % [−0.1, +1.3] | +0.2 µs [0.0, +0.4] |  | 30 | 34.1 → 34.3 µs | no cost found on this start, at most 1.3 % | </td></tr></tbody>
            <tr class="gains"><th scope="row"><b>net time per op</b></th><td>−4.9 % [−6.8, −3.0] | −1.9 µs [−2.6, −1.2] | −4.0 % [−7.7, −0.2] | 30 | 38.4 → 36.5 µs | saves 4.9 % on these 3 starts: check set-up | </td></tr>
            <tr class="gains"><th scope="row">CPU per op</th><td>−0.4 % [−0.6, −0.2] | −0.14 µs [−0.21, −0.08] |  | 30 | 34.1 → 34.0 µs | saves 0.4 % on these 3 starts: check set-up | </td></tr></tbody></table></div></details></section>
        "#]].assert_eq(&told);
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
        let page = sample::without_style(&html::render(&analysis, &html::PageData::default()));
        let all = [("text", &text), ("markdown", &paste), ("page", &page)];
        let told: String = all.iter().map(|(form, text)| format!("{form}\n{}", around(text, "48,310 op/s"))).collect();
        expect![[r#"
            text
            markdown
            page
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
