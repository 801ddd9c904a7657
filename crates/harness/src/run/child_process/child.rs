//! The child's side: opens the database of all arms and measures the frames that it is asked for.

use std::{
    io::{BufRead, Write},
    path::PathBuf,
    sync::atomic::AtomicBool,
};

use serde::de::DeserializeOwned;
use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    launch::{Install, Place, Search, Server},
    secret::Secret,
};
use tithe_model::plan::FRAMES_MIN;
use tithe_plugin::{product::Product, workload::Workload};

use super::{ChildSetup, FrameReply, FrameRequest, Keys, MeasuredFrame};
use crate::{
    agents::message,
    arms::{self, Resolved},
    load::frame::{CellRunner, StartedArm},
};

/// Measures frames of one of `products` as `requests` ask for them, and writes each to `answers`, until there are no
/// more requests. `search` is where its library is searched for; `cancelled` ends a frame early.
///
/// # Errors
/// When `requests` do not begin as Tithe's own do; when something that they need is not available here, or an answer
/// cannot be written.
pub fn serve(
    products: &[&'static dyn Product],
    search: &Search,
    requests: &mut dyn BufRead,
    answers: &mut dyn Write,
    cancelled: &AtomicBool,
) -> Result<(), Fault> {
    let child_setup: ChildSetup = next(requests)?.ok_or_else(uncalled)?;
    let id = &child_setup.plan.experiment.database;
    let product = products.iter().copied().find(|product| product.id() == id);
    let product = product.ok_or_else(|| Fault::Machine(format!("this build of tithe has no database {id}")))?;
    let missing = |missing: tithe_machine::launch::Missing| Fault::Machine(format!("{} is not here", missing.what));
    let install = product.find(search).map_err(missing)?;
    let experiment = &child_setup.plan.experiment;
    let described = experiment.workloads.get(child_setup.cell.workload).ok_or_else(uncalled)?;
    let workload =
        tithe_workloads::make(described, &experiment.data, experiment.measure.seed).map_err(Fault::Machine)?;
    let mut runner = runner(&child_setup, product, &install, workload.as_ref())?;
    while let Some(asked) = next::<FrameRequest>(requests)? {
        let answer = answer(&mut runner, product, asked, cancelled);
        let written = message::write(&answer)?;
        let failed = |error| Fault::machine("an answer cannot be written", error);
        answers.write_all(&[written.as_slice(), b"\n"].concat()).and_then(|()| answers.flush()).map_err(failed)?;
    }
    runner.arms().iter().for_each(|arm| product.close(&arm.server));
    Ok(())
}

/// The next message; `None` when there are no more.
fn next<T: DeserializeOwned>(requests: &mut dyn BufRead) -> Result<Option<T>, Fault> {
    let mut request = Vec::new();
    let length = requests.read_until(b'\n', &mut request);
    match length.map_err(|error| Fault::machine("the standard input", error))? {
        0 => Ok(None),
        _ => message::read(&request).map(Some).ok_or_else(uncalled),
    }
}

/// The error for callers of [`serve`] other than Tithe.
pub fn uncalled() -> Fault {
    Fault::Refused("tithe runs this command itself for every start of an embedded database: use `tithe run`".to_owned())
}

/// The cell of `child_setup`, ready to be measured.
fn runner<'a>(
    child_setup: &ChildSetup,
    product: &'a dyn Product,
    install: &Install,
    workload: &'a dyn Workload,
) -> Result<CellRunner<'a>, Fault> {
    let ChildSetup { plan, number, cell, folders, keys } = child_setup;
    let described = arms::resolve(product, &plan.experiment)?;
    let credentials = keys.credentials().ok_or_else(uncalled)?;
    let column_keys = keys.columns.iter().map(|key| key.as_deref().and_then(Secret::of_hex));
    let mut started = Vec::with_capacity(described.len());
    for ((resolved, folder), column_key) in described.iter().zip(folders).zip(column_keys) {
        let Resolved { arm, .. } = resolved;
        let setup = resolved.setup_with(plan, cell, &credentials, column_key);
        let launch = product.launch(install, &setup, &place(folder.clone()));
        let server = Server::embedded(&launch, folder);
        let data = started.len();
        let (on, off) = (arm.on.clone(), arm.off.clone());
        started.push(StartedArm { server, data, shares_server: false, setup, on, off });
    }
    if started.len() < plan.experiment.arms.len() {
        return Err(uncalled());
    }
    let slot_fixed = plan.experiment.measure.slot_ms.is_some();
    let longest_ns = cell.budget_ns(started.len()) / u64::from(FRAMES_MIN);
    let runner = CellRunner::new(product, workload, cell, *number, slot_fixed, started);
    let cold = plan.experiment.resources[cell.resources].limits.cold;
    Ok(runner.in_frames_of(longest_ns).freshly_started().left_cold(cold))
}

