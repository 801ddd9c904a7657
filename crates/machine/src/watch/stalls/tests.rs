//! Simulates random schedules of one processor, for which the truth is known; then tests the kernel itself.

use proptest::prelude::*;
use tithe_model::schedule::SplitMix64;

use super::*;

/// One task of the pair: its remaining work before it sleeps, and how long it ran and waited, in ticks.
#[derive(Default)]
struct Task {
    work: u64,
    ran: u64,
    waited: u64,
}

/// The true times of a random schedule, ticks.
#[derive(Debug, Default)]
struct Truth {
    shares: Shares,
    /// Another program ran, and one of the pair could have.
    neighbours: u64,
    /// Both of the pair slept.
    asleep: u64,
    /// One of the pair ran or both waited: both were awake.
    both_awake: u64,
    /// The processor ran anything.
    processor: u64,
}

/// A client that sends requests to a server in a loop, on a processor with `hogs` that are always ready. Each side
/// continues to work for a while after it has woken the other, and the server sleeps for `disk` ticks within each
/// operation.
fn draw(seed: u64, hogs: u64, disk: u64) -> Truth {
    let mut random = SplitMix64::new(seed);
    let (mut client, mut server) = (Task { work: 5, ..Task::default() }, Task::default());
    let mut truth = Truth::default();
    let (mut turn, mut left, mut wakes_at, mut asked) = (0, 0, None, false);
    for now in 0..20_000 {
        if wakes_at == Some(now) {
            (server.work, wakes_at) = (4 + random.below(6), None);
        }
        let ready = [client.work > 0, server.work > 0];
        // The next task is drawn when the running one has used its share; 2 stands for hogs, 3 for idle.
        let runs = |who: u64| if who < 2 { ready[who as usize] } else { who == 2 && hogs > 0 };
        if left == 0 || !runs(turn) {
            let able: Vec<u64> = (0..2).filter(|who| runs(*who)).chain((0..hogs).map(|_| 2)).collect();
            turn = if able.is_empty() { 3 } else { able[random.below(able.len() as u64) as usize] };
            left = 1 + random.below(30);
        }
        left -= 1;
        truth.shares.wall_ns += 1;
        truth.processor += u64::from(turn < 3);
        truth.neighbours += u64::from(turn == 2 && (ready[0] || ready[1]));
        truth.asleep += u64::from(!ready[0] && !ready[1]);
        truth.both_awake += u64::from(ready[0] && ready[1]);
        for (who, task) in [&mut client, &mut server].into_iter().enumerate() {
            if turn == who as u64 {
                task.ran += 1;
                task.work -= 1;
            } else {
                task.waited += u64::from(ready[who]);
            }
        }
        // The client sends the request two ticks before it sleeps, and the server its answer likewise.
        if turn == 0 && client.work == 2 {
            (server.work, asked) = (server.work + 4, true);
        }
        if turn == 1 && server.work == 2 {
            if asked && disk > 0 {
                (server.work, wakes_at, asked) = (0, Some(now + disk), false);
            } else if wakes_at.is_none() {
                (client.work, asked) = (client.work + 5, false);
            }
        }
    }
    truth.shares.cpu_ns = client.ran + server.ran;
    truth.shares.wait_ns = client.waited + server.waited;
    truth
}

#[test]
fn a_slot_is_the_pair_its_neighbours_and_sleep() {
    for (hogs, disk) in [(0, 0), (0, 50), (3, 0), (3, 50)] {
        let truth = draw(1, hogs, disk);
        let Shares { wall_ns, cpu_ns, .. } = truth.shares;
        assert_eq!(wall_ns, cpu_ns + truth.neighbours + truth.asleep, "{truth:?}");
        assert!(
            cpu_ns > 1000 && (truth.neighbours > 1000) == (hogs > 0) && (truth.asleep > 1000) == (disk > 0),
            "{truth:?}"
        );
    }
}

