//! Expressions compared with the installed pgbench: the output of its `debug`, value by value.

#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod installed {
    use std::{fmt::Write as _, fs, path::PathBuf, process::Command, sync::Arc};

    use tithe_workloads::script::{
        evaluation::Evaluation,
        expression::{Expression, parse},
        random::Random,
        value::{General, Value},
        variables::{Names, Variables},
    };

    /// The newest pgbench of this machine: the program itself, not the script that searches for it.
    fn pgbench() -> PathBuf {
        let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
        let mut found: Vec<PathBuf> = versions.flatten().map(|version| version.path().join("bin/pgbench")).collect();
        found.sort();
        found.pop().expect("a pgbench")
    }

    /// A server for it: pgbench connects before it computes.
    struct Server {
        folder: PathBuf,
        bin: PathBuf,
    }

    impl Server {
        fn start(name: &str) -> Self {
            let bin = pgbench().parent().expect("its folder").to_owned();
            let folder = std::env::temp_dir().join(format!("tithe-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            let server = Self { folder, bin };
            let is_root = Command::new("id").arg("-u").output().is_ok_and(|it| it.stdout == b"0\n");
            if is_root {
                assert!(Command::new("chown").arg("nobody").arg(&server.folder).status().is_ok_and(|it| it.success()));
            }
            let data = server.folder.join("data");
            server.run("initdb", &["-D", data.to_str().expect("text"), "-U", "bench", "-A", "trust", "-N"]);
            let options = format!("-c listen_addresses= -c unix_socket_directories={}", server.folder.display());
            let log = server.folder.join("log");
            let arguments =
                ["-D", data.to_str().expect("text"), "-l", log.to_str().expect("text"), "-w", "-o", &options, "start"];
            server.run("pg_ctl", &arguments);
            server
        }

        /// Runs one of its programs; returns its output on both streams.
        fn run(&self, program: &str, arguments: &[&str]) -> String {
            let is_root = Command::new("id").arg("-u").output().is_ok_and(|it| it.stdout == b"0\n");
            let path = self.bin.join(program);
            let mut command = match is_root {
                true => {
                    let mut command = Command::new("runuser");
                    command.args(["-u", "nobody", "--"]).arg(&path);
                    command
                }
                false => Command::new(&path),
            };
            let output = command
                .args(arguments)
                .env("PGHOST", &self.folder)
                .env("PGUSER", "bench")
                .env("PGDATABASE", "postgres")
                .current_dir(&self.folder)
                .stdin(std::process::Stdio::null())
                .stdout(fs::File::create(self.folder.join("out")).expect("a file"))
                .stderr(fs::File::create(self.folder.join("err")).expect("a file"))
                .status();
            let said = fs::read_to_string(self.folder.join("err")).expect("what it says");
            assert!(output.is_ok_and(|it| it.success()), "{program}: {said}");
            said
        }

        /// The output of `debug` for each of `expressions`, in one run with this seed.
        fn debug(&self, seed: u64, expressions: &[String]) -> Vec<String> {
            let mut script = String::new();
            for expression in expressions {
                let _ = writeln!(script, "\\set value debug({expression})");
            }
            let path = self.folder.join("script.sql");
            fs::write(&path, script).expect("a script");
            let seed = format!("--random-seed={seed}");
            let said = self.run("pgbench", &["-n", "-t", "1", &seed, "-f", path.to_str().expect("text")]);
            let values = said.lines().filter_map(|line| line.strip_prefix("debug(")?.split_once("): "));
            values.map(|(_, value)| value.to_owned()).collect()
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let data = self.folder.join("data");
            self.run("pg_ctl", &["-D", data.to_str().expect("text"), "-m", "immediate", "-w", "stop"]);
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    /// The same in Tithe: one run of a client with this seed.
    struct Tithe {
        variables: Variables,
        random: Random,
    }

    impl Tithe {
        fn new(seed: u64, expressions: &[String]) -> (Self, Vec<Expression>) {
            let mut names = Names::default();
            let parsed =
                expressions.iter().map(|text| parse(text, &mut names).unwrap_or_else(|it| panic!("{text}: {it:?}")));
            let parsed = parsed.collect();
            let mut variables = Variables::new(Arc::new(names.clone()));
            let mut base = Random::new(seed);
            let random = base.fork();
            for (name, value) in
                [("default_seed", base.bits() as i64), ("random_seed", seed as i64), ("scale", 1), ("client_id", 0)]
            {
                variables.put_named(name, Value::Integer(value));
            }
            (Self { variables, random }, parsed)
        }

        fn value(&mut self, expression: &Expression) -> Result<Value, String> {
            Evaluation { variables: &self.variables, random: &mut self.random, debugged: None }.value(expression)
        }
    }

    fn printed(value: &Value) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Boolean(value) => format!("boolean {value}"),
            Value::Integer(value) => format!("int {value}"),
            Value::Double(value) => format!("double {}", General(*value)),
            Value::Text(text) => format!("text {text}"),
        }
    }

    /// Every function and operator, and the precedence of adjacent operators.
    const EXPRESSIONS: &[&str] = &[
        "random(10, 19)",
        "random_exponential(100, 199, 10.0)",
        "random_gaussian(1000, 1999, 10.0)",
        "random_zipfian(1, 9, 1.3)",
        "random(-9223372036854775806, 0)",
        "random_zipfian(1, 100000, 1.001)",
        "random_exponential(1, 1000000000000, 0.1)",
        "random_gaussian(-5, 5, 2.0)",
        "random(1, 100) > random(1, 100)",
        "random(1, 100) - random(1, 100) * random(1, 3)",
        ":default_seed",
        ":random_seed + :scale + :client_id",
        "hash(10, 5432)",
        "hash(10)",
        "hash_murmur2(-1)",
        "hash_fnv1a(10, 5432)",
        "hash_fnv1a(10)",
        "permute(7, 10)",
        "permute(7, 9223372036854775797, 5432)",
        "permute(-3, 100, 1)",
        "permute(0, 1)",
        "abs(-4) + abs(-0.8E1) + abs(3)",
        "greatest(5, 4, 3, 2)",
        "least(-5.18, .0E0, 1.0/0)",
        "greatest(4, 2, -1.17) * 4.0 * Ln(Exp(1.0))",
        "int(7.3) + int(-0.5) + int(1.5) + int(2.5)",
        "double(1 + 1) * (-75.0 / 3)",
        "sqrt(+1.5 * 2.0)",
        "pi() * 4.9",
        "pow(-3, 3)",
        "power(-5.0, -5.0)",
        "pow(10, 30)",
        "exp(-1)",
        "ln(2)",
        "mod(-19 * 11 - 17, 19)",
        "17 / (4|1) + ( 4 + (7 >> 2))",
        "- (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1",
        "64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2)",
        "~1 + 2 | 3 & 4 << 1 # 5",
        "1 << 65",
        "-8 >> 1",
        "-9223372036854775808",
        "1.0 = 0.0 and 1.0 != 0.0",
        "0 = 1 Or 1.0 = 1",
        "not 1 = 2 and 2 >= 2 or 1 / 0 = 1",
        "case when 0 < 1 then 32 else 0 end",
        "case when false THEN -1 when 1 = 1 then 13 + 19 + 2.0 end",
        "case when null then 1 end",
        "CASE WHEN 1 THEN TRUE END AND CASE WHEN 1.0 THEN TRUE END",
        "NULL + NULL * exp(NULL)",
        "NULL is null and not (1 isnull) and 1 notnull and true is true and 1 is not false",
        "1 + 1 is null",
        "not null is null",
        "1e15 + 0.5",
        "1e15 * 10",
        "0.0001",
        "0.00001",
        "1.0 / 0",
        "-1.0 / 3",
        "null and 1 / 0 = 1",
        "true or null",
    ];

    #[test]
    fn every_function_and_operator_computes_what_pgbench_does() {
        let server = Server::start("every-function");
        let texts: Vec<String> = EXPRESSIONS.iter().map(|text| (*text).to_owned()).collect();
        for seed in [5432, 1, 987_654_321] {
            let theirs = server.debug(seed, &texts);
            let (mut tithe, parsed) = Tithe::new(seed, &texts);
            assert_eq!(theirs.len(), texts.len());
            for ((text, expression), theirs) in texts.iter().zip(&parsed).zip(theirs) {
                assert_eq!(tithe.value(expression).map(|value| printed(&value)), Ok(theirs), "{text}, seed {seed}");
            }
        }
    }

    /// Draws random expressions.
    struct Writer {
        random: Random,
    }

    impl Writer {
        fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
            from[self.random.uniform(0, from.len() as i64 - 1) as usize]
        }

        fn expression(&mut self, depth: u32) -> String {
            if depth == 0 || self.random.uniform(0, 9) == 0 {
                return match self.random.uniform(0, 6) {
                    0 => self.random.uniform(-100, 100).to_string(),
                    1 => format!("{}.{}", self.random.uniform(0, 99), self.random.uniform(0, 999)),
                    2 => self
                        .pick(&["null", "true", "false", ":scale", ":random_seed", "pi()", "9223372036854775807"])
                        .to_owned(),
                    3 => format!("random({}, {})", self.random.uniform(-9, 0), self.random.uniform(0, 1000)),
                    4 => format!("random_gaussian(0, 99, {}.5)", self.random.uniform(2, 9)),
                    5 => format!("random_zipfian(1, 1000, 1.{})", self.random.uniform(1, 9)),
                    _ => format!("random_exponential(1, 1000, {}.5)", self.random.uniform(0, 9)),
                };
            }
            let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
            match self.random.uniform(0, 8) {
                0 => format!("{left} {} {right}", self.pick(&["and", "or"])),
                1 => format!("({left}) {} ({right})", self.pick(&["<", "<=", ">", ">=", "=", "<>", "!="])),
                2 => format!("{left} {} {right}", self.pick(&["|", "#", "&", "<<", ">>"])),
                3 => format!(
                    "{}({left})",
                    self.pick(&[
                        "abs",
                        "int",
                        "double",
                        "sqrt",
                        "ln",
                        "exp",
                        "hash",
                        "hash_fnv1a",
                        "not ",
                        "~",
                        "-",
                        "+"
                    ])
                ),
                4 => format!("{}({left}, {right})", self.pick(&["least", "greatest", "mod", "pow", "hash", "permute"])),
                5 => format!("case when {left} then {right} else {left} end"),
                6 => format!("{left} {}", self.pick(&["is null", "isnull", "notnull", "is not true", "is false"])),
                _ => format!("{left} {} {right}", self.pick(&["+", "-", "*", "/", "%"])),
            }
        }
    }

    /// Expressions that can be computed have pgbench's values. Each run of pgbench ends at the first that cannot be
    /// computed, so those that Tithe refuses are tested one by one.
    #[test]
    fn drawn_expressions_compute_what_pgbench_does() {
        let server = Server::start("drawn-expressions");
        let mut writer = Writer { random: Random::new(20_261_128) };
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        while good.len() < 150 {
            let text = writer.expression(3);
            let mut names = Names::default();
            // Two comparisons in sequence are a syntax error.
            let Ok(_) = parse(&text, &mut names) else { continue };
            let (mut tithe, parsed) = Tithe::new(7, std::slice::from_ref(&text));
            match tithe.value(&parsed[0]) {
                // `abs` of a boolean is undefined.
                Ok(_) => good.push(text),
                Err(_) => bad.push(text),
            }
        }
        assert!(bad.len() > 15, "few expressions cannot be computed");
        let mut theirs = Vec::new();
        let mut kept = Vec::new();
        // Random values depend on the place in a script: each is a separate run.
        for text in &good {
            let said = server.debug(7, std::slice::from_ref(text));
            theirs.extend(said);
            kept.push(text.clone());
        }
        for (text, theirs) in kept.iter().zip(theirs) {
            let (mut tithe, parsed) = Tithe::new(7, std::slice::from_ref(text));
            assert_eq!(tithe.value(&parsed[0]).map(|value| printed(&value)), Ok(theirs), "{text}");
        }
    }
}
