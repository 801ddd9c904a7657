//! A small catalogue with one of everything that the parser distinguishes.

use std::io;

use tithe_model::catalogue::{
    Asked, AskedOf, AskedOfCustom, Catalogue, DatabaseEntry, DefaultValue, KeptUndo, LineProblem, NetworkLogin,
    OfferedDatabase, OptionEntry, OptionKind, OtherSwitch, Overrides, Properties, PropertyFile, PropertyProblem,
    ProtectionEntry, Switch, UrlTls, WorkloadEntry, WorkloadShape,
};

static AUDIT: [OptionEntry; 2] = [
    OptionEntry {
        name: "log",
        kind: OptionKind::Text,
        default: Some(DefaultValue::Text("all")),
        help: "Classes of statements.",
    },
    OptionEntry {
        name: "catalogue",
        kind: OptionKind::Flag,
        default: Some(DefaultValue::Flag(false)),
        help: "Log queries of the system tables.",
    },
];

static COLUMNS: [OptionEntry; 1] = [OptionEntry {
    name: "share",
    kind: OptionKind::Number { low: 0.0, high: 1.0 },
    default: Some(DefaultValue::Number(1.0)),
    help: "Share of the fields.",
}];

static VOLUME: [OptionEntry; 1] = [OptionEntry {
    name: "kind",
    kind: OptionKind::Choice(&["luks", "gocryptfs"]),
    default: None,
    help: "What encrypts the volume.",
}];

const fn protection(id: &'static str, options: &'static [OptionEntry], attachable: bool) -> ProtectionEntry {
    ProtectionEntry { id, title: id, options, attachable, ..ProtectionEntry::BARE }
}

const SWITCH: Switch = Switch {
    on: &["SET log = '{log}'", "SET catalogue = {catalogue}"],
    off: &["RESET log"],
    other: Some(OtherSwitch {
        option: "catalogue",
        value: "true",
        on: &["SET whole = '{log}'"],
        off: &["RESET whole"],
    }),
};

fn overrides() -> Overrides {
    Overrides::new(|chosen, name| chosen.id == "pgaudit" && name == "pgaudit.log")
}

/// One embedded database, one with everything, and another one with TLS.
pub fn catalogue() -> Catalogue {
    Catalogue {
        databases: vec![
            OfferedDatabase {
                entry: DatabaseEntry { id: "sqlite", title: "SQLite", embedded: true, ..DatabaseEntry::BARE },
                copies_data: true,
                protections: vec![&const { protection("columns", &COLUMNS, false) }],
                overrides: overrides(),
            },
            OfferedDatabase {
                entry: DatabaseEntry {
                    id: "postgres",
                    title: "PostgreSQL",
                    schemes: &["postgres", "postgresql"],
                    url_tls: UrlTls { options: &["sslmode"], schemes: None },
                    keeps_data: true,
                    reserved_settings: &[("port", "Tithe chooses a free port")],
                    network_login: NetworkLogin::Password("scram"),
                    custom: Some(AskedOfCustom {
                        setting: "SHOW {setting}",
                        between: '_',
                        careful: &[],
                        kept: Some(KeptUndo::in_sql(&[])),
                    }),
                    ..DatabaseEntry::BARE
                },
                copies_data: true,
                protections: vec![
                    &const { ProtectionEntry { by_url: true, ..protection("tls", &[], true) } },
                    &const { ProtectionEntry { switch: Some(SWITCH), ..protection("pgaudit", &AUDIT, true) } },
                    &const { ProtectionEntry { by_client: true, ..protection("columns", &COLUMNS, true) } },
                    &const { ProtectionEntry { elsewhere: true, ..protection("volume", &VOLUME, false) } },
                ],
                overrides: overrides(),
            },
            OfferedDatabase {
                entry: DatabaseEntry {
                    id: "redis",
                    title: "Redis",
                    schemes: &["redis", "rediss"],
                    url_tls: UrlTls { options: &["ca"], schemes: Some(("rediss", "redis")) },
                    ..DatabaseEntry::BARE
                },
                copies_data: false,
                protections: vec![&const { protection("tls", &[], true) }],
                overrides: overrides(),
            },
        ],
        workloads: vec![WorkloadEntry {
            id: "ycsb",
            title: "YCSB",
            presets: &[
                ("a", "half reads, half updates", &[("readproportion", "0.5"), ("updateproportion", "0.5")]),
                ("c", "reads only", &[("readproportion", "1"), ("updateproportion", "0")]),
            ],
            file: "a property file",
            weighted: false,
            scripts: "",
            by_path: "",
            commands: &[],
            read: read_properties,
            asks,
            check: check_properties,
            shape,
        }],
        left_out: vec!["mongodb"],
    }
}

