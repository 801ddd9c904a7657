//! Further starts within an epoch: every server again, on its current data or on the loaded data.

use std::{collections::BTreeMap, time::Instant};

use tithe_machine::{
    fault::Fault,
    launch::{Launch, Server},
};
use tithe_model::plan::Starts;
use tithe_plugin::{
    checks::scan::{Places, files_of},
    data,
    setup::Setup,
    workload::Workload,
};

use super::{
    EpochSetup,
    fill::{fill_caches, run_statements},
    undo::Administered,
};
use crate::{
    load::frame::StartedArm,
    run::{
        EpochPlan, Run,
        arm_server::ArmServer,
        cache,
        data_sets::{self, DataSets, Fingerprint},
        draw::{Draw, in_order},
        together::together,
    },
};

/// The parameters of a further start within an epoch.
pub(in crate::run) struct Again<'r> {
    pub run: &'r Run<'r>,
    pub part: &'r EpochPlan<'r>,
    pub data_sets: &'r DataSets,
    /// Its number, counted over the cell's epochs.
    pub start: u32,
    /// Data were changed since the last start.
    pub written: bool,
    /// The page cache is emptied while no server runs, and caches then stay empty.
    pub cold: bool,
}

/// The result of a further start.
pub(in crate::run) struct Restarted {
    /// How the page cache was emptied, if it was.
    pub emptied: Option<&'static str>,
    /// The loaded data were put back.
    pub put_back: bool,
    /// How long stopping the servers took, s.
    pub stop_s: f64,
    /// How long it took to put the data back and write them to the disk, s.
    pub put_back_s: f64,
    /// How long it took until all servers answered and their caches were filled, s.
    pub start_s: f64,
}

