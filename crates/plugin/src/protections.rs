//! Column encryption as a protection, and the arm that measures the cost of the statements it needs.

use std::path::PathBuf;

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};

use crate::{
    checks::{
        canary::Targets,
        columns::{CiphertextSeen, WrapperIdle, WrongColumnKey},
        disk_canary::DiskCanary,
        own_columns::{OwnCiphertext, OwnDisk, OwnSubject, OwnWrongKey},
        recorders::Recorders,
        scan::Places,
        sql_columns::{SqlCiphertext, SqlDiskCanary, SqlWireCanary, SqlWrapperIdle, SqlWrongKey, Subject},
        statements::StatementsOrdinary,
        wire_canary::WireCanary,
    },
    evidence::{Check, Strengthens},
    protection::Protection,
    recording::Sent,
    setup::{ColumnCipher, Columns, KeyPlace, OwnColumn, Selection, Setup},
    sql::{Compute, SqlTable},
    workload::Workload,
};

/// Column encryption, for any database with a server: one line in its list of protections.
pub static COLUMNS: ColumnsProtection = ColumnsProtection { wire: true, files: true };

/// Column encryption, for a server that writes no files.
pub static COLUMNS_IN_MEMORY: ColumnsProtection = ColumnsProtection { wire: true, files: false };

/// Column encryption, for any embedded database, which has no wire to check.
pub static COLUMNS_EMBEDDED: ColumnsProtection = ColumnsProtection { wire: false, files: true };

/// The ordinary statements of a SQL workload, for any database with SQL: one line in its list of protections.
pub static ORDINARY_STATEMENTS: OrdinaryStatements = OrdinaryStatements;

/// Client-side encryption of values, AES-256-GCM, SM4-128-GCM or secretbox. Id `columns`.
pub struct ColumnsProtection {
    /// True if there is a server, with a wire and with recorders.
    wire: bool,
    /// True if data are in files.
    files: bool,
}

impl Protection for ColumnsProtection {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "columns",
            title: "column encryption by the client",
            protects_against: "attackers who read field values in the server's memory, files, logs or backups, or on \
                             the wire.",
            leaves_open: "keys of records, other fields, lengths and access patterns; older values put in the place of \
                          newer ones; the client, which holds the key.",
            options: &[
                OptionEntry {
                    name: "share",
                    kind: OptionKind::Number { low: 0.0, high: 1.0 },
                    default: Some(DefaultValue::Number(1.0)),
                    help: "Share of the fields that is encrypted, from the first on; of SQL tables 0.2 for \
                           identifiers, 0.5 for prices, dates and quantities too, 1 for all; 0 measures the wrapping \
                           alone.",
                },
                OptionEntry {
                    name: "names",
                    kind: OptionKind::Text,
                    default: Some(DefaultValue::Text("")),
                    help: "Columns of SQL tables or fields of records (`field0,field3`) by name, with commas between \
                           them, in place of a share. Columns of your own tables are `TABLE.COLUMN`: equal values look \
                           different, so statements can only store and read them.",
                },
                OptionEntry {
                    name: "equal",
                    kind: OptionKind::Text,
                    default: Some(DefaultValue::Text("")),
                    help: "Columns of your own tables, `TABLE.COLUMN`, that statements look up by `=` or `IN`: equal \
                           values look equal.",
                },
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&["aes-256-gcm", "sm4-128-gcm", "xsalsa20-poly1305"]),
                    default: Some(DefaultValue::Text("aes-256-gcm")),
                    help: "The cipher; columns that the server compares are encrypted by the same one in SIV mode. \
                           XSalsa20 is NaCl's secretbox, as in Kubernetes: it binds no value to its place, and columns \
                           that the server compares use AES in SIV mode.",
                },
                OptionEntry {
                    name: "mode",
                    kind: OptionKind::Choice(&["randomised", "deterministic"]),
                    default: Some(DefaultValue::Text("randomised")),
                    help: "For records by key: equal values of a field never look equal (`randomised`) or always do \
                           (SIV mode). In SQL tables each column's use decides.",
                },
                OptionEntry {
                    name: "key_file",
                    kind: OptionKind::Text,
                    default: Some(DefaultValue::Text("")),
                    help: "Absolute path of a file with the key, 32 bytes or 64 hexadecimal digits, that only its owner \
                           can read; without it or `key_variable` each run makes a key.",
                },
                OptionEntry {
                    name: "key_variable",
                    kind: OptionKind::Text,
                    default: Some(DefaultValue::Text("")),
                    help: "Name of an environment variable with the key, 64 hexadecimal digits; never the key itself.",
                },
            ],
            attachable: true,
            by_client: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let cipher = match chosen.text("cipher") {
            "sm4-128-gcm" => ColumnCipher::Sm4Gcm,
            "xsalsa20-poly1305" => ColumnCipher::Secretbox,
            _ => ColumnCipher::Aes256Gcm,
        };
        let own = own(chosen);
        setup.columns = Some(Columns {
            share: if own.is_empty() { chosen.number("share") } else { 0.0 },
            names: names(chosen),
            own,
            deterministic: is_deterministic(chosen),
            cipher,
            key: setup.credentials.key.clone(),
            key_place: KeyPlace {
                file: given(chosen, "key_file").map(PathBuf::from),
                variable: given(chosen, "key_variable").map(str::to_owned),
            },
        });
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let own = own(chosen);
        if !own.is_empty() {
            return self.own_evidence(OwnSubject { columns: own, workload: None });
        }
        let selection = Selection { share: chosen.number("share"), names: names(chosen) };
        if selection.is_none() {
            return vec![Box::new(WrapperIdle)];
        }
        let targets = Targets::Fields(selection.clone());
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(CiphertextSeen::new(selection.clone(), is_deterministic(chosen))),
            Box::new(WrongColumnKey::new(selection)),
        ];
        if self.files {
            checks.push(Box::new(Strengthens(DiskCanary::new(Places::ALL, targets.clone()))));
        }
        if self.wire {
            checks.push(Box::new(Strengthens(WireCanary::new(targets))));
            checks.push(Box::new(Recorders(Sent::Values)));
        }
        checks
    }

    fn evidence_on(&self, chosen: &experiment::Protection, tables: &'static [SqlTable]) -> Vec<Box<dyn Check>> {
        if tables.is_empty() {
            return self.evidence(chosen);
        }
        let subject = Subject { share: chosen.number("share"), names: names(chosen), tables };
        if subject.share == 0.0 && subject.names.is_empty() {
            return vec![Box::new(SqlWrapperIdle(subject))];
        }
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(SqlCiphertext(subject.clone())),
            Box::new(SqlWrongKey(subject.clone())),
            Box::new(Strengthens(SqlDiskCanary(subject.clone()))),
        ];
        if self.wire {
            checks.push(Box::new(Strengthens(SqlWireCanary(subject))));
            checks.push(Box::new(Recorders(Sent::Values)));
        }
        checks
    }

    fn evidence_in<'a>(&self, chosen: &experiment::Protection, workload: &'a dyn Workload) -> Vec<Box<dyn Check + 'a>> {
        let columns = own(chosen);
        if columns.is_empty() {
            let checks = self.evidence_on(chosen, workload.tables()).into_iter();
            return checks.map(|check| check as Box<dyn Check + 'a>).collect();
        }
        self.own_evidence(OwnSubject { columns, workload: Some(workload) })
    }
}

