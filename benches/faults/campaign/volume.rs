//! What befalls a volume below a running server: its mount, its image, its room.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use super::{
    case::Run,
    draw::Draw,
    fault::{Fault, How},
    product::Kind,
};

const BARE: Fault = Fault {
    on: |kind| kind == Kind::OnVolume,
    statuses: &[1, 4, 5, 7],
    patience: Duration::from_secs(240),
    ..Fault::BARE
};

pub const FAULTS: &[Fault] = &[
    Fault { name: "volume unmounted", how: How::At(|run, _, draw| at_mount(run, draw, &["umount", "-l"])), ..BARE },
    Fault {
        name: "volume frozen and thawed",
        how: How::At(|run, _, draw| {
            let Some(volume) = volumes(run, draw) else { return false };
            let frozen = run_tool(&["fsfreeze", "-f"], &volume);
            std::thread::sleep(Duration::from_millis(100 + draw.below(2000)));
            run_tool(&["fsfreeze", "-u"], &volume);
            frozen
        }),
        ..BARE
    },
    Fault {
        name: "volume filled",
        how: How::At(|run, _, draw| {
            let Some(volume) = volumes(run, draw) else { return false };
            let left_kib = draw.below(64);
            let free = rustix::fs::statvfs(&volume).map_or(0, |it| it.f_bavail * it.f_frsize / 1024);
            let length = (free.saturating_sub(left_kib) * 1024).to_string();
            run_tool(&["fallocate", "-l", &length], &volume.join("ballast"))
        }),
        ..BARE
    },
    Fault {
        name: "image below it truncated",
        how: How::At(|run, _, draw| {
            with_image(run, draw, |image, draw| {
                let file = File::options().write(true).open(&image)?;
                file.set_len(file.metadata()?.len() / 1024 * draw.below(1024))
            })
        }),
        ..BARE
    },
    Fault {
        name: "image below it deleted",
        how: How::At(|run, _, draw| with_image(run, draw, |image, _| fs::remove_file(image))),
        ..BARE
    },
];

fn at_mount(run: &mut Run, draw: &mut Draw, words: &[&str]) -> bool {
    volumes(run, draw).is_some_and(|volume| run_tool(words, &volume))
}

fn run_tool(words: &[&str], at: &std::path::Path) -> bool {
    Command::new(words[0]).args(&words[1..]).arg(at).output().is_ok_and(|output| output.status.success())
}

/// A drawn mount in the sandbox of `run`.
fn volumes(run: &mut Run, draw: &mut Draw) -> Option<PathBuf> {
    let mark = format!("tithe-sandbox-{}-", run.id());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points: Vec<PathBuf> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|at| at.contains(&mark))
        .map(Into::into)
        .collect();
    (!points.is_empty()).then(|| draw.pick(&points).clone())
}

/// Does `work` with the image behind a drawn loop device of `run`.
fn with_image(run: &mut Run, draw: &mut Draw, work: impl FnOnce(PathBuf, &mut Draw) -> std::io::Result<()>) -> bool {
    let mark = format!("tithe-sandbox-{}-", run.id());
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let images = devices.filter_map(|it| fs::read_to_string(it.path().join("loop/backing_file")).ok());
    let images: Vec<PathBuf> =
        images.filter(|image| image.contains(&mark)).map(|image| image.trim_end().into()).collect();
    !images.is_empty() && work(draw.pick(&images).clone(), draw).is_ok()
}

/// Only root makes volumes, and only where there are loop devices.
pub fn is_possible() -> bool {
    rustix::process::geteuid().is_root()
        && Command::new("losetup").arg("--find").output().is_ok_and(|it| it.status.success())
}
