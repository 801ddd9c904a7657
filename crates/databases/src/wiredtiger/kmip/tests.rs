//! The client against written answers, and against PyKMIP's server.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::PathBuf};

use expect_test::expect;
use proptest::prelude::*;

use super::*;

#[path = "../../../tests/support/pykmip.rs"]
mod pykmip;
pub use pykmip::TestServer;

fn structure<'a>(tag: u32, items: Vec<Item<'a>>) -> Item<'a> {
    Item::new(tag, Value::Structure(items))
}

/// An answer that gives `material` with `algorithm`, and `more` in the key's block.
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
        // Whatever the change says, it is a whole key or an error.
        if let Some(Ok(key)) = ttlv::parse(&bytes).map(|answer| key_in(&answer)) {
            prop_assert_eq!(key.len(), KEY_BYTES);
        }
    }
}

/// How a client of `server` reaches the key `id`.
pub fn key(server: &TestServer, id: &str) -> KeyServer {
    KeyServer {
        address: server.address.clone(),
        key_id: id.to_owned(),
        certificate: server.credentials.client_certificate.clone(),
        key: server.credentials.client_key.clone(),
        authority: server.credentials.authority.clone(),
    }
}

#[test]
fn a_server_gives_its_clients_their_key_and_nobody_else_anything() {
    let Some(server) = TestServer::start() else { return };
    let id = server.make_key(256);
    let good = key(&server, &id);
    let given = fetch(&good).unwrap();
    assert_eq!(fetch(&good).unwrap(), given);
    assert_ne!(fetch(&key(&server, &server.make_key(256))).unwrap(), given);

    let mut texts = String::new();
    let mut note = |what: &str, asked: &KeyServer| {
        let text = fetch(asked).unwrap_err().to_string().replace(&server.folder.path().display().to_string(), "FOLDER");
        texts += &format!("{what}: {text}\n");
    };
    note("unknown key", &key(&server, "4711"));
    note("128 bits", &key(&server, &server.make_key(128)));
    note("another authority", &KeyServer { authority: server.credentials.untrusted_authority.clone(), ..good.clone() });
    note("no authority", &KeyServer { authority: PathBuf::from("FOLDER/none.pem"), ..good.clone() });
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o644)).unwrap();
    note("key file for all", &good);
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o600)).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent = KeyServer { address: free.to_string(), ..good.clone() };
    let text = fetch(&absent).unwrap_err().to_string().replace(&free.port().to_string(), "PORT");
    texts += &format!("no server: {text}\n");
    expect![[r#"
        unknown key: refused: the server says: Could not locate object: 4711
        128 bits: refused: the key has 128 bits and not 256
        another authority: refused: TLS: the server's certificate was signed by no authority that is trusted here: name the file with the one that signed it, or with this very certificate where it signed itself
        no authority: FOLDER/none.pem: I/O error: No such file or directory (os error 2)
        key file for all: refused: FOLDER/certificates/client.key is readable by others than its owner (mode 644): chmod 600
        no server: connection: 127.0.0.1:PORT: Connection refused (os error 111)
    "#]]
    .assert_eq(&texts);
    // The server's own refusal, and the server is still there afterwards.
    assert!(fetch_as(&good, Trust::Authority(&good.authority), None).is_err());
    assert_eq!(fetch(&good).unwrap(), given);
}