/// An embedded database has no port.
fn place(folder: PathBuf) -> Place {
    Place::on_loopback(folder, 0)
}

impl Keys {
    /// The credentials of all arms; `None` if these are not keys in Tithe's form.
    fn credentials(&self) -> Option<Credentials> {
        let (password, key) = (Secret::of_hex(&self.password)?, Secret::of_hex(&self.key)?);
        // Certificates are for servers.
        let mut credentials = Credentials::without_files(password, key);
        credentials.second_key = Secret::of_hex(&self.second_key)?;
        Some(credentials)
    }
}

fn answer(
    runner: &mut CellRunner<'_>,
    product: &dyn Product,
    asked: FrameRequest,
    cancelled: &AtomicBool,
) -> FrameReply {
    let FrameRequest { frame, epoch, start, free, profiled, runner_state } = asked;
    runner.go_on(runner_state);
    if profiled {
        runner.profile_next();
    }
    match runner.frame(frame, (epoch, start), free, cancelled) {
        Ok(Some((frame, slots))) => {
            let counts = |arm: &StartedArm| {
                let used = product.cache_use(&arm.server, &arm.setup)?;
                Some((used.asked, used.missed))
            };
            let cache_use = runner.arms().iter().map(counts).collect();
            FrameReply::MeasuredFrame(Box::new(MeasuredFrame {
                frame,
                slots,
                runner_state: runner.runner_state(),
                cache_use,
                profile: runner.take_profile(),
            }))
        }
        Ok(None) => FrameReply::Cancelled,
        Err(fault) => FrameReply::Failed(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tithe_plugin::{
        setup::{Columns, Setup},
        simulated::test_bench::Bench,
    };

    use super::*;

    #[test]
    fn a_child_has_the_keys_of_its_parent() {
        let bench = Bench::plain();
        let arm = |columns: Option<Columns>| {
            let (server, data, shares_server) = (bench.server.clone(), 0, false);
            let mut setup = Setup { columns, ..bench.setup.clone() };
            setup.credentials.second_key = Secret::new([3; 32]);
            StartedArm { server, data, shares_server, setup, on: Vec::new(), off: Vec::new() }
        };
        let arms = [None, Some(Columns::of_share(1.0, Secret::new([7; 32])))].map(arm);
        let keys = Keys::of(&arms);
        let (sent, made) = (&arms[0].setup.credentials, keys.credentials().expect("keys"));
        let same = [sent.password == made.password, sent.key == made.key, sent.second_key == made.second_key];
        assert_eq!(same, [true; 3]);
        let columns: Vec<Option<Secret>> =
            keys.columns.iter().map(|key| key.as_deref().and_then(Secret::of_hex)).collect();
        assert!(columns == [None, Some(Secret::new([7; 32]))]);
        let is_refused = |change: fn(&mut Keys)| {
            let mut keys = Keys::of(&arms);
            change(&mut keys);
            keys.credentials().is_none()
        };
        assert!(is_refused(|keys| keys.password = "no key".to_owned()) && is_refused(|keys| keys.key = "x".to_owned()));
        assert!(is_refused(|keys| keys.second_key = "no key".to_owned()) && !is_refused(|_| ()));
    }

    fn refused(requests: &str) -> String {
        let (mut answers, cancelled) = (Vec::new(), AtomicBool::new(false));
        let outcome = serve(&[], &Search::default(), &mut requests.as_bytes(), &mut answers, &cancelled);
        assert!(answers.is_empty());
        outcome.expect_err("refused").to_string()
    }

    #[test]
    fn whoever_is_not_tithe_is_refused_and_not_quoted() {
        for requests in ["", "\n", "hello\n", "{\"plan\": \"a-key-in-hexadecimal\"}\n", "{}"] {
            let told = refused(requests);
            assert!(told.contains("tithe runs this command itself") && !told.contains("hexadecimal"), "{told}");
        }
    }
}
