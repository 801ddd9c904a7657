//! Which frames count, and how many an interval needs.

use tithe_model::ending::CellEnding;

use super::*;

#[test]
fn too_few_frames_say_how_long_it_would_take() {
    let records = Invented { frames: 11, spread: 0.3, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    let text: String = assess(&records).cells[0].arms[1].estimates.iter().map(line).collect();
    expect![[r#"
        * net: TooNoisy, not enough frames: 11 of 15 (n=11/1 17.65 -> 21.16 µs/op) [NotEnoughFrames]
        - time: TooNoisy, not enough frames: 11 of 15 (n=11/1 18.58 -> 22.27 µs) [NotEnoughFrames]
        - cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 14.12 -> 16.93 µs/op) [NotEnoughFrames]
        - client_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 5.30 -> 6.35 µs/op) [NotEnoughFrames]
        - server_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 8.83 -> 10.58 µs/op) [NotEnoughFrames]
        - throughput: TooNoisy, not enough frames: 11 of 15 (n=11/1 107630.61 -> 89805.73 op/s) [NotEnoughFrames]
        - latency_p50_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 15.20 -> 18.61 µs) [NotEnoughFrames]
        - latency_p90_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 32.70 -> 37.47 µs) [NotEnoughFrames]
        - latency_p95_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 40.75 -> 46.40 µs) [NotEnoughFrames]
        - latency_p99_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 59.24 -> 67.77 µs) [NotEnoughFrames]
        - latency_p99.9_READ: TooNoisy, not enough frames: 11 of 15 (n=4/1 97.09 -> 102.04 µs) [NotEnoughFrames]
        - server_tree_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 9.71 -> 11.64 µs/op) [NotEnoughFrames]
        - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=11/1 0.00 -> 156.00 bytes/op) []
        - sent_bytes: TooNoisy, not enough frames: 11 of 15 (n=11/1 40.05 -> 40.06 bytes/op) [NotEnoughFrames]
        - received_bytes: TooNoisy, not enough frames: 11 of 15 (n=11/1 1000.00 -> 1020.00 bytes/op) [NotEnoughFrames]
        - memory_bytes: Costs, 5.0% more at the end, between 5.0% and 5.0% over the frames (n=11/1 100.00 -> 105.00 MB) []
        - connect: TooNoisy, not enough frames: 11 of 15 (n=11/1 2002.00 -> 2002.00 µs) [NotEnoughFrames]
    "#]].assert_eq(&text);
}

#[test]
fn a_run_without_frames_is_a_row_and_not_a_gap() {
    let records = Invented { frames: 0, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    check(
        &records,
        expect![[r#"
            c: closed loop, twin, 0 frames, 0 invalid, wait 0.00
            plain: Baseline []
            protected 1: Proven ["-audit = off", "+audit = all"]
              * net: TooNoisy, too noisy to tell (not enough frames) (n=0/1) []
        "#]],
    );
    let one = Invented { frames: 1, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    expect![[r#"
        * net: TooNoisy, not enough frames: 1 of 15 (n=1/1 19.59 -> 20.09 µs/op) [NotEnoughFrames]
    "#]]
    .assert_eq(&line(&estimate(&one, 1, "net")));
}

#[test]
fn invalid_and_missing_frames_are_left_out_and_listed() {
    let mut records = Invented::default().records();
    let clean = {
        let mut records = records.clone();
        records.frames.retain(|frame| ![3, 7, 8].contains(&frame.frame));
        records.slots.retain(|slot| ![3, 7, 8].contains(&slot.frame));
        assess(&records)
    };
    records.frames[3].invalid = Some("the server was restarted".to_owned());
    records.frames[3].arms[1].counters.sent_bytes = Some(1 << 40);
    records.slots.iter_mut().filter(|slot| slot.frame == 3 && slot.arm == 1).for_each(|slot| slot.wall_ns *= 9);
    records.frames[7].arms.pop();
    records.frames.remove(8);
    let analysis = assess(&records);
    expect![[r#"
        [
            (
                3,
                "the server was restarted",
            ),
            (
                7,
                "its record has 2 arms and not 3",
            ),
            (
                8,
                "its record is missing",
            ),
        ]"#]]
    .assert_eq(&format!("{:#?}", analysis.cells[0].invalid));
    assert_eq!(analysis.cells[0].arms, clean.cells[0].arms);
}

#[test]
fn a_run_of_invalid_frames_says_so() {
    let mut records = Invented { frames: 9, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    records.frames.drain(1..8);
    records.frames.iter_mut().for_each(|frame| frame.invalid = Some("the clock jumped".to_owned()));
    let analysis = assess(&records);
    assert_eq!(analysis.warnings, ["c: no frame can be used."]);
    let cell = &analysis.cells[0];
    assert_eq!((cell.frames, cell.arms[1].estimates.len(), cell.arms[1].estimates[0].count), (0, 1, 0));
    expect![[
        r#"[(0, "the clock jumped"), (1, "the records of 7 frames from here on are missing"), (8, "the clock jumped")]"#
    ]]
    .assert_eq(&format!("{:?}", cell.invalid));
}

#[test]
fn fifteen_frames_make_an_interval_and_fourteen_do_not() {
    let net = |frames: u32| estimate(&Invented { frames, ..Invented::default() }.records(), 1, "net");
    let (few, enough) = (net(14), net(15));
    assert_eq!((few.verdict, few.text.as_str()), (Outcome::TooNoisy, "not enough frames: 14 of 15"));
    assert!(few.effect.low.is_infinite() && few.difference.is_some_and(|it| it.high.is_infinite()) && few.p.is_none());
    assert!(few.flags.contains(&Flag::NotEnoughFrames) && few.more_s.is_some_and(|more_s| more_s >= 0.6));
    assert_eq!(enough.verdict, Outcome::Costs);
    assert!(!enough.flags.contains(&Flag::NotEnoughFrames));
}

#[test]
fn too_much_noise_says_how_long_it_would_take() {
    let records = Invented { frames: 16, spread: 0.3, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    let text: String =
        ["net", "throughput", "latency_p50_READ"].map(|name| line(&estimate(&records, 1, name))).concat();
    expect![[r#"
        * net: TooNoisy, too noisy to tell: between -3.5% and 10.1%; about 6 more minutes would resolve 1% (n=16/1 15.49 -> 15.20 µs/op) []
        - throughput: TooNoisy, too noisy to tell: between -3.7% and 9.1% fewer operations; about 6 more minutes would resolve 1% (n=16/1 122670.83 -> 125340.77 op/s) []
        - latency_p50_READ: TooNoisy, too noisy to tell: between -3.7% and 11.7%; about 7 more minutes would resolve 1% (n=16/1 13.51 -> 13.25 µs) []
    "#]].assert_eq(&text);
}

#[test]
fn stopping_by_precision_widens_the_intervals() {
    let mut records = Invented::default().records();
    let by_budget = estimate(&records, 1, "net").effect;
    records.cells[0].ending = Some(CellEnding::Precision);
    let by_precision = estimate(&records, 1, "net").effect;
    assert!(by_precision.low < by_budget.low && by_budget.high < by_precision.high);
}
