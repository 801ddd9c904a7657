//! The load machines of a cell: the load that each has offered, and how well its clock was known.

use tithe_model::record::ClientTimes;

use super::measured::Measured;
use crate::AgentAnalysis;

/// Largest share of its time that an agent may wait for a processor; beyond that it is too slow for its lanes.
const WAIT_MAX: f64 = 0.2;

/// Each agent of the cell, in the order of its lanes; none if Tithe's own process offered the load.
pub(super) fn agents(measured: &Measured<'_>) -> Vec<AgentAnalysis> {
    let Some(last) = measured.frames.last() else { return Vec::new() };
    let mut first = 0;
    let of = |(place, agent): (usize, &tithe_model::record::AgentFrame)| {
        let lanes = first..first + agent.lanes;
        first += agent.lanes;
        let slots = || measured.frames.iter().flat_map(|frame| &frame.slots).filter(|slot| lanes.contains(&slot.lane));
        let of_frames = || measured.frames.iter().filter_map(|frame| frame.record.agents.get(place));
        let clients: Option<Vec<ClientTimes>> = of_frames().map(|agent| agent.clients).collect();
        // In older records are only the waits of clients and servers together.
        let clients = clients.unwrap_or_else(|| {
            slots().map(|slot| ClientTimes { wait_ns: slot.wait_ns, wall_ns: slot.wall_ns }).collect()
        });
        let sum = |of: fn(&ClientTimes) -> u64| clients.iter().map(|times| of(times) as f64).sum::<f64>();
        AgentAnalysis {
            name: agent.name.clone(),
            lanes: agent.lanes,
            operations: slots().map(|slot| slot.operations).sum(),
            wait_share: sum(|times| times.wait_ns) / sum(|times| times.wall_ns).max(1.0),
            clock_offset_ns: agent.clock_offset_ns,
            clock_bound_ns: of_frames().map(|agent| agent.clock_bound_ns).max().unwrap_or(0),
        }
    };
    last.record.agents.iter().enumerate().map(of).collect()
}

/// Warnings about them, without the final full stop.
pub(super) fn warnings(agents: &[AgentAnalysis]) -> impl Iterator<Item = String> {
    agents.iter().filter(|agent| agent.wait_share > WAIT_MAX).map(|agent| {
        format!(
            "agent {} waited for a processor in {:.0} % of its time, so its clients offer less load than the \
             servers could take: give it fewer lanes, or the run more machines",
            agent.name,
            100.0 * agent.wait_share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_waits_too_long_is_named() {
        let agent = |name: &str, wait_share| AgentAnalysis {
            name: name.to_owned(),
            lanes: 2,
            operations: 10,
            wait_share,
            clock_offset_ns: 0,
            clock_bound_ns: 0,
        };
        let told: Vec<String> = warnings(&[agent("a", 0.2), agent("b", 0.31)]).collect();
        expect_test::expect![[r#"
            [
                "agent b waited for a processor in 31 % of its time, so its clients offer less load than the servers could take: give it fewer lanes, or the run more machines",
            ]
        "#]]
        .assert_debug_eq(&told);
    }
}
