//! When operations start: at once (closed loop), or at intended times drawn in advance (open loop).
//!
//! In an open loop the latency counts from the intended start, so that a slow answer cannot hide the operations that
//! waited behind it (coordinated omission; Tene, wrk2). Intended starts fill the first four fifths of a slot. The rest
//! lets the arm finish before the next arm's turn.

use tithe_model::{
    experiment::Arrivals,
    schedule::{OFFERED_SHARE, SplitMix64},
};

/// What makes intended starts independent of everything else that is drawn from a seed.
const STREAM: u64 = 0x0A55_0C1A_7E55_7EA7;

/// Fills `times` with the intended starts of one lane in one slot, ns, ascending. Leaves it empty for a closed loop.
///
/// `seed` is that of the block's stream: all arms of a block get the same spacing. For even arrivals it is the same for
/// all lanes, which alternate.
pub fn intended(
    arrivals: Arrivals,
    lanes: usize,
    lane: usize,
    seed: u64,
    start_ns: u64,
    end_ns: u64,
    times: &mut Vec<u64>,
) {
    times.clear();
    let length_ns = (end_ns - start_ns) as f64 * OFFERED_SHARE;
    match arrivals {
        // Replaced by a rate before a cell begins.
        Arrivals::Closed | Arrivals::OfSaturation(_) => {}
        Arrivals::Even(rate) => {
            let gap_ns = mean_gap_ns(lanes, rate);
            // Lanes alternate, so that their starts are evenly spaced together too. The time of the first is random:
            // otherwise every slot would begin with an operation, and slots that are short for the rate have too many.
            let drawn = SplitMix64::new(seed ^ STREAM).next_f64();
            let mut at = gap_ns * (drawn + lane as f64 / lanes as f64).fract();
            while at < length_ns {
                times.push(start_ns + at as u64);
                at += gap_ns;
            }
        }
        Arrivals::Poisson(rate) => {
            let mean_ns = mean_gap_ns(lanes, rate);
            let mut random = SplitMix64::new(seed ^ STREAM);
            let mut gap_ns = || -(1.0 - random.next_f64()).ln() * mean_ns;
            let mut at = gap_ns();
            while at < length_ns {
                times.push(start_ns + at as u64);
                at += gap_ns();
            }
        }
    }
}

/// Mean time between two starts of a lane, ns; at least the resolution of the clock, so that a slot has an end.
fn mean_gap_ns(lanes: usize, rate: f64) -> f64 {
    (lanes as f64 / rate * 1e9).max(1.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn drawn(arrivals: Arrivals, lanes: usize, lane: usize, seed: u64) -> Vec<u64> {
        let mut times = Vec::new();
        intended(arrivals, lanes, lane, seed, 1_000, 1_000_001_000, &mut times);
        times
    }

    #[test]
    fn even_arrivals_of_two_lanes_interleave() {
        for seed in 0..20 {
            let mut both = [0, 1].map(|lane| drawn(Arrivals::Even(4.0), 2, lane, seed)).concat();
            both.sort_unstable();
            assert!((3..=4).contains(&both.len()), "{both:?}");
            assert!(both.windows(2).all(|pair| pair[1].abs_diff(pair[0] + 250_000_000) <= 1), "{both:?}");
        }
    }

    #[test]
    fn even_arrivals_have_the_asked_rate_in_short_slots_too() {
        let count = |lane: usize| (0..1000).map(|seed| drawn(Arrivals::Even(1.0), 2, lane, seed).len()).sum::<usize>();
        // 1,000 slots of 0.8 s with one start in 2 s: 400 expected, standard deviation 15.
        for count in [count(0), count(1)] {
            assert!((340..460).contains(&count), "{count}");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_asked_rate_and_depend_on_the_seed_alone() {
        let count: usize = (0..200).map(|seed| drawn(Arrivals::Poisson(1000.0), 1, 0, seed).len()).sum();
        // 200 slots of 0.8 s at 1,000/s: 160,000 expected, standard deviation 400.
        assert!((158_000..162_000).contains(&count), "{count}");
        assert_eq!(drawn(Arrivals::Poisson(50.0), 1, 0, 9), drawn(Arrivals::Poisson(50.0), 1, 0, 9));
        assert!(drawn(Arrivals::Poisson(50.0), 1, 0, 9).is_sorted());
    }

    #[test]
    fn no_rate_makes_a_slot_endless() {
        for rate in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 1e12, 0.0, -0.0, -1.0] {
            for arrivals in [Arrivals::Even(rate), Arrivals::Poisson(rate)] {
                let mut times = Vec::new();
                intended(arrivals, 2, 1, 7, 1_000, 2_000, &mut times);
                assert!(
                    times.is_sorted() && times.iter().all(|at| (1_000..1_800).contains(at)),
                    "{arrivals:?}: {times:?}"
                );
                assert!(times.len() < 1_000, "{arrivals:?}: {} starts", times.len());
            }
        }
    }

    #[test]
    fn each_seed_draws_times_of_its_own() {
        for arrivals in [Arrivals::Even(4.0), Arrivals::Poisson(50.0)] {
            let all: BTreeSet<Vec<u64>> = (0..256).map(|seed| drawn(arrivals, 1, 0, seed)).collect();
            assert_eq!(all.len(), 256, "{arrivals}");
        }
    }

    #[test]
    fn a_closed_loop_intends_nothing() {
        assert!(drawn(Arrivals::Closed, 1, 0, 1).is_empty());
    }
}
