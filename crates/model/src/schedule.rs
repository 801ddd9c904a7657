//! Which arm runs when: the only source of randomness of a run.
//!
//! Every order and every key stream follows from the plan's seed through [`SplitMix64`], so that a run can be repeated
//! and a report can be recomputed. The order of a frame's slots is a pure function of (seed, frame): each client
//! computes it, without a coordinator in the measured path.

/// Share of an open-loop slot in which operations may be intended to start.
pub const OFFERED_SHARE: f64 = 0.8;

/// Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"; the constants of the
/// reference implementation.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` without bias (rejection).
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The largest multiple of `bound` that fits; 2^64 itself is written as 0.
        let limit = 0u64.wrapping_sub((u64::MAX % bound + 1) % bound);
        loop {
            let x = self.next_u64();
            if limit == 0 || x < limit {
                return x % bound;
            }
        }
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// An order of `arms` arms that depends only on (seed, frame, block) (Fisher–Yates).
pub fn block_order(seed: u64, frame: u64, block: u64, arms: usize) -> Vec<usize> {
    let mix = frame
        .wrapping_mul(0xD1B5_4A32_D192_ED03)
        .wrapping_add(block.wrapping_mul(0xABC9_8388_FB8F_AC03))
        .wrapping_add(1);
    drawn_order(&mut SplitMix64::new(seed ^ mix), arms)
}

fn drawn_order(random: &mut SplitMix64, arms: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    shuffle(&mut order, random);
    order
}

/// The arm, of two, whose side comes first in `pair` if one server is switched between them: drawn for each pair.
pub fn first_of_pair(seed: u64, pair: u32) -> usize {
    /// No frame and no block has this number, so that orders are drawn independently of each other.
    const PAIRS: u64 = u64::MAX - 2;
    block_order(seed, PAIRS, pair.into(), 2)[0]
}

/// The pair of sides of frame `frame`, and the arm of its side, if each side has `frames_a_side`.
pub fn side_of(seed: u64, frame: u32, frames_a_side: u32) -> (u32, usize) {
    let side = frame / frames_a_side.max(1);
    let (pair, second) = (side / 2, side % 2 == 1);
    let first = first_of_pair(seed, pair);
    (pair, if second { 1 - first } else { first })
}

/// Puts `values` in a uniformly random order (Fisher–Yates).
pub fn shuffle<T>(values: &mut [T], random: &mut SplitMix64) {
    for i in (1..values.len()).rev() {
        values.swap(i, random.below(i as u64 + 1) as usize);
    }
}

/// One slot of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its block; `None` for a slot that only settles the machine before a block, and does not count.
    pub block: Option<u32>,
    /// Index of the arm.
    pub arm: usize,
}

/// The slots of a frame of `blocks` blocks, in the order of time.
///
/// What ran before a slot affects its cost, so *no slot follows one of its own arm*, also across block boundaries, and
/// *each arm follows each other arm about as often*. A block that settles the machine precedes the first.
///
/// * Two arms alternate, in a random direction, and reverse it in the middle of the frame, after one slot that does not
///   count: a drift of the machine within the frame then favours neither.
/// * More arms use Williams' Latin squares (Williams 1949, "Experimental designs balanced for the estimation of
///   residual effects of treatments"): one square for an even number of arms, two for an odd one. Within the blocks of
///   a square each arm follows each other arm equally often. The arms of each square are numbered at random, and its
///   blocks are drawn again until none begins with the last arm of the block before.
///
/// Renaming arms does not change the probability of an order, because draws ignore their names. Exchanging the labels
/// of two identical arms within a frame is therefore a symmetry of the design; the signed-rank interval relies on it.
pub fn frame_order(seed: u64, frame: u32, blocks: u32, arms: usize) -> Vec<Place> {
    let mut random = SplitMix64::new(seed ^ u64::from(frame).wrapping_mul(0xD1B5_4A32_D192_ED03).wrapping_add(1));
    let lead_in = drawn_order(&mut random, arms);
    match arms {
        0 | 1 => (0..blocks).map(|block| Place { block: Some(block), arm: 0 }).collect(),
        2 => alternating(&lead_in, blocks),
        _ => {
            let counted = (0..).zip(balanced_blocks(lead_in[arms - 1], blocks, arms, &mut random));
            let place = |block: Option<u32>, order: Vec<usize>| order.into_iter().map(move |arm| Place { block, arm });
            place(None, lead_in).chain(counted.flat_map(|(block, order)| place(Some(block), order))).collect()
        }
    }
}

fn alternating(first: &[usize], blocks: u32) -> Vec<Place> {
    let turned = [first[1], first[0]];
    let turn = blocks.div_ceil(2);
    let place = |block: Option<u32>| move |arm: &usize| Place { block, arm: *arm };
    let mut places: Vec<Place> = first.iter().map(place(None)).collect();
    for block in 0..blocks {
        if block == turn {
            places.push(Place { block: None, arm: first[0] });
        }
        places.extend(if block < turn { first } else { &turned[..] }.iter().map(place(Some(block))));
    }
    places
}

