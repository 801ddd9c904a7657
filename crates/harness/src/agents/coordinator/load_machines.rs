//! The agents of a run as the machines that offer the load of its cells.

use std::sync::atomic::Ordering;

use tithe_machine::fault::Fault;

use super::{
    Team,
    frame::{OrderedFrame, Stop},
    membership,
};
use crate::load::frame::machines::{LoadMachines, Parts, PartsRequest};

impl LoadMachines for Team<'_> {
    fn lanes(&self, clients: u32) -> usize {
        let mut members = self.members();
        let offered: Vec<u32> = members.iter().map(|member| member.hello.lanes).collect();
        let ranges = membership::deal(&offered, clients);
        let of = ranges.first().map_or(0, |range| range.of);
        members.iter_mut().zip(ranges).for_each(|(member, range)| member.lanes = range);
        of
    }

    fn data_put_back(&self) {
        self.members().iter_mut().for_each(|member| member.states = None);
    }

    fn measure(&self, asked: &PartsRequest<'_>, count: &mut dyn FnMut()) -> Result<Option<Parts>, Fault> {
        let mut members = self.members();
        if let Some(member) = members.iter().find(|member| member.lanes.count == 0) {
            let (clients, agents) = (asked.frame.cell.clients, members.len());
            return Err(Fault::Refused(format!(
                "agent {} has no client: {clients} clients are too few for {agents} agents",
                member.hello.name
            )));
        }
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        let outcome = match self.order_frame(ticket, asked, &mut members) {
            Ok(Some(())) => {
                let frame = OrderedFrame { team: self, ticket, asked };
                frame.measure(&mut members, count).map_or_else(Stop::outcome, |parts| Ok(Some(parts)))
            }
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        if !matches!(&outcome, Ok(Some(Parts { invalid: None, .. }))) {
            self.abort(ticket, &members);
            members.iter_mut().for_each(|member| self.forget(member));
        }
        outcome
    }
}
