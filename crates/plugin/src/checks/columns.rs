//! Does the server store ciphertext in encrypted columns, and only there?

use std::collections::HashSet;

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};

use crate::{
    checks::canary::{Collected, KEY_PREFIX, Source, TOKEN_BYTES, key_value, read},
    columns::wrap,
    evidence::{Check, CheckContext, CheckEntry},
    session::{KeyValueSession, Request},
    setup::{Columns, Selection},
};

/// Writes the same value, made of equal 16-byte blocks, into every field of two records. Reads it back once as the
/// clients do and once without their encryption. The stored values must differ from the value and from each other, and
/// must repeat no block of 16 bytes. Id `ciphertext-seen`.
///
/// Repeated blocks reveal AES-ECB and any other deterministic encryption, which passes a search for canaries. If
/// deterministic encryption was requested, the same field of two records must be equal instead, and nothing else.
pub struct CiphertextSeen {
    selection: Selection,
    deterministic: bool,
}

impl CiphertextSeen {
    /// A check of the fields in `selection`.
    pub fn new(selection: Selection, deterministic: bool) -> Self {
        Self { selection, deterministic }
    }
}

impl Check for CiphertextSeen {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("ciphertext-seen")
    }

    fn claim(&self) -> String {
        let kind = if self.deterministic { "deterministic" } else { "randomised" };
        format!("the server holds {kind} ciphertext for the values of encrypted fields")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let encrypted = self.selection.of(context.table);
        if encrypted.is_empty() {
            return Ok(Observation::Unknown("the share of fields rounds to none".to_owned()));
        }
        let mut source = Source::new(context, self.id());
        let value = source.text(BLOCK).repeat(6);
        let mut stored = Vec::new();
        let mut session = key_value(context.connect()?)?;
        let mut raw = key_value(context.connect_raw()?)?;
        for _ in 0..2 {
            let key = write_everywhere(session.as_mut(), &mut source, context.table.fields, &value)?;
            if read(session.as_mut(), &key)? != vec![Some(value.clone()); context.table.fields] {
                return Ok(Observation::Unknown("the clients do not read what they wrote".to_owned()));
            }
            stored.push(read(raw.as_mut(), &key)?);
        }
        Ok(conclude(&stored, &encrypted, &value, self.deterministic))
    }
}

const BLOCK: usize = 16;

fn conclude(stored: &[Vec<Option<Vec<u8>>>], encrypted: &[usize], value: &[u8], deterministic: bool) -> Observation {
    let is_missing =
        |record: &Vec<Option<Vec<u8>>>| encrypted.iter().any(|field| !matches!(record.get(*field), Some(Some(_))));
    if stored.iter().any(is_missing) {
        return Observation::Unknown("the server has no value of an encrypted field".to_owned());
    }
    let fields = stored.first().map_or(0, Vec::len);
    let clear: Vec<usize> = (0..fields).filter(|field| !encrypted.contains(field)).collect();
    let held = |fields: &[usize]| -> Vec<&[u8]> {
        let places = stored.iter().flat_map(|record| fields.iter().map(move |field| (record, *field)));
        places.map(|(record, field)| record.get(field).and_then(Option::as_deref).unwrap_or_default()).collect()
    };
    let ours = held(encrypted);
    let plain = ours.iter().filter(|bytes| bytes.windows(BLOCK).any(|window| window == &value[..BLOCK])).count();
    if plain > 0 {
        return Observation::Exposed(format!("{plain} of {} values are in the server as they were sent", ours.len()));
    }
    let (first, others) = ours.split_at(encrypted.len().min(ours.len()));
    if deterministic && others.chunks(encrypted.len()).any(|record| record != first) {
        return Observation::Exposed(
            "equal values of one field differ: they were not encrypted deterministically".to_owned(),
        );
    }
    let mut blocks = HashSet::new();
    let unlike = if deterministic { first } else { &ours[..] };
    if unlike.iter().flat_map(|bytes| bytes.windows(BLOCK)).any(|block| !blocks.insert(block)) {
        return Observation::Exposed(
            "a block of 16 bytes repeats in the stored values: equal values can be recognised".to_owned(),
        );
    }
    let others = match held(&clear).iter().filter(|bytes| **bytes == value).count() {
        0 => "keys are in the clear".to_owned(),
        _ => format!("keys and {} are in the clear", names(&clear)),
    };
    let alike = if deterministic { "equal values of one field alike" } else { "no two alike" };
    Observation::Protected(format!(
        "{}: {} bytes stored for {} sent, {alike}, no block of 16 bytes twice; {others}",
        names(encrypted),
        ours.first().map_or(0, |bytes| bytes.len()),
        value.len()
    ))
}

