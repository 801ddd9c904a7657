//! What a protection changes, and what is read from a file's header: no library is needed.

use std::fs;

use expect_test::expect_file;
use tithe_machine::observation::Observation;
use tithe_plugin::simulated::test_bench::Bench;

use super::*;
use crate::test_setup::{every_way, shown};

#[test]
fn every_way_to_ask_for_a_protection() {
    let launched = |setup: &Setup| {
        let launch = DuckDb.launch(&Install::default(), setup, &Place::on_loopback("/run/arm", 0));
        format!("{}{}\n", shown(&launch, setup), configuration(setup).expect("settings").join("\n"))
    };
    expect_file!["every_way.txt"].assert_eq(&every_way(DuckDb.protections(), launched));
}

#[test]
fn openssl_needs_an_extension_and_mbedtls_does_not() {
    let without = Install { version: "DuckDB v1.5.5".to_owned(), ..Install::default() };
    let with = Install { facts: BTreeMap::from([(HTTPFS.to_owned(), "/a".to_owned())]), ..without.clone() };
    let needs = |install, provider| {
        let chosen = crate::test_setup::chosen(DuckDb.protections(), "encryption", &[("provider", provider)]);
        encryption::Encryption.needs(install, &chosen).map_err(|missing| missing.what)
    };
    assert_eq!(needs(&with, "openssl"), Ok(()));
    assert_eq!(needs(&without, "mbedtls"), Ok(()));
    let missing = "the extension httpfs of DuckDB v1.5.5, which brings OpenSSL";
    assert_eq!(needs(&without, "openssl"), Err(missing.to_owned()));
}

#[test]
fn a_header_is_plain_or_names_its_cipher() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE);
    let told = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        header(&path).map_err(|fault| fault.to_string().replace(&path.display().to_string(), FILE))
    };
    let mut bytes = [0; HEADER_BYTES];
    let other = Err(format!("refused: {FILE} is not a file of DuckDB"));
    assert_eq!(told(&bytes), other);
    assert_eq!(told(b"DUCK"), other);
    bytes[8..12].copy_from_slice(b"DUCK");
    assert_eq!(told(&bytes), Ok(Header::Plain));
    for (cipher, name) in [(1, "GCM"), (2, "CTR"), (9, "cipher 9")] {
        (bytes[0x14], bytes[0x76]) = (1, cipher);
        assert_eq!(told(&bytes), Ok(Header::Encrypted(name.to_owned())));
    }
}

#[test]
fn a_header_proves_the_cipher_that_was_asked_for_and_no_other() {
    let mut bench = Bench::plain();
    let path = bench.server.folder.join(FILE);
    bench.server.address = Address::File(path.clone());
    let check = evidence::header::CipherOfHeader { cipher: "GCM".to_owned() };
    let told = |flag: u8, cipher: u8| {
        let mut bytes = [0; HEADER_BYTES];
        bytes[8..12].copy_from_slice(b"DUCK");
        (bytes[0x14], bytes[0x76]) = (flag, cipher);
        fs::write(&path, bytes).expect("written");
        bench.observe(&check)
    };
    assert_eq!(told(1, 1), Observation::Protected("encrypted with AES-GCM".to_owned()));
    assert_eq!(told(1, 2), Observation::Exposed("encrypted with AES-CTR".to_owned()));
    assert!(matches!(told(0, 1), Observation::Exposed(_)));
}
