//! The user's own data: restored into the server of an arm, or used by another program.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server, watch::host};
use tithe_model::{quantity, statement};
use tithe_plugin::{
    data,
    database::{Connect, sql_of},
    own_tables,
    restore::Restore,
    setup::{Setup, TablePlace},
    wire::is_this_machine,
    workload::{Load, Workload},
    workspace::Workspace,
};

use super::{EpochSetup, StartingArm};
use crate::run::{EpochPlan, Run, sharing};

/// Limit for the size of copies if the free disk space is unknown and the user sets no limit, bytes.
const UNSEEN_BYTES: u64 = 1_000_000_000;

/// The operations of `workload` that are statements, each with its text as reports show it. Their names are their
/// places, `app.sql:3`; whole scripts are named by their file.
pub(super) fn statements(workload: &dyn Workload) -> BTreeMap<String, String> {
    let all = workload.operations().into_iter().zip(workload.texts());
    let of_place = all.filter(|(name, text)| name.contains(':') && !text.is_empty());
    of_place.map(|(name, text)| (name.to_owned(), statement::shown(text))).collect()
}

/// Finds where the statements of `workload` run on servers that Tithe did not start, for all arms before anything is
/// created there. `setups` are those of the arms of `run`.
///
/// # Errors
/// [`Fault::Refused`] with all obstacles on some arm; a server that cannot be reached.
pub(super) fn find_tables(run: &Run<'_>, workload: &dyn Workload, setups: &mut [Setup]) -> Result<(), Fault> {
    let Some(sql) = run.product.sql() else { return Ok(()) };
    let Some(mut asked) = workload.own_tables(sql.dialect().placeholder) else { return Ok(()) };
    // Arms that encrypt nothing are compared with those that do, so all of them have copies.
    asked.on_copies = setups.iter().filter_map(|setup| setup.columns.as_ref()).any(|columns| !columns.own.is_empty());
    let mut refused: Vec<(&str, String)> = Vec::new();
    for (arm, setup) in run.plan.experiment.arms.iter().zip(setups.iter_mut()) {
        let Some(url) = &arm.url else { continue };
        let own = sql.own_tables().ok_or_else(|| data::no_own_tables(run.product))?;
        let survey = own.survey(&sharing::at(url), setup);
        match survey.and_then(|mut survey| own_tables::place(survey.as_mut(), &asked)) {
            Ok(place) => setup.tables = place,
            Err(Fault::Refused(words)) if refused.iter().any(|(_, known)| *known == words) => {}
            Err(Fault::Refused(words)) => refused.push((&arm.name, words)),
            Err(fault) => return Err(fault.of(format_args!("arm {}", arm.name))),
        }
    }
    let mut lines: Vec<String> = refused.iter().map(|(arm, words)| format!("arm {arm}: {words}")).collect();
    lines.extend(too_large(run, setups, asked.copy_limit));
    if lines.is_empty() { Ok(()) } else { Err(Fault::Refused(lines.join("; besides, "))) }
}

/// Why copies cannot be made: the size of all copies on one server exceeds its free disk space, or the limit.
fn too_large(run: &Run<'_>, setups: &[Setup], limit: Option<u64>) -> Vec<String> {
    let mut servers: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
    for (arm, setup) in run.plan.experiment.arms.iter().zip(setups) {
        let (Some(url), TablePlace::Copied { room, .. }) = (&arm.url, &setup.tables) else { continue };
        let is_here = run.product.endpoint(url).is_some_and(|(host, _)| is_this_machine(&host));
        let folder = room.folder.as_deref().filter(|_| is_here);
        let (bytes, free) = servers.entry(sharing::place_of(url)).or_default();
        *bytes += room.bytes;
        *free = folder.and_then(host::free_bytes).or(*free);
    }
    servers.into_iter().filter_map(|(place, (bytes, free))| refusal(&place, bytes, free, limit)).collect()
}

