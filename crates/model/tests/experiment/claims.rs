//! A claim has exactly the keys of its check: every combination of keys is read as that claim, or refused.

use std::collections::BTreeSet;

use tithe_model::{
    experiment::{Claim, FilePlace, NamedCheck, Says},
    parse::custom_file,
};

/// Every key of a claim but `check`, with a value that is right wherever the key is.
const KEYS: [(&str, &str); 7] = [
    ("statement", "\" SELECT {canary} \""),
    ("equals", "\"1\""),
    ("matches", "\"on*\""),
    ("fails_with", "\"denied\""),
    ("rows", "3"),
    ("files", "[\"data\", \"journal\", \"logs\"]"),
    ("account", "\"guest\""),
];

/// Every claim that there is, with its check and its other keys in the order of [`KEYS`].
fn claims() -> [(&'static str, &'static [&'static str], Claim); 12] {
    let statement = || "SELECT {canary}".to_owned();
    let says = |says: Says| Claim::Statement { statement: statement(), says };
    let files = || vec![FilePlace::Data, FilePlace::Journal, FilePlace::Logs];
    let counted = NamedCheck::CountedInLog { pattern: "on*".to_owned(), count: 3 };
    let refused =
        NamedCheck::RefusedAs { account: "guest".to_owned(), statement: statement(), words: "denied".to_owned() };
    [
        ("", &["statement", "equals"], says(Says::Equals("1".to_owned()))),
        ("", &["statement", "matches"], says(Says::Matches("on*".to_owned()))),
        ("", &["statement", "fails_with"], says(Says::FailsWith("denied".to_owned()))),
        ("", &["statement", "rows"], says(Says::Rows(3))),
        ("canary-not-in-files", &["files"], Claim::Check(NamedCheck::CanaryNotInFiles(files()))),
        ("values-not-in-files", &["files"], Claim::Check(NamedCheck::ValuesNotInFiles(files()))),
        ("removed-not-in-files", &["files"], Claim::Check(NamedCheck::RemovedNotInFiles(files()))),
        ("removed-found", &["statement"], Claim::Check(NamedCheck::RemovedFound { statement: statement() })),
        ("not-on-the-wire", &[], Claim::Check(NamedCheck::NotOnTheWire)),
        ("refused-without-password", &[], Claim::Check(NamedCheck::RefusedWithoutPassword)),
        ("counted-in-log", &["matches", "rows"], Claim::Check(counted)),
        ("refused-as", &["statement", "fails_with", "account"], Claim::Check(refused)),
    ]
}

/// The claim of a protection's file with these keys; `None` if it is refused.
fn read(check: &str, keys: &[(&str, &str)]) -> Option<Claim> {
    let check = if check.is_empty() { String::new() } else { format!("check = \"{check}\"\n") };
    let keys: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let text = format!("description = \"d\"\nsession = [\"x\"]\n[[claims]]\n{check}{keys}");
    let (described, problems) = custom_file("own", text.as_bytes());
    match described.custom.claims.as_slice() {
        [claim] if problems.is_empty() => Some(claim.clone()),
        _ => {
            assert!(!problems.is_empty(), "this claim is neither read nor refused: {text}");
            None
        }
    }
}

#[test]
fn a_claim_has_exactly_the_keys_of_its_check() {
    let claims = claims();
    let checks: BTreeSet<&str> = claims.iter().map(|(check, ..)| *check).collect();
    for check in checks {
        for chosen in 0..1u32 << KEYS.len() {
            let is_chosen = |bit: usize| (chosen >> bit) & 1 == 1;
            let keys: Vec<(&str, &str)> = (0..KEYS.len()).filter(|bit| is_chosen(*bit)).map(|bit| KEYS[bit]).collect();
            let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
            let expected = claims.iter().find(|(of, needs, _)| *of == check && *needs == names);
            assert_eq!(read(check, &keys), expected.map(|(.., claim)| claim.clone()), "{check} {names:?}");
        }
    }
}

#[test]
fn a_claim_with_a_wrong_value_is_refused() {
    let wrong: [(&str, &[&str]); 7] = [
        ("statement", &["\" \"", "3"]),
        ("equals", &["3"]),
        ("matches", &["3"]),
        ("fails_with", &["\" \"", "3"]),
        ("rows", &["-1", "1_000_001", "\"3\""]),
        ("files", &["[]", "[\"dat\"]", "\"data\""]),
        ("account", &["3"]),
    ];
    for (check, needs, _) in claims() {
        for (key, values) in wrong.iter().filter(|(key, _)| needs.contains(key)) {
            for value in *values {
                let keys: Vec<(&str, &str)> = KEYS
                    .iter()
                    .filter(|(name, _)| needs.contains(name))
                    .map(|(name, right)| (*name, if name == key { *value } else { *right }))
                    .collect();
                assert_eq!(read(check, &keys), None, "{check} {keys:?}");
            }
        }
    }
    assert_eq!(read("removed-found", &[("statement", "\"SELECT 1\"")]), None, "it looks for no canary");
    assert_eq!(read("removed-fond", &[("statement", "\"SELECT {canary}\"")]), None);
}
