//! The language: what it refuses and what it computes. `tests/pgbench.rs` compares it with the installed pgbench.

use expect_test::{Expect, expect};
use tithe_model::catalogue::{PropertyFile, WireProtocol};
use tithe_plugin::session::Protocol;

use super::{
    entry,
    program::{Program, Source, Transactions},
    statement::Flavour,
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
