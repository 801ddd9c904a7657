//! Real users' scripts and option files.

use tithe_model::catalogue::PropertyFile;

use super::*;

fn make_of(kind: &str, records: u64, properties: Properties) -> Result<Box<dyn Workload>, String> {
    let described = experiment::Workload { name: "mine".to_owned(), kind: kind.to_owned(), properties, prepare: None };
    crate::make(&described, &experiment::Data { records, values: Values::Ycsb }, 1)
}

/// The command of `workload`, and the lines of its description that begin with one of `names`.
fn run_of(workload: &dyn Workload, protocol: WireProtocol, names: &[&str]) -> String {
    let reach = reach(false);
    let program = workload.offered_by().program().expect("a program");
    let job = Job { clients: 20, rate: None, seconds: 3, seed: 7 };
    let at = at(protocol, &reach);
    let mut text = String::new();
    for command in program.prepare(&at).into_iter().chain([program.run(&at, &job)]) {
        let _ = writeln!(text, "{} {}", command.program.display(), command.arguments.join(" "));
    }
    for (name, words) in workload.describe().iter().filter(|(name, _)| names.contains(&name.as_str())) {
        let _ = writeln!(text, "{name}: {words}");
    }
    text
}

fn read_of(kind: &str, name: &str, number: usize, text: &str) -> Result<Properties, Vec<LineProblem>> {
    let kind = crate::KINDS.iter().map(|kind| (kind.entry)()).find(|entry| entry.id == kind).expect("a kind");
    let (name, weight) = name.split_once('@').map_or((name, None), |(name, weight)| (name, weight.parse().ok()));
    (kind.read)(&PropertyFile { name, weight, number, bytes: text.as_bytes(), protocol: None })
}

/// A link in a comment is no password, but a password is refused in a comment, too.
#[test]
fn links_in_scripts_are_no_secrets() {
    for text in [
        "-- see https://example.org/notes/zipf?x=1#y\nSELECT 1;",
        "-- https://medium.com/@ann/post, https://ann@example.org\nSELECT 1;",
        "SELECT 'http://[::1]:80/';",
    ] {
        assert!(read_of("pgbench", "a.sql", 1, text).is_ok(), "{text}");
        assert!(read_of("sysbench", "a.lua", 1, text).is_ok(), "{text}");
    }
    for text in ["SELECT 1;\n-- postgres://ann:secret@db/x", "-- https://a.b/ http://u:p%40@h", "-- x://u:p@h:1"] {
        let told = read_of("pgbench", "a.sql", 1, text).expect_err("a password");
        assert_eq!(told[0].1, "holds a URL with a password", "{text}");
        assert!(!format!("{told:?}").contains("secret"), "{told:?}");
        assert!(read_of("sysbench", "a.LUA", 1, text).is_err(), "{text}");
    }
}

#[test]
fn pgbench_takes_several_scripts_variables_and_a_connection_for_each_transaction() {
    let mut properties = read_of("pgbench", "zipf.sql@9", 1, "SELECT 1;").expect("a script");
    properties.extend(read_of("pgbench", "needs.sql", 2, "\\set aid random(1, :n)\nSELECT :aid;").expect("a script"));
    let refused = make_of("pgbench", 100_000, properties.clone()).err().expect("no variable");
    expect![[r#"script_2: no script sets the variable :n (write `properties = { define = "n=VALUE" }`, which is -D, or set it by \set)"#]]
        .assert_eq(&refused);
    properties.insert("define".to_owned(), "n=100000 'words=a b'".to_owned());
    properties.insert("connect".to_owned(), "true".to_owned());
    let workload = make_of("pgbench", 100_000, properties).expect("a workload");
    expect![[r#"
        /bin/program -i -q -s 1
        /bin/program -n -l --log-prefix=/f/log --random-seed=7 -c 20 -j 1 -T 3 -M simple -f /f/script.sql@9 -f /f/script_2.sql@1 -C -D n=100000 -D words=a b
        script: 2 of the experiment, weights 9 : 1
        connection: one for each transaction; its latency begins once it is connected
        define: n=100000 words=a b
    "#]]
    .assert_eq(&run_of(workload.as_ref(), WireProtocol::Postgres, &["script", "connection", "define"]));
}

#[test]
fn sysbench_takes_its_own_options_and_scripts() {
    let mut properties =
        read_of("sysbench", "s.cnf", 1, "tables=4\ndb-ps-mode=disable\nrand-type=pareto\ntime=60\n").expect("options");
    properties.extend(read_of("sysbench", "one.lua", 2, "function event() con:query('sbtest1') end").expect("Lua"));
    properties.insert("rand-type".to_owned(), "uniform".to_owned());
    let workload = make_of("sysbench", 1000, properties).expect("a workload");
    expect![[r#"
        /bin/program oltp_read_write --config-file=/f/options --tables=4 --table-size=250 prepare
        /bin/program /f/script.lua --config-file=/f/options --tables=4 --table-size=250 --threads=20 --time=3 --events=0 --rand-seed=7 --histogram=on --db-ps-mode=disable --rand-type=uniform run
        script: of the experiment
        db_ps_mode: disable
        rand_type: uniform
        time: ignored: the experiment's [measure] decides it
    "#]]
    .assert_eq(&run_of(workload.as_ref(), WireProtocol::MySql, &["script", "db_ps_mode", "rand_type", "time"]));
    let two = [("lua_1", "x"), ("lua_2", "y")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let refused = make_of("sysbench", 1000, two.into()).err().expect("two scripts");
    expect!["lua_2: sysbench runs one script, and this is a second one (give it a `[[workload]]` of its own)"]
        .assert_eq(&refused);
}
