//! One connection to OpenSearch as a [`KeyValueSession`].
//!
//! A record is a document, whose identifier is the record's key. Reads and writes by key are real-time: they see every
//! write that was answered before. Scans are searches, which see a write after the next refresh.

use std::os::fd::BorrowedFd;

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{
    Connection, Discard, Fields, KeyValueSession, Progress, Request, Rows, Table, Update, wait_ready,
};

use super::{
    connection::{OpenSearchConnection, put_request},
    documents::{KEY, Reader, names, put_document, put_text},
    http::{Answer, Http, error, put_part},
    store::index_of,
};

/// Bytes and records of one bulk request while loading.
const MOST_BYTES: usize = 1 << 20;
const MOST_RECORDS: usize = 1000;

/// How often the server repeats an update that met another one of the same record.
const REPEATED: &str = "?retry_on_conflict=10";

/// The beginning of the answer to a bulk request without an error ends with this.
const NO_ERRORS: &[u8] = b"\"errors\":false";

/// One connection.
pub struct OpenSearchSession {
    http: Http,
    index: String,
    names: Vec<String>,
    asked: InFlight,
    /// Inserts that wait for the end of their group, as lines of one request.
    group: Option<Group>,
}

#[derive(Default)]
struct Group {
    lines: Vec<u8>,
    count: usize,
}

/// Which request the next answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    /// A document, or those of a search, of which this field was requested; `None` means all.
    Documents { scan: bool, field: Option<usize> },
    /// A write of one document.
    Written,
    /// A bulk request for so many documents.
    Bulk(usize),
    /// A request of the user's own.
    Called,
    /// Nothing was sent.
    Grouped,
}

impl OpenSearchSession {
    /// Speaks to `table` of `space` through `connection`.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn new(connection: OpenSearchConnection, blocking: bool, space: &str, table: &Table) -> Result<Self, Fault> {
        let mut http = connection.into_http();
        http.set_blocking(blocking)?;
        let index = index_of(space, table);
        Ok(Self { http, index, names: names(table), asked: InFlight::Grouped, group: None })
    }

    /// Sends `method` for the document `key` by the `endpoint` of the index, with `rest` behind it.
    fn by_key(
        &mut self,
        [method, endpoint, rest]: [&str; 3],
        key: &[u8],
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Fault> {
        let index = &self.index;
        let line = |out: &mut Vec<u8>| {
            for text in [method, " /", index, "/", endpoint, "/"] {
                out.extend_from_slice(text.as_bytes());
            }
            put_part(out, key);
            out.extend_from_slice(rest.as_bytes());
        };
        self.http.submit(line, body)
    }

    /// Adds an insert to its group, which is sent when it is full.
    fn add(&mut self, key: &[u8], values: &[(usize, &[u8])]) -> Result<(), Fault> {
        let Some(group) = &mut self.group else {
            self.asked = InFlight::Written;
            let names = std::mem::take(&mut self.names);
            let sent = self.by_key(["PUT", "_create", ""], key, |out| put_document(out, Some(key), &names, values));
            self.names = names;
            return sent;
        };
        put_action(&mut group.lines, "create", key, "");
        put_document(&mut group.lines, Some(key), &self.names, values);
        group.lines.push(b'\n');
        group.count += 1;
        if group.count >= MOST_RECORDS || group.lines.len() >= MOST_BYTES {
            self.send_group()?;
        }
        self.asked = InFlight::Grouped;
        Ok(())
    }

    /// Sends the group and waits for the answer.
    fn send_group(&mut self) -> Result<(), Fault> {
        let Some(group) = self.group.as_mut().filter(|group| group.count > 0) else { return Ok(()) };
        let Group { lines, count } = std::mem::take(group);
        self.send_bulk(&lines, count)?;
        let done = self.finish()?;
        if done != count as u64 {
            return Err(Fault::Wrong(format!("{done} of {count} records were added")));
        }
        Ok(())
    }

    fn send_bulk(&mut self, lines: &[u8], count: usize) -> Result<(), Fault> {
        self.asked = InFlight::Bulk(count);
        let line = format!("POST /{}/_bulk", self.index);
        self.http.submit(|out| out.extend_from_slice(line.as_bytes()), |out| out.extend_from_slice(lines))
    }

    /// Waits for the answer to the sent request.
    fn finish(&mut self) -> Result<u64, Fault> {
        loop {
            match self.advance(&mut Discard)? {
                Progress::Done(count) => return Ok(count),
                Progress::Pending => wait_ready(self)?,
            }
        }
    }
}

