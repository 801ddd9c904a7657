//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::{session::Discard, wire::foreign::Parser};

use super::{
    documents::Reader,
    http::{Answer, Head, error, head},
    session::written,
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("opensearch-heads", |mut bytes| {
        while let Ok(Some(Head { status, body, length })) = head(bytes) {
            let Some(end) = body.checked_add(length).filter(|end| *end <= bytes.len()) else { return };
            let _ = error(Answer { status, body: &bytes[body..end] });
            bytes = &bytes[end..];
        }
    }),
    ("opensearch-answers", |body| {
        let names = ["field0".to_owned(), "field1".to_owned()];
        for asked in [None, Some(1)] {
            let mut reader = Reader { names: &names, asked, rows: &mut Discard };
            let _ = (reader.one(body), reader.hits(body));
        }
        let _ = written(body, 2);
    }),
];
