//! Every number of the method's reference implementation (Python, numpy 2.4 and scipy 1.17), to 1e-9.
//!
//! `golden.json` and `frames_measured.json` come with the method. The entry `slots_X12` of `golden.json` belongs to a
//! table of measured slots that is not included: its `first3`, `infer` and `total` cannot be computed here. Its `infer`
//! values equal those of `frames_measured.json` up to the rounding of that file, and are checked with it. The steps
//! from slots to frames and the totals are checked with `synthetic_slots.csv` instead. That is an invented table with
//! slots that are too short, missing partners, slots without an operation after the settling time, wait beyond wall
//! time, a frame with too few pairs and a frame without one arm. `synthetic.json` is the reference implementation's
//! result for it.

use serde_json::Value;
use tithe_analysis::{Interval, Outcome};
use tithe_model::{
    experiment::Metric,
    histogram::{Histogram, index},
    record::Slot,
    schedule::{SplitMix64, block_order},
};
use tithe_statistics::{
    inference::{Inference, holm, infer, lag1, sidak, t_interval},
    order::{hodges_lehmann, midmean, order_statistic_ranks, quantile7, signed_rank_cut, signed_rank_p},
    pairing::{MIN_PAIRS, frame_effect, frame_spent, ratio_effect},
    percentile::{Pair, Samples, group_frames, quantile_effect},
    precision::{confidence_sequence, predict_more, stop_by_precision},
    starts::IntervalOptions,
    verdict::verdict,
};

const METRICS: [(&str, Metric); 5] = [
    ("time", Metric::Time),
    ("net", Metric::Net),
    ("cpu", Metric::Cpu),
    ("client_cpu", Metric::ClientCpu),
    ("server_cpu", Metric::ServerCpu),
];

/// The file as JSON; Python writes infinities as bare words, which are not valid JSON.
fn load(text: &str) -> Value {
    let text = text.replace("-Infinity", "\"-inf\"").replace(" Infinity", " \"inf\"");
    serde_json::from_str(&text).expect("golden file")
}

fn golden() -> Value {
    load(include_str!("../golden/golden.json"))
}

fn synthetic() -> Value {
    load(include_str!("../golden/synthetic.json"))
}

fn measured() -> Value {
    load(include_str!("../golden/frames_measured.json"))
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().expect("inf or nan"),
        other => other.as_f64().expect("number"),
    }
}

