use expect_test::expect;
use tithe_model::profile::{KERNEL, ProfiledArm};

use super::*;

/// Frames of two arms with 1,000 operations each. The protected arm has 400 more samples of a cipher in its client, and
/// 200 more in the kernel's pipes in its server; a helper of both arms works equally.
fn frames(count: u32) -> Vec<ProfiledFrame> {
    let function = |object: &str, name: &str| Function { object: object.to_owned(), name: Some(name.to_owned()) };
    let frame = |number: u32| {
        // Alternates, so that intervals have a width.
        let more = u64::from(number % 2) * 10;
        let stack = |arm, side, task: &str, samples, functions: &[u32]| Stack {
            arm,
            side,
            task: task.to_owned(),
            samples,
            functions: functions.to_vec(),
        };
        let (client, server) = (1_000 + more, 2_000 + 2 * more);
        let period_ns = 250_000;
        let arm = |client: u64, server: u64| ProfiledArm {
            operations: 1_000,
            client_cpu_ns: client * period_ns,
            server_cpu_ns: server * period_ns,
        };
        ProfiledFrame {
            cell: 0,
            frame: number,
            start: 0,
            sampled: true,
            invalid: None,
            period_ns,
            lost: 0,
            elsewhere: 5,
            arms: vec![arm(client, server), arm(1_400 + more, 2_200)],
            functions: vec![
                function("tithe", "tithe_harness::load"),
                function("libcrypto.so.3", "EVP_Cipher"),
                function("server-program", "exec_simple_query"),
                function(KERNEL, "anon_pipe_write"),
                function("server-program", "LogCollector"),
            ],
            stacks: vec![
                stack(0, Side::Client, "client", client, &[0]),
                stack(0, Side::Server, "server", server, &[2]),
                stack(0, Side::Helper, "postgres: logger", 100 + more, &[4]),
                stack(1, Side::Client, "client", 1_000 + more, &[0]),
                stack(1, Side::Client, "client", 400, &[1, 0]),
                stack(1, Side::Server, "server", 2_000, &[2]),
                stack(1, Side::Server, "server", 200, &[3, 2]),
                stack(1, Side::Helper, "postgres: logger", 110 - more, &[4]),
            ],
        }
    };
    (0..count).map(frame).collect()
}

/// Each of `frames` with an adjacent one without sampling.
fn in_pairs(frames: &[ProfiledFrame]) -> Vec<ProfiledFrame> {
    let pair = |(number, frame): (u32, &ProfiledFrame)| {
        let sampled = ProfiledFrame { frame: 2 * number, ..frame.clone() };
        let other = ProfiledFrame { frame: 2 * number + 1, sampled: false, ..frame.clone() };
        [sampled, other]
    };
    (0..).zip(frames).flat_map(pair).collect()
}

fn profiled(frames: &[ProfiledFrame], cost: Option<Interval>) -> ArmProfile {
    let both = in_pairs(frames);
    let cost = cost.map(|us| Cost { us, plain_us: 750.0 });
    of_arm(&pairs(&both.iter().collect::<Vec<_>>()), 1, ("audit", &["audit".to_owned()]), cost)
}

fn told(parts: &[Part]) -> String {
    let line = |part: &Part| {
        let Interval { estimate, low, high } = part.difference;
        let side = part.side.words();
        format!("{side} | {} | {} | {estimate:.1} [{low:.1}, {high:.1}]\n", part.component, part.function)
    };
    parts.iter().map(line).collect()
}

