//! PostgreSQL against itself: the true difference is zero.

use serde_json::Value;
use tithe_analysis::{CONFIDENCE, assess::assess};
use tithe_model::records::Records;

use crate::{
    analysis::{ends, find, host, percent, read},
    beside::Beside,
    experiment::against_itself,
    run::Run,
};

/// False alarms while processor hogs run.
pub fn hogs(seconds: u32) -> Result<(), String> {
    let run = Run::new("hogs", &against_itself("interleaved", true, "c", 2, None, seconds));
    let hogs = Beside::Hogs(4).start();
    let path = run.finish()?;
    drop(hogs);
    let all = read(&path);
    for name in ["time", "net", "cpu"] {
        let segments: Vec<&[_]> = all.frames.chunks_exact(10).collect();
        let wrong = segments.iter().filter(|frames| {
            let records = Records { frames: frames.to_vec(), ..all.clone() };
            let analysis = assess(&records);
            let estimate =
                analysis.cells[0].arms[1].estimates.iter().find(|estimate| estimate.name.to_string() == name);
            estimate.is_some_and(|it| it.effect.low > 0.0 || it.effect.high < 0.0)
        });
        let (wrong, of) = (wrong.count(), segments.len());
        println!(
            "{name:<4}: {wrong} false alarms in {of} segments of ten frames, {:.0} % allowed",
            100.0 * (1.0 - CONFIDENCE)
        );
    }
    tell_halves("all frames", &assessed(&all));
    Ok(())
}

/// With hogs in the first half only: one arm after the other, and interleaved.
pub fn adversary(seconds: u32) -> Result<(), String> {
    for design in ["sequential", "interleaved"] {
        let mut run = Run::new("adversary", &against_itself(design, true, "c", 2, None, seconds));
        run.half_with_hogs(4);
        tell_halves(design, &assessed(&read(&run.finish()?)));
    }
    Ok(())
}

/// The resolution of each design.
pub fn designs(seconds: u32) -> Result<(), String> {
    let designs = [
        ("interleaved", true),
        ("interleaved", false),
        ("slices", true),
        ("slices", false),
        ("duet", true),
        ("sequential", false),
    ];
    for (design, pin) in designs {
        let run = Run::new("designs", &against_itself(design, pin, "c", 2, None, seconds));
        let bound = if pin { "bound" } else { "free" };
        tell_halves(&format!("{design}, {bound}"), &assessed(&read(&run.finish()?)));
    }
    Ok(())
}

/// The resolution for durable updates, by slot and number of clients.
pub fn writes(seconds: u32) -> Result<(), String> {
    for slot_ms in [50, 100, 250] {
        for clients in [2, 8, 16] {
            let run = Run::new("writes", &against_itself("interleaved", true, "u", clients, Some(slot_ms), seconds));
            tell_halves(&format!("{slot_ms} ms, {clients} clients"), &assessed(&read(&run.finish()?)));
        }
    }
    Ok(())
}

/// Every metric of the only comparison: its effect, whose true value is 0, and its half-width for a minute of two arms.
fn tell_halves(what: &str, report: &Value) {
    print!("{what:<24}");
    for name in ["time", "net", "cpu"] {
        let Some(estimate) = find(report, 0, 1, name) else { continue };
        let (low, high) = ends(&estimate["effect"]);
        let load_s = estimate["frames_s"].as_f64().unwrap_or(f64::NAN);
        let per_minute = (high - low) / 2.0 * (load_s / 60.0).sqrt();
        print!(" {name} {} (±{:.2} % a minute)", percent((low, high)), 100.0 * per_minute);
    }
    println!("; {}", host(&report["cells"][0]));
}

/// The report of `records`, each estimate with the seconds of load of the whole cell.
fn assessed(records: &Records) -> Value {
    let frame_s = records.plan.cells[0].frame_ns(records.plan.experiment.arms.len()) as f64 / 1e9;
    let frames = records.frames.iter().filter(|frame| !frame.free && frame.invalid.is_none()).count();
    let mut report = serde_json::to_value(assess(records)).expect("an analysis is JSON");
    for estimate in report["cells"][0]["arms"][1]["estimates"].as_array_mut().into_iter().flatten() {
        estimate["frames_s"] = Value::from(frames as f64 * frame_s);
    }
    report
}
