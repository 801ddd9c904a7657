//! `tithe run`: measure, write the run folder, report.

use std::path::{Path, PathBuf};

use tithe_analysis::{
    Analysis,
    report::{self, html::PageData},
};
use tithe_harness::{
    arms,
    folder::{self, RunFolder},
    run::{Ending, Run},
};
use tithe_machine::{
    fault::Fault,
    launch::{Install, Search},
    sandbox::Sandbox,
    watch::host,
};
use tithe_model::{
    ending::CellEnding,
    experiment::{Arm, Experiment},
    parse::{DESIGNS, aa_arm_of},
    plan::{self, Plan},
    record::Event,
    records::Records,
};

use crate::{
    RunArgs, allowed, asked,
    commands::child,
    exit::{self, Stop},
    interrupt, offer,
    prepare::{self, Prepared},
    progress::{self, Progress},
    records, shown, team,
};

/// Number of attempts to make a folder whose name other runs may take.
const NAME_TRIES: u32 = 10;

/// Runs the command; returns the exit status.
pub fn run(arguments: &RunArgs) -> Result<i32, Stop> {
    let options = &arguments.asked.experiment;
    let (prepared, begun, before) = match &arguments.resume {
        Some(path) => {
            let (prepared, folder, before) = resume(path, arguments)?;
            (prepared, Some(folder), before)
        }
        None => {
            let prepared = new(arguments)?;
            enough_disk(&prepared.plan, &options.runs)?;
            allowed::begin(&options.runs, &prepared.text, &prepared.plan.experiment);
            (prepared, None, None)
        }
    };
    let damaged = before.as_ref().and_then(|records| exit::of_damage(begun.as_ref()?.path(), &records.damage));
    let cancelled = interrupt::listen();
    let asked = team::AgentRequest::of(&arguments.team, &prepared.plan, prepared.database)?;
    let team = asked.as_ref().map(|asked| asked.gather(&prepared.plan, cancelled)).transpose()?;
    let mut folder = begun.map_or_else(|| create(&prepared, &options.runs), Ok)?;
    let Prepared { plan, database, installs, workloads, .. } = prepared;
    let mut progress = Progress::new(&plan, arguments.quiet, before.as_ref());
    progress.say(&plan::head(&plan, &offer::catalogue()));
    let run = Run::new(database, installs, &plan, &workloads, cancelled)?.loaded_by(team.as_ref());
    let run = child::may_start(run, &options.machine);
    let ending = run.carry_out(&mut folder, before.as_ref(), &mut progress)?;
    drop(progress);
    let path = folder.path().to_owned();
    drop(folder);
    let assessed = records::assess(&path)?;
    let analysis = &assessed.analysis;
    if ending == Ending::Failed && analysis.cells.iter().all(|cell| cell.frames == 0) {
        let document = report::json::render(analysis, &assessed.page_data);
        write(&path.join("report.json"), &document)?;
        if arguments.json {
            crate::shown::show!("{document}");
        }
        return Err(nothing_measured(&path, analysis, &plan.experiment));
    }
    write_reports(&path, analysis, &assessed.page_data)?;
    if arguments.json {
        crate::shown::show!("{}", report::json::render(analysis, &assessed.page_data));
    } else if arguments.ycsb_output {
        crate::shown::show!("{}", report::ycsb::render(&folder::read(&path)?));
    } else {
        let options = report::terminal::Options {
            form: report::view::Form::Answer,
            width: progress::columns().min(120),
            colour: true,
        };
        crate::shown::show!("{}", report::terminal::render(analysis, options));
        crate::shown::showln!(
            "\nthe page: {}\nthe rest: tithe report {}",
            path.join("report.html").display(),
            path.display()
        );
        if ending != Ending::Complete && can_go_on(&plan.experiment) {
            crate::shown::showln!("continue: tithe run --resume {}", path.display());
        }
    }
    let damaged = exit::of_damage(&path, &assessed.damage).or(damaged);
    Ok(damaged.unwrap_or_else(|| status(ending, analysis)))
}

