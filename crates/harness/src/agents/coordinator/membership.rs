//! Which agents are there, and which lanes each gets.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tithe_machine::fault::Fault;

use super::exchange;
use crate::{
    agents::{
        link::Link,
        message::{Hello, PROTOCOL, ROLL_CALL, read},
        offset::Offset,
    },
    load::frame::machines::LaneRange,
};

/// How long answers to a roll call are gathered.
const CALL: Duration = Duration::from_millis(500);

/// An agent of a run.
pub(super) struct Member {
    pub hello: Hello,
    /// Its lanes in the cell of this moment.
    pub lanes: LaneRange,
    /// Number of the part that its inserts use.
    pub part: u64,
    /// The state that the clients of each arm had reached on it; `None` on fresh data.
    pub states: Option<Vec<Vec<i64>>>,
}

impl Member {
    pub fn new(hello: Hello) -> Self {
        Self { hello, lanes: LaneRange { first: 0, count: 0, of: 0 }, part: 0, states: None }
    }
}

/// An agent as it is seen from here.
pub struct Peer {
    /// Its description of itself.
    pub hello: Hello,
    /// By how much its clock is ahead; `None` if it does not answer clock requests.
    pub offset: Option<Offset>,
}

/// All agents and observers that are there, by name.
///
/// # Errors
/// When the link is lost.
pub fn roll_call(link: &dyn Link) -> Result<Vec<Peer>, Fault> {
    let seen = |hello: Hello| {
        let offset = exchange::offset(link, &hello, exchange::BEFORE)?;
        Ok(Peer { hello, offset })
    };
    call(link)?.into_iter().map(seen).collect()
}

/// All that answer, by name. Answers that are not those of an agent are left out.
fn call(link: &dyn Link) -> Result<Vec<Hello>, Fault> {
    let answers = link.request_all(ROLL_CALL, b"{}", CALL)?;
    let mut hellos: Vec<Hello> = answers.iter().filter_map(|answer| read(answer)).collect();
    hellos.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    hellos.dedup_by(|one, other| one.id == other.id);
    Ok(hellos)
}

/// Pause before a lost link is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// The result of `work`, which is repeated while the link is lost, until the deadline.
pub(super) fn patiently<T>(
    (deadline, cancelled): (Instant, &AtomicBool),
    mut work: impl FnMut() -> Result<T, Fault>,
) -> Result<T, Fault> {
    loop {
        match work() {
            Err(Fault::Connection(_)) if Instant::now() < deadline && !cancelled.load(Ordering::SeqCst) => {
                std::thread::sleep(AGAIN);
            }
            outcome => return outcome,
        }
    }
}

/// The agents that answer.
fn agents(link: &dyn Link) -> Result<Vec<Hello>, Fault> {
    let mut hellos = call(link)?;
    hellos.retain(|hello| !hello.observes);
    Ok(hellos)
}

/// The observers that answer.
pub(super) fn observers(link: &dyn Link) -> Result<Vec<Hello>, Fault> {
    let mut hellos = call(link)?;
    hellos.retain(|hello| hello.observes);
    Ok(hellos)
}

/// Checks that `hellos`, sorted by name, have different names and this program's version.
///
/// # Errors
/// Those that do not, as text.
pub(super) fn alike(hellos: &[Hello]) -> Result<(), String> {
    let ours = env!("CARGO_PKG_VERSION");
    let kind = |hello: &Hello| if hello.observes { "observer" } else { "agent" };
    if let Some([twice, _]) = hellos.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let Hello { name, .. } = twice;
        return Err(format!("two {}s are called {name}: start one of them with another --name", kind(twice)));
    }
    if let Some(other) = hellos.iter().find(|hello| hello.tithe != ours || hello.protocol != PROTOCOL) {
        let Hello { name, tithe, protocol, .. } = other;
        return Err(format!(
            "{} {name} is tithe {tithe} (protocol {protocol}), and this is tithe {ours} (protocol {PROTOCOL}): run one \
             version everywhere",
            kind(other)
        ));
    }
    Ok(())
}

/// Waits for at most `wait` until `expected` agents are there that work for no run.
///
/// # Errors
/// Which are there, if they are too few or too many; when two have one name, or one runs another version.
pub(super) fn expect(
    link: &dyn Link,
    (expected, wait): (usize, Duration),
    cancelled: &AtomicBool,
) -> Result<Vec<Hello>, Fault> {
    let deadline = Instant::now() + wait;
    loop {
        let hellos = patiently((deadline, cancelled), || agents(link))?;
        let free = hellos.iter().filter(|hello| hello.busy_with.is_none()).count();
        if free >= expected || Instant::now() > deadline || cancelled.load(Ordering::SeqCst) {
            return chosen(hellos, expected).map_err(Fault::Refused);
        }
    }
}

