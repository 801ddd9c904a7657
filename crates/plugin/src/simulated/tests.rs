use std::sync::atomic::Ordering;

use expect_test::expect;
use tithe_machine::clock::Clock;
use tithe_model::record::Verdict;

use super::{test_bench::*, *};
use crate::{
    checks::canary::{Collected, read},
    evidence::{judge, seen_by},
    session::{Fields, KeyValueSession, Request},
};

fn call(session: &mut dyn KeyValueSession, request: &Request<'_>) -> Result<u64, Fault> {
    session.call(request, &mut Collected::default())
}

fn insert(session: &mut dyn KeyValueSession, key: &[u8]) -> Result<u64, Fault> {
    let values: Vec<(usize, &[u8])> = (0..10).map(|field| (field, b"value".as_slice())).collect();
    call(session, &Request::Insert { key, values: &values })
}

#[test]
fn it_is_a_key_value_store() {
    let bench = Bench::plain();
    let mut session = bench.session(Clock::Real);
    for key in [b"b", b"a", b"c"] {
        assert_eq!(insert(session.as_mut(), key), Ok(1));
    }
    assert!(matches!(insert(session.as_mut(), b"a"), Err(Fault::Server(_))));
    assert_eq!(call(session.as_mut(), &Request::Update { key: b"b", values: &[(3, b"new")] }), Ok(1));
    assert_eq!(call(session.as_mut(), &Request::Update { key: b"z", values: &[(3, b"new")] }), Ok(0));
    let record = read(session.as_mut(), b"b").unwrap();
    assert_eq!((record[2].as_deref(), record[3].as_deref()), (Some(&b"value"[..]), Some(&b"new"[..])));
    assert_eq!(call(session.as_mut(), &Request::Read { key: b"z", fields: Fields::All }), Ok(0));
    assert_eq!(call(session.as_mut(), &Request::Scan { start: b"aa", count: 9, fields: Fields::One(3) }), Ok(2));
    assert_eq!(call(session.as_mut(), &Request::Scan { start: b"a", count: 2, fields: Fields::All }), Ok(2));
    assert_eq!(call(session.as_mut(), &Request::Delete { key: b"b" }), Ok(1));
    assert_eq!(call(session.as_mut(), &Request::Delete { key: b"b" }), Ok(0));
    // Another session sees the same records.
    assert_eq!(call(bench.session(Clock::Real).as_mut(), &Request::Read { key: b"c", fields: Fields::All }), Ok(1));
}

#[test]
fn what_it_did_not_make_it_does_not_touch() {
    let bench = Bench::plain();
    let create = || Simulated.create(&bench.server, &bench.setup, &bench.table);
    assert!(matches!(create(), Err(Fault::Refused(_))));
    // When a folder is deleted, so are its records.
    std::fs::remove_file(bench.server.paths.data[0].join("records")).unwrap();
    assert!(matches!(Simulated.quiesce(&bench.server, &bench.setup, &bench.table), Err(Fault::Connection(_))));
    create().unwrap();
}

#[test]
fn unknown_settings_are_refused() {
    let refuse = |name: &str, value: &str| {
        let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Model::of(&settings).unwrap_err().to_string()
    };
    expect!["refused: there is no setting `fsync`; there are service_us, noise, drift, stalls, fail_every, wrong_answer_every, dies_after_operations, refuses_to_start, slow_start, slow_operations, luck, luck_seed"]
        .assert_eq(&refuse("fsync", "off"));
    expect!["refused: setting `noise` is not a number that makes sense here"].assert_eq(&refuse("noise", "loud"));
}

/// Mean simulated time of an operation over `operations` reads, ns: wall, client, server, wait.
fn mean_ns(bench: &Bench, operations: u64) -> [f64; 4] {
    let (mut session, time) = bench.timed();
    for _ in 0..operations {
        call(session.as_mut(), &Request::Read { key: b"nobody", fields: Fields::All }).unwrap();
    }
    [&time.now, &time.client_cpu, &time.server_cpu, &time.wait]
        .map(|counter| counter.load(Ordering::Relaxed) as f64 / operations as f64)
}