/// A new run.
fn new(arguments: &RunArgs) -> Result<Prepared, Stop> {
    let asked = &arguments.asked;
    let source = asked::source(asked, "run")?;
    let mut refused = None;
    let change = |experiment: &mut Experiment| {
        let search = offer::search(&asked.experiment.machine);
        let folder = arguments.against.as_deref().map(|path| programs(path, &experiment.database, &search));
        match folder.transpose() {
            Ok(folder) => change(experiment, arguments, folder.as_deref()),
            Err(stop) => refused = Some(stop),
        }
    };
    let prepared = prepare::prepare_source(source, &asked.experiment, asked.quick, change);
    if let Some(stop) = refused {
        return Err(stop);
    }
    let prepared = prepared?;
    if arguments.against.is_some() && prepared.plan.experiment.is_attached() {
        let why = "--against is about two builds that tithe starts, and this experiment attaches to running servers";
        return Err(Stop::new(exit::USAGE, format!("{why}; nothing was started")));
    }
    if let Some(path) = arguments.against.as_deref().filter(|_| compares_one_build(&prepared)) {
        let words = "is the installed build itself, so there is nothing to compare: name another build";
        return Err(Stop::new(exit::USAGE, format!("--against {}: it {words}; nothing was started", path.display())));
    }
    if arguments.show_experiment {
        shown::write_err(&prepared.text);
    }
    Ok(prepared)
}

/// True if the programs that the first arm names are the installed ones in some cell.
fn compares_one_build(prepared: &Prepared) -> bool {
    let arm = prepared.plan.experiment.arms.first();
    let named = |install: &Install| arms::install_of(prepared.database, arm?, install).ok();
    prepared.installs.iter().any(|install| named(install).is_some_and(|named| is_one_build(&named, install)))
}

/// True if the programs of both are in one folder, whatever links lead there.
fn is_one_build(one: &Install, other: &Install) -> bool {
    let real = |install: &Install| install.programs.canonicalize().ok();
    real(one).is_some_and(|folder| Some(folder) == real(other))
}

/// The folder of the programs that `path` means: it is that folder, one of the programs, or an installed version.
fn programs(path: &Path, database: &str, search: &Search) -> Result<PathBuf, Stop> {
    let is_version = |words: &&str| !words.is_empty() && words.chars().all(|sign| sign.is_ascii_digit() || sign == '.');
    if let (Some(words), false) = (path.to_str().filter(is_version), path.exists()) {
        return offer::of_version(offer::database(database)?, words, search);
    }
    let cannot = |error| Stop::new(exit::USAGE, format!("--against {}: {error}; nothing was started", path.display()));
    let path = path.canonicalize().map_err(cannot)?;
    let folder = if path.is_file() { path.parent().map(Path::to_owned) } else { None };
    Ok(folder.unwrap_or(path))
}

/// Replaces the arms by two builds of the server: its plain set-up with the programs in `folder`, and with the
/// installed ones.
fn two_builds(experiment: &mut Experiment, folder: &Path) {
    let Some(plain) = experiment.arms.first().cloned() else { return };
    let with_aa = experiment.arms.iter().any(|arm| arm.aa);
    let arm = |name: &str, programs| Arm { name: name.to_owned(), programs, ..plain.clone() };
    experiment.arms = vec![arm("against", Some(folder.to_owned())), arm("installed", None)];
    let aa_arm = if with_aa { aa_arm_of(&experiment.arms) } else { None };
    experiment.arms.extend(aa_arm);
    // They belong to the arms that are left out.
    experiment.published.clear();
    experiment.title = format!("{}: installed against {}", experiment.title, folder.display());
}

/// Applies the options to the experiment.
fn change(experiment: &mut Experiment, arguments: &RunArgs, against: Option<&Path>) {
    if let Some(folder) = against {
        two_builds(experiment, folder);
    }
    if arguments.aa_arm {
        let aa_arm = aa_arm_of(&experiment.arms);
        experiment.arms.extend(aa_arm);
    }
    experiment.measure.until_decided |= arguments.until_decided;
    experiment.measure.profile |= arguments.profile;
    if let Some((_, design)) = DESIGNS.iter().find(|(name, _)| arguments.design.as_deref() == Some(*name)) {
        experiment.measure.design = *design;
    }
}

/// The exit status for a finished run.
fn status(ending: Ending, analysis: &Analysis) -> i32 {
    match ending {
        Ending::Interrupted => exit::INTERRUPTED,
        Ending::Failed => exit::FAILED,
        Ending::Complete if analysis.cells.iter().any(|cell| cell.frames == 0) => exit::FAILED,
        Ending::Complete => exit::of_proofs(analysis.cells.iter().flat_map(|cell| &cell.arms).map(|arm| &arm.proof)),
    }
}

/// Writes the reports into the run folder.
pub fn write_reports(path: &Path, analysis: &Analysis, page_data: &PageData) -> Result<(), Stop> {
    let reports = [
        ("report.html", report::html::render(analysis, page_data)),
        ("report.md", report::markdown::render(analysis, report::view::Form::Long)),
        ("report.json", report::json::render(analysis, page_data)),
        ("report.csv", report::csv::render(analysis)),
    ];
    reports.into_iter().try_for_each(|(name, text)| write(&path.join(name), &text))
}