/// Why copies of `bytes` cannot be made at `place`, whose disk has `free` bytes if that is known, else by the `limit`.
fn refusal(place: &str, bytes: u64, free: Option<u64>, limit: Option<u64>) -> Option<String> {
    let takes = format!("copies of your tables take {} at {place}", quantity::size(bytes));
    match free {
        Some(free) if bytes > free => {
            Some(format!("{takes}, and its disk has {} free: make room for them", quantity::size(free)))
        }
        None if bytes > limit.unwrap_or(UNSEEN_BYTES) => Some(format!(
            "{takes}, and how much its disk has free is not known: write `copy_limit = \"{}\"` into the \
             `[[workload]]` to allow it",
            quantity::size(bytes.saturating_add(bytes / 10))
        )),
        _ => None,
    }
}

impl EpochSetup<'_> {
    /// Restores `data` of the user's own into the server of one arm.
    pub(super) fn restore(
        &mut self,
        run: &Run<'_>,
        data: &dyn Restore,
        workload: &dyn Workload,
        number: usize,
        (server, setup): (&Server, &Setup),
    ) -> Result<(), Fault> {
        if run.product.entry().wire_protocol.is_none() {
            let how = Connect::blocking(workload.table());
            return data.through(sql_of(run.product)?.connect(server, setup, &how)?.as_mut());
        }
        let workspace = Workspace::for_restore(data, run.product, server, setup)?;
        let arm = &run.names.arms[number];
        let restored = workspace.restore(data, run.cancelled);
        self.logs.push((format!("{arm}--restore"), workspace.log()));
        workspace.clear_data();
        restored
    }

    /// Makes the place where another program works on the user's own data, which the program does not load itself.
    pub(super) fn place_program(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        starting: &StartingArm<'_>,
    ) -> Result<(), Fault> {
        let workload = run.workloads[part.cell.workload].as_ref();
        let (Load::Program(program), Some(_)) = (workload.offered_by(), workload.restore()) else { return Ok(()) };
        let Some(server) = self.servers.get(&starting.number).map(|standing| standing.server.clone()) else {
            return Ok(());
        };
        self.prepare_program(run, program, workload, starting.number, &server, &starting.setup)
    }
}

#[cfg(test)]
mod tests {
    use tithe_plugin::session::Table;

    use super::*;

    #[test]
    fn copies_have_room_on_their_disk_or_within_a_limit() {
        const GB: u64 = 1_000_000_000;
        for (bytes, free, limit, fits) in [
            (5, Some(5), None, true),
            (6, Some(5), None, false),
            (5, Some(5), Some(1), true),
            (GB, None, None, true),
            (GB + 1, None, None, false),
            (5, None, Some(5), true),
            (6, None, Some(5), false),
        ] {
            assert_eq!(refusal("db:1", bytes, free, limit).is_none(), fits, "{bytes} {free:?} {limit:?}");
        }
        let full = refusal("db:1", 2 * GB, Some(GB), None).unwrap_or_default();
        let takes = "copies of your tables take 2.0 GB at db:1";
        assert_eq!(full, format!("{takes}, and its disk has 1.0 GB free: make room for them"));
        let unknown = refusal("db:1", 2 * GB, None, None).unwrap_or_default();
        assert!(unknown.contains("write `copy_limit = \"2.2 GB\"` into the `[[workload]]`"), "{unknown}");
    }

    /// Operations with their texts.
    struct Listed;

    impl Workload for Listed {
        fn offered_by(&self) -> Load<'_> {
            panic!("nothing is offered")
        }

        fn operations(&self) -> Vec<&str> {
            vec!["app.sql:3", "app.sql:4", "app.sql"]
        }

        fn texts(&self) -> Vec<&str> {
            vec!["SELECT 1", "", "SELECT 1; SELECT 2"]
        }

        fn writes(&self) -> bool {
            false
        }

        fn table(&self) -> Table {
            Table::of_canaries()
        }

        fn describe(&self) -> Vec<(String, String)> {
            Vec::new()
        }
    }

    #[test]
    fn statements_are_operations_with_a_place_and_a_text() {
        let all = statements(&Listed);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["app.sql:3"]);
        assert_eq!(all["app.sql:3"], statement::shown("SELECT 1"));
    }
}