fn read_properties(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = file.text()?;
    let mut properties = Properties::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match line.split_once('=') {
            Some((key, value)) => _ = properties.insert(key.trim().to_owned(), value.trim().to_owned()),
            None => problems.push((index + 1, "no `=`".to_owned(), "write `key=value`".to_owned())),
        }
    }
    if problems.is_empty() { Ok(properties) } else { Err(problems) }
}

fn asks(properties: &Properties) -> Vec<Asked> {
    let asked = |property: &'static str, of: AskedOf| {
        Some(Asked { property, of, value: properties.get(property)?.parse().ok()? })
    };
    let all = [("recordcount", AskedOf::Records), ("threadcount", AskedOf::Clients), ("target", AskedOf::Rate)];
    all.into_iter().filter_map(|(property, of)| asked(property, of)).collect()
}

fn check_properties(properties: &Properties) -> Vec<PropertyProblem> {
    let proportions = properties.iter().filter(|(name, _)| name.ends_with("proportion"));
    proportions
        .filter(|(_, value)| value.parse::<f64>().is_err())
        .map(|(name, _)| (name.clone(), "is not a number".to_owned(), "write for example 0.5".to_owned()))
        .collect()
}

fn shape(properties: &Properties) -> WorkloadShape {
    let proportion = |name: &str| properties.get(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
    let writes = ["updateproportion", "insertproportion", "readmodifywriteproportion"];
    WorkloadShape {
        writes: writes.iter().any(|name| proportion(name) > 0.0),
        record_bytes: 1000,
        program: false,
        gaps: false,
        batch: Some(1),
        slot_ns: None,
    }
}

/// The property files of the tests.
pub fn read(path: &str) -> io::Result<Vec<u8>> {
    let text = match path {
        "workloads/mine.properties" => "readproportion=0.9\nupdateproportion=0.1\n",
        "workloads/wrong.properties" => "readproportion=1\nscanproportion = few\n",
        "workloads/broken.properties" => "readproportion=1\nnonsense\n",
        "workloads/asks.properties" => "recordcount=2000\nthreadcount=8\ntarget=500\nreadproportion=1\n",
        "workloads/more.properties" => "recordcount=3000\nthreadcount=5000\nreadproportion=1\n",
        "protections/rls.toml" => {
            "description = \"each tenant sees its rows\"\nsession = [\"SET ROLE tenant\"]\n[settings]\nport = 1\n\
             [[claims]]\nstatement = \"SELECT 1\"\nrows = 0\n"
        }
        "protections/tenants.toml" => {
            "description = \"rows\"\nsession = [\"SET app.tenant = '{tenant}'\"]\n[options]\ntenant = \"one\"\n\
             policies = { default = 1, low = 1, high = 50 }\n"
        }
        "protections/options.toml" => {
            "description = \"x\"\nsession = [\"x\"]\n[options]\nsession = \"x\"\na = { help = \"h\" }\nb = [1]\n\
             c = { default = \"z\", one_of = [\"x\"] }\n"
        }
        "protections/wrong.toml" => "use = \"x\"\nsettigs = {}\n[[claims]]\nstatement = \"SELECT 1\"\n",
        _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    Ok(text.as_bytes().to_vec())
}
