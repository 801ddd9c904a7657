//! The JSON Schema of an experiment file, with which editors complete and check one while it is written.
//!
//! It is generated from the parser's own table of keys and from the catalogue, so it has the databases, protections and
//! workloads of this build. Rules about several keys at once are checked only by the parser: arms against each other, a
//! budget.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    catalogue::{Catalogue, OfferedDatabase, OptionEntry, OptionKind, ProtectionEntry, WorkloadEntry},
    experiment::OptionValue,
    parse::{Key, KeyDefault, Kind, TABLES, TableFormat},
};

/// A decimal number in a text with a unit.
const DECIMAL: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)";

/// The schema, in draft 7 of JSON Schema, the newest that editors of TOML read.
pub fn schema(catalogue: &Catalogue) -> Value {
    let mut root = TABLES.first().map_or(Value::Null, |top| of_table(top, catalogue));
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!("Experiment of tithe");
    root["allOf"] = catalogue.databases.iter().map(only_its_protections).collect();
    let definitions =
        catalogue.databases.iter().map(|database| (definition(database), its_protections(database, catalogue)));
    root["definitions"] = definitions.chain([("pairs".to_owned(), pairs())]).collect::<Map<_, _>>().into();
    root
}

fn of_table(table: &TableFormat, catalogue: &Catalogue) -> Value {
    let mut properties: Map<String, Value> =
        table.keys.iter().map(|key| (key.name.to_owned(), of_key(key, catalogue))).collect();
    let required = table.keys.iter().filter(|key| matches!(key.default, KeyDefault::Required));
    let required: Vec<&str> = required.map(|key| key.name).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false });
    if table.header == "[[workload]]" {
        properties.extend(catalogue.workloads.iter().flat_map(sources));
        let one = catalogue.workloads.iter().flat_map(sources).map(|(key, _)| json!({ "required": [key] }));
        schema["oneOf"] = one.collect();
    }
    if table.header == "protections" {
        let options = all_protections(catalogue).flat_map(|entry| entry.options);
        properties.extend(options.map(|option| (option.name.to_owned(), json!({ "description": option.help }))));
        let ids = all_protections(catalogue).map(|entry| entry.id).collect::<BTreeSet<_>>();
        // The user's own files may have any name.
        properties["use"]["anyOf"] = json!([{ "enum": ids }, { "type": "string" }]);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = properties.into();
    schema
}

fn of_key(key: &Key, catalogue: &Catalogue) -> Value {
    let mut schema = of_kind(&key.kind, catalogue);
    schema["description"] = json!(format!("{} ({}; {})", without_links(key.meaning), key.kind, key.default));
    // A text, number or boolean is written the same in TOML and JSON.
    if let KeyDefault::Value(value) = key.default {
        schema["default"] = serde_json::from_str(value).unwrap_or_default();
    }
    schema
}

fn of_kind(kind: &Kind, catalogue: &Catalogue) -> Value {
    let with_unit = |unit: &str| json!({ "type": "string", "pattern": format!(r"^\s*{DECIMAL}\s*({unit})\s*$") });
    match kind {
        Kind::Text | Kind::Address => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "pattern": r"\S" }),
        Kind::Database => {
            let ids: Vec<&str> = catalogue.databases.iter().map(|database| database.entry.id).collect();
            json!({ "type": "string", "enum": ids })
        }
        Kind::Choice(words) => json!({ "type": "string", "enum": words }),
        Kind::Whole(low, u64::MAX) => json!({ "type": "integer", "minimum": low }),
        Kind::Whole(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Number(low, high) => json!({ "type": "number", "minimum": low, "maximum": high }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Percentage(..) => with_unit("%"),
        Kind::Change => json!({ "type": "string", "pattern": format!(r"^\s*[+-]?{DECIMAL}\s*%\s*$") }),
        Kind::Time(..) => with_unit("ms|s|min|h"),
        Kind::Size => with_unit("kB|MB|GB|KiB|MiB|GiB"),
        Kind::Pairs => pairs(),
        Kind::Table(table) => of_table(table, catalogue),
        Kind::List(kind, least) => json!({ "type": "array", "minItems": least, "items": of_kind(kind, catalogue) }),
        Kind::Either(kinds) => {
            let all: Vec<Value> = kinds.iter().map(|kind| of_kind(kind, catalogue)).collect();
            json!({ "anyOf": all })
        }
    }
}

