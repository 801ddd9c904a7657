//! The client against written answers.

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn structure<'a>(tag: u32, items: Vec<Item<'a>>) -> Item<'a> {
    Item::new(tag, Value::Structure(items))
}

/// An answer with `material`, `algorithm`, and `more` in the key's block.
fn answer<'a>(material: Value<'a>, algorithm: u32, more: Vec<Item<'a>>) -> Item<'a> {
    let mut block = vec![
        Item::new(tag::KEY_FORMAT_TYPE, Value::Enumeration(RAW)),
        structure(tag::KEY_VALUE, vec![Item::new(tag::KEY_MATERIAL, material)]),
        Item::new(tag::CRYPTOGRAPHIC_ALGORITHM, Value::Enumeration(algorithm)),
    ];
    block.extend(more);
    let payload = structure(tag::SYMMETRIC_KEY, vec![structure(tag::KEY_BLOCK, block)]);
    let done = vec![
        Item::new(tag::RESULT_STATUS, Value::Enumeration(SUCCESS)),
        structure(tag::RESPONSE_PAYLOAD, vec![payload]),
    ];
    structure(tag::RESPONSE_MESSAGE, vec![structure(tag::BATCH_ITEM, done)])
}

fn refused<'a>(items: Vec<Item<'a>>) -> Item<'a> {
    let mut done = vec![Item::new(tag::RESULT_STATUS, Value::Enumeration(1))];
    done.extend(items);
    structure(tag::RESPONSE_MESSAGE, vec![structure(tag::BATCH_ITEM, done)])
}

#[test]
fn an_answer_gives_a_key_of_aes_256_or_says_why_not() {
    let key = [7; KEY_BYTES];
    assert_eq!(*key_in(&answer(Value::Bytes(&key), AES, vec![])).unwrap(), key);
    let mut texts = String::new();
    let mut note = |answer: Item<'_>| texts += &format!("{}\n", key_in(&answer).unwrap_err());
    note(answer(Value::Bytes(&key[..16]), AES, vec![]));
    note(answer(Value::Bytes(&key), 2, vec![]));
    note(answer(Value::Structure(vec![]), AES, vec![]));
    note(answer(Value::Bytes(&key), AES, vec![structure(tag::KEY_WRAPPING_DATA, vec![])]));
    note(refused(vec![Item::new(tag::RESULT_MESSAGE, Value::Text("Could not locate object: 9"))]));
    note(refused(vec![Item::new(tag::RESULT_REASON, Value::Enumeration(1))]));
    note(refused(vec![]));
    note(structure(tag::RESPONSE_MESSAGE, vec![]));
    note(structure(tag::REQUEST_MESSAGE, vec![]));
    expect![[r#"
        refused: the key has 128 bits and not 256
        refused: the key is not one of AES
        refused: the server does not give the key in raw form
        refused: the server gives the key wrapped by another
        refused: the server says: Could not locate object: 9
        refused: the server gives reason 0x1 of KMIP
        refused: the server gives no reason
        protocol: the answer is not one to a Get of KMIP
        protocol: the answer is not one to a Get of KMIP
    "#]]
    .assert_eq(&texts);
}

#[test]
fn addresses_are_a_host_and_a_port() {
    assert_eq!(host_and_port("kmip.example.org:5696").unwrap(), ("kmip.example.org", 5696));
    assert_eq!(host_and_port("[::1]:5696").unwrap(), ("::1", 5696));
    for wrong in ["kmip.example.org", ":5696", "kmip:99999", "kmip:port", ""] {
        assert!(host_and_port(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_changed_answer_never_gives_another_length(place: prop::sample::Index, byte: u8) {
        let key = [7; KEY_BYTES];
        let mut bytes = Vec::new();
        answer(Value::Bytes(&key), AES, vec![]).write(&mut bytes);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        // Whatever the change does, the result is a whole key or an error.
        if let Some(Ok(key)) = ttlv::parse(&bytes).map(|answer| key_in(&answer)) {
            prop_assert_eq!(key.len(), KEY_BYTES);
        }
    }
}
