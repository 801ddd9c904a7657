//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;
use zeroize::Zeroizing;

use super::{
    document,
    encryptor::{self, cipher::KEY_BYTES, keystore},
    index,
    kmip::ttlv,
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("bson", |bytes| {
        if let Some(mut values) = document::values(bytes) {
            while let Some(Some(_)) = values.next_value() {}
        }
    }),
    ("wiredtiger-index", |bytes| {
        let _ = index::read_key(&mut Vec::new(), bytes);
        if let Some(id) = index::decode_record_id(bytes) {
            let (again, length) = index::encode_record_id(id);
            assert_eq!(index::decode_record_id(&again[..length]), Some(id));
        }
    }),
    ("kmip-ttlv", |bytes| {
        if let Some(item) = ttlv::parse(bytes) {
            let mut again = Vec::new();
            item.write(&mut again);
            assert_eq!(again, bytes, "an item is written as it was read");
        }
    }),
    ("wiredtiger-keystore", |bytes| drop(keystore::parse(&String::from_utf8_lossy(bytes)))),
    ("wiredtiger-page", |bytes| {
        let key = Zeroizing::new([7; KEY_BYTES]);
        for name in encryptor::CIPHERS {
            if let Ok(cipher) = encryptor::page_cipher(name, &key) {
                let _ = cipher.decrypt(bytes, &mut vec![0; bytes.len()]);
            }
        }
    }),
];