fn integer(value: &Value) -> u64 {
    value.as_u64().expect("whole number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("list")
}

/// The elements of two lists, of which neither is empty or longer.
fn all_of<'a>(given: &'a Value, expected: &'a Value) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let (given, expected) = (list(given), list(expected));
    assert!(!given.is_empty() && given.len() == expected.len(), "{} and {} values", given.len(), expected.len());
    given.iter().zip(expected)
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

#[track_caller]
fn near(actual: f64, expected: f64) {
    let same = actual == expected || (actual.is_nan() && expected.is_nan());
    assert!(same || (actual - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{actual} is not {expected}");
}

#[track_caller]
fn near_interval(actual: Interval, expected: &Value) {
    let expected = numbers(expected);
    near(actual.estimate, expected[0]);
    near(actual.low, expected[1]);
    near(actual.high, expected[2]);
}

#[track_caller]
fn near_inference(actual: &Inference, expected: &Value) {
    near(actual.interval.estimate, number(&expected["est"]));
    near(actual.interval.low, number(&expected["lo"]));
    near(actual.interval.high, number(&expected["hi"]));
    near(actual.lag1, number(&expected["r1"]));
    assert_eq!(
        (actual.merged.len() as u64, actual.batch as u64),
        (integer(&expected["n"]), integer(&expected["batch"]))
    );
}

#[test]
fn random_numbers_and_block_orders() {
    let golden = golden();
    let mut random = SplitMix64::new(42);
    for expected in list(&golden["splitmix64_seed42_first5"]) {
        assert_eq!(expected.as_str(), Some(random.next_u64().to_string().as_str()));
    }
    for case in list(&golden["block_order_seed7"]) {
        let expected: Vec<usize> = list(&case[3]).iter().map(|arm| integer(arm) as usize).collect();
        assert_eq!(block_order(7, integer(&case[0]), integer(&case[1]), integer(&case[2]) as usize), expected);
    }
}

#[test]
fn signed_rank_cuts() {
    for case in list(&golden()["signed_rank_cut"]) {
        assert_eq!(signed_rank_cut(integer(&case[0]) as usize, number(&case[1])), integer(&case[2]), "{case}");
    }
}

#[test]
fn statistics_of_a_vector() {
    let golden = golden();
    let vector = numbers(&golden["vector"]);
    near(midmean(&vector), number(&golden["midmean"]));
    near_interval(hodges_lehmann(&vector, 0.05), &golden["hodges_lehmann"]);
    near_interval(t_interval(&vector, 0.05), &golden["t_interval"]);
    near(lag1(&vector), number(&golden["lag1"]));
    near(signed_rank_p(&vector), number(&golden["signed_rank_p"]));
    near_interval(confidence_sequence(&vector, 0.05), &golden["conf_sequence"]);
    near(predict_more(&vector, 0.05, 1.0, 0.05).expect("enough values"), number(&golden["predict_more"]));
    for case in list(&synthetic()["extra"]["quantile7"]) {
        near(quantile7(&vector, number(&case[0])), number(&case[1]));
    }
}

#[test]
fn many_comparisons() {
    let (golden, synthetic) = (golden(), synthetic());
    near(sidak(0.05, 3), number(&golden["sidak_0.05_3"]));
    for case in list(&synthetic["extra"]["sidak"]) {
        near(sidak(number(&case[0]), integer(&case[1]) as usize), number(&case[2]));
    }
    let rejected = |p_values: &[f64]| Value::from(holm(p_values, 0.05));
    assert_eq!(rejected(&[0.01, 0.04, 0.03, 0.005]), golden["holm"]);
    for case in list(&synthetic["extra"]["holm"]) {
        assert_eq!(rejected(&numbers(&case[0])), case[1]);
    }
}

#[test]
fn inference_on_measured_frames() {
    let (golden, measured) = (golden(), measured());
    for metric in ["cpu", "net", "time"] {
        for pair in ["aa", "b2"] {
            let expected = &golden[format!("infer_{metric}_{pair}")];
            for (frames, expected) in all_of(&measured[format!("{metric}_{pair}")], expected) {
                near_inference(&infer(&numbers(frames), 0.05), expected);
            }
        }
    }
}

#[test]
fn inference_on_measured_slots_up_to_rounding() {
    let (golden, measured) = (golden(), measured());
    let pairs = [("A/A", "aa", 0), ("B/B", "aa", 1), ("a_2pct", "b2", 0), ("b_2pct", "b2", 1)];
    for metric in ["cpu", "net", "time"] {
        for (name, file, index) in pairs {
            let inference = infer(&numbers(&measured[format!("{metric}_{file}")][index]), 0.05);
            let expected = &golden["slots_X12"][format!("{name}_{metric}")]["infer"];
            assert_eq!(inference.batch as u64, integer(&expected["batch"]));
            // The file of frames is rounded to six decimals.
            assert!((inference.interval.estimate - number(&expected["est"])).abs() < 2e-6);
            assert!((inference.interval.low - number(&expected["lo"])).abs() < 2e-6);
            assert!((inference.interval.high - number(&expected["hi"])).abs() < 2e-6);
        }
    }
}

#[test]
fn inference_on_correlated_and_on_many_values() {
    let extra = &synthetic()["extra"];
    near_inference(&infer(&numbers(&extra["walk"]), 0.05), &extra["infer_walk"]);
    near_inference(&infer(&numbers(&extra["long"]), 0.05), &extra["infer_long"]);
    near(signed_rank_p(&numbers(&extra["long"])), number(&extra["signed_rank_p_long"]));
    near(signed_rank_p(&numbers(&extra["tied"])), number(&extra["signed_rank_p_tied"]));
}

#[test]
fn stopping_and_planning() {
    let (measured, synthetic) = (measured(), synthetic());
    let extra = &synthetic["extra"];
    let frames = numbers(&measured["cpu_aa"][0]);
    for case in list(&extra["stop_precision"]) {
        match (stop_by_precision(&frames, number(&case[0]), 0.05), &case[1]) {
            (None, Value::Null) => {}
            (Some((stopped, interval)), expected) => {
                assert_eq!(stopped as u64, integer(&expected[0]));
                near(interval.low, number(&expected[1]["lo"]));
                near(interval.high, number(&expected[1]["hi"]));
            }
            (None, expected) => panic!("did not stop, but {expected}"),
        }
    }
    for (frames, expected) in all_of(&measured["cpu_b2"], &extra["conf_sequence_cpu_b2"]) {
        near_interval(confidence_sequence(&numbers(frames), 0.05), expected);
    }
    for case in list(&extra["predict_more"]) {
        near(predict_more(&frames[..20], number(&case[0]), 1.5, 0.05).expect("enough"), number(&case[1]));
    }
}

#[test]
fn histograms() {
    let golden = &golden()["hist"];
    for (value, expected) in golden["index"].as_object().expect("object") {
        assert_eq!(index(value.parse().expect("number")) as u64, integer(expected));
    }
    let mut histogram = Histogram::default();
    (1..=20_000u64).for_each(|i| histogram.record(1000 + (i * i) % 99_991 * 17));
    assert_eq!(histogram.total(), integer(&golden["total"]));
    for (share, expected) in golden["q"].as_object().expect("object") {
        near(histogram.quantile(share.parse().expect("number")).expect("not empty"), number(expected));
    }
}

/// `frames` frames, each on its own start.
fn each_on_its_start(frames: u32, count: (u64, u64)) -> Vec<Samples> {
    (0..frames).map(|start| Samples { start, count }).collect()
}

#[test]
fn percentiles() {
    for case in list(&golden()["order_stat_ci"]) {
        let ranks = order_statistic_ranks(integer(&case[0]), number(&case[1]), 0.05);
        assert_eq!(ranks.map(|(low, high)| Value::from(vec![low, high])).unwrap_or_default(), case[2], "{case}");
    }
    let synthetic = synthetic();
    let extra = &synthetic["extra"];
    for case in list(&extra["groups"]) {
        let groups: Vec<Value> = group_frames(&each_on_its_start(60, (600, 600)), number(&case[0]), 50.0)
            .into_iter()
            .map(|(first, last)| Value::from(vec![first, last]))
            .collect();
        assert_eq!(Value::from(groups), case[1]);
    }
    // The file describes the rule under `latency_rule`.
    let frames: Vec<(Histogram, Histogram)> = (0..60u64)
        .map(|frame| {
            let (mut plain, mut protected) = (Histogram::default(), Histogram::default());
            for i in 0..600u64 {
                let latency = 20_000 + (frame * 7919 + i * i * 31) % 9973 * if i % 50 == 0 { 21 } else { 1 };
                plain.record(latency);
                protected.record((latency as f64 * 1.04) as u64 + i * frame % 17);
            }
            (plain, protected)
        })
        .collect();
    let numbered = (0..).zip(&frames);
    let pairs: Vec<_> = numbered.map(|(start, (plain, protected))| Pair { start, plain, protected }).collect();
    let asked = IntervalOptions { alpha: 0.05, by_decision: false, known: None };
    for case in list(&extra["quantile_effect"]) {
        let found = quantile_effect(&pairs, number(&case[0]), asked);
        near_inference(&found.inference, &case[1]);
        // The starts count, not groups with several of them.
        let told = found.inference.interval.half_width().is_finite();
        assert_eq!(found.starts, if told { pairs.len() } else { 0 });
    }
}

/// One server that processes operations in the order of arrival: the end of each.
fn replay(intended: &[f64], service: &[f64]) -> Vec<f64> {
    let mut free = 0.0_f64;
    let ends = intended.iter().zip(service).map(|(start, service)| {
        free = free.max(*start) + service;
        free
    });
    ends.collect()
}

#[test]
fn open_loop_latency_counts_from_the_intended_start() {
    let golden = &golden()["open_loop"];
    let intended = numbers(&golden["intended"]);
    let ends = replay(&intended, &numbers(&golden["service"]));
    assert_eq!(ends, numbers(&golden["end"]));
    let mut histogram = Histogram::default();
    let latencies: Vec<f64> = ends.iter().zip(&intended).map(|(end, start)| end - start).collect();
    assert_eq!(latencies, numbers(&golden["latency"]));
    latencies.iter().for_each(|latency| histogram.record(*latency as u64));
    // One slow operation makes four wait: the median of the ten is far above the service time of 200.
    assert!(histogram.quantile(0.6).expect("not empty") > 1000.0);
}

#[test]
fn verdicts_word_for_word() {
    for case in list(&golden()["verdicts"]) {
        let given = numbers(&case[0]);
        let interval = Interval { estimate: given[0], low: given[1], high: given[2] };
        let (outcome, text) = verdict(interval, 1.03_f64.ln(), "cost");
        let outcome = match outcome {
            Outcome::Costs => "COSTS",
            Outcome::Gains => "GAINS",
            Outcome::NoneFound => "NONE_FOUND",
            Outcome::TooNoisy => "TOO_NOISY",
        };
        assert_eq!(Value::from(vec![outcome, text.as_str()]), case[1]);
    }
}

/// The invented slots, by frame.
fn synthetic_frames() -> Vec<Vec<Slot>> {
    let mut frames = Vec::<Vec<Slot>>::new();
    for line in include_str!("../golden/synthetic_slots.csv").lines().skip(1) {
        let v: Vec<u64> = line.split(',').map(|field| field.parse().expect("number")).collect();
        let slot = Slot {
            cell: v[0] as u32,
            frame: v[1] as u32,
            block: v[2] as u32,
            lane: v[3] as u32,
            arm: v[4] as u32,
            operations: v[5],
            counted: v[6],
            wall_ns: v[7],
            latency_sum_ns: v[8],
            client_cpu_ns: v[9],
            server_cpu_ns: v[10],
            wait_ns: v[11],
            // In the vectors, only background load causes waiting.
            stalled_ns: Some(v[11]),
        };
        frames.resize_with(frames.len().max(slot.frame as usize + 1), Vec::new);
        frames[slot.frame as usize].push(slot);
    }
    frames
}

#[test]
fn slots_to_frame_effects_and_totals() {
    let (frames, synthetic) = (synthetic_frames(), synthetic());
    for (name, metric) in METRICS {
        for arm in [1, 2] {
            let expected = &synthetic["slots"][format!("{name}_{arm}")];
            let effects = |fewest| -> Vec<f64> {
                frames.iter().filter_map(|slots| frame_effect(slots, 0, arm, metric, fewest)).collect()
            };
            for (fewest, key) in [(MIN_PAIRS, "effects"), (1, "effects_min1")] {
                let (actual, expected) = (effects(fewest), numbers(&expected[key]));
                assert_eq!(actual.len(), expected.len());
                actual.iter().zip(&expected).for_each(|(actual, expected)| near(*actual, *expected));
            }
            near_inference(&infer(&effects(MIN_PAIRS), 0.05), &expected["infer"]);
            near_inference(&infer(&effects(MIN_PAIRS), 0.01), &expected["infer_1pct"]);
            let spent: Vec<_> = frames
                .iter()
                .filter_map(|slots| Some((frame_spent(slots, 0, metric)?, frame_spent(slots, arm, metric)?)))
                .collect();
            near_interval(ratio_effect(&spent, 0.05), &expected["total"]);
        }
    }
}