/// The agents of a run with `expected` agents, out of those that are there.
fn chosen(hellos: Vec<Hello>, expected: usize) -> Result<Vec<Hello>, String> {
    alike(&hellos)?;
    let (busy, free): (Vec<Hello>, Vec<Hello>) = hellos.into_iter().partition(|hello| hello.busy_with.is_some());
    if free.len() == expected {
        return Ok(free);
    }
    let listed = |hellos: &[Hello]| {
        let names: Vec<&str> = hellos.iter().map(|hello| hello.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    Err(format!(
        "{expected} agents are expected, and {} are there and free: {}; busy: {}",
        free.len(),
        listed(&free),
        listed(&busy)
    ))
}

/// Checks whether `member`, which does not answer, is there again as another process of the same name and version.
pub(super) fn find_again(link: &dyn Link, member: &mut Member) {
    // The caller waits for the link together with the member.
    let hellos = agents(link).unwrap_or_default();
    if let Some(hello) = hellos.into_iter().find(|hello| is_back(hello, &member.hello)) {
        // What it inserted in a frame that was not handed in is unknown, so it continues with a part of its own.
        (member.hello, member.states) = (hello, None);
    }
}

/// True if `hello` is the agent `old` as another process, and free.
fn is_back(hello: &Hello, old: &Hello) -> bool {
    let is_same =
        (&hello.name, &hello.tithe, hello.protocol, hello.lanes) == (&old.name, &old.tithe, old.protocol, old.lanes);
    is_same && hello.busy_with.is_none()
}

/// Distributes lanes to agents, by the lanes that each has `offered`: round robin, until every one of `clients` has one
/// or none is left. The lanes of one agent are contiguous.
pub(super) fn deal(offered: &[u32], clients: u32) -> Vec<LaneRange> {
    let total: u64 = offered.iter().map(|lanes| u64::from(*lanes)).sum();
    let of = total.min(u64::from(clients)) as usize;
    let mut counts = vec![0; offered.len()];
    let mut left = of;
    while left > 0 {
        for (count, lanes) in counts.iter_mut().zip(offered) {
            if left > 0 && *count < *lanes as usize {
                *count += 1;
                left -= 1;
            }
        }
    }
    let mut first = 0;
    let range = |count| {
        let range = LaneRange { first, count, of };
        first += count;
        range
    };
    counts.into_iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::agents::tests::hello;

    fn counts(offered: &[u32], clients: u32) -> Vec<(usize, usize)> {
        deal(offered, clients).iter().map(|range| (range.first, range.count)).collect()
    }

    #[test]
    fn lanes_are_dealt_in_turn_and_lie_together() {
        assert_eq!(counts(&[2, 2], 8), [(0, 2), (2, 2)]);
        assert_eq!(counts(&[4, 1, 4], 5), [(0, 2), (2, 1), (3, 2)]);
        assert_eq!(counts(&[2, 2, 2], 2), [(0, 1), (1, 1), (2, 0)], "fewer clients than agents are refused");
        assert_eq!(counts(&[], 2), []);
    }

    proptest! {
        #[test]
        fn every_lane_is_dealt_once(offered in proptest::collection::vec(1u32..64, 1..20), clients in 1u32..200) {
            let ranges = deal(&offered, clients);
            let of = offered.iter().sum::<u32>().min(clients) as usize;
            prop_assert!(ranges.iter().all(|range| range.of == of));
            prop_assert_eq!(ranges.iter().map(|range| range.count).sum::<usize>(), of);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].first + pair[0].count == pair[1].first));
            prop_assert!(ranges.iter().zip(&offered).all(|(range, lanes)| range.count <= *lanes as usize));
        }
    }

    #[test]
    fn an_agent_is_back_with_its_name_version_and_lanes_if_it_is_free() {
        let old = hello("a");
        assert!(is_back(&Hello { id: "another process".to_owned(), ..hello("a") }, &old));
        for other in [
            hello("b"),
            Hello { tithe: "0.0.1".to_owned(), ..hello("a") },
            Hello { protocol: PROTOCOL + 1, ..hello("a") },
            Hello { lanes: old.lanes + 1, ..hello("a") },
            Hello { busy_with: Some("r".to_owned()), ..hello("a") },
        ] {
            assert!(!is_back(&other, &old), "{other:?}");
        }
    }

    #[test]
    fn who_is_missing_is_told_with_those_that_are_there() {
        let told = |hellos: Vec<Hello>, expected| match chosen(hellos, expected) {
            Ok(chosen) => chosen.iter().map(|hello| hello.name.clone()).collect::<Vec<_>>().join(" "),
            Err(why) => why,
        };
        let busy = Hello { busy_with: Some("r".to_owned()), ..hello("c") };
        let older = Hello { tithe: "0.0.1".to_owned(), ..hello("d") };
        expect_test::expect![[r#"
            a b
            3 agents are expected, and 2 are there and free: a, b; busy: c
            1 agents are expected, and 0 are there and free: none; busy: none
            1 agents are expected, and 2 are there and free: a, b; busy: none
            two agents are called a: start one of them with another --name
            agent d is tithe 0.0.1 (protocol 5), and this is tithe VERSION (protocol 5): run one version everywhere
        "#]]
        .assert_eq(
            &[
                told(vec![hello("a"), hello("b"), busy.clone()], 2),
                told(vec![hello("a"), hello("b"), busy], 3),
                told(Vec::new(), 1),
                told(vec![hello("a"), hello("b")], 1),
                told(vec![hello("a"), hello("a")], 2),
                told(vec![older], 1).replace(env!("CARGO_PKG_VERSION"), "VERSION"),
            ]
            .map(|line| line + "\n")
            .concat(),
        );
    }
}