/// `blocks` orders of at least three arms after a slot of arm `last`, square by square.
fn balanced_blocks(mut last: usize, blocks: u32, arms: usize, random: &mut SplitMix64) -> Vec<Vec<usize>> {
    let mut orders = Vec::with_capacity(blocks as usize);
    while orders.len() < blocks as usize {
        let square = drawn_square(last, arms, random);
        orders.extend(square.into_iter().take(blocks as usize - orders.len()));
        last = orders.last().map_or(last, |order| order[arms - 1]);
    }
    orders
}

/// Williams' square or squares of `arms` arms with random names and a random order of rows. No row begins with the arm
/// before it, which is initially `last`.
fn drawn_square(last: usize, arms: usize, random: &mut SplitMix64) -> Vec<Vec<usize>> {
    let mut rows = williams(arms);
    loop {
        let names = drawn_order(random, arms);
        shuffle(&mut rows, random);
        let named: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().map(|arm| names[*arm]).collect()).collect();
        let ends = std::iter::once(last).chain(named.iter().map(|row| row[arms - 1]));
        if ends.zip(&named).all(|(end, row)| row[0] != end) {
            return named;
        }
    }
}

/// The row 0, n − 1, 1, n − 2, … and its shifts modulo n; for odd n also each of them backwards.
fn williams(arms: usize) -> Vec<Vec<usize>> {
    let zigzag = |place: usize| if place.is_multiple_of(2) { place / 2 } else { arms - place.div_ceil(2) };
    let row = |shift: usize| (0..arms).map(|place| (zigzag(place) + shift) % arms).collect::<Vec<usize>>();
    let rows: Vec<Vec<usize>> = (0..arms).map(row).collect();
    let backwards = rows.iter().filter(|_| arms % 2 == 1).map(|row| row.iter().rev().copied().collect());
    rows.iter().cloned().chain(backwards).collect()
}