#[test]
fn costs_are_what_was_asked_for() {
    let quiet = [("noise", "0"), ("drift", "0")];
    let [wall, client, server, wait] = mean_ns(&Bench::new(&[], &quiet), 1000);
    assert_eq!([wall, client, server, wait], [20_000.0, 2_000.0, 18_000.0, 0.0]);
    let both: [(&str, &[(&str, f64)]); 2] = [("seal", &[("cost", 0.1)]), ("audit", &[("cost", 0.5)])];
    let [wall, client, ..] = mean_ns(&Bench::new(&both, &quiet), 1000);
    assert!((wall - 33_000.0).abs() <= 1.0, "{wall}");
    assert_eq!(client, 2_000.0);
}

#[test]
fn what_is_compiled_later_is_slow_at_first() {
    let settings = [("noise", "0"), ("drift", "0"), ("slow_start", "4"), ("slow_operations", "100")];
    let bench = Bench::new(&[], &settings);
    let [first, second, third] = [1, 99, 1].map(|operations| mean_ns(&bench, operations)[0]);
    assert_eq!(first, 100_000.0);
    assert!((second - 80_000.0).abs() < 1000.0, "{second}");
    assert_eq!(third, 60_000.0);
    assert!((mean_ns(&bench, 2000)[0] - 20_000.0).abs() < 6000.0);
}