/// `field 4`, `fields 0 to 9`, `fields 0, 3`.
fn names(fields: &[usize]) -> String {
    match fields {
        [one] => format!("field {one}"),
        [first, .., last] if last - first + 1 == fields.len() => format!("fields {first} to {last}"),
        _ => format!("fields {}", fields.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Inserts a record with `value` in every field, and returns its key.
fn write_everywhere(
    session: &mut dyn KeyValueSession,
    source: &mut Source,
    fields: usize,
    value: &[u8],
) -> Result<Vec<u8>, Fault> {
    let key = [KEY_PREFIX.as_bytes(), &source.text(TOKEN_BYTES)].concat();
    let values: Vec<_> = (0..fields).map(|field| (field, value)).collect();
    session.call(&Request::Insert { key: &key, values: &values }, &mut Collected::default())?;
    Ok(key)
}

/// Reads a record with a key that is not the arm's, which must be refused, and with the arm's own, which must work. On
/// the plain arm it is read without any key. Id `wrong-column-key`.
pub struct WrongColumnKey {
    selection: Selection,
}

impl WrongColumnKey {
    /// A check of the encrypted fields in `selection`.
    pub fn new(selection: Selection) -> Self {
        Self { selection }
    }
}

impl Check for WrongColumnKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-column-key")
    }

    fn claim(&self) -> String {
        "the arm's key opens encrypted fields, another key does not".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if self.selection.of(context.table).is_empty() {
            return Ok(Observation::Unknown("the share of fields rounds to none".to_owned()));
        }
        let mut source = Source::new(context, self.id());
        let value = source.text(TOKEN_BYTES);
        let mut session = key_value(context.connect()?)?;
        let key = write_everywhere(session.as_mut(), &mut source, context.table.fields, &value)?;
        read(session.as_mut(), &key)?;
        let raw = key_value(context.connect_raw()?)?;
        let mut wrong_key = match &context.setup.columns {
            None => raw,
            Some(columns) => wrap(raw, &Columns { key: Secret::random(32), ..columns.clone() }, context.table)?,
        };
        Ok(match read(wrong_key.as_mut(), &key) {
            Err(Fault::Wrong(refusal)) => Observation::Protected(format!("with another key: {refusal}")),
            Err(fault) => Observation::Unknown(fault.to_string()),
            Ok(fields) if fields.iter().flatten().any(|field| *field == value) => {
                Observation::Exposed("the values are read without the arm's key".to_owned())
            }
            Ok(_) => Observation::Unknown("another key is accepted, but gives other values".to_owned()),
        })
    }
}

/// For a share of 0, which measures the cost of the wrapper alone: the server stores what the wrapped session sent,
/// unchanged. Id `wrapper-idle`.
pub struct WrapperIdle;

impl Check for WrapperIdle {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrapper-idle").own_control()
    }

    fn claim(&self) -> String {
        "the sessions are wrapped and nothing is encrypted".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if !context.setup.columns.as_ref().is_some_and(|columns| columns.selection().is_none()) {
            return Ok(Observation::Exposed("this arm's sessions are not wrapped with a share of 0".to_owned()));
        }
        let mut source = Source::new(context, self.id());
        let value = source.text(TOKEN_BYTES);
        let mut session = key_value(context.connect()?)?;
        let key = write_everywhere(session.as_mut(), &mut source, context.table.fields, &value)?;
        let stored = read(key_value(context.connect_raw()?)?.as_mut(), &key)?;
        let same = stored.iter().filter(|field| field.as_deref() == Some(&value)).count();
        let seen = format!("{same} of {} values are in the server as they were sent", context.table.fields);
        Ok(if same == context.table.fields { Observation::Protected(seen) } else { Observation::Exposed(seen) })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const VALUE: &[u8] = b"sixteen bytes ..sixteen bytes ..";

    fn check(records: &[&[&[u8]]], encrypted: &[usize], expected: Expect) {
        let stored: Vec<Vec<_>> =
            records.iter().map(|fields| fields.iter().map(|field| Some(field.to_vec())).collect()).collect();
        expected.assert_eq(&format!("{:?}", conclude(&stored, encrypted, VALUE, false)));
    }

    #[test]
    fn what_repeats_is_not_randomised() {
        let block = |byte: u8| [byte; BLOCK];
        let ramp = |from: u8| -> Vec<u8> { (from..from + 60).collect() };
        // Electronic code book: equal blocks stay equal within a value.
        check(
            &[&[&[block(1), block(1)].concat()]],
            &[0],
            expect![[r#"Exposed("a block of 16 bytes repeats in the stored values: equal values can be recognised")"#]],
        );
        // Deterministic encryption: equal values stay equal between records.
        check(
            &[&[&ramp(0)], &[&ramp(0)]],
            &[0],
            expect![[r#"Exposed("a block of 16 bytes repeats in the stored values: equal values can be recognised")"#]],
        );
        check(
            &[&[&ramp(0)], &[&ramp(100)]],
            &[0],
            expect![[
                r#"Protected("field 0: 60 bytes stored for 32 sent, no two alike, no block of 16 bytes twice; keys are in the clear")"#
            ]],
        );
        check(
            &[&[&ramp(0), VALUE], &[&ramp(100), VALUE]],
            &[0],
            expect![[
                r#"Protected("field 0: 60 bytes stored for 32 sent, no two alike, no block of 16 bytes twice; keys and field 1 are in the clear")"#
            ]],
        );
        check(
            &[&[&ramp(0), VALUE], &[&ramp(100), VALUE]],
            &[0, 1],
            expect![[r#"Exposed("2 of 4 values are in the server as they were sent")"#]],
        );
    }

    #[test]
    fn a_value_that_is_not_there_is_no_ciphertext() {
        let value = |from: u8| Some((from..from + 60).collect::<Vec<u8>>());
        let missing = [vec![vec![value(0)], vec![value(100)]], vec![vec![value(0), None], vec![value(100), value(60)]]];
        for stored in missing {
            let seen = conclude(&stored, &[0, 1], VALUE, false);
            assert_eq!(seen, Observation::Unknown("the server has no value of an encrypted field".to_owned()));
        }
    }

    #[test]
    fn what_is_deterministic_repeats_from_record_to_record_only() {
        let record = |first: u8| [first, first + 60].map(|from| Some((from..from + 60).collect::<Vec<u8>>())).to_vec();
        let seen = |stored: &[Vec<Option<Vec<u8>>>]| format!("{:?}", conclude(stored, &[0, 1], VALUE, true));
        expect![[r#"Protected("fields 0 to 1: 60 bytes stored for 32 sent, equal values of one field alike, no block of 16 bytes twice; keys are in the clear")"#]].assert_eq(&seen(&[record(0), record(0)]));
        expect![[r#"Exposed("equal values of one field differ: they were not encrypted deterministically")"#]]
            .assert_eq(&seen(&[record(0), record(1)]));
        let same = vec![record(0)[0].clone(), record(0)[0].clone()];
        expect![[r#"Exposed("a block of 16 bytes repeats in the stored values: equal values can be recognised")"#]]
            .assert_eq(&seen(&[same.clone(), same]));
    }

    #[test]
    fn fields_are_named_as_short_as_they_can_be() {
        let named: Vec<String> = [&[4][..], &[0, 1, 2], &[0, 3], &[1, 2, 5]].map(names).into();
        expect!["field 4; fields 0 to 2; fields 0, 3; fields 1, 2, 5"].assert_eq(&named.join("; "));
    }
}