#[test]
fn parts_are_told_by_side_component_and_function_and_add_up() {
    let frames = frames(20);
    let profile = profiled(&frames, Some(Interval { estimate: 148.0, low: 146.0, high: 150.0 }));
    expect![[r#"
        client | cryptography (OpenSSL) | EVP_Cipher (libcrypto.so.3) | 99.5 [99.3, 99.7]
        server | kernel: pipes | anon_pipe_write ([kernel]) | 49.8 [49.6, 49.9]
        server | server-program | exec_simple_query (server-program) | -2.5 [-3.7, -1.3]
    "#]]
    .assert_eq(&told(&profile.components));
    expect![[r#"
        client |  |  | 99.5 [99.3, 99.7]
        server |  |  | 47.3 [46.0, 48.6]
        helper |  |  | 0.0 [-1.2, 1.2]
    "#]]
    .assert_eq(&told(&profile.sides));
    let named: f64 = profile.components.iter().map(|part| part.difference.estimate).sum();
    assert!((named + profile.elsewhere.estimate - profile.sum.estimate).abs() < 1e-9);
    assert_eq!(profile.adds_up, Some(true));
}

#[test]
fn a_sum_beside_the_cost_is_said_to_be_so() {
    let cost = |estimate: f64| Some(Interval { estimate, low: estimate - 1.0, high: estimate + 1.0 });
    assert_eq!(profiled(&frames(20), cost(100.0)).adds_up, Some(false));
    assert_eq!(profiled(&frames(20), None).adds_up, None);
    let open = Interval { estimate: 148.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
    assert_eq!(profiled(&frames(20), Some(open)).adds_up, None, "too few frames were measured");
}

#[test]
fn samples_are_scaled_to_what_the_kernel_has_accounted() {
    let mut frames = frames(4);
    // Every second sample was missed.
    for frame in &mut frames {
        frame
            .arms
            .iter_mut()
            .for_each(|arm| (arm.client_cpu_ns, arm.server_cpu_ns) = (2 * arm.client_cpu_ns, 2 * arm.server_cpu_ns));
    }
    let profile = profiled(&frames, None);
    let client = profile.sides.iter().find(|part| part.side == Side::Client).expect("a client");
    assert!((client.difference.estimate - 200.0).abs() < 1e-9, "{:?}", client.difference);
}

#[test]
fn samples_of_a_switch_that_the_next_task_gets_change_no_other_part() {
    let told_of = |frames: &[ProfiledFrame]| told(&profiled(frames, None).components);
    let mut frames = frames(20);
    let before = told_of(&frames);
    for frame in &mut frames {
        for stack in &mut frame.stacks {
            match (stack.side, stack.functions.as_slice()) {
                (Side::Client, [0]) => stack.samples -= 300,
                (Side::Server, [2]) => stack.samples += 300,
                _ => {}
            }
        }
    }
    assert_eq!(told_of(&frames), before);
}

#[test]
fn where_nothing_differs_nothing_is_named() {
    let mut frames = frames(20);
    for frame in &mut frames {
        let plain: Vec<Stack> = frame.stacks.iter().filter(|stack| stack.arm == 0).cloned().collect();
        frame.stacks = plain.iter().cloned().chain(plain.iter().map(|it| Stack { arm: 1, ..it.clone() })).collect();
        frame.arms[1] = frame.arms[0];
    }
    let profile = profiled(&frames, None);
    assert_eq!((told(&profile.components), told(&profile.functions)), (String::new(), String::new()));
    assert_eq!(profile.sum.estimate, 0.0);
    assert!(profile.resolves.is_nan(), "{}", profile.resolves);
}

#[test]
fn parts_are_a_share_only_of_a_sum_that_is_not_zero() {
    assert!(profiled(&frames(20), None).resolves < 1.0);
    let mut frames = frames(20);
    for (number, frame) in (0..).zip(&mut frames) {
        let samples = 1_000 + 21 * (number % 2);
        let stack = |arm, samples| Stack { arm, samples, ..frame.stacks[0].clone() };
        frame.stacks = vec![stack(0, 1_010), stack(1, samples)];
        for (arm, samples) in frame.arms.iter_mut().zip([1_010, samples]) {
            (arm.client_cpu_ns, arm.server_cpu_ns) = (samples * frame.period_ns, 0);
        }
    }
    let profile = profiled(&frames, None);
    assert!(profile.sum.estimate > 0.0 && profile.sum.holds(0.0), "{:?}", profile.sum);
    assert!(profile.resolves.is_nan(), "{}", profile.resolves);
}

#[test]
fn a_machine_that_is_slower_than_before_changes_no_part() {
    let cost = Some(Interval { estimate: 148.0, low: 146.0, high: 150.0 });
    let mut slower = frames(20);
    // Each frame by a different amount.
    for (frame, by) in slower.iter_mut().zip(10..) {
        for arm in &mut frame.arms {
            (arm.client_cpu_ns, arm.server_cpu_ns) = (arm.client_cpu_ns * by / 10, arm.server_cpu_ns * by / 10);
        }
    }
    let (usual, slower) = (profiled(&frames(20), cost), profiled(&slower, cost));
    let near = |one: f64, other: f64| (one - other).abs() < 1e-3 * one.abs();
    assert!(near(usual.sum.estimate, slower.sum.estimate), "{:?} {:?}", usual.sum, slower.sum);
    assert!(near(usual.sum.half_width(), slower.sum.half_width()), "{:?} {:?}", usual.sum, slower.sum);
}

#[test]
fn intervals_are_over_starts_where_there_are_enough() {
    let on_starts = |starts: u32| {
        let mut frames = frames(20);
        for frame in &mut frames {
            frame.start = frame.frame * starts / 20;
            // An effect of a start is in all its frames.
            let more = u64::from(frame.start % 2) * 100;
            frame.arms[1].client_cpu_ns += more * frame.period_ns;
            frame.stacks[4].samples += more;
        }
        profiled(&frames, None).sum
    };
    let (few, many) = (on_starts(5), on_starts(10));
    // The values are 0 or 25 apart. Over 20 frames the standard error of their mean is 25 / 2 / √19, over 10 starts 25
    // / 2 / √9; other differences between frames are small.
    assert!((few.half_width() / (2.093 * 12.5 / 19f64.sqrt()) - 1.0).abs() < 0.05, "{few:?}");
    assert!((many.half_width() / (2.262 * 12.5 / 9f64.sqrt()) - 1.0).abs() < 0.05, "{many:?}");
}

#[test]
fn student_says_how_likely_a_mean_is() {
    // t = 2.828 at 4 degrees of freedom.
    assert!(
        (student_p(&[1.0, 2.0, 0.0, 1.5, 0.5]) - 0.047_4).abs() < 1e-3,
        "{}",
        student_p(&[1.0, 2.0, 0.0, 1.5, 0.5])
    );
    assert_eq!([student_p(&[0.0; 3]), student_p(&[1.0; 3])], [1.0, 0.0]);
}

#[test]
fn half_a_pair_of_an_interrupted_run_is_left_out() {
    let mut frames = in_pairs(&frames(4));
    frames.remove(3);
    let left = pairs(&frames.iter().collect::<Vec<_>>());
    assert_eq!(
        left.iter().map(|pair| (pair.sampled.frame, pair.other.frame)).collect::<Vec<_>>(),
        [(0, 1), (4, 5), (6, 7)]
    );
}

#[test]
fn a_pair_counts_only_if_both_of_its_frames_do() {
    let whole = in_pairs(&frames(3));
    let used = |change: &dyn Fn(&mut [ProfiledFrame])| {
        let mut frames = whole.clone();
        change(&mut frames);
        pairs(&frames.iter().collect::<Vec<_>>()).iter().map(|pair| pair.sampled.frame).collect::<Vec<_>>()
    };
    assert_eq!(used(&|_| ()), [0, 2, 4]);
    for half in [2, 3] {
        assert_eq!(used(&|frames| frames[half].invalid = Some("late".to_owned())), [0, 4]);
        assert_eq!(used(&|frames| frames[half].arms[1].operations = 0), [0, 4]);
    }
    assert_eq!(used(&|frames| (frames[0].sampled, frames[1].sampled) = (false, true)), [1, 2, 4]);
}

#[test]
fn sampling_costs_what_sampled_frames_take_more_and_nothing_else_is_charged_with_it() {
    let usual = in_pairs(&frames(4));
    let mut slowed = usual.clone();
    for arm in slowed.iter_mut().filter(|frame| frame.sampled).flat_map(|frame| &mut frame.arms) {
        (arm.client_cpu_ns, arm.server_cpu_ns) = (arm.client_cpu_ns * 11 / 10, arm.server_cpu_ns * 11 / 10);
    }
    let all: Vec<&ProfiledFrame> = slowed.iter().collect();
    let found = overhead(&pairs(&all)).expect("four pairs");
    assert!([found.estimate, found.low, found.high].iter().all(|end| (end - 0.1).abs() < 1e-6), "{found:?}");
    assert_eq!(overhead(&pairs(&all[..2])), None, "one pair has no interval");
    // Time that nobody counts is that of the samples, less what sampling has slowed.
    let helper = |frames: &[ProfiledFrame]| {
        let all: Vec<&ProfiledFrame> = frames.iter().collect();
        let profile = of_arm(&pairs(&all), 1, ("audit", &["audit".to_owned()]), None);
        profile.sides.iter().find(|part| part.side == Side::Helper).expect("a helper").plain
    };
    assert!((helper(&slowed) * 1.1 / helper(&usual) - 1.0).abs() < 1e-9);
}

#[test]
fn a_cost_without_a_server_that_nobody_counts_is_not_compared() {
    let cost = Some(Interval { estimate: 148.0, low: 146.0, high: 150.0 });
    assert_eq!(profiled(&frames(20), cost).cost, cost);
    let mut unseen = frames(20);
    unseen.iter_mut().flat_map(|frame| &mut frame.arms).for_each(|arm| arm.server_cpu_ns = 0);
    let profile = profiled(&unseen, cost);
    assert_eq!((profile.cost, profile.adds_up), (None, None));
    // A database in the client has no server that could be missing.
    unseen.iter_mut().for_each(|frame| frame.stacks.retain(|stack| stack.side != Side::Server));
    assert_eq!(profiled(&unseen, cost).cost, cost);
}

#[test]
fn a_cost_of_clients_whose_server_is_elsewhere_is_not_that_of_all_parts() {
    let cost = |flags: &[Flag]| {
        let mut arm = crate::report::sample::full().cells.remove(0).arms.remove(1);
        let cpu = &mut arm.estimates[0];
        (cpu.name, cpu.levels) = (Figure::Metric(Metric::Cpu), Some((750.0, 900.0)));
        cpu.difference = Some(Interval { estimate: 150.0, low: 140.0, high: 160.0 });
        cpu.flags = flags.to_vec();
        cost_of(&arm).map(|cost| (cost.us.estimate, cost.plain_us))
    };
    assert_eq!(cost(&[]), Some((150.0, 750.0)));
    assert_eq!(cost(&[Flag::ServerUnseen]), None);
}

#[test]
fn stacks_that_hardly_occur_are_summed_up_by_task_and_none_is_lost() {
    let mut frames = frames(20);
    for frame in &mut frames {
        let client = frame.stacks[0].clone();
        let of =
            |arm, samples, functions: [u32; 2]| Stack { arm, samples, functions: functions.to_vec(), ..client.clone() };
        frame.stacks.extend([of(0, 1, [2, 0]), of(1, 1, [2, 0]), of(0, 1, [4, 0]), of(1, 8, [4, 0])]);
    }
    let profile = profiled(&frames, None);
    let stack = |path: &str| profile.stacks.iter().find(|it| it.frames.join(";") == path);
    let rare = stack("client;rare stacks").expect("one sample is rare");
    assert!((rare.plain - 0.25).abs() < 1e-3 && (rare.protected - 0.25).abs() < 1e-3, "{rare:?}");
    let often = stack("client;tithe_harness::load (tithe);LogCollector (server-program)");
    assert!(often.is_some(), "frequent on one arm");
    assert!(stack("client;tithe_harness::load (tithe);exec_simple_query (server-program)").is_none());
    let all: f64 = profile.stacks.iter().map(|it| it.plain).sum();
    assert!((all - profile.sides.iter().map(|it| it.plain).sum::<f64>()).abs() < 1e-6);
}

#[test]
fn a_component_is_named_by_the_function_with_most_of_its_difference_whichever_way_it_goes() {
    for falls in [false, true] {
        let mut frames = frames(20);
        for frame in &mut frames {
            let digest = Function { object: "libcrypto.so.3".to_owned(), name: Some("EVP_Digest".to_owned()) };
            frame.functions.push(digest);
            let digest = Stack { samples: 40, functions: vec![5, 0], ..frame.stacks[4].clone() };
            frame.stacks.push(digest);
            frame.arms[1].client_cpu_ns += 40 * frame.period_ns;
            if falls {
                frame.arms.swap(0, 1);
                frame.stacks.iter_mut().for_each(|stack| stack.arm = 1 - stack.arm);
            }
        }
        let profile = profiled(&frames, None);
        let found = profile.components.iter().find(|part| part.component == "cryptography (OpenSSL)");
        let found = found.expect("it differs");
        let told = (found.function.as_str(), found.difference.estimate < 0.0);
        assert_eq!(told, ("EVP_Cipher (libcrypto.so.3)", falls));
    }
}
