use proptest::prelude::*;
use tithe_model::experiment::{OptionValue, Protection as Chosen};

use super::{cipher::GCM_OVERHEAD, *};
use crate::{
    checks::canary::{Collected, read},
    protection::Protection as _,
    protections::{COLUMNS, COLUMNS_EMBEDDED, COLUMNS_IN_MEMORY, ColumnsProtection, ORDINARY_STATEMENTS},
    session::Fields,
    setup::{ColumnCipher, KeyPlace, OwnColumn, Selection},
    simulated::test_bench::Bench,
    sql::{Column, ColumnType, Compute, Sensitivity},
};

/// An arm of the simulated database with the first `share` of ten fields encrypted.
fn bench(share: f64) -> Bench {
    let mut bench = Bench::plain();
    bench.setup.columns = Some(Columns::of_share(share, bench.setup.credentials.key.clone()));
    bench
}

/// The bench's session without encryption.
fn raw(bench: &Bench) -> Box<dyn KeyValueSession> {
    crate::checks::canary::key_value(bench.context().connect_raw().unwrap()).unwrap()
}

fn wrapped(bench: &Bench) -> Box<dyn KeyValueSession> {
    bench.session(tithe_machine::clock::Clock::Real)
}

fn insert(session: &mut dyn KeyValueSession, key: &[u8], values: &[Vec<u8>]) {
    let values: Vec<_> = values.iter().map(Vec::as_slice).enumerate().collect();
    assert_eq!(session.call(&Request::Insert { key, values: &values }, &mut Collected::default()), Ok(1));
}

fn update(session: &mut dyn KeyValueSession, key: &[u8], field: usize, value: &[u8]) {
    let values = &[(field, value)];
    assert_eq!(session.call(&Request::Update { key, values }, &mut Collected::default()), Ok(1));
}

fn ten(text: &str) -> Vec<Vec<u8>> {
    (0..10).map(|field| format!("{text}{field}").into_bytes()).collect()
}

fn some(values: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    values.iter().cloned().map(Some).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_record_comes_back_as_it_was_written(
        records in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..40),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 10),
            1..5,
        ),
        new in prop::collection::vec(any::<u8>(), 0..200),
        field in 0usize..10,
        share in 0.0..=1.0,
    ) {
        let bench = bench(share);
        let mut session = wrapped(&bench);
        for (key, values) in &records {
            insert(session.as_mut(), key, values);
        }
        for (key, values) in &records {
            prop_assert_eq!(&read(session.as_mut(), key).unwrap(), &some(values));
            let stored = read(raw(&bench).as_mut(), key).unwrap();
            for (number, (stored, value)) in stored.iter().flatten().zip(values).enumerate() {
                let longer = if number < Selection::of_share(share).of(bench.context().table).len() { GCM_OVERHEAD } else { 0 };
                prop_assert_eq!(stored.len(), value.len() + longer);
            }
        }
        let mut scanned = Collected::default();
        let count = session.call(&Request::Scan { start: b"", count: 100, fields: Fields::All }, &mut scanned);
        prop_assert_eq!(count, Ok(records.len() as u64));
        prop_assert_eq!(scanned.rows, records.values().map(|values| some(values)).collect::<Vec<_>>());

        let key = records.keys().next().unwrap();
        update(session.as_mut(), key, field, &new);
        let mut one = Collected::default();
        session.call(&Request::Read { key, fields: Fields::One(field) }, &mut one).unwrap();
        prop_assert_eq!(one.rows[0][field].as_ref(), Some(&new));
    }

    #[test]
    fn any_changed_bit_is_seen(field in 0usize..10, byte in 0usize..64, bit in 0u32..8) {
        let bench = bench(1.0);
        let mut session = wrapped(&bench);
        insert(session.as_mut(), b"user1", &ten("value"));
        let mut stored = read(raw(&bench).as_mut(), b"user1").unwrap()[field].clone().unwrap();
        let place = byte % stored.len();
        stored[place] ^= 1 << bit;
        update(raw(&bench).as_mut(), b"user1", field, &stored);
        let refusal = Fault::Wrong(format!("field {field} of key user1 does not decrypt"));
        prop_assert_eq!(read(session.as_mut(), b"user1"), Err(refusal));
    }
}

/// Copies the stored value of one place into another, and reads it there.
fn moved(from: (&[u8], usize), to: (&[u8], usize)) -> Result<Vec<Option<Vec<u8>>>, Fault> {
    let bench = bench(1.0);
    let mut session = wrapped(&bench);
    for key in [b"user1", b"user2"] {
        insert(session.as_mut(), key, &ten("value"));
    }
    let stored = read(raw(&bench).as_mut(), from.0).unwrap()[from.1].clone().unwrap();
    update(raw(&bench).as_mut(), to.0, to.1, &stored);
    read(session.as_mut(), to.0)
}

