//! The language: what it refuses and what it computes. `tests/pgbench.rs` compares it with the installed pgbench.

use std::sync::Arc;

use expect_test::{Expect, expect};
use tithe_model::catalogue::{PropertyFile, WireProtocol};
use tithe_plugin::session::Protocol;

use super::{
    entry,
    evaluation::Evaluation,
    expression::parse,
    program::{Program, Source, Transactions},
    random::Random,
    statement::Flavour,
    value::Value,
    variables::{Names, Variables},
};

fn refused(text: &str, protocol: Protocol) -> String {
    let defined = [("foo", "bla"), ("minint", "-9223372036854775808")].map(|(name, value)| (name.into(), value.into()));
    match Program::new(
        &[Source { name: "a.sql", weight: 1, text }],
        Flavour::Postgres,
        &defined,
        protocol,
        Transactions { max_tries: 1, ..Transactions::default() },
    ) {
        Ok(_) => "taken\n".to_owned(),
        Err(refusals) => refusals
            .iter()
            .map(|(_, refusal)| format!("{}:{} {}\n", refusal.place.line, refusal.place.column, refusal.problem))
            .collect(),
    }
}

fn check(texts: &[&str], expect: Expect) {
    let said = texts
        .iter()
        .map(|text| format!("{text:?}\n    {}", refused(text, Protocol::Prepared).replace('\n', "\n    ").trim_end()));
    expect.assert_eq(&(said.collect::<Vec<_>>().join("\n") + "\n"));
}