/// The seed of the key stream that client `client` offers to every arm of one block.
///
/// It does not depend on the arm: all arms of a block get the same operations (common random numbers).
pub fn stream_seed(seed: u64, frame: u64, block: u64, client: u64) -> u64 {
    let mut random = SplitMix64::new(seed ^ frame.rotate_left(40) ^ block.rotate_left(20) ^ client);
    random.next_u64();
    random.next_u64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Expected values: the reference implementation in C, https://prng.di.unimi.it/splitmix64.c, from 1234567.
    #[test]
    fn bits_are_those_of_the_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| random.next_u64()), reference);
        let mut again = SplitMix64::new(1_234_567);
        assert_eq!(again.next_f64(), (reference[0] >> 11) as f64 / (1u64 << 53) as f64);
    }

    /// A run is repeated from its plan, which contains only the seed: the same seed must always draw the same values.
    #[test]
    fn what_a_seed_draws_stays_the_same() {
        let streams = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 2, 3)];
        let streams = streams.map(|(frame, block, client)| stream_seed(7, frame, block, client));
        let order = |frame, block| block_order(7, frame, block, 5);
        expect_test::expect![[r#"
            [309689372594955804, 13111517753883571787, 1244959280378613483, 8233034982601383833, 17644796896506402778]
            [3, 4, 0, 1, 2] [1, 4, 0, 2, 3] [1, 3, 2, 0, 4]
            [2, 0, 1, 0, 1, 2, 1, 0, 2]"#]]
        .assert_eq(&format!(
            "{streams:?}\n{:?} {:?} {:?}\n{:?}",
            order(0, 0),
            order(1, 0),
            order(0, 1),
            arms_of(&frame_order(7, 3, 2, 3))
        ));
    }

    #[test]
    fn no_two_clients_blocks_frames_or_seeds_share_a_stream() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in [0, 1 << 60] {
            for frame in 0..12 {
                for block in 0..12 {
                    for client in 0..12 {
                        assert!(
                            seen.insert(stream_seed(seed, frame, block, client)),
                            "{seed} {frame} {block} {client}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn below_a_bound_every_number_is_drawn_alike() {
        let mut random = SplitMix64::new(3);
        for bound in [1u64, 2, 3, 7, 10] {
            let mut counts = vec![0u32; bound as usize];
            (0..10_000 * bound).for_each(|_| counts[random.below(bound) as usize] += 1);
            // Within five standard deviations.
            assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
        }
        // With a bound just above half of all numbers, nearly every second one is drawn again; with powers of two none
        // is.
        let bound = (1 << 63) + 1;
        let mean = (0..4000).map(|_| random.below(bound) as f64 / bound as f64).sum::<f64>() / 4000.0;
        assert!((mean - 0.5).abs() < 0.025, "{mean}");
        let (mut bits, mut same) = (SplitMix64::new(9), SplitMix64::new(9));
        (0..100).for_each(|_| assert_eq!(bits.below(1 << 63), same.next_u64() % (1 << 63)));
        // These seeds begin with the numbers below and at the largest multiple of ten: the second one is drawn again.
        let multiple = u64::MAX - u64::MAX % 10;
        let [below, at] = [13_042_476_475_599_121_356, 8_187_556_910_047_604_162].map(SplitMix64::new);
        assert_eq!([&below, &at].map(|random| random.clone().next_u64()), [multiple - 1, multiple]);
        assert_eq!([below, at].map(|mut random| random.below(10)), [9, 3]);
    }

    fn arms_of(places: &[Place]) -> Vec<usize> {
        places.iter().map(|place| place.arm).collect()
    }

    #[test]
    fn two_arms_alternate_and_turn_round_over_a_slot_that_does_not_count() {
        let places = frame_order(7, 0, 4, 2);
        let first = places[0].arm;
        let alternating: Vec<usize> = (0..11).map(|slot| (first + slot) % 2).collect();
        assert_eq!(arms_of(&places), alternating);
        let lead_in: Vec<usize> = (0..places.len()).filter(|slot| places[*slot].block.is_none()).collect();
        assert_eq!(lead_in, [0, 1, 6]);
        let firsts: std::collections::BTreeSet<usize> =
            (0..20).map(|frame| frame_order(7, frame, 4, 2)[0].arm).collect();
        assert_eq!(firsts.len(), 2, "the direction is drawn");
    }

    #[test]
    fn sides_come_in_pairs_whose_order_is_drawn() {
        let sides: Vec<(u32, usize)> = (0..12).map(|frame| side_of(7, frame, 3)).collect();
        for (pair, of_pair) in sides.chunks(6).enumerate() {
            let first = first_of_pair(7, pair as u32);
            let expected = [vec![(pair as u32, first); 3], vec![(pair as u32, 1 - first); 3]].concat();
            assert_eq!(of_pair, expected);
        }
        let first = (0..1000).filter(|pair| first_of_pair(11, *pair) == 0).count();
        assert!((400..600).contains(&first), "{first} of 1,000 pairs begin with the plain side");
    }

    #[test]
    fn within_the_rows_of_a_square_each_arm_follows_each_other_equally_often() {
        for arms in 3..=9 {
            let mut follows = vec![vec![0; arms]; arms];
            let rows = williams(arms);
            rows.iter().flat_map(|row| row.windows(2)).for_each(|pair| follows[pair[0]][pair[1]] += 1);
            let each = if arms % 2 == 0 { 1 } else { 2 };
            for (arm, followed) in follows.iter().enumerate() {
                for (other, count) in followed.iter().enumerate() {
                    assert_eq!(*count, if arm == other { 0 } else { each }, "{arms} arms: {other} after {arm}");
                }
            }
        }
    }

    /// Over many draws every arm is at every place equally often, and so is every pair of adjacent arms.
    #[test]
    fn no_arm_is_preferred_by_the_draw() {
        const DRAWN: u32 = 6000;
        for arms in [2, 3, 4] {
            let mut at = vec![0u32; arms];
            let mut after = vec![vec![0u32; arms]; arms];
            for frame in 0..DRAWN {
                let places = frame_order(11, frame, 5, arms);
                at[places[arms + 3].arm] += 1;
                after[places[arms].arm][places[arms + 1].arm] += 1;
            }
            // Five standard deviations of a binomial count.
            let near = |count: u32, ways: usize| {
                let expected = f64::from(DRAWN) / ways as f64;
                (f64::from(count) - expected).abs() < 5.0 * expected.sqrt()
            };
            assert!(at.iter().all(|count| near(*count, arms)), "{arms} arms: {at:?}");
            for (arm, followed) in after.iter().enumerate() {
                let others = followed.iter().enumerate().filter(|(other, _)| *other != arm);
                let mut others = others.map(|(_, count)| *count);
                assert!(others.all(|count| near(count, arms * (arms - 1))), "{arms} arms: {after:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn each_block_holds_each_arm_once_and_no_slot_follows_its_own_arm(
            seed: u64, frame in 0u32..1000, blocks in 1u32..40, arms in 2usize..12
        ) {
            let places = frame_order(seed, frame, blocks, arms);
            prop_assert!(places.windows(2).all(|pair| pair[0].arm != pair[1].arm), "{places:?}");
            for block in 0..blocks {
                let mut of_block: Vec<usize> =
                    places.iter().filter(|place| place.block == Some(block)).map(|place| place.arm).collect();
                of_block.sort_unstable();
                prop_assert_eq!(of_block, (0..arms).collect::<Vec<_>>());
            }
            let counted: Vec<u32> = places.iter().filter_map(|place| place.block).collect();
            prop_assert!(counted.is_sorted());
            prop_assert_eq!(counted.len(), blocks as usize * arms);
        }

        #[test]
        fn one_arm_has_each_block_to_itself(seed: u64, frame in 0u32..1000, blocks in 1u32..40) {
            let alone = (0..blocks).map(|block| Place { block: Some(block), arm: 0 }).collect::<Vec<_>>();
            prop_assert_eq!(frame_order(seed, frame, blocks, 1), alone);
        }
    }
}
