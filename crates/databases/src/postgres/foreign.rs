//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_machine::secret::Secret;
use tithe_plugin::wire::foreign::Parser;

use super::{
    binding,
    evidence::formats::Format,
    files,
    hba::rule::Rule,
    protocol,
    scram::{self, Exchange},
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("postgres-messages", messages),
    ("postgres-certificate", |bytes| drop(binding::of_certificate(bytes))),
    ("postgres-scram", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = scram::challenge(&text);
        let _ = Exchange::begin(None).prove(bytes, &Secret::new("password"));
    }),
    ("postgres-hba-rule", |bytes| {
        if let Ok(rule) = Rule::of(&String::from_utf8_lossy(bytes)) {
            let _ = (rule.reach(true).count(), rule.is_strict(), rule.text());
        }
    }),
    ("postgres-passfile", |bytes| drop(files::fields(&String::from_utf8_lossy(bytes)))),
    ("postgres-statement", |bytes| drop(protocol::number_parameters(&String::from_utf8_lossy(bytes)))),
    ("postgres-log", |bytes| {
        for format in Format::collected("stderr,csvlog,jsonlog") {
            let _ = format.to_text(String::from_utf8_lossy(bytes).into_owned());
        }
    }),
];

/// Reads every message in every way that the client has.
fn messages(mut bytes: &[u8]) {
    while let Ok(Some(message)) = protocol::next_frame(bytes) {
        let body = &bytes[message.body.clone()];
        let _ = protocol::authentication(body);
        let _ = protocol::server_error(body).map(protocol::ServerError::fault);
        let _ = (protocol::rows_of_tag(body), protocol::parameter_types(body), protocol::each_column(body, |_, _| {}));
        bytes = &bytes[message.body.end..];
    }
}
