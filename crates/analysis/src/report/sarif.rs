//! Observations as a log of SARIF (OASIS, *Static Analysis Results Interchange Format*, 2.1.0), in JSON.
//!
//! There is a rule for each check, tagged with its controls, and a result for each observation: `pass`, `fail`,
//! `review` if unknown, and `informational`. There are no files to refer to: the location of a result is the server or
//! the arm that was checked.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tithe_model::quantity::moment;

use super::{
    controls::controls,
    observation::{Assessment, Observation, Outcome, line, uuid_of},
};

/// The assessment as a log; it ends with a line break.
pub fn render(assessment: &Assessment) -> String {
    let rules = rules(assessment);
    let place = |check: &str| rules.keys().position(|known| *known == check);
    let numbered = assessment.observations.iter().enumerate();
    let results: Vec<Value> = numbered.map(|(index, it)| result(assessment, index, it, place(&it.check))).collect();
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tithe",
                "version": assessment.tithe,
                "rules": rules.values().map(|it| rule(it)).collect::<Vec<_>>(),
            }},
            "automationDetails": { "id": line(&assessment.source) },
            "invocations": [{ "executionSuccessful": assessment.complete, "startTimeUtc": moment(assessment.unix_s) }],
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

/// The first observation of each check, by check.
fn rules(assessment: &Assessment) -> BTreeMap<&str, &Observation> {
    let mut rules = BTreeMap::new();
    for observation in &assessment.observations {
        rules.entry(observation.check.as_str()).or_insert(observation);
    }
    rules
}

fn rule(first: &Observation) -> Value {
    let about = first.property.map_or(&[][..], controls);
    let tags: Vec<String> = about.iter().map(|control| format!("{} {}", control.standard, control.number)).collect();
    json!({
        "id": first.check,
        "shortDescription": { "text": line(&first.claim) },
        "properties": { "tags": tags },
    })
}

fn result(assessment: &Assessment, index: usize, observation: &Observation, rule: Option<usize>) -> Value {
    let (kind, level) = match observation.outcome {
        Outcome::Holds => ("pass", "none"),
        Outcome::Fails => ("fail", "error"),
        Outcome::CannotTell => ("review", "none"),
        Outcome::Informs => ("informational", "none"),
    };
    let subject = line(&observation.subject);
    let mut properties = json!({ "method": observation.method.word(), "collected": moment(observation.unix_s) });
    if !observation.findings.is_empty() {
        properties["findings"] = json!(observation.findings);
    }
    json!({
        "ruleId": observation.check,
        "ruleIndex": rule,
        "kind": kind,
        "level": level,
        "guid": uuid_of(assessment, index, observation),
        "message": { "text": observation.description() },
        "locations": [{ "logicalLocations": [{
            "name": subject,
            "fullyQualifiedName": format!("{}/{subject}", line(&assessment.source)),
            "kind": "resource",
        }]}],
        "partialFingerprints": { "seen/sha-256": observation.hash() },
        "properties": properties,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::report::observation::tests::sample;

    /// The requirements of SARIF 2.1.0 for the parts that are written (sections 3.13, 3.14, 3.19, 3.27, 3.33, 3.49),
    /// written by hand: we may not copy SARIF's own schema.
    fn schema() -> Value {
        let text = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
        let message = text(&["text"], json!({ "text": { "type": "string", "minLength": 1 } }));
        let time = json!({ "type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$" });
        let rule = text(
            &["id"],
            json!({ "id": { "type": "string" }, "shortDescription": message, "properties": { "type": "object" } }),
        );
        let driver = text(
            &["name"],
            json!({ "name": { "type": "string" }, "version": { "type": "string" },
                "rules": { "type": "array", "uniqueItems": true, "items": rule } }),
        );
        let result = json!({
            "type": "object",
            "required": ["message", "ruleId", "ruleIndex"],
            "properties": {
                "message": message,
                "ruleIndex": { "type": "integer", "minimum": 0 },
                "guid": { "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" },
                "kind": { "enum": ["notApplicable", "pass", "fail", "review", "open", "informational"] },
                "level": { "enum": ["none", "note", "warning", "error"] },
                "partialFingerprints": { "type": "object", "additionalProperties": { "type": "string" } },
            },
            // Only a failure may have a level other than none (3.27.10).
            "if": { "properties": { "kind": { "not": { "const": "fail" } } } },
            "then": { "properties": { "level": { "const": "none" } } },
        });
        let invocation = text(&["executionSuccessful"], json!({ "startTimeUtc": time }));
        let run = text(
            &["tool"],
            json!({
                "tool": text(&["driver"], json!({ "driver": driver })),
                "invocations": { "type": "array", "items": invocation },
                "results": { "type": "array", "items": result },
            }),
        );
        text(
            &["version", "runs"],
            json!({ "version": { "const": "2.1.0" }, "runs": { "type": "array", "items": run } }),
        )
    }

    #[test]
    fn one_result_each() {
        let assessment = sample();
        expect_file!["golden/full.sarif.json"].assert_eq(&render(&assessment));
        let log: Value = serde_json::from_str(&render(&assessment)).expect("JSON");
        let run = &log["runs"][0];
        let results = run["results"].as_array().expect("a list");
        assert_eq!(results.len(), assessment.observations.len());
        for result in results {
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
    }

    #[test]
    fn logs_have_what_the_standard_asks_for() {
        let validator = jsonschema::validator_for(&schema()).expect("a schema");
        for assessment in [sample(), Assessment { observations: Vec::new(), ..sample() }] {
            let log: Value = serde_json::from_str(&render(&assessment)).expect("JSON");
            let errors: Vec<String> =
                validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{errors:#?}");
        }
        let mut log: Value = serde_json::from_str(&render(&sample())).expect("JSON");
        log["runs"][0]["results"][0]["level"] = "error".into();
        log["runs"][0]["results"][0]["kind"] = "pass".into();
        assert!(!validator.is_valid(&log), "a pass is no error");
    }
}
