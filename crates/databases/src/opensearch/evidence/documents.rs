//! Are other documents and hidden fields kept from the measured account?

use serde_json::{Value, json};
use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::opensearch::{
    documents::KEY,
    launch::{FIRST_KEY, HIDDEN},
    store::{administrator, client, index_of},
};

/// As the administrator, adds a document that the clients' role may not see, and one of which it may not see a field.
/// Then, as the measured account, asks for both by key and by a search. Both are removed again. Id `rows-apart`.
pub struct DocumentsApart;

impl Check for DocumentsApart {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rows-apart")
    }

    fn claim(&self) -> String {
        "the measured account sees neither documents nor fields that its role hides".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut administrator = administrator(context.server, context.setup)?;
        let index = index_of(&context.setup.space, context.table);
        let secret = format!("apart-{:016x}", context.nonce);
        // The first key that is shown comes behind a blank.
        let keys = [format!(" {secret}"), format!("{FIRST_KEY}{secret}")];
        let path = |key: &str| format!("/{index}/_doc/{}?refresh=true", key.replace(' ', "%20").replace('!', "%21"));
        for (key, field) in keys.iter().zip([context.table.field(0), HIDDEN.to_owned()]) {
            administrator.request(&format!("PUT {} {}", path(key), json!({ KEY: key, field: secret })))?;
        }
        let seen = seen(&mut |request| client(context.server, context.setup)?.find(request), &index, &keys, &secret);
        for key in &keys {
            administrator.request(&format!("DELETE {}", path(key)))?;
        }
        seen
    }
}

/// What the measured account gets of both documents through `ask`.
fn seen(
    ask: &mut dyn FnMut(&str) -> Result<Option<Value>, Fault>,
    index: &str,
    keys: &[String; 2],
    secret: &str,
) -> Result<Observation, Fault> {
    let of_key = |key: &str| format!("GET /{index}/_doc/{}", key.replace(' ', "%20").replace('!', "%21"));
    let ids = json!({ "query": { "ids": { "values": keys } } });
    let hidden = ask(&of_key(&keys[0]))?;
    let shown = ask(&of_key(&keys[1]))?;
    let found = ask(&format!("POST /{index}/_search {ids}"))?.unwrap_or_default();
    let hits = found["hits"]["hits"].as_array().map_or(&[][..], Vec::as_slice);
    let holds = |document: &Value| document["_source"].as_object().is_some_and(|it| it.get(HIDDEN).is_some());
    let mut leaks = Vec::new();
    if hidden.is_some_and(|document| document["found"] != false) {
        leaks.push("a hidden document by its key");
    }
    if shown.as_ref().is_some_and(holds) {
        leaks.push("a hidden field by the key");
    }
    if hits.len() > 1 {
        leaks.push("a hidden document by a search");
    }
    if hits.iter().any(holds) {
        leaks.push("a hidden field by a search");
    }
    if !leaks.is_empty() {
        return Ok(Observation::Exposed(format!("served: {}", leaks.join(", "))));
    }
    // The control: what the role shows is served.
    if shown.is_none() || hits.len() != 1 {
        return Ok(Observation::Unknown(format!("a document that the role shows is not served ({secret})")));
    }
    Ok(Observation::Protected(
        "a document and a field: hidden by key and by search; another document: served".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The observation of a server that gives these answers, in the order of the questions.
    fn told(answers: [Option<Value>; 3]) -> Observation {
        let mut answers = answers.into_iter();
        let keys = [" a".to_owned(), "!a".to_owned()];
        seen(&mut |_| Ok(answers.next().expect("a question")), "t", &keys, "a").expect("an observation")
    }

    #[test]
    fn every_way_to_a_hidden_thing_is_seen() {
        let document = |fields: Value| json!({ "_id": "!a", "found": true, "_source": fields });
        let (plain, full) = (|| document(json!({ "key": "!a" })), || document(json!({ "key": "!a", HIDDEN: "x" })));
        let hits = |hits: &[Value]| Some(json!({ "hits": { "hits": hits } }));
        assert!(matches!(told([None, Some(plain()), hits(&[plain()])]), Observation::Protected(_)));
        for answers in [
            [Some(plain()), Some(plain()), hits(&[plain()])],
            [None, Some(full()), hits(&[plain()])],
            [None, Some(plain()), hits(&[plain(), plain()])],
            [None, Some(plain()), hits(&[full()])],
        ] {
            assert!(matches!(told(answers.clone()), Observation::Exposed(_)), "{answers:?}");
        }
        for answers in [[None, None, hits(&[plain()])], [None, Some(plain()), hits(&[])]] {
            assert!(matches!(told(answers.clone()), Observation::Unknown(_)), "{answers:?}");
        }
    }
}