/// The errors of pgbench's own regression tests that need no server, and errors that a run would only find later.
#[test]
fn what_is_not_understood_is_refused_by_line_and_column() {
    check(
        &[
            "",
            "-- nothing but a comment",
            "\\if 1\nSELECT 1;",
            "SELECT 1;\n\\elif 1",
            "\\else\nSELECT 1",
            "\\endif\nSELECT 1",
            "\\if 1\n\\else\n\\elif 0\n\\endif\nSELECT 1;",
            "\\if 1\n\\else\n\\else\n\\endif\nSELECT 1;",
            "\\if\n\\endif\nSELECT 1;",
            "\\if 0\n\\elif +\n\\endif\nSELECT 1;",
            "\\if 0\n\\else BAD\n\\endif\nSELECT 1;",
            "\\if 0\n\\endif BAD\nSELECT 1;",
            "\\set i least()",
            "\\set i greatest()",
            "\\set i hash()",
            "\\set i hash(1,2,3)",
            "\\set i 100000000000000000000",
            "\\set i 9223372036854775808",
            "\\set d 1.0E309",
            "\\set d .1E310",
            "\\set d 1e-400",
            "\\set i 1 +",
            "\\set i permute(1)",
            "\\set i permute(1, 2, 3, 4)",
            "\\shell echo",
            "\\setshell a echo 1",
            "\\set i noSuchFunction()",
            "\\set . 1",
            "\\set i ;",
            "\\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
            "\\set i",
            "\\set",
            "\\set i CASE TRUE THEN 1 ELSE 0 END",
            "\\set d ln(1.0, 2.0))",
            "\\set i greatest())",
            "\\set i 1 < 2 < 3",
            "\\set i :nosuchvariable\nSELECT 1;",
            "\\sleep :nosuchvariable\nSELECT 1;",
            "\\sleep too many args",
            "\\sleep",
            "\\sleep 1 week",
            "\\sleep 3x",
            "\\nosuchcommand",
            "\\setrandom aid 1 10",
            "\\gset",
            "\\set i +1\n\\gset",
            "SELECT 1 \\gset a b",
            "SELECT 1 AS i \\gset\n\\gset",
            "\\startpipeline\n\\startpipeline\nSELECT 1;\n\\endpipeline",
            "\\endpipeline\nSELECT 1;",
            "\\startpipeline\nSELECT 1;",
            "\\startpipeline\nSELECT 1 \\gset f\n\\endpipeline",
            "\\startpipeline\nSELECT 1 \\; SELECT 2;\n\\endpipeline",
            "\\set a 1",
            "SELECT 1;\nSELECT a\n  FROM t WHERE b = :c;",
            "SELECT a\n  FROM t WHERE b = $1;",
            "SELECT :'foo';",
            "SELECT ':foo';",
            "SELECT '12:ab', '12:30'::time, a[1:2];",
            "SELECT 'not closed",
            "SELECT (1;\nSELECT 2;",
            "/* not closed",
            "BEGIN;\nSET work_mem = '4MB';\nDROP TABLE t;\nCOMMIT;",
            "SELECT $$;\\set$$, \"a;\", 'it''s;', E'\\';' -- ;\n;",
            "SELECT 1 \\set a 1 \\\n + 1\nSELECT :a;",
        ],
        expect![[r#"
            ""
                1:1 the script is empty
            "-- nothing but a comment"
                1:1 the script is empty
            "\\if 1\nSELECT 1;"
                1:1 \if without matching \endif
            "SELECT 1;\n\\elif 1"
                2:1 \elif without matching \if
            "\\else\nSELECT 1"
                1:1 \else without matching \if
            "\\endif\nSELECT 1"
                1:1 \endif without matching \if
            "\\if 1\n\\else\n\\elif 0\n\\endif\nSELECT 1;"
                3:1 \elif after \else
            "\\if 1\n\\else\n\\else\n\\endif\nSELECT 1;"
                3:1 \else after \else
            "\\if\n\\endif\nSELECT 1;"
                1:4 syntax error in command "if"
            "\\if 0\n\\elif +\n\\endif\nSELECT 1;"
                2:8 syntax error in command "elif"
            "\\if 0\n\\else BAD\n\\endif\nSELECT 1;"
                2:7 unexpected argument in command "else"
            "\\if 0\n\\endif BAD\nSELECT 1;"
                2:8 unexpected argument in command "endif"
            "\\set i least()"
                1:8 at least one argument expected (least) in command "set"
            "\\set i greatest()"
                1:8 at least one argument expected (greatest) in command "set"
            "\\set i hash()"
                1:8 unexpected number of arguments (hash) in command "set"
            "\\set i hash(1,2,3)"
                1:8 unexpected number of arguments (hash) in command "set"
            "\\set i 100000000000000000000"
                1:8 bigint constant overflow in command "set"
            "\\set i 9223372036854775808"
                1:8 syntax error in command "set"
            "\\set d 1.0E309"
                1:8 double constant overflow in command "set"
            "\\set d .1E310"
                1:8 double constant overflow in command "set"
            "\\set d 1e-400"
                1:8 double constant overflow in command "set"
            "\\set i 1 +"
                1:11 syntax error in command "set"
            "\\set i permute(1)"
                1:8 unexpected number of arguments (permute) in command "set"
            "\\set i permute(1, 2, 3, 4)"
                1:8 unexpected number of arguments (permute) in command "set"
            "\\shell echo"
                1:1 \shell is not carried out: Tithe starts no program for a script
            "\\setshell a echo 1"
                1:1 \setshell is not carried out: Tithe starts no program for a script
            "\\set i noSuchFunction()"
                1:8 unexpected function name (noSuchFunction) in command "set"
            "\\set . 1"
                1:6 invalid variable name: "."
            "\\set i ;"
                1:8 unexpected character (;) in command "set"
            "\\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)"
                1:8 too many function arguments, maximum is 16 (least) in command "set"
            "\\set i"
                1:7 syntax error in command "set"
            "\\set"
                1:1 missing argument in command "set"
            "\\set i CASE TRUE THEN 1 ELSE 0 END"
                1:13 syntax error in command "set"
            "\\set d ln(1.0, 2.0))"
                1:8 unexpected number of arguments (ln) in command "set"
            "\\set i greatest())"
                1:8 at least one argument expected (greatest) in command "set"
            "\\set i 1 < 2 < 3"
                1:14 syntax error in command "set"
            "\\set i :nosuchvariable\nSELECT 1;"
                1:1 no script sets the variable :nosuchvariable
            "\\sleep :nosuchvariable\nSELECT 1;"
                1:1 no script sets the variable :nosuchvariable
            "\\sleep too many args"
                1:17 too many arguments in command "sleep"
            "\\sleep"
                1:1 missing argument in command "sleep"
            "\\sleep 1 week"
                1:10 unrecognized time unit, must be us, ms or s
            "\\sleep 3x"
                1:9 unrecognized time unit, must be us, ms or s
            "\\nosuchcommand"
                1:1 invalid command \nosuchcommand
            "\\setrandom aid 1 10"
                1:1 invalid command \setrandom: pgbench has had none since version 9.6
            "\\gset"
                1:1 \gset must follow an SQL command
            "\\set i +1\n\\gset"
                2:1 \gset must follow an SQL command
            "SELECT 1 \\gset a b"
                1:10 too many arguments in command "gset"
            "SELECT 1 AS i \\gset\n\\gset"
                2:1 \gset must follow an SQL command
            "\\startpipeline\n\\startpipeline\nSELECT 1;\n\\endpipeline"
                2:1 already in pipeline mode
            "\\endpipeline\nSELECT 1;"
                1:1 not in pipeline mode
            "\\startpipeline\nSELECT 1;"
                1:1 \startpipeline without \endpipeline
            "\\startpipeline\nSELECT 1 \\gset f\n\\endpipeline"
                2:10 \gset is not allowed in pipeline mode
            "\\startpipeline\nSELECT 1 \\; SELECT 2;\n\\endpipeline"
                2:1 \; joins no statements of a pipeline
            "\\set a 1"
                1:1 the script has no statement
            "SELECT 1;\nSELECT a\n  FROM t WHERE b = :c;"
                3:20 no script sets the variable :c
            "SELECT a\n  FROM t WHERE b = $1;"
                2:20 a placeholder of a driver has no value in a script
            "SELECT :'foo';"
                1:8 pgbench has no variables in quotes, as psql has
            "SELECT ':foo';"
                1:9 a parameter cannot be within quotes: :foo
            "SELECT '12:ab', '12:30'::time, a[1:2];"
                taken
            "SELECT 'not closed"
                1:1 a string is not closed
            "SELECT (1;\nSELECT 2;"
                1:1 a parenthesis is not closed
            "/* not closed"
                1:1 a comment is not closed
            "BEGIN;\nSET work_mem = '4MB';\nDROP TABLE t;\nCOMMIT;"
                2:1 SET changes the session for every later transaction
                3:1 DROP changes more than rows, and the slots of all arms must find the same
            "SELECT $$;\\set$$, \"a;\", 'it''s;', E'\\';' -- ;\n;"
                taken
            "SELECT 1 \\set a 1 \\\n + 1\nSELECT :a;"
                taken
        "#]],
    );
}

#[test]
fn a_statement_of_a_pipeline_is_not_simple() {
    let text = "\\startpipeline\nSELECT 1;\n\\endpipeline";
    assert_eq!(refused(text, Protocol::Simple), "1:1 no pipeline has statements of the simple protocol\n");
    assert_eq!(refused(text, Protocol::Extended), "taken\n");
    let many = format!("\\set i 0\nSELECT LEAST({})", vec![":i"; 256].join(", "));
    assert_eq!(refused(&many, Protocol::Prepared), "2:1 statement has too many arguments (maximum is 255)\n");
    assert_eq!(refused(&many, Protocol::Simple), "taken\n");
}

#[test]
fn operations_are_scripts_and_their_statements() {
    let sources = [
        Source { name: "a.sql", weight: 3, text: "BEGIN;\nSELECT 1 \\; SELECT 2 \\gset\nCOMMIT;" },
        Source { name: "a.sql", weight: 1, text: "\\sleep 1 ms\nSELECT 1; SELECT 2;" },
    ];
    let transactions = Transactions { max_tries: 1, ..Transactions::default() };
    let program = Program::new(&sources, Flavour::Postgres, &[], Protocol::Simple, transactions).expect("scripts");
    expect!["a.sql, a.sql (2), a.sql:1, a.sql:2, a.sql:3, a.sql (2):1, a.sql (2):2, a.sql (2):2:11, RETRY"]
        .assert_eq(&program.operations.join(", "));
    assert_eq!(program.texts[3], "SELECT 1; SELECT 2");
}

#[test]
fn strings_and_comments_end_as_in_the_server_that_a_script_is_for() {
    let statements = |flavour: Flavour, text: &str| {
        let source = [Source { name: "a.sql", weight: 1, text }];
        let program = Program::new(&source, flavour, &[], Protocol::Simple, Transactions::default()).expect("a script");
        program.statements().map(|part| part.text.clone()).collect::<Vec<_>>()
    };
    let my = r#"SELECT 'it\'s;', "a\";", 'it''s;', `;`; # one; -- two
        # three;
        SELECT 5--1, $$; SELECT 1 /* /* */; /*!50000 SELECT 2 */;"#;
    let expected =
        [r#"SELECT 'it\'s;', "a\";", 'it''s;', `;`"#, "SELECT 5--1, $$", "SELECT 1 /* /* */", "/*!50000 SELECT 2 */"];
    assert_eq!(statements(Flavour::MySql, my), expected);
    let standard = r"SELECT 'a\'; SELECT E'it''s\';', $$;$$ -- ;
        ; SELECT 1 /* /* */ ; */;";
    let expected = [r"SELECT 'a\'", "SELECT E'it''s\\';', $$;$$ -- ;", "SELECT 1 /* /* */ ; */"];
    assert_eq!(statements(Flavour::Postgres, standard), expected);
    // The experiment's database decides.
    let problems = |protocol: Option<WireProtocol>| {
        let bytes = br"SELECT 'it\'s';";
        let file = PropertyFile { name: "a.sql", weight: None, number: 1, bytes, protocol };
        (entry().check)(&(entry().read)(&file).expect("properties")).len()
    };
    assert_eq!([Some(WireProtocol::MySql), Some(WireProtocol::Postgres), None].map(problems), [0, 1, 1]);
}

/// The value of the expression `text`, with its type; why it has none.
fn computed(text: &str) -> String {
    let mut names = Names::default();
    let expression = match parse(text, &mut names) {
        Ok(expression) => expression,
        Err(mistake) => return mistake.problem,
    };
    let mut variables = Variables::new(Arc::new(names));
    for (name, value) in [("default_seed", 5432), ("scale", 7)] {
        variables.put_named(name, Value::Integer(value));
    }
    let mut random = Random::new(1);
    let mut evaluation = Evaluation { variables: &variables, random: &mut random, debugged: None };
    match evaluation.value(&expression) {
        Ok(value) => {
            let mut written = String::new();
            value.write(&mut written);
            format!("{} {written}", value.kind())
        }
        Err(problem) => problem,
    }
}

fn compute(vectors: &[(&str, &str)]) {
    for (text, expected) in vectors {
        assert_eq!(computed(text), *expected, "{text}");
    }
}

#[test]
fn operators_and_functions_compute_whole_numbers_and_doubles() {
    compute(&[
        ("7 - 2 - 1", "int 4"),
        ("8 / 2 / 2", "int 2"),
        ("-7 / 2", "int -3"),
        ("-226 % 19", "int -17"),
        ("6 + 0.5", "double 6.5"),
        ("6 - 0.5", "double 5.5"),
        ("6 * 0.5", "double 3"),
        ("7 / 2.0", "double 3.5"),
        (".5 + 5e-1 + 0.5E+1 + 0.0e-400", "double 6"),
        ("1 << 65", "int 2"),
        ("-8 >> 1", "int -4"),
        ("6 & 3", "int 2"),
        ("6 | 3", "int 7"),
        ("6 # 3", "int 5"),
        ("~5", "int -6"),
        ("-9223372036854775808", "int -9223372036854775808"),
        ("-9223372036854775808 % -1", "int 0"),
        ("abs(-4)", "int 4"),
        ("abs(-0.8E1)", "double 8"),
        ("abs(3.5)", "double 3.5"),
        ("abs(0.0)", "double 0"),
        ("int(7.3) + int(-0.5) + int(1.5) + int(2.5)", "int 11"),
        ("int(-9223372036854775808.0)", "int -9223372036854775808"),
        ("double(1 + 1) * (-75.0 / 3)", "double -50"),
        ("sqrt(+1.5 * 6.0)", "double 3"),
        ("exp(0) + ln(1)", "double 1"),
        ("power(2, 10)", "double 1024"),
        ("pow(-3, 3)", "double -27"),
        ("mod(7, 4)", "int 3"),
        ("pi()", "double 3.14159265358979"),
        ("debug(null)", "null NULL"),
        (":scale + 1 \\\n + 1", "int 9"),
        ("greatest(5, 4, 3, 2)", "int 5"),
        ("greatest(2, 3, 5, 4)", "int 5"),
        ("least(5, 4, 2, 3)", "int 2"),
        ("greatest(1, 2.5, 2)", "double 2.5"),
        ("greatest(4, 2, -1.17)", "double 4"),
        ("least(1, 2.5, -2)", "double -2"),
        ("least(1.0, 2.5)", "double 1"),
        // As pgbench's own comparison: the second one if one is not a number, or if both are equal.
        ("least(sqrt(-1), 3)", "double 3"),
        ("greatest(3, sqrt(-1))", "double NaN"),
        ("greatest(0.0, -1 * 0.0)", "double -0"),
        ("least(0.0, -1 * 0.0)", "double -0"),
        ("hash(10)", "int -5817877081768721676"),
        ("hash_murmur2(10, 5432)", "int -5817877081768721676"),
        ("hash_fnv1a(10)", "int -7793829335365542153"),
        ("permute(1, 2, 5431)", "int 1"),
        ("permute(0, 2, 5433)", "int 1"),
        ("permute(0, 1)", "int 0"),
        ("random(3, 3) + random_gaussian(1, 1, 2)", "int 4"),
        ("random_zipfian(1, 1, 1.001) + random_zipfian(1, 1, 1000)", "int 2"),
        ("random_exponential(1, 1, 0.5)", "int 1"),
    ]);
}

#[test]
fn operators_bind_as_in_pgbench() {
    compute(&[
        ("2 + 3 * 4", "int 14"),
        ("1 + 1 | 1", "int 3"),
        ("1 | 2 = 3", "boolean true"),
        ("2 + 3 < 4 * 2", "boolean true"),
        ("~1 + 2 | 3 & 4 << 1 # 5", "int 13"),
        ("17 / (4|1) + ( 4 + (7 >> 2))", "int 8"),
        ("- (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1", "int 9"),
        ("64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2)", "int 12"),
        ("true or false and false", "boolean true"),
        ("false and false or true", "boolean true"),
        ("not false and false", "boolean false"),
        ("not 1 = 2", "boolean true"),
        ("not null is null", "boolean false"),
        ("1 + 1 is null", "boolean false"),
        ("2 = 1 + 1 is true", "boolean true"),
    ]);
    assert_eq!(computed(&format!("1{}", " + 1".repeat(300))), "int 301");
    let nested = |levels: usize| computed(&format!("{}1{}", "(".repeat(levels), ")".repeat(levels)));
    assert_eq!([nested(199), nested(200)], ["int 1", "the expression is nested too deeply"]);
}

#[test]
fn comparisons_and_conditions_are_true_false_or_unknown() {
    for (sign, holds) in [
        ("<", [true, false, false]),
        ("<=", [true, true, false]),
        (">", [false, false, true]),
        (">=", [false, true, true]),
        ("=", [false, true, false]),
        ("<>", [true, false, true]),
        ("!=", [true, false, true]),
    ] {
        for (left, holds) in (1..).zip(holds) {
            for text in [format!("{left} {sign} 2"), format!("{left}.0 {sign} 2")] {
                assert_eq!(computed(&text), format!("boolean {holds}"), "{text}");
            }
        }
    }
    // By place in `sides`. NULL on the left decides.
    let sides = [("true", "boolean true"), ("false", "boolean false"), ("null", "null NULL")];
    for (operator, results) in [("and", [[0, 1, 2], [1; 3], [2; 3]]), ("or", [[0; 3], [0, 1, 2], [2; 3]])] {
        for ((left, _), results) in sides.iter().zip(results) {
            for ((right, _), result) in sides.iter().zip(results) {
                let text = format!("{left} {operator} {right}");
                assert_eq!(computed(&text), sides[result].1, "{text}");
            }
        }
    }
    compute(&[
        ("false and 1 / 0 = 1", "boolean false"),
        ("true or 1 / 0 = 1", "boolean true"),
        ("null and 1 / 0 = 1", "null NULL"),
        ("not true", "boolean false"),
        ("1 + null", "null NULL"),
        ("null is null", "boolean true"),
        ("null is not null", "boolean false"),
        ("1 is null", "boolean false"),
        ("1 isnull", "boolean false"),
        ("1 notnull", "boolean true"),
        ("true is true", "boolean true"),
        ("false is true", "boolean false"),
        ("true is not false", "boolean true"),
        ("1 is true", "boolean false"),
        ("case when 0 < 1 then 32 else 0 end", "int 32"),
        ("case when false then -1 when 1 = 1 then 13 + 19 + 2.0 end", "double 34"),
        ("case when null then 1 end", "null NULL"),
        ("case when 0 then 1 when 0.0 then 2 when 0.5 then 3 else 4 end", "int 3"),
        ("case when 2 then 1 when 1 / 0 = 1 then 2 end", "int 1"),
        ("case when false then 1 else 5 end", "int 5"),
    ]);
}

#[test]
fn what_has_no_value_has_pgbenchs_words() {
    compute(&[
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775808 - 1", "bigint sub out of range"),
        ("9223372036854775807 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        ("int(9223372036854775808.0)", "double to int overflow for 9223372036854776000"),
        ("int(-1e19)", "double to int overflow for -10000000000000000000"),
        ("int(sqrt(-1))", "double to int overflow for NaN"),
        ("1 and true", "cannot coerce int to boolean"),
        ("true and 1", "cannot coerce int to boolean"),
        ("not 1.0", "cannot coerce double to boolean"),
        ("1 + true", "cannot coerce boolean to int"),
        ("1.0 + true", "cannot coerce boolean to double"),
        ("random(2, 1)", "empty range given to random"),
        ("random(0, 9223372036854775807)", "random range is too large"),
        ("random(-9223372036854775808, 9223372036854775807)", "random range is too large"),
        ("random_gaussian(1, 9, 1.9)", "gaussian parameter must be at least 2 (not 1.9)"),
        ("random_zipfian(1, 9, 1.0)", "zipfian parameter must be in range [1.001, 1000] (not 1)"),
        ("random_zipfian(1, 9, 1000.5)", "zipfian parameter must be in range [1.001, 1000] (not 1000.5)"),
        ("random_exponential(1, 9, 0)", "exponential parameter must be greater than zero (not 0)"),
        ("permute(7, 0)", "permute size parameter must be greater than zero"),
        (":nobody", "undefined variable \"nobody\""),
    ]);
}