/// Writes the line before a document of a bulk request.
fn put_action(out: &mut Vec<u8>, action: &str, key: &[u8], rest: &str) {
    out.extend_from_slice(format!("{{\"{action}\":{{\"_id\":").as_bytes());
    put_text(out, &String::from_utf8_lossy(key));
    out.extend_from_slice(rest.as_bytes());
    out.extend_from_slice(b"}}\n");
}

/// Writes the body of a search for `count` records from `start` on, in the order of their keys.
fn put_search(out: &mut Vec<u8>, start: &[u8], count: u32, field: Option<&str>) {
    out.extend_from_slice(format!("{{\"size\":{count},\"sort\":[{{\"{KEY}\":\"asc\"}}],").as_bytes());
    out.extend_from_slice(format!("\"query\":{{\"range\":{{\"{KEY}\":{{\"gte\":").as_bytes());
    put_text(out, &String::from_utf8_lossy(start));
    out.extend_from_slice(b"}}}");
    if let Some(field) = field {
        out.extend_from_slice(b",\"_source\":[");
        put_text(out, field);
        out.push(b']');
    }
    out.push(b'}');
}

/// How many documents a bulk request of `count` wrote.
///
/// # Errors
/// The first error that is not about a missing or an existing document; an answer of another kind.
pub fn written(body: &[u8], count: usize) -> Result<u64, Fault> {
    if body[..body.len().min(100)].windows(NO_ERRORS.len()).any(|bytes| bytes == NO_ERRORS) {
        return Ok(count as u64);
    }
    let foreign = || Fault::Protocol("an answer to a bulk request of another kind".to_owned());
    // A document's part has about a dozen values.
    if body.iter().filter(|byte| b",[{".contains(byte)).count() > 1000 + 64 * count {
        return Err(foreign());
    }
    let body: serde_json::Value = serde_json::from_slice(body).map_err(|_| foreign())?;
    let items = body.get("items").and_then(serde_json::Value::as_array).ok_or_else(foreign)?;
    let mut done = 0;
    for item in items.iter().filter_map(|item| item.as_object()?.values().next()) {
        match item.get("status").and_then(serde_json::Value::as_u64) {
            Some(200..=299) => done += 1,
            Some(404 | 409) => {}
            status => {
                let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or_default();
                return Err(error(Answer { status, body: item.to_string().as_bytes() }));
            }
        }
    }
    Ok(done)
}

impl Connection for OpenSearchSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.http.descriptor())
    }

    fn wants_write(&self) -> bool {
        self.http.wants_write()
    }

    fn server_task(&self) -> ServerTask {
        // Requests go from one pool of threads to another.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.http.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.asked = InFlight::Called;
        put_request(&mut self.http, statement)?;
        self.finish().map(drop)
    }
}

