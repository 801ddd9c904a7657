//! Does the audit log hold every request, and no request twice?

use std::time::Duration;

use serde_json::Value;
use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::record::Role;
use tithe_plugin::{
    checks::{canary::Targets, logs_free::LogsFree},
    evidence::{Check, CheckContext, CheckEntry},
};

use super::dial;
use crate::{
    evidence::{
        marked::{Counts, Tally, marker, send},
        open_logs::{Growth, doubted},
        settled::{Patience, settled},
    },
    opensearch::store::{client, index_of},
};

/// Threads of their own write the log.
const PATIENCE: Patience = Patience {
    most: Duration::from_secs(10),
    afterwards: Duration::from_millis(300),
    nothing: Duration::from_millis(1500),
    pause: Duration::from_millis(50),
};

/// Why a node that shows no record may still write records.
const ELSEWHERE: &str = "in the logs that its process has open there is none: the audit log is off, leaves these requests out, \
                         or goes elsewhere, as to an index";

/// Sends requests of each kind from several sessions at once and counts their records in the audit log. Id
/// `audit-complete`.
///
/// A record of the HTTP layer holds method and path, and so the key. If actions in the server are recorded too, each
/// request must also have a record of its own action.
pub struct AuditComplete {
    /// Actions in the server are recorded, too.
    pub actions: bool,
}

/// Behind a verb, in the counts of actions.
const ACTION: &str = " in the server";

impl AuditComplete {
    /// Which of the sent requests must be in the log, and in which layers.
    fn expected(&self, sent: &Counts) -> Counts {
        let mut expected = sent.clone();
        if self.actions {
            expected.extend(sent.iter().map(|(verb, count)| (format!("{verb}{ACTION}"), *count)));
        }
        expected
    }
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        let layers = if self.actions { ", as is what it does in the server" } else { "" };
        format!("every request is in the audit log once, and no other{layers}")
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let growth = match Growth::begin(context, dial)? {
            Ok(growth) => growth,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let mark = marker(context);
        let sent = send(context)?;
        let expected = self.expected(&sent);
        let look = || growth.so_far(context).map(|gained| (count(&gained.text, &mark, self.actions), gained.doubt));
        let (logged, doubt) = settled(&expected, PATIENCE, look)?;
        let doubt = doubted(doubt, (context.protected, logged.is_empty(), growth.may_miss()), ELSEWHERE);
        Ok(Tally { sent, logged, doubt }.against(&expected, context.protected))
    }
}

/// Counts the records about documents whose keys hold `mark`: those of requests, and those of `actions` if they are
/// asked for. A record is a JSON object in a line (documentation, "Audit log field reference").
fn count(text: &str, mark: &str, actions: bool) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| line.contains(mark)) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        let of = |name: &str| record[name].as_str().unwrap_or_default();
        let verb = match (of("audit_category"), of("audit_request_layer")) {
            ("AUTHENTICATED", "REST") => verb_of(of("audit_rest_request_method"), of("audit_rest_request_path")),
            ("GRANTED_PRIVILEGES", "TRANSPORT") if actions => action_of(of("audit_request_privilege")),
            _ => None,
        };
        if let Some(verb) = verb {
            *counts.entry(verb).or_default() += 1;
        }
    }
    counts
}

/// The kind of a request by its method and path.
fn verb_of(method: &str, path: &str) -> Option<String> {
    let has = |endpoint: &str| path.contains(&format!("/{endpoint}/"));
    let verb = match method {
        "GET" if has("_doc") => "SELECT",
        "PUT" if has("_create") => "INSERT",
        "POST" if has("_update") => "UPDATE",
        "DELETE" if has("_doc") => "DELETE",
        _ => return None,
    };
    Some(verb.to_owned())
}

/// The kind of a request by what it does in the server. A write of one document is one of a group, too, which is not
/// counted.
fn action_of(privilege: &str) -> Option<String> {
    let verb = match privilege {
        "indices:data/read/get" => "SELECT",
        "indices:data/write/index" => "INSERT",
        "indices:data/write/update" => "UPDATE",
        "indices:data/write/delete" => "DELETE",
        _ => return None,
    };
    Some(format!("{verb}{ACTION}"))
}

/// Does the log repeat values? A log that is meant to record who did what may.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`: as the key of a document that is asked for.
fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let index = index_of(&context.setup.space, context.table);
    client(context.server, context.setup)?.find(&format!("GET /{index}/_doc/{token}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::marked::describe;

    fn rest(method: &str, path: &str) -> String {
        format!(
            r#"{{"audit_category":"AUTHENTICATED","audit_request_layer":"REST","audit_rest_request_method":"{method}","audit_rest_request_path":"{path}"}}"#
        )
    }

    fn action(privilege: &str) -> String {
        format!(
            r#"{{"audit_category":"GRANTED_PRIVILEGES","audit_request_layer":"TRANSPORT","audit_request_privilege":"{privilege}","audit_trace_doc_id":"mark-1"}}"#
        )
    }

    #[test]
    fn records_are_counted_by_verb_and_layer() {
        let log = [
            "[2026-11-28][INFO ][o.o.n.Node] mark-1".to_owned(),
            rest("GET", "/tithe-usertable/_doc/mark-1"),
            rest("GET", "/tithe-usertable/_doc/other-1"),
            rest("PUT", "/tithe-usertable/_create/mark-1"),
            rest("POST", "/tithe-usertable/_update/mark-1"),
            rest("DELETE", "/tithe-usertable/_doc/mark-1"),
            rest("DELETE", "/tithe-usertable/_doc/mark-1").replace("AUTHENTICATED", "FAILED_LOGIN"),
            action("indices:data/read/get"),
            action("indices:data/write/bulk"),
            action("indices:data/write/index"),
        ]
        .join("\n");
        assert_eq!(describe(&count(&log, "mark-", false)), "DELETE 1, INSERT 1, SELECT 1, UPDATE 1");
        let both = count(&log, "mark-", true);
        assert_eq!((both["SELECT in the server"], both["INSERT in the server"], both.len()), (1, 1, 6));
        assert_eq!(count(&log, "nobody", true), Counts::new());
    }

    #[test]
    fn both_layers_are_expected_if_both_are_asked_for() {
        let sent: Counts = [("SELECT".to_owned(), 4)].into();
        assert_eq!(describe(&AuditComplete { actions: false }.expected(&sent)), "SELECT 4");
        assert_eq!(describe(&AuditComplete { actions: true }.expected(&sent)), "SELECT 4, SELECT in the server 4");
    }

    #[test]
    fn only_requests_about_one_document_have_a_verb() {
        let of = |method: &str, endpoint: &str| {
            verb_of(method, &format!("/tithe-usertable/{endpoint}/mark-1")).unwrap_or_default()
        };
        let all = [("GET", "_doc"), ("PUT", "_create"), ("POST", "_update"), ("DELETE", "_doc")];
        assert_eq!(all.map(|(method, endpoint)| of(method, endpoint)), ["SELECT", "INSERT", "UPDATE", "DELETE"]);
        for method in ["GET", "PUT", "POST", "DELETE", "HEAD"] {
            assert_eq!(of(method, "_search"), "", "{method}");
        }
        let action = |name: &str| action_of(&format!("indices:data/{name}")).unwrap_or_default();
        let told = ["read/get", "write/index", "write/update", "write/delete", "write/bulk"].map(action);
        let server =
            ["SELECT in the server", "INSERT in the server", "UPDATE in the server", "DELETE in the server", ""];
        assert_eq!(told, server);
    }
}
