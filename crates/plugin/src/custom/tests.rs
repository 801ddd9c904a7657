use expect_test::expect;
use tithe_model::experiment::{Claim, Says};

use super::*;
use crate::simulated::sql_bench::{Answers, SqlBench};

fn custom() -> experiment::Custom {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    experiment::Custom {
        settings: [("log_level".to_owned(), "all".to_owned())].into(),
        files: [("rules".to_owned(), "/my/rules".into())].into(),
        statements: own(&["MAKE"]),
        undo: own(&["UNMAKE"]),
        session: own(&["SET x"]),
        claims: vec![Claim::Statement { statement: "SHOW x".to_owned(), says: Says::Rows(1) }],
        ..experiment::Custom::default()
    }
}

#[test]
fn everything_that_data_describe_reaches_the_set_up() {
    let mut setup = SqlBench::plain().bench.setup.clone();
    setup.settings = [("LOG-LEVEL", "none"), ("other", "kept")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    apply(&custom(), &mut setup);
    let Setup { settings, files, after_loading, .. } = setup;
    expect![[r#"
        {"log_level": "all", "other": "kept"}
        {"rules": "/my/rules"}
        AfterLoading { statements: ["MAKE"], undo: ["UNMAKE"], session: ["SET x"] }"#]]
    .assert_eq(&format!("{settings:?}\n{files:?}\n{after_loading:?}"));
    let told: Vec<String> =
        evidence(&custom(), &Probes::NONE).iter().map(|check| format!("{}: {}", check.id(), check.claim())).collect();
    expect![[r#"
        setting-differs: log_level = all makes it another one than that of the plain arm
        your-claim: `SHOW x` brings 1 row"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_setting_counts_where_the_arms_differ_in_it() {
    let arm = |answers: Answers| {
        let mut arm = SqlBench::plain();
        arm.database.answers = Some(answers);
        arm
    };
    fn said(value: &str) -> Result<Vec<crate::database::Row>, Fault> {
        Ok(vec![vec![Some("name".to_owned()), Some(value.to_owned())]])
    }
    let all = arm(|_, _, sql| {
        assert_eq!(sql, "SHOW log-level");
        said("all")
    });
    let none = arm(|_, _, _| said("none"));
    let unknown = arm(|_, _, _| Err(Fault::Server("no such setting".to_owned())));
    let silent = arm(|_, _, _| Ok(Vec::new()));
    let broken = arm(|_, _, _| Err(Fault::Connection("gone".to_owned())));
    let arms = [&all, &none, &unknown, &silent, &broken];
    let mut text = String::new();
    for protected in arms {
        for plain in arms {
            let checks = evidence(&custom(), &Probes::NONE);
            let setting = checks[0].as_ref();
            let (on, off) = (protected.look(setting, true).0, plain.look(setting, false).0);
            text += &format!("{on:?} / {off:?}\n");
        }
    }
    expect![[r#"
        Protected("all") / Protected("all, as on the protected arm")
        Protected("all") / Exposed("none")
        Protected("all") / Exposed("unknown to the server")
        Protected("all") / Exposed("not shown by the server")
        Protected("all") / Unknown("connection: gone")
        Protected("none") / Exposed("all")
        Protected("none") / Protected("none, as on the protected arm")
        Protected("none") / Exposed("unknown to the server")
        Protected("none") / Exposed("not shown by the server")
        Protected("none") / Unknown("connection: gone")
        Protected("unknown to the server") / Exposed("all")
        Protected("unknown to the server") / Exposed("none")
        Protected("unknown to the server") / Unknown("unknown to the server, on both arms")
        Protected("unknown to the server") / Exposed("not shown by the server")
        Protected("unknown to the server") / Unknown("connection: gone")
        Protected("not shown by the server") / Exposed("all")
        Protected("not shown by the server") / Exposed("none")
        Protected("not shown by the server") / Exposed("unknown to the server")
        Protected("not shown by the server") / Unknown("not shown by the server, on both arms")
        Protected("not shown by the server") / Unknown("connection: gone")
        Unknown("connection: gone") / Exposed("all")
        Unknown("connection: gone") / Exposed("none")
        Unknown("connection: gone") / Exposed("unknown to the server")
        Unknown("connection: gone") / Exposed("not shown by the server")
        Unknown("connection: gone") / Unknown("connection: gone")
    "#]]
    .assert_eq(&text);
    // A product that Tithe cannot query.
    let bench = crate::simulated::test_bench::Bench::plain();
    let seen = bench.observe(evidence(&custom(), &Probes::NONE)[0].as_ref());
    expect![[r#"Unknown("refused: Tithe cannot run statements of yours on simulated database")"#]]
        .assert_eq(&format!("{seen:?}"));
}
