//! The report as JSON, for programs: the whole analysis, nothing rounded, under a published schema.
//!
//! The document is `{"format": 1, "tithe_report": …}`. Effects are natural-log ratios guarded/plain; an end
//! of an interval that is not finite is `null`, because JSON has no infinity.

use serde::Serialize;

use crate::Analysis;

/// Version of the document; it grows when a reader of the old one could be misled.
pub const FORMAT: u32 = 1;

/// The JSON Schema (draft 2020-12) that every document of [`render`] follows.
pub fn schema() -> &'static str {
    include_str!("../../schema/report.schema.json")
}

/// The report on `analysis`, indented, ending with a line break.
pub fn render(analysis: &Analysis) -> String {
    let document = Document { format: FORMAT, tithe_report: analysis };
    let text = serde_json::to_string_pretty(&document);
    let mut text = text.expect("every map of an analysis has text for keys, and nothing else can fail");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    tithe_report: &'a Analysis,
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use serde_json::Value;

    use super::*;
    use crate::report::sample;

    fn validator() -> jsonschema::Validator {
        let schema: Value = serde_json::from_str(schema()).unwrap();
        jsonschema::meta::validate(&schema).expect("the schema is a schema");
        jsonschema::validator_for(&schema).unwrap()
    }

    fn parsed(analysis: &Analysis) -> Value {
        serde_json::from_str(&render(analysis)).unwrap()
    }

    #[test]
    fn the_whole_analysis_is_told() {
        expect_file!["golden/full.json"].assert_eq(&render(&sample::full()));
        expect_file!["golden/failed.json"].assert_eq(&render(&sample::failed()));
        expect_file!["golden/empty.json"].assert_eq(&render(&sample::empty()));
    }

    #[test]
    fn every_report_follows_the_schema() {
        let validator = validator();
        for analysis in sample::all() {
            let errors: Vec<String> = validator
                .iter_errors(&parsed(&analysis))
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", analysis.title);
        }
    }

    #[test]
    fn the_schema_refuses_what_is_not_in_it() {
        let validator = validator();
        let good = parsed(&sample::full());
        let spoil = |change: &dyn Fn(&mut Value)| {
            let mut bad = good.clone();
            change(&mut bad);
            assert_ne!(bad, good);
            assert!(!validator.is_valid(&bad));
        };
        spoil(&|report| report["format"] = 2.into());
        spoil(&|report| report["tithe_report"]["more"] = 1.into());
        spoil(&|report| report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["more"] = 1.into());
        spoil(&|report| report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["verdict"] = "costs".into());
        spoil(&|report| report["tithe_report"]["cells"][0]["arms"][2]["proof"]["proof"] = "maybe".into());
        spoil(&|report| {
            report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0].as_object_mut().unwrap().remove("count");
        });
    }

    #[test]
    fn infinite_ends_are_null() {
        let mut analysis = sample::full();
        let estimate = &mut analysis.cells[0].arms[1].estimates[0];
        estimate.effect.low = f64::NEG_INFINITY;
        estimate.effect.high = f64::INFINITY;
        let report = parsed(&analysis);
        let effect = &report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["effect"];
        assert_eq!((&effect["low"], &effect["high"]), (&Value::Null, &Value::Null));
        assert!(effect["estimate"].is_number());
        assert!(validator().is_valid(&report));
    }
}