/// Writes a report as a whole: on a full disk, no half report replaces a complete one.
fn write(path: &Path, text: &str) -> Result<(), Stop> {
    Ok(folder::replace(path, shown::harmless(text).as_bytes())?)
}

/// The message if nothing was measured, in place of a report: each reason once, and what to do next.
fn nothing_measured(path: &Path, analysis: &Analysis, experiment: &Experiment) -> Stop {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &analysis.cells {
        let Some(CellEnding::Failed(reason)) = &cell.ending else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, cells)) => cells.push(&cell.id),
            None => reasons.push((reason.clone(), vec![&cell.id])),
        }
    }
    let mut message = "tithe: nothing was measured\n".to_owned();
    for (reason, cells) in reasons {
        let of = if cells.len() == analysis.cells.len() { String::new() } else { format!("{}: ", cells.join(", ")) };
        message += &format!("  {of}{reason}\n");
    }
    let again = match can_go_on(experiment) {
        true => format!("then tithe run --resume {}", path.display()),
        false => "and run the command again".to_owned(),
    };
    message += &format!("next: fix that, {again}\n");
    if experiment.is_attached() {
        message += "      `tithe doctor URL` prints everything that a server lacks as statements to paste\n";
    }
    Stop { message: message + &format!("records: {}\n", path.display()), status: exit::FAILED }
}

/// Makes the folder of a new run, named by time and title.
pub fn create(prepared: &Prepared, runs: &Path) -> Result<RunFolder, Stop> {
    let stamp = stamp(time::OffsetDateTime::now_utc());
    let slug: String = folder::plain_name(&prepared.plan.experiment.database);
    std::fs::create_dir_all(runs)
        .map_err(|error| Stop::new(exit::MACHINE, format!("cannot create {}: {error}", runs.display())))?;
    let machine = host::machine(runs);
    let make = |path: &Path| RunFolder::create(path, &prepared.text, &prepared.plan, &machine);
    Ok(at_free_name(&runs.join(format!("{stamp}-{slug}")), make)?)
}

/// What `make` makes at `path`, or at `path` with the first free number added: two runs may start in the same second.
/// If another run takes that name first, the next free one is tried.
pub fn at_free_name<T>(path: &Path, make: impl Fn(&Path) -> Result<T, Fault>) -> Result<T, Fault> {
    let mut tries = 1..NAME_TRIES;
    loop {
        let free = free_name(path);
        match make(&free) {
            Err(_) if free.exists() && tries.next().is_some() => {}
            made => return made,
        }
    }
}

/// When a run began, as in the name of its folder: `2026-11-23T02-09-46`.
fn stamp(now: time::OffsetDateTime) -> String {
    let (year, month, day) = now.to_calendar_date();
    let (hour, minute, second) = now.to_hms();
    format!("{year:04}-{:02}-{day:02}T{hour:02}-{minute:02}-{second:02}", u8::from(month))
}

/// `path`, or `path` with the first free number added.
fn free_name(path: &Path) -> PathBuf {
    if !path.exists() {
        return path.to_owned();
    }
    let numbered = |number: u32| {
        path.with_file_name(format!("{}-{number}", path.file_name().unwrap_or_default().to_string_lossy()))
    };
    (2..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| path.to_owned())
}

/// Resumes a run that ended early. Its folder is not changed until it is certain that it can be resumed.
fn resume(path: &Path, arguments: &RunArgs) -> Result<(Prepared, RunFolder, Option<Records>), Stop> {
    let (Records { mut plan, .. }, _) = folder::open(path)?;
    let filled = plan.fit(&offer::catalogue()).map_err(|flaws| unfit(path, &flaws))?;
    complete_urls(&mut plan.experiment)?;
    let text = std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default();
    allowed::check_records(path, &text, &plan.experiment, arguments.asked.experiment.allow_commands)?;
    let prepared = prepare::of_plan(text, plan, &arguments.asked.experiment.machine)?;
    let (mut folder, records) = RunFolder::resume(path)?;
    for what in &filled {
        let message = format!("plan.json lacks {what}");
        crate::shown::telln!("tithe: {}: {message}", path.display());
        folder.event(&Event::Warning { message })?;
    }
    // From here on plan.json is the plan, independent of the defaults of the build that resumes it. Printed first,
    // because nothing is filled in later.
    if !filled.is_empty() {
        folder.plan(&prepared.plan)?;
    }
    // From here on the files no longer show the damage.
    for message in records.damage.iter().cloned() {
        folder.event(&Event::Warning { message })?;
    }
    Ok((prepared, folder, Some(records)))
}