proptest! {
    /// Pressure is the truth plus the wake-up time of an idle processor; the limits remove that time again.
    #[test]
    fn by_pressure_the_truth_is_found(seed: u64, hogs in 0u64..9, disk in 0u64..200, waking in 0u64..500) {
        let truth = draw(seed, hogs, disk);
        let waking = if hogs == 0 { waking } else { 0 };
        let found = neighbours_ns(truth.neighbours + waking, Some(truth.processor), truth.shares);
        prop_assert_eq!(found, truth.neighbours, "{:?}", truth);
        // If the time of other programs is unknown, only the wake-up time is wrongly attributed to them.
        let found = neighbours_ns(truth.neighbours + waking, None, truth.shares);
        prop_assert!((truth.neighbours..=truth.neighbours + waking).contains(&found));
    }

    /// Waits are too long by at most the time in which both were awake, and by no more than sleep.
    #[test]
    fn by_waits_the_error_is_bounded(seed: u64, hogs in 0u64..9, disk in 0u64..200, seen: bool) {
        let truth = draw(seed, hogs, disk);
        let Shares { wall_ns, cpu_ns, wait_ns } = truth.shares;
        let found = neighbours_ns(wait_ns, seen.then_some(truth.processor), truth.shares);
        prop_assert!(found >= truth.neighbours);
        prop_assert!(found - truth.neighbours <= truth.asleep.min(truth.both_awake), "{found} {truth:?}");
        prop_assert!(wall_ns - found >= cpu_ns, "net time is at least the work");
    }

    #[test]
    fn any_text_is_read(text in "(some |full |avg10=0.00 |total=|[0-9]{0,30}|\\n|[ -~])*") {
        let _ = full_us(&text);
        let _ = busy_ticks(&text);
        let _ = mount_point(&text, "cgroup2", "rw");
    }
}

#[test]
fn the_line_full_is_the_one_that_counts() {
    let text =
        "some avg10=1.53 avg60=0.29 avg300=0.06 total=234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=8901\n";
    assert_eq!(full_us(text), Some(8901));
    assert_eq!(full_us("some avg10=1.53 avg60=0.29 avg300=0.06 total=234567\n"), None, "Linux 5.12 and older");
    assert_eq!(busy_ticks("cpu  10 20 30 400 5 6 7 8 9 0\ncpu0 1 2 3"), Some(60));
}

/// The reading while two threads of a lane and another program share one processor.
#[test]
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn a_lane_waits_for_its_neighbour_and_not_for_itself() {
    let lanes = match Lanes::make(1) {
        Ok(lanes) => lanes,
        Err(error) => {
            eprintln!("SKIPPED: this machine allows no groups for lanes: {error}");
            return;
        }
    };
    let processor = crate::watch::process::processors()[0];
    let watch = StallWatch::Pressure(lanes.pressure(0).expect("pressure"), None);
    let spin = |join: bool, ends: std::time::Instant| {
        assert!(crate::watch::process::pin(0, processor));
        if join {
            lanes.join(0, 0).expect("a thread of this process");
        }
        while std::time::Instant::now() < ends {
            std::hint::spin_loop();
        }
    };
    let measured = |both_join: bool| {
        let before = watch.read();
        let ends = std::time::Instant::now() + std::time::Duration::from_millis(200);
        std::thread::scope(|scope| {
            scope.spawn(|| spin(true, ends));
            scope.spawn(|| spin(both_join, ends));
        });
        let shares = Shares { wall_ns: u64::MAX, ..Shares::default() };
        watch.since(before, shares).expect("seen")
    };
    // Two threads of one lane always keep the processor busy, except for other programs on this machine, whose load
    // varies from try to try. An error of counting waits for each other would show in every try.
    let tells_apart = |_| {
        let (together, apart) = (measured(true), measured(false));
        // Half of 200 ms goes to the other program, unless a busy machine let neither run.
        apart > 20_000_000 && 4 * together < 3 * apart
    };
    assert!((0..50).any(tells_apart), "a lane's waits for itself are counted as another lane's");
}
