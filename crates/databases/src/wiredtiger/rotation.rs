//! Changing keys: the master key by wrapping the data key again, the data key by writing all data again.

use std::{path::Path, sync::Arc};

use tithe_machine::fault::Fault;
use tithe_plugin::session::Table;

use super::{
    cursor::Key as RecordKey,
    encryptor::{cipher::Key, keystore::Keystore},
    engine::Engine,
    session::{index_uri, records_uri},
    settings::Settings,
};

/// Makes `new` the master key of the database in `folder` in place of `old`. No page is changed, and an open engine
/// continues.
///
/// An earlier backup still opens with `old`: it has the keystore of its time.
///
/// # Errors
/// [`Fault::Refused`] if `old` is not the master key; or if the keystore cannot be written.
pub fn rotate_master_key(folder: &Path, old: &Key, new: &Key) -> Result<(), Fault> {
    let store = Keystore::read(folder)?.ok_or_else(|| Fault::Refused("there is no keystore".to_owned()))?;
    Keystore::wrap(&store.cipher, &store.unwrap(old)?, new).write(folder)
}

/// Writes `table` of `from` into `to`, a fresh database with another data key.
///
/// # Errors
/// The engine's error.
pub fn dump_and_load(from: &Arc<Engine>, to: &Arc<Engine>, table: &Table, settings: &Settings) -> Result<(), Fault> {
    let (mut source, mut target) = (from.session()?, to.session()?);
    let (records, index) = (records_uri(table), index_uri(table));
    target.create(&records, &settings.records())?;
    target.create(&index, &settings.index())?;

    let (read, write) = (source.cursor(&records, "")?, target.cursor(&records, "bulk")?);
    while source.next(read)? {
        target.insert(write, RecordKey::Number(source.key_number(read)?), source.value(read)?)?;
    }
    let (read, write) = (source.cursor(&index, "")?, target.cursor(&index, "bulk")?);
    while source.next(read)? {
        target.insert(write, RecordKey::Bytes(source.key(read)?), source.value(read)?)?;
    }
    // Bulk-load cursors lock the table until they are closed.
    drop(target);
    to.checkpoint()
}

/// How many documents `table` of `engine` holds, and how many entries its index has. Every page of both is read, in
/// order.
///
/// # Errors
/// The engine's error.
pub fn count(engine: &Arc<Engine>, table: &Table) -> Result<(u64, u64), Fault> {
    let mut session = engine.session()?;
    let mut entries = |uri: &str| {
        let cursor = session.cursor(uri, "")?;
        let mut entries = 0;
        while session.next(cursor)? {
            entries += 1;
        }
        Ok::<u64, Fault>(entries)
    };
    Ok((entries(&records_uri(table))?, entries(&index_uri(table))?))
}