/// Settings by name; a dotted name is a table in a table.
fn pairs() -> Value {
    json!({
        "type": "object",
        "additionalProperties": { "anyOf": [
            { "type": ["string", "number", "boolean"] },
            { "$ref": "#/definitions/pairs" },
        ] },
    })
}

/// The keys that name a workload of a kind: a preset, or files.
fn sources(kind: &WorkloadEntry) -> Vec<(String, Value)> {
    let presets: Vec<&str> = kind.presets.iter().map(|(name, ..)| *name).collect();
    let words = kind.presets.iter().map(|(name, what, _)| format!("\"{name}\": {what}"));
    let words = format!("{}. {}", kind.title, words.collect::<Vec<_>>().join("; "));
    let files = json!({
        "description": kind.file,
        "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }],
    });
    let preset = json!({ "type": "string", "enum": presets, "description": words });
    if kind.names_files() {
        return vec![(kind.file_key(), files)];
    }
    vec![(kind.id.to_owned(), preset), (kind.file_key(), files)]
}

fn all_protections(catalogue: &Catalogue) -> impl Iterator<Item = &'static ProtectionEntry> + '_ {
    catalogue.databases.iter().flat_map(|database| database.protections.iter().copied())
}

/// The name of the definition with the protections of `database`.
fn definition(database: &OfferedDatabase) -> String {
    format!("protections-of-{}", database.entry.id)
}

/// With this database, arms can only have its protections.
fn only_its_protections(database: &OfferedDatabase) -> Value {
    let reference = json!({ "$ref": format!("#/definitions/{}", definition(database)) });
    let arms = json!({ "items": { "properties": { "protections": { "items": reference } } } });
    json!({
        "if": { "required": ["database"], "properties": { "database": { "const": database.entry.id } } },
        "then": { "properties": { "arm": arms } },
    })
}

/// Each protection of `database` with only its own options, and the user's own files.
fn its_protections(database: &OfferedDatabase, catalogue: &Catalogue) -> Value {
    let known: BTreeSet<&str> = all_protections(catalogue).map(|entry| entry.id).collect();
    let ids: Vec<&str> = database.protections.iter().map(|entry| entry.id).collect();
    let each = database.protections.iter().map(|entry| {
        let options = entry.options.iter().map(|option| (option.name.to_owned(), of_option(option)));
        let properties: Map<String, Value> = options.chain([("use".to_owned(), json!(true))]).collect();
        let needed = entry.options.iter().filter(|option| option.default.is_none()).map(|option| option.name);
        json!({
            "if": { "required": ["use"], "properties": { "use": { "const": entry.id } } },
            "then": {
                "description": format!("{}. Protects against: {}", entry.title, entry.protects_against),
                "properties": properties,
                "required": needed.collect::<Vec<_>>(),
                "additionalProperties": false,
            },
        })
    });
    json!({ "type": "object", "properties": { "use": { "anyOf": [{ "enum": ids }, { "not": { "enum": known } }] } }, "allOf": each.collect::<Vec<_>>() })
}

fn of_option(option: &OptionEntry) -> Value {
    let mut schema = match option.kind {
        OptionKind::Number { low, high } => json!({ "type": "number", "minimum": low, "maximum": high }),
        OptionKind::Choice(words) => json!({ "type": "string", "enum": words }),
        OptionKind::Text => json!({ "type": "string" }),
        OptionKind::Flag => json!({ "type": "boolean" }),
    };
    schema["description"] = json!(option.help);
    if let Some(default) = option.default {
        schema["default"] = match default.value() {
            OptionValue::Number(number) => json!(number),
            OptionValue::Text(text) => json!(text),
            OptionValue::Flag(flag) => json!(flag),
        };
    }
    schema
}

/// `text` with the words of its links but not their targets: editors show it away from FORMAT.md.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((said, after)) = rest.split_once("](") {
        // The link began at the last bracket after a blank: its words may contain brackets.
        let start = said.rfind(" [").map_or(0, |at| at + 1).max(said.rfind("([").map_or(0, |at| at + 1));
        plain += &said[..start];
        plain += said[start..].strip_prefix('[').unwrap_or(&said[start..]);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    #[test]
    fn links_are_what_they_say() {
        let plain = |text| super::without_links(text);
        assert_eq!(plain("offered: [`[[arm]]`](#arm)"), "offered: `[[arm]]`");
        assert_eq!(plain("by `a` ([agents](docs/a.md)), (b) or [c](d)."), "by `a` (agents), (b) or c.");
        assert_eq!(plain("[a] b"), "[a] b");
    }
}