#[test]
fn a_value_decrypts_in_its_own_place_only() {
    assert!(moved((b"user1", 3), (b"user1", 3)).is_ok());
    let wrong = |text: &str| Err(Fault::Wrong(text.to_owned()));
    assert_eq!(moved((b"user1", 3), (b"user2", 3)), wrong("field 3 of key user2 does not decrypt"));
    assert_eq!(moved((b"user1", 3), (b"user1", 4)), wrong("field 4 of key user1 does not decrypt"));
}

#[test]
fn secretbox_comes_back_and_binds_no_value_to_its_place() {
    let mut bench = Bench::plain();
    let all = Columns::of_share(1.0, bench.setup.credentials.key.clone());
    bench.setup.columns = Some(Columns { cipher: ColumnCipher::Secretbox, ..all });
    let mut session = wrapped(&bench);
    insert(session.as_mut(), b"user1", &ten("one"));
    insert(session.as_mut(), b"user2", &ten("two"));
    assert_eq!(read(session.as_mut(), b"user1"), Ok(some(&ten("one"))));
    let stored = read(raw(&bench).as_mut(), b"user2").unwrap();
    let lengths: Vec<usize> = stored.iter().flatten().map(Vec::len).collect();
    let plain: Vec<usize> = ten("two").iter().map(|value| value.len() + OVERHEAD).collect();
    assert_eq!(lengths, plain);
    update(raw(&bench).as_mut(), b"user1", 3, stored[4].as_deref().unwrap());
    let read_back = read(session.as_mut(), b"user1").unwrap();
    assert_eq!(read_back[3], some(&ten("two"))[4]);
    update(raw(&bench).as_mut(), b"user1", 3, b"plaintext that is longer than nonce and tag together");
    assert!(matches!(read(session.as_mut(), b"user1"), Err(Fault::Wrong(_))));
}

#[test]
fn what_is_too_short_or_plain_is_wrong_and_the_session_goes_on() {
    let bench = bench(0.5);
    let mut session = wrapped(&bench);
    insert(session.as_mut(), b"user1", &ten("a"));
    insert(session.as_mut(), b"user2", &ten("b"));
    for forged in [b"".as_slice(), b"short", b"plaintext that is longer than nonce and tag together"] {
        update(raw(&bench).as_mut(), b"user1", 0, forged);
        assert!(matches!(read(session.as_mut(), b"user1"), Err(Fault::Wrong(_))));
        let mut rows = Collected::default();
        let scan = session.call(&Request::Scan { start: b"user1", count: 2, fields: Fields::All }, &mut rows);
        assert_eq!(scan, Err(Fault::Wrong("field 0 of key user1 does not decrypt".to_owned())));
        assert_eq!(read(session.as_mut(), b"user2").unwrap(), some(&ten("b")));
    }
}

/// As [`bench`], with every field encrypted deterministically.
fn deterministic(cipher: ColumnCipher) -> Bench {
    let mut bench = Bench::plain();
    let all = Columns::of_share(1.0, bench.setup.credentials.key.clone());
    bench.setup.columns = Some(Columns { deterministic: true, cipher, ..all });
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn deterministic_fields_are_alike_where_values_are_and_nowhere_else(
        value in prop::collection::vec(any::<u8>(), 0..200),
        other in prop::collection::vec(any::<u8>(), 0..200),
        sm4: bool,
    ) {
        prop_assume!(value != other);
        let bench = deterministic(if sm4 { ColumnCipher::Sm4Gcm } else { ColumnCipher::Aes256Gcm });
        let mut session = wrapped(&bench);
        insert(session.as_mut(), b"user1", &vec![value.clone(); 10]);
        insert(session.as_mut(), b"user2", &vec![value.clone(); 10]);
        update(session.as_mut(), b"user2", 9, &other);
        let stored = |key| read(raw(&bench).as_mut(), key).unwrap();
        let (one, two) = (stored(b"user1"), stored(b"user2"));
        prop_assert_eq!(&one[..9], &two[..9]);
        prop_assert_ne!(&one[9], &two[9]);
        prop_assert!((1..10).all(|field| one[field] != one[0]));
        prop_assert!(one.iter().flatten().all(|stored| stored.len() == value.len() + DETERMINISTIC_OVERHEAD));
        prop_assert_eq!(read(session.as_mut(), b"user1").unwrap(), some(&vec![value; 10]));
        let changed = read(session.as_mut(), b"user2").unwrap();
        prop_assert_eq!(changed[9].as_ref(), Some(&other));

        // Bound to its field: elsewhere it does not decrypt.
        update(raw(&bench).as_mut(), b"user1", 3, one[4].as_deref().unwrap());
        let refusal = Fault::Wrong("field 3 of key user1 does not decrypt".to_owned());
        prop_assert_eq!(read(session.as_mut(), b"user1"), Err(refusal));
    }
}

