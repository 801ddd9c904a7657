//! How long an arm is still affected by the one before it, and the settling time and slot that follow from this.
//!
//! Latencies are kept by the time from the slot's start to the operation's ([`PHASES_NS`]). Carry-over ends where the
//! phases agree with the rest of the slot. The settling time covers the carry-over, and a slot is long enough for the
//! settling time to be a small part of it. Both may change from one frame to the next: arms are compared only within a
//! frame, and all arms of a frame have the same settling time and slot.

use tithe_model::record::PHASES_NS;

/// Phases that differ by less, natural-log ratio, are equal. On a busy machine a smaller difference cannot be
/// distinguished from scheduling noise, and a slot that is longer than needed costs precision.
const ALIKE: f64 = 0.05;

/// A phase with fewer operations is ignored.
const FEWEST: u64 = 200;

/// Assumed scatter of ln(latency) of single operations, rather too large: a difference within three standard errors of
/// it is no carry-over.
const SCATTER: f64 = 0.7;

/// A settling time is at most its slot divided by this.
const SETTLING_PART: u64 = 4;

/// Longest slot that carry-over may need, ns.
const SLOT_MAX_NS: u64 = 200_000_000;

/// By phase of the slot: the number of operations, and that number times ln(median latency in ns).
pub type Profile = [(u64, f64); PHASES_NS.len() + 1];

/// Adds the phases of a lane to `profile`.
pub fn add(profile: &mut Profile, phases: impl IntoIterator<Item = (u64, f64)>) {
    for (sum, more) in profile.iter_mut().zip(phases) {
        sum.0 += more.0;
        sum.1 += more.1;
    }
}

/// When carry-over ends in the slots of an arm with this profile, ns after the slot's start; `None` when it does not.
///
/// It ends with the last phase that is more expensive than the next one, by more than 5 % and more than chance
/// explains. Only adjacent phases are compared. Slots without disturbance have more operations in their late phases, so
/// late phases look cheaper than early ones even without carry-over. A cheaper phase is no carry-over: a thread that
/// has slept is not preempted for a while, and on a busy machine that makes the beginning of every slot fast.
fn ends_ns(profile: &Profile) -> Option<u64> {
    let mut end_ns = 0;
    for phase in 0..PHASES_NS.len() {
        let (count, sum) = profile[phase];
        let (rest, rest_sum) = profile[phase + 1];
        if count < FEWEST || rest < FEWEST {
            continue;
        }
        let difference = sum / count as f64 - rest_sum / rest as f64;
        let chance = 3.0 * SCATTER * (1.0 / count as f64 + 1.0 / rest as f64).sqrt();
        if difference > ALIKE + chance {
            let last = profile[phase + 2..].iter().all(|(count, _)| *count < FEWEST);
            if last {
                return None;
            }
            end_ns = PHASES_NS[phase];
        }
    }
    Some(end_ns)
}

/// Settling time and slot that suit arms with these `profiles`, ns, starting from the planned ones.
///
/// `fixed`: the experiment sets the slot, so it stays, and the settling time is what fits into it.
pub fn suited(profiles: &[Profile], settling_ns: u64, slot_ns: u64, fixed: bool) -> (u64, u64) {
    let needed = profiles.iter().map(|profile| ends_ns(profile).unwrap_or(slot_ns)).max().unwrap_or(0).max(settling_ns);
    let longest = if fixed { slot_ns } else { slot_ns.max(SLOT_MAX_NS) };
    let mut slot = slot_ns;
    while slot / SETTLING_PART < needed && slot * 2 <= longest {
        slot *= 2;
    }
    (needed.min(slot / SETTLING_PART), slot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A slot of 20 ms, whose operations cost `more` (natural-log ratio) until `until_ns`.
    fn profile(more: f64, until_ns: u64) -> Profile {
        let mut profile = Profile::default();
        for at in (0..20_000_000).step_by(500) {
            let phase = PHASES_NS.iter().position(|end| at < *end).unwrap_or(PHASES_NS.len());
            profile[phase].0 += 1;
            profile[phase].1 += 10.0 + if at < until_ns { more } else { 0.0 };
        }
        profile
    }

    #[test]
    fn the_settling_time_is_as_long_as_the_carry_over() {
        const MS: u64 = 1_000_000;
        assert_eq!(suited(&[profile(0.0, 0)], MS, 20 * MS, false), (MS, 20 * MS));
        assert_eq!(suited(&[profile(0.3, MS / 2)], MS, 20 * MS, false), (MS, 20 * MS));
        assert_eq!(suited(&[profile(0.0, 0), profile(0.3, 4 * MS)], MS, 20 * MS, false), (4 * MS, 20 * MS));
        assert_eq!(suited(&[profile(0.3, 8 * MS)], MS, 20 * MS, false), (8 * MS, 40 * MS));
        assert_eq!(suited(&[profile(0.3, 8 * MS)], MS, 20 * MS, true), (5 * MS, 20 * MS));
        assert_eq!(suited(&[profile(-0.3, 4 * MS)], MS, 20 * MS, false), (MS, 20 * MS));
        assert_eq!(suited(&[], MS, 20 * MS, false), (MS, 20 * MS));
        assert_eq!(suited(&[profile(0.3, 8 * MS)], MS, 32 * MS, false), (8 * MS, 32 * MS), "a quarter is enough");
        // The last operations of a slot are still affected.
        let to_the_end = || [profile(0.3, 16 * MS)];
        assert_eq!(suited(&to_the_end(), MS, 20 * MS, false), (20 * MS, 80 * MS));
        assert_eq!(suited(&to_the_end(), MS, 100 * MS, false), (50 * MS, 200 * MS), "no longer than the longest");
        assert_eq!(suited(&to_the_end(), MS, 300 * MS, false), (75 * MS, 300 * MS), "the plan has more");
    }

    #[test]
    fn a_difference_counts_beyond_chance_and_in_phases_of_many_operations() {
        // Operations of the first two phases, and how much more expensive the first one is; then many operations.
        let ends = |first: u64, second: u64, more: f64| {
            let mut profile = [(1_000_000, 10_000_000.0); PHASES_NS.len() + 1];
            (profile[0], profile[1]) = ((first, (10.0 + more) * first as f64), (second, 10.0 * second as f64));
            ends_ns(&profile)
        };
        // Three standard errors are 2.1 / 30 here, and 2.1 / 180^0.5 below.
        assert_eq!([ends(1800, 1800, 0.1199), ends(1800, 1800, 0.1201)], [Some(0), Some(PHASES_NS[0])]);
        assert_eq!([ends(200, 1800, 0.2064), ends(200, 1800, 0.2066)], [Some(0), Some(PHASES_NS[0])]);
        assert_eq!([ends(199, 1800, 5.0), ends(1800, 199, 5.0), ends(199, 199, 5.0)], [Some(0); 3]);
        assert_eq!([ends(200, 1800, 5.0), ends(1800, 200, 5.0)], [Some(PHASES_NS[0]); 2]);
    }

    proptest! {
        #[test]
        fn the_settling_time_leaves_most_of_the_slot(
            more in -2.0f64..2.0, until_ns in 0u64..20_000_000, slot_ms in 4u64..300, fixed: bool,
        ) {
            let (settling, slot) = suited(&[profile(more, until_ns)], 1_000_000, slot_ms * 1_000_000, fixed);
            prop_assert!(settling <= slot / SETTLING_PART);
            prop_assert!(slot >= slot_ms * 1_000_000 && (!fixed || slot == slot_ms * 1_000_000));
        }
    }
}
