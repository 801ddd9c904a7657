//! Observations as assessment results of OSCAL (NIST, *Open Security Controls Assessment Language*, 1.1), in JSON.
//!
//! Each observation has its method, its time, its controls and the hash of the seen text. There are no OSCAL findings:
//! the assessor decides whether a control is satisfied. There is no assessment plan either; a resource that describes
//! the checks takes its place.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tithe_model::quantity::moment;

use super::{
    controls::controls,
    observation::{Assessment, Observation, line, uuid, uuid_of},
};

/// The version of OSCAL that documents follow.
const OSCAL: &str = "1.1.3";

/// The namespace of this program's own properties.
const NAMES: &str = "urn:tithe:oscal";

/// The assessment as a document; it ends with a line break.
pub fn render(assessment: &Assessment) -> String {
    let Assessment { title, source, tithe, unix_s, .. } = assessment;
    let (time, whole) = (moment(*unix_s), whole(assessment));
    let plan = uuid(&["plan", &whole]);
    let mut document = json!({ "assessment-results": {
        "uuid": uuid(&["assessment-results", &whole]),
        "metadata": {
            "title": line(title),
            "last-modified": time,
            "version": time,
            "oscal-version": OSCAL,
            "props": [property("tool", &format!("tithe {tithe}"))],
        },
        "import-ap": { "href": format!("#{plan}") },
        "results": [{
            "uuid": uuid(&["result", &whole]),
            "title": line(title),
            "description": line(&format!("What tithe {tithe} saw of the protections of {source}.")),
            "start": time,
            "local-definitions": { "components": components(assessment) },
            "reviewed-controls": { "control-selections": [selection(assessment)] },
            "observations": observations(assessment),
        }],
        "back-matter": { "resources": [{
            "uuid": plan,
            "title": line(source),
            "description": "What was carried out; there is no OSCAL assessment plan.",
        }]},
    }});
    leave_out_empty(&mut document);
    format!("{document:#}\n")
}

/// The unique content of this assessment: its source, its time and all observations.
fn whole(assessment: &Assessment) -> String {
    let numbered = assessment.observations.iter().enumerate();
    let seen: Vec<String> = numbered.map(|(index, it)| uuid_of(assessment, index, it)).collect();
    format!("{}\n{}\n{}", assessment.source, assessment.unix_s, seen.join("\n"))
}

/// OSCAL has no empty lists.
fn leave_out_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(leave_out_empty);
            fields.retain(|_, value| !matches!(value, Value::Array(list) if list.is_empty()));
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_empty),
        _ => {}
    }
}

fn component_of(assessment: &Assessment, subject: &str) -> String {
    uuid(&["component", &assessment.source, subject])
}

/// The servers and arms that were checked.
fn components(assessment: &Assessment) -> Vec<Value> {
    let subjects: BTreeSet<&str> = assessment.observations.iter().map(|it| it.subject.as_str()).collect();
    let component = |subject: &str| {
        json!({
            "uuid": component_of(assessment, subject),
            "type": "software",
            "title": line(subject),
            "description": line(&format!("{subject}, as it was set up for {}", assessment.source)),
            "status": { "state": "operational" },
        })
    };
    subjects.into_iter().map(component).collect()
}

/// The controls of all observations. OSCAL has no empty selection: without controls, all are selected.
fn selection(assessment: &Assessment) -> Value {
    let properties = assessment.observations.iter().filter_map(|it| it.property);
    let tokens: BTreeSet<&str> = properties.flat_map(controls).map(|control| control.token).collect();
    if tokens.is_empty() {
        let description = "No observation is about a control that is known here, and none is judged.";
        return json!({ "description": description, "include-all": {} });
    }
    json!({
        "description": "Controls that have an observation. None of them is judged here.",
        "include-controls": tokens.into_iter().map(|token| json!({ "control-id": token })).collect::<Vec<_>>(),
    })
}

fn observations(assessment: &Assessment) -> Vec<Value> {
    let observation = |(index, it): (usize, &Observation)| {
        let about = it.property.map_or(&[][..], controls);
        let about =
            about.iter().map(|control| property("control", &format!("{} {}", control.standard, control.number)));
        let tokens = it.property.map_or(&[][..], controls).iter().map(|control| property("control-id", control.token));
        let said = [property("check", &it.check), property("outcome", it.outcome.word())];
        let findings = it.findings.iter().map(|finding| property("finding", finding));
        json!({
            "uuid": uuid_of(assessment, index, it),
            "title": line(&it.claim),
            "description": it.description(),
            "props": said.into_iter().chain(findings).chain(about).chain(tokens).collect::<Vec<_>>(),
            "methods": [it.method.word()],
            "types": ["control-objective"],
            "subjects": [{
                "subject-uuid": component_of(assessment, &it.subject),
                "type": "component",
                "title": line(&it.subject),
            }],
            "relevant-evidence": [{
                "description": line(&format!("Seen: {}", it.seen)),
                "props": [property("sha-256", &it.hash())],
            }],
            "collected": moment(it.unix_s),
        })
    };
    assessment.observations.iter().enumerate().map(observation).collect()
}

fn property(name: &str, value: &str) -> Value {
    json!({ "name": name, "ns": NAMES, "value": line(value) })
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::report::observation::tests::sample;

    /// NIST's schema of assessment results, a work of the United States' government in the public domain.
    fn validator() -> jsonschema::Validator {
        let schema = include_str!("../../tests/oscal/oscal_assessment-results_schema.json");
        jsonschema::validator_for(&serde_json::from_str(schema).expect("JSON")).expect("a schema")
    }

    fn parsed(assessment: &Assessment) -> Value {
        serde_json::from_str(&render(assessment)).expect("JSON")
    }

    #[test]
    fn one_observation_each() {
        let assessment = sample();
        expect_file!["golden/full.oscal.json"].assert_eq(&render(&assessment));
        let document = parsed(&assessment);
        let observations = document["assessment-results"]["results"][0]["observations"].as_array().expect("a list");
        assert_eq!(observations.len(), assessment.observations.len());
    }

    #[test]
    fn documents_follow_the_schema_of_nist() {
        let validator = validator();
        let nothing = Assessment { observations: Vec::new(), ..sample() };
        for assessment in [sample(), nothing] {
            let document = parsed(&assessment);
            let errors: Vec<String> =
                validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{errors:#?}");
        }
    }

    #[test]
    fn the_schema_refuses_what_oscal_does_not_have() {
        let validator = validator();
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut document = parsed(&sample());
            change(&mut document["assessment-results"]);
            assert!(!validator.is_valid(&document));
        };
        refused(&|it| it["uuid"] = "1".into());
        refused(&|it| it["results"][0]["observations"][0]["collected"] = "yesterday".into());
        refused(&|it| drop(it["results"][0]["observations"][0].as_object_mut().expect("an object").remove("methods")));
        refused(&|it| it["results"][0]["observations"][0]["props"][0]["value"] = "two\nlines".into());
        refused(&|it| it["results"][0]["reviewed-controls"] = json!({}));
    }
}