#[test]
fn named_fields_are_encrypted_and_no_others() {
    let mut bench = bench(1.0);
    let names = vec!["field3".to_owned(), "field0".to_owned()];
    bench.setup.columns = bench.setup.columns.take().map(|columns| Columns { names, ..columns });
    insert(wrapped(&bench).as_mut(), b"user1", &ten("value"));
    let stored = read(raw(&bench).as_mut(), b"user1").unwrap();
    let clear: Vec<usize> = (0..10).filter(|field| stored[*field].as_ref() == Some(&ten("value")[*field])).collect();
    assert_eq!(clear, [1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(read(wrapped(&bench).as_mut(), b"user1").unwrap(), some(&ten("value")));
}

#[test]
fn a_wrapper_without_fields_changes_nothing() {
    let bench = bench(0.0);
    insert(wrapped(&bench).as_mut(), b"user1", &ten("value"));
    assert_eq!(read(raw(&bench).as_mut(), b"user1").unwrap(), some(&ten("value")));
}

#[test]
fn buffers_are_kept_from_one_operation_to_the_next() {
    let mut values: Vec<(usize, &'static [u8])> = Vec::with_capacity(10);
    let memory = values.as_ptr();
    for _ in 0..3 {
        let local = b"lives shorter".to_vec();
        let mut shorter: Vec<(usize, &[u8])> = std::mem::take(&mut values);
        shorter.push((0, &local));
        values = recycle(shorter);
    }
    assert_eq!((values.as_ptr(), values.capacity(), values.len()), (memory, 10, 0));
}

#[test]
fn the_protection_says_how_it_is_proven() {
    let chosen = |share| Chosen {
        id: "columns".to_owned(),
        custom: None,
        options: [
            ("share".to_owned(), OptionValue::Number(share)),
            ("names".to_owned(), OptionValue::Text(String::new())),
            ("equal".to_owned(), OptionValue::Text(String::new())),
            ("cipher".to_owned(), OptionValue::Text("aes-256-gcm".to_owned())),
            ("mode".to_owned(), OptionValue::Text("randomised".to_owned())),
            ("key_file".to_owned(), OptionValue::Text(String::new())),
            ("key_variable".to_owned(), OptionValue::Text(String::new())),
        ]
        .into(),
    };
    let ids = |protection: &ColumnsProtection, share| -> Vec<_> {
        protection.evidence(&chosen(share)).iter().map(|check| check.id()).collect()
    };
    assert_eq!(ids(&COLUMNS, 0.2), ["ciphertext-seen", "wrong-column-key", "disk-canary", "wire-canary", "recorders"]);
    assert_eq!(ids(&COLUMNS_EMBEDDED, 1.0), ["ciphertext-seen", "wrong-column-key", "disk-canary"]);
    assert_eq!(ids(&COLUMNS, 0.0), ["wrapper-idle"]);
    let mut setup = Bench::plain().setup.clone();
    COLUMNS.apply(&chosen(0.2), &mut setup);
    let columns = setup.columns.unwrap();
    assert!(columns.share == 0.2 && columns.key == setup.credentials.key);
}

/// Column encryption of all fields with these options.
fn with_options(given: &[(&str, &str)]) -> Chosen {
    let mut chosen = Chosen::listed("columns", [("share".to_owned(), OptionValue::Number(1.0))].into());
    let usual = [("names", ""), ("equal", ""), ("cipher", "aes-256-gcm"), ("mode", "randomised")];
    for (name, text) in usual.iter().chain(&[("key_file", ""), ("key_variable", "")]).chain(given) {
        chosen.options.insert((*name).to_owned(), OptionValue::Text((*text).to_owned()));
    }
    chosen
}

fn applied(given: &[(&str, &str)]) -> Columns {
    let mut setup = Bench::plain().setup.clone();
    COLUMNS.apply(&with_options(given), &mut setup);
    setup.columns.take().expect("clients encrypt")
}

#[test]
fn columns_with_a_table_are_the_users_own_and_others_are_tithes() {
    let own = |name: &str, is_compared| OwnColumn::new(name, is_compared).expect("it names its table");
    let of = |given: &[(&str, &str)]| {
        let Columns { share, names, own, .. } = applied(given);
        (share, names, own)
    };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert_eq!(of(&[]), (1.0, vec![], vec![]));
    assert_eq!(of(&[("names", "field0, field3,")]), (1.0, named(&["field0", "field3"]), vec![]));
    // The share is one of Tithe's own values. A column that statements look up is not also one that they only store.
    let both = [("equal", "a.iban"), ("names", "field0,a.note, A.IBAN")];
    assert_eq!(of(&both), (0.0, named(&["field0"]), vec![own("a.iban", true), own("a.note", false)]));
    let alike = of(&[("names", "a.note"), ("mode", "deterministic")]);
    assert_eq!(alike.2, [own("a.note", true)], "equal values look equal in every column");
}

#[test]
fn cipher_mode_and_place_of_the_key_are_those_that_were_chosen() {
    let names = ["aes-256-gcm", "sm4-128-gcm", "xsalsa20-poly1305"];
    let ciphers = names.map(|cipher| applied(&[("cipher", cipher)]).cipher);
    assert_eq!(ciphers, [ColumnCipher::Aes256Gcm, ColumnCipher::Sm4Gcm, ColumnCipher::Secretbox]);
    assert_eq!(["randomised", "deterministic"].map(|mode| applied(&[("mode", mode)]).deterministic), [false, true]);
    assert_eq!(applied(&[]).key_place, KeyPlace::default());
    let file = KeyPlace { file: Some("/my/key".into()), variable: None };
    assert_eq!(applied(&[("key_file", "/my/key")]).key_place, file);
    let variable = KeyPlace { file: None, variable: Some("KEY".to_owned()) };
    assert_eq!(applied(&[("key_variable", "KEY")]).key_place, variable);
}

#[test]
fn what_is_looked_at_follows_from_the_columns_and_from_where_values_are() {
    static TABLES: [SqlTable; 1] = [SqlTable {
        name: "t",
        columns: &[Column::new("a", ColumnType::Text(64), Sensitivity::Remark)],
        key: &[],
        indexes: &[],
    }];
    let ids = |checks: Vec<Box<dyn crate::evidence::Check>>| -> Vec<&'static str> {
        checks.iter().map(|check| check.id()).collect()
    };
    let records = with_options(&[]);
    assert_eq!(
        ids(COLUMNS_IN_MEMORY.evidence(&records)),
        ["ciphertext-seen", "wrong-column-key", "wire-canary", "recorders"]
    );
    assert_eq!(ids(COLUMNS.evidence_on(&records, &[])), ids(COLUMNS.evidence(&records)), "no tables, but records");
    let own = with_options(&[("equal", "a.iban")]);
    assert_eq!(ids(COLUMNS.evidence(&own)), ["ciphertext-seen", "wrong-column-key", "disk-canary", "recorders"]);
    assert_eq!(ids(COLUMNS_EMBEDDED.evidence(&own)), ["ciphertext-seen", "wrong-column-key", "disk-canary"]);
    let of_tables = ["ciphertext-seen", "wrong-column-key", "disk-canary", "wire-canary", "recorders"];
    assert_eq!(ids(COLUMNS.evidence_on(&records, &TABLES)), of_tables);
    assert_eq!(ids(COLUMNS_EMBEDDED.evidence_on(&records, &TABLES)), of_tables[..3]);
    let share_of_none = |given: &[(&str, &str)]| {
        let mut chosen = with_options(given);
        chosen.options.insert("share".to_owned(), OptionValue::Number(0.0));
        ids(COLUMNS.evidence_on(&chosen, &TABLES))
    };
    assert_eq!(share_of_none(&[]), ["wrapper-idle"]);
    assert_eq!(share_of_none(&[("names", "a")]), of_tables, "names are in place of a share");
}

#[test]
fn an_arm_of_ordinary_statements_computes_in_the_server_and_encrypts_nothing() {
    let mut setup = Bench::plain().setup.clone();
    let chosen = Chosen::listed("ordinary-statements", [].into());
    ORDINARY_STATEMENTS.apply(&chosen, &mut setup);
    assert_eq!((setup.compute, setup.columns.is_none()), (Some(Compute::Server), true));
    let ids: Vec<_> = ORDINARY_STATEMENTS.evidence(&chosen).iter().map(|check| check.id()).collect();
    assert_eq!(ids, ["statements-ordinary"]);
}