impl KeyValueSession for OpenSearchSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let field = |fields| if let Fields::One(field) = fields { Some(field) } else { None };
        match *request {
            Request::Read { key, fields } => {
                let field = field(fields);
                self.asked = InFlight::Documents { scan: false, field };
                let rest = field.map(|field| format!("?_source_includes={}", self.names[field]));
                self.by_key(["GET", "_doc", rest.as_deref().unwrap_or_default()], key, |_| {})
            }
            Request::Scan { start, count, fields } => {
                let field = field(fields);
                self.asked = InFlight::Documents { scan: true, field };
                let (http, index, names) = (&mut self.http, &self.index, &self.names);
                let line = |out: &mut Vec<u8>| {
                    ["POST /", index, "/_search"].iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
                };
                http.submit(line, |out| put_search(out, start, count, field.map(|field| names[field].as_str())))
            }
            Request::Update { key, values } => {
                self.asked = InFlight::Written;
                let names = std::mem::take(&mut self.names);
                let sent = self.by_key(["POST", "_update", REPEATED], key, |out| {
                    out.extend_from_slice(b"{\"doc\":");
                    put_document(out, None, &names, values);
                    out.push(b'}');
                });
                self.names = names;
                sent
            }
            Request::Insert { key, values } => self.add(key, values),
            Request::Delete { key } => {
                self.asked = InFlight::Written;
                self.by_key(["DELETE", "_doc", ""], key, |_| {})
            }
        }
    }

    fn submit_updates(&mut self, updates: &[Update<'_>]) -> Result<bool, Fault> {
        let mut lines = Vec::new();
        for (key, values) in updates {
            put_action(&mut lines, "update", key, ",\"retry_on_conflict\":10");
            lines.extend_from_slice(b"{\"doc\":");
            put_document(&mut lines, None, &self.names, values);
            lines.extend_from_slice(b"}\n");
        }
        self.send_bulk(&lines, updates.len())?;
        Ok(true)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let asked = self.asked;
        if asked == InFlight::Grouped {
            return Ok(Progress::Done(1));
        }
        let Some(answer) = self.http.advance()? else { return Ok(Progress::Pending) };
        let is_good = (200..300).contains(&answer.status);
        Ok(Progress::Done(match asked {
            InFlight::Documents { scan, field } if is_good => {
                let mut reader = Reader { names: &self.names, asked: field, rows };
                if scan { reader.hits(answer.body)? } else { reader.one(answer.body)? }
            }
            InFlight::Bulk(count) if is_good => written(answer.body, count)?,
            InFlight::Written | InFlight::Called | InFlight::Grouped if is_good => 1,
            // Without its index there is no document either, and that is an error.
            InFlight::Documents { scan: false, .. } | InFlight::Written if lacks_document(answer) => 0,
            _ => return Err(error(answer)),
        }))
    }

    fn begin_bulk(&mut self) -> Result<(), Fault> {
        self.group = Some(Group::default());
        Ok(())
    }

    fn end_bulk(&mut self) -> Result<(), Fault> {
        let sent = self.send_group();
        self.group = None;
        sent
    }
}

/// True if the document is missing that must exist, or exists that must not.
fn lacks_document(answer: Answer<'_>) -> bool {
    let has = |text: &[u8]| answer.body.windows(text.len()).any(|bytes| bytes == text);
    match answer.status {
        404 => !has(b"index_not_found_exception"),
        409 => has(b"document already exists"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_asks_in_the_order_of_keys() {
        let mut out = Vec::new();
        put_search(&mut out, b"user\"1", 7, Some("field3"));
        let body: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(body["query"]["range"]["key"]["gte"], "user\"1");
        assert_eq!((&body["size"], &body["_source"][0]), (&7.into(), &"field3".into()));
    }

    #[test]
    fn documents_of_a_bulk_request_are_counted() {
        assert_eq!(written(br#"{"took":1,"errors":false,"items":[]}"#, 3), Ok(3));
        let some = |status: &str| {
            format!(r#"{{"took":1,"errors":true,"items":[{{"create":{{"status":201}}}},{{"create":{{{status}}}}}]}}"#)
        };
        assert_eq!(written(some(r#""status":409"#).as_bytes(), 2), Ok(1));
        let full = r#""status":429,"error":{"type":"rejected","reason":"queue full"}"#;
        assert_eq!(written(some(full).as_bytes(), 2), Err(Fault::Server("429: rejected: queue full".to_owned())));
        assert!(matches!(written(b"{}", 2), Err(Fault::Protocol(_))));
    }

    #[test]
    fn a_missing_index_is_no_missing_document() {
        let lacks = |status, body: &str| lacks_document(Answer { status, body: body.as_bytes() });
        assert!(lacks(404, r#"{"found":false}"#) && lacks(409, "[a]: version conflict, document already exists"));
        assert!(!lacks(404, r#"{"error":{"type":"index_not_found_exception"}}"#));
        assert!(!lacks(409, "version conflict, required seqNo [1]") && !lacks(503, ""));
    }
}