/// True if records contain everything that a later process needs to reach the servers of `experiment`, except
/// passwords.
fn can_go_on(experiment: &Experiment) -> bool {
    experiment.arms.iter().filter_map(|arm| arm.url.as_ref()).all(|url| url.of_records().is_some())
}

/// Completes the URLs of an `experiment` from records. Passwords come from the same source as at the start. A password
/// that was in a URL is not recorded, and must come from the environment.
fn complete_urls(experiment: &mut Experiment) -> Result<(), Stop> {
    let catalogue = offer::catalogue();
    let variable = catalogue.database(&experiment.database).map_or("", |database| database.entry.password_variable);
    let is_given = !variable.is_empty() && std::env::var_os(variable).is_some();
    for arm in &mut experiment.arms {
        let Some(url) = &mut arm.url else { continue };
        let why = match url.of_records() {
            Some(whole) if whole == *url || is_given => {
                *url = whole;
                continue;
            }
            Some(_) => format!("the password that was in the URL of arm {}: give it by {variable}", arm.name),
            None => format!(
                "the whole URL of arm {}, because one of its options may hold a password: run the experiment again, and \
                 give the password by {variable}",
                arm.name
            ),
        };
        return Err(Stop::new(exit::USAGE, format!("records do not hold {why}; nothing was started")));
    }
    Ok(())
}

/// Why this build cannot continue the plan of the run folder at `path`.
fn unfit(path: &Path, flaws: &[String]) -> Stop {
    let plan = path.join("plan.json");
    let experiment = path.join("experiment.toml");
    Stop::new(
        exit::USAGE,
        format!(
            "{} is not a plan that this tithe ({}) can go on with; another version wrote it, or it was changed:\n  {}\n\
             go on with the version that began the run (`run-started` in events.jsonl), or measure again: tithe run {}; \
             nothing was started",
            plan.display(),
            env!("CARGO_PKG_VERSION"),
            flaws.join("\n  "),
            experiment.display()
        ),
    )
}

/// Refuses to start a run that will not fit on the disk.
pub fn enough_disk(plan: &Plan, runs: &Path) -> Result<(), Stop> {
    let needed = tithe_model::plan::disk_bytes(plan, &offer::catalogue()) as u64;
    let existing = runs.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    // The data are elsewhere if the servers' account cannot enter that folder, as below /root.
    let existing = Sandbox::parent_of(existing)?;
    match host::free_bytes(&existing) {
        Some(free) if free < needed => Err(Stop::new(
            exit::MACHINE,
            format!(
                "the data of this experiment needs about {} MB, and {} has {} MB free; use fewer records or arms, or another --runs folder; nothing was started",
                needed / 1_000_000,
                existing.display(),
                free / 1_000_000
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_another_run_takes_first_is_left_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        let make = |free: &Path| {
            let is_taken = !path.exists();
            std::fs::create_dir(free).expect("made");
            if is_taken { Err(Fault::Machine("it is there".to_owned())) } else { Ok(free.to_owned()) }
        };
        assert_eq!(at_free_name(&path, make), Ok(folder.path().join("run-2")));
        let full = Fault::Machine("the disk is full".to_owned());
        assert_eq!(at_free_name(&folder.path().join("other"), |_| Err::<(), _>(full.clone())), Err(full.clone()));
    }

    #[test]
    fn a_report_is_replaced_as_a_whole_or_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let read = || std::fs::read_to_string(&path).expect("a report");
        assert!(write(&path, "first").is_ok() && read() == "first");
        // A folder in the way, in place of a full disk.
        std::fs::create_dir(folder.path().join("report.next")).expect("made");
        assert!(write(&path, "second").is_err_and(|stop| stop.message.contains("cannot write ")) && read() == "first");
    }

    #[test]
    fn a_build_is_the_same_whatever_links_lead_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let [before, linked, after] = ["before", "linked", "after"].map(|name| folder.path().join(name));
        for build in [&before, &after] {
            std::fs::create_dir(build).expect("a folder");
        }
        std::os::unix::fs::symlink(&before, &linked).expect("a link");
        let of = |folder: &Path| Install { programs: folder.to_owned(), ..Install::default() };
        let one = |other: &Path| is_one_build(&of(&before), &of(other));
        assert_eq!([&*before, &*linked, &*after, Path::new("")].map(one), [true, true, false, false]);
    }

    #[test]
    fn folders_are_named_so_that_they_sort_by_time() {
        let moment = time::OffsetDateTime::from_unix_timestamp(1_772_503_629).expect("a moment");
        assert_eq!(stamp(moment), "2026-03-03T02-07-09");
    }
}