impl EpochSetup<'_> {
    /// Restarts every server of `arms` on its current data. If data were written and the loaded set is kept, it
    /// restarts on that. The place of a server's memory, and how its code shares the caches, are random and stay the
    /// same until the server ends; they would look like a cost.
    ///
    /// All servers are asked to stop before the first is waited for, and all are started before the first is waited
    /// for.
    pub(in crate::run) fn restart(&mut self, again: &Again<'_>, arms: &mut [StartedArm]) -> Result<Restarted, Fault> {
        let put_back = again.written && !self.put_back.is_empty();
        let workload = again.run.workloads[again.part.cell.workload].as_ref();
        if again.written && !put_back {
            together(arms.iter(), |arm| data::quiesce(self.database, &arm.server, &arm.setup, workload))?;
        }
        let draw = Draw::of(again.part.cell.seed, again.start, arms.len());
        let began = Instant::now();
        let mut launches = self.stop_all(put_back);
        let stopped = Instant::now();
        if put_back {
            self.put_data_back(again.data_sets, &draw)?;
        }
        let has_data = Instant::now();
        let limits = again.run.plan.experiment.resources[again.part.cell.resources].limits;
        // Tithe's copies are charged to Tithe, and would be a cache outside the limit of every server.
        let emptied = again.cold || (put_back && limits.memory.is_some());
        let emptied = emptied.then(|| self.empty_cache()).transpose()?;
        if self.database.embedded() && emptied.is_none() {
            self.redraw_cache(&draw)?;
        }
        for &number in &draw.order {
            let Some(launch) = launches.remove(&number) else { continue };
            self.begin_again(again, workload, number, (launch, &arms[number].setup), draw.paddings[number])?;
        }
        self.await_all(again, (put_back, &draw), arms)?;
        for (number, arm) in arms.iter_mut().enumerate() {
            let standing = self.servers.get(&number);
            standing.into_iter().for_each(|standing| arm.server = standing.server.clone());
        }
        Ok(Restarted {
            emptied,
            put_back,
            stop_s: (stopped - began).as_secs_f64(),
            put_back_s: (has_data - stopped).as_secs_f64(),
            start_s: has_data.elapsed().as_secs_f64(),
        })
    }

    /// Stops every server that Tithe started, at once if it is to `discard` what it has not written. Returns the
    /// launches to start them again. Embedded databases are closed.
    fn stop_all(&mut self, discard: bool) -> BTreeMap<usize, Launch> {
        self.servers.values_mut().for_each(|standing| standing.ask_to_stop(discard));
        if self.database.embedded() {
            self.servers.values().for_each(|standing| self.database.close(&standing.server));
        }
        let stopped = self.servers.iter_mut().filter_map(|(number, standing)| Some((*number, standing.stopped()?)));
        stopped.collect()
    }

    /// Puts back the loaded data of every arm, whose server is stopped, in the drawn places and order: with more arms
    /// than processors some come first.
    fn put_data_back(&self, data_sets: &DataSets, draw: &Draw) -> Result<(), Fault> {
        let of_arm = |number: &usize| Some((&self.put_back[number], &self.servers.get(number)?.server));
        let arms: Vec<(&Fingerprint, &Server)> = self.put_back.keys().filter_map(of_arm).collect();
        DataSets::exchange(&arms, &draw.places)?;
        together(&draw.order, |number| {
            let fingerprint = self.put_back.get(number);
            let Some((standing, fingerprint)) = self.servers.get(number).zip(fingerprint) else { return Ok(()) };
            data_sets.restore(fingerprint, &standing.server.folder, &standing.server.paths).map(drop)
        })?;
        data_sets::sync(self.servers.values().map(|standing| standing.server.folder.as_path()))
    }

    /// Draws again where the files of embedded databases, which no process has open, lie in the page cache. Servers
    /// have their own memory for pages, which differs after each start.
    fn redraw_cache(&self, draw: &Draw) -> Result<(), Fault> {
        let standing = draw.order.iter().filter_map(|number| self.servers.get(number));
        let files = standing.flat_map(|standing| files_of(&standing.server, Places::ALL)).map(|file| file.path);
        cache::redraw(&files.collect::<Vec<_>>())
    }

    /// Starts the stopped server of arm `number` again, without waiting for it. It gets another port, unless its data
    /// or another program need the old one.
    fn begin_again(
        &mut self,
        again: &Again<'_>,
        workload: &dyn Workload,
        number: usize,
        (mut launch, setup): (Launch, &Setup),
        padding: usize,
    ) -> Result<(), Fault> {
        let Some(folder) = self.servers.get(&number).map(|standing| standing.server.folder.clone()) else {
            return Ok(());
        };
        let run = again.run;
        if workload.offered_by().program().is_none() && run.product.stored(setup).is_some() {
            let place = self.sandbox.place_again(folder.clone())?;
            launch = run.product.launch(run.install(again.part.cell, number), setup, &place);
            self.sandbox.prepare_again(&launch)?;
        }
        self.servers.insert(number, ArmServer::begin(launch, &folder, padding, &self.sandbox)?);
        Ok(())
    }

    /// Waits until every server answers, and restores its state: runs statements whose effect is not in the data that
    /// were `put_back`, or that it has forgotten, and fills caches that nothing else fills. In the order in which they
    /// are started.
    fn await_all(
        &mut self,
        again: &Again<'_>,
        (put_back, draw): (bool, &Draw),
        arms: &[StartedArm],
    ) -> Result<(), Fault> {
        let (database, workload) = (self.database, again.run.workloads[again.part.cell.workload].as_ref());
        // Otherwise each frame's lanes fill them, or the process that opens an embedded database.
        let filled = again.part.cell.starts == Starts::EveryFrame || again.run.uses_child_processes();
        let warms = !again.cold && !filled;
        together(in_order(&draw.order, &mut self.servers), |(number, standing)| {
            let arm = &arms[number];
            if let Err(fault) = standing.await_ready(database, &arm.setup) {
                // This failure is reported here, with its arm.
                standing.stopped();
                let name = &again.run.plan.experiment.arms[number].name;
                return Err(Fault::Machine(format!("arm {name}: the server did not come back: {fault}")));
            }
            if put_back {
                run_statements(database, &standing.server, &arm.setup, workload)?;
            } else {
                Administered { database, server: &standing.server, setup: &arm.setup, workload }.say_again()?;
            }
            if warms { fill_caches(database, &standing.server, &arm.setup, workload) } else { Ok(()) }
        })
        .map(drop)
    }
}