#[test]
fn starts_differ_by_the_luck_that_was_asked_for_and_a_start_by_itself_does_not() {
    let settings = [("luck", "0.1"), ("luck_seed", "7")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let lucky = Model::of(&BTreeMap::from(settings)).unwrap();
    let service_ln = |start: u64| lucky.clone().on_start(start).service_ns.ln();
    let ratios: Vec<f64> = (0..2000).map(|pair| service_ln(2 * pair) - service_ln(2 * pair + 1)).collect();
    let mean = ratios.iter().sum::<f64>() / 2000.0;
    let spread = (ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / 1999.0).sqrt();
    // Within four standard errors of 0 and 0.1.
    assert!(mean.abs() < 0.009 && (spread - 0.1).abs() < 0.0065, "{mean} {spread}");
    assert_eq!(service_ln(5), service_ln(5));
    let plain = Model::of(&BTreeMap::new()).unwrap();
    assert_eq!(plain.clone().on_start(5), plain);
}

#[test]
fn a_server_that_is_started_anew_has_its_data_and_another_luck() {
    let bench = Bench::new(&[], &[("noise", "0"), ("drift", "0"), ("luck", "0.1")]);
    insert(bench.session(Clock::Real).as_mut(), b"a").unwrap();
    let [before, same] = [(); 2].map(|()| mean_ns(&bench, 10)[0]);
    Lucky.close(&bench.server);
    assert_eq!(before, same);
    assert_ne!(mean_ns(&bench, 10)[0], before);
    assert!(read(bench.session(Clock::Real).as_mut(), b"a").is_ok());
}

#[test]
fn noise_is_the_same_on_every_machine() {
    let noisy = mean_ns(&Bench::new(&[], &[("stalls", "0.01")]), 10_000);
    expect!["[78458.5, 2245.5, 20213.1, 56000.0]"].assert_eq(&format!("{noisy:.1?}"));
}

#[test]
fn drift_depends_on_the_moment_and_not_on_the_arm() {
    let model = Model::of(&BTreeMap::new()).unwrap();
    let sealed = Bench::new(&[("seal", &[])], &[]);
    let sealed = Model::of(&sealed.setup.settings).unwrap();
    let at = |model: &Model| -> Vec<f64> { (0..60).map(|second| model.drift(second * 1_000_000_000)).collect() };
    assert_eq!(at(&model), at(&sealed));
    let (low, high) = at(&model).iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
    assert!(low >= 1.0 && high <= 1.2 && high > low + 0.1, "{low} to {high}");
}

#[test]
fn faults_strike_measured_operations_as_asked_for() {
    let bench = Bench::new(&[], &[("fail_every", "3"), ("wrong_answer_every", "2"), ("dies_after_operations", "8")]);
    let mut real = bench.session(Clock::Real);
    insert(real.as_mut(), b"a").unwrap();
    let (mut session, _) = bench.timed();
    let mut seen = String::new();
    for _ in 0..9 {
        seen += match read(session.as_mut(), b"a") {
            Ok(fields) if fields[0].as_deref() == Some(b"value") => "right ",
            Ok(_) => "wrong ",
            Err(Fault::Server(_)) => "failed ",
            Err(_) => "dead ",
        };
    }
    expect!["right wrong failed right wrong failed right wrong dead "].assert_eq(&seen);
    assert!(read(real.as_mut(), b"a").is_ok());
}

#[test]
fn starting_can_be_made_to_fail() {
    let place = Place::on_loopback("/nowhere", 0);
    let mut setup = Setup::plain(BTreeMap::new(), credentials());
    let runs = |setup: &Setup| {
        let steps = Simulated.launch(&Install::default(), setup, &place).steps;
        steps.iter().filter(|step| matches!(step, Step::Run(_))).count()
    };
    assert_eq!(runs(&setup), 0);
    setup.settings.insert("refuses_to_start".to_owned(), "true".to_owned());
    assert_eq!(runs(&setup), 1);
    let command = refusal();
    assert!(!std::process::Command::new(command.program).args(command.arguments).output().unwrap().status.success());
}

/// The verdicts of a protection's evidence if `protected` is set up with it or only claims to be.
fn verdicts(id: &str, options: &[(&str, f64)], protected: &Bench) -> String {
    let plain = Bench::plain();
    let mut text = String::new();
    for check in protection(id).evidence(&chosen(id, options)) {
        let mut context = protected.context();
        context.protected = true;
        let (on, off) = (seen_by(&*check, &mut context), plain.observe(check.as_ref()));
        let verdict = judge(check.entry().control, &on, Some(&off));
        text += &format!("{}: {verdict:?}\n  on: {on:?}\n off: {off:?}\n", check.id());
    }
    text
}

#[test]
fn sealing_is_proven() {
    let sealed = Bench::new(&[("seal", &[])], &[]);
    expect![[r#"
        disk-canary: Holds
          on: Protected("none of 33 canaries in 1 file, 2.1 kB")
         off: Exposed("22 canaries found 22 times, in data/records (22)")
    "#]]
    .assert_eq(&verdicts("seal", &[], &sealed));
}

#[test]
fn sealing_that_is_off_is_found_out() {
    let claimed = Bench::new(&[("placebo", &[])], &[]);
    expect![[r#"
        disk-canary: Fails
          on: Exposed("22 canaries found 22 times, in data/records (22)")
         off: Exposed("22 canaries found 22 times, in data/records (22)")
    "#]]
    .assert_eq(&verdicts("seal", &[], &claimed));
}

#[test]
fn a_complete_audit_log_is_told_from_a_lossy_one() {
    let complete = Bench::new(&[("audit", &[])], &[]);
    expect![[r#"
        audit-complete: Holds
          on: Protected("INSERT 40 of 40, READ 40 of 40, UPDATE 40 of 40, SCAN 40 of 40, DELETE 40 of 40")
         off: Exposed("INSERT 0 of 40, READ 0 of 40, UPDATE 0 of 40, SCAN 0 of 40, DELETE 0 of 40")
    "#]]
    .assert_eq(&verdicts("audit", &[], &complete));
    let lossy = Bench::new(&[("audit", &[("lose", 0.05)])], &[]);
    assert!(verdicts("audit", &[], &lossy).starts_with("audit-complete: Fails"));
}

#[test]
fn a_placebo_is_proven_to_be_one() {
    let placebo = Bench::new(&[("placebo", &[])], &[]);
    assert!(verdicts("placebo", &[], &placebo).starts_with("placebo-taken: Holds"));
    assert!(verdicts("placebo", &[], &Bench::plain()).starts_with("placebo-taken: Fails"));
    assert_eq!(
        judge(crate::evidence::Control::Own, &tithe_machine::observation::Observation::Protected(String::new()), None),
        Verdict::Holds
    );
}