impl ColumnsProtection {
    /// The checks for columns of the user's own tables.
    fn own_evidence<'a>(&self, subject: OwnSubject<'a>) -> Vec<Box<dyn Check + 'a>> {
        let mut checks: Vec<Box<dyn Check + 'a>> = vec![
            Box::new(OwnCiphertext(subject.clone())),
            Box::new(OwnWrongKey(subject.clone())),
            Box::new(Strengthens(OwnDisk(subject))),
        ];
        if self.wire {
            checks.push(Box::new(Recorders(Sent::Values)));
        }
        checks
    }
}

/// True if equal values of a field look equal.
fn is_deterministic(chosen: &experiment::Protection) -> bool {
    chosen.text("mode") == "deterministic"
}

/// The text of option `name`, if it is set.
fn given<'a>(chosen: &'a experiment::Protection, name: &str) -> Option<&'a str> {
    Some(chosen.text(name)).filter(|text| !text.is_empty())
}

/// The names in the option `names` that are columns of Tithe's tables or fields.
fn names(chosen: &experiment::Protection) -> Vec<String> {
    listed(chosen, "names").filter(|name| !name.contains('.')).map(str::to_owned).collect()
}

/// The columns of the user's own tables that are chosen.
fn own(chosen: &experiment::Protection) -> Vec<OwnColumn> {
    let equal = listed(chosen, "equal").filter_map(|name| OwnColumn::new(name, true));
    let mut all: Vec<OwnColumn> = equal.collect();
    for column in listed(chosen, "names").filter_map(|name| OwnColumn::new(name, is_deterministic(chosen))) {
        if all.iter().all(|known| known.whole != column.whole) {
            all.push(column);
        }
    }
    all
}

fn listed<'a>(chosen: &'a experiment::Protection, option: &str) -> impl Iterator<Item = &'a str> {
    chosen.text(option).split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// No protection: the arm runs the ordinary statements of its workload, which compute in the server, while the other
/// arms compute in the client. Its cost is the cost of the restructuring with the opposite sign. Id
/// `ordinary-statements`.
pub struct OrdinaryStatements;

impl Protection for OrdinaryStatements {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "ordinary-statements",
            title: "ordinary statements, computing in the server",
            protects_against: "nothing: it shows the cost of the statements that column encryption needs.",
            leaves_open: "everything.",
            attachable: true,
            by_client: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.compute = Some(Compute::Server);
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(StatementsOrdinary { workload: None })]
    }

    fn evidence_in<'a>(
        &self,
        _chosen: &experiment::Protection,
        workload: &'a dyn Workload,
    ) -> Vec<Box<dyn Check + 'a>> {
        vec![Box::new(StatementsOrdinary { workload: Some(workload) })]
    }
}
