//! A node that answers requests as a test says.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tithe_machine::launch::Server;

use crate::test_setup::attached;

/// The state and the answers of a node.
#[derive(Clone)]
pub struct Told {
    /// It asks for a password.
    pub asks: bool,
    /// User and password of each account, with a colon between them.
    pub logins: Vec<&'static str>,
    /// Its answers: method and path of a request, status, and body. In a body `{user}` is the account that asks.
    pub answers: Vec<(&'static str, u16, Value)>,
}

/// A node with the whole plugin, a single administrator, and an audit log of everything.
pub fn tight() -> Told {
    let all = json!({
        "cluster_permissions": ["*"],
        "index_permissions": [{ "index_patterns": ["*"], "allowed_actions": ["*"] }],
    });
    let audit = json!({ "enable_rest": true, "enable_transport": true });
    let answers = vec![
        ("GET /", 200, json!({})),
        ("GET /_plugins/_security/authinfo", 200, json!({ "user_name": "{user}" })),
        ("GET /_plugins/_security/api/securityconfig", 200, domains(json!({}), &[("internal", "basic", "intern")])),
        ("GET /_plugins/_security/api/internalusers", 200, json!({ "admin": {}, "root": {}, "app": {} })),
        ("GET /_plugins/_security/api/roles", 200, json!({ "all_access": all })),
        ("GET /_plugins/_security/api/rolesmapping", 200, json!({ "all_access": { "users": ["root"] } })),
        ("GET /_plugins/_security/api/actiongroups", 200, json!({})),
        ("GET /_plugins/_security/api/audit", 200, json!({ "config": { "enabled": true, "audit": audit } })),
        ("GET /_opendistro/_security/sslinfo", 200, json!({ "ssl_protocol": null })),
        ("GET /_cluster/health", 200, json!({ "number_of_nodes": 1 })),
        ("GET /_cluster/settings", 200, json!({})),
        ("GET /_nodes/jvm", 200, json!({ "nodes": { "x": { "name": "a", "jvm": { "input_arguments": [] } } } })),
    ];
    Told { asks: true, logins: vec!["ann:correct horse"], answers }
}

/// The plugin's configuration with these settings of `http` and these domains: name, kind and backend of each.
pub fn domains(http: Value, domains: &[(&str, &str, &str)]) -> Value {
    let domain = |(name, kind, backend): &(&str, &str, &str)| {
        let (kind, backend) = (json!({ "type": kind }), json!({ "type": backend }));
        let domain = json!({ "http_enabled": true, "http_authenticator": kind, "authentication_backend": backend });
        ((*name).to_owned(), domain)
    };
    let all: serde_json::Map<String, Value> = domains.iter().map(domain).collect();
    json!({ "config": { "dynamic": { "http": http, "authc": all } } })
}

impl Told {
    /// The same, with another answer to `request`.
    pub fn telling(self, request: &'static str, body: Value) -> Self {
        self.answering(request, 200, body)
    }

    /// The same to an account that may not make `request`.
    pub fn refusing(self, request: &'static str) -> Self {
        self.answering(request, 403, json!({ "message": "no permissions" }))
    }

    /// The same without what `request` asks for.
    pub fn missing(self, request: &'static str) -> Self {
        self.answering(request, 404, json!({ "error": "it is not there" }))
    }

    fn answering(mut self, request: &'static str, status: u16, body: Value) -> Self {
        self.answers.retain(|(known, ..)| *known != request);
        self.answers.push((request, status, body));
        self
    }

    /// The same without the plugin.
    pub fn bare(mut self) -> Self {
        self.answers.retain(|(request, ..)| !request.contains("/_security/"));
        Self { asks: false, ..self }
    }

    fn answer(&self, request: &str, login: Option<&str>) -> (u16, String) {
        let is_known = |known: &&&str| {
            let sent = format!("Basic {}", STANDARD.encode(known.as_bytes()));
            login.is_some_and(|login| login == sent)
        };
        let known = self.logins.iter().find(is_known);
        if known.is_none() && (self.asks || login.is_some()) {
            return (401, "Unauthorized".to_owned());
        }
        let asked = request.split(" HTTP/").next().unwrap_or_default();
        let asked = asked.split('?').next().unwrap_or_default();
        let user = known.and_then(|known| known.split(':').next()).unwrap_or_default();
        match self.answers.iter().find(|(request, ..)| *request == asked) {
            Some((_, status, body)) => (*status, body.to_string().replace("{user}", user)),
            None => (400, json!({ "error": "no handler found for uri" }).to_string()),
        }
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let (mut input, mut output) = (BufReader::new(stream), stream);
        loop {
            let (mut request, mut login, mut length) = (String::new(), None, 0_usize);
            if input.read_line(&mut request)? == 0 {
                return Ok(());
            }
            loop {
                let mut line = String::new();
                input.read_line(&mut line)?;
                match line.trim_end().split_once(": ") {
                    Some(("Authorization", value)) => login = Some(value.to_owned()),
                    Some(("Content-Length", value)) => length = value.trim().parse().unwrap_or_default(),
                    Some(_) => {}
                    None => break,
                }
            }
            let mut body = vec![0; length];
            input.read_exact(&mut body)?;
            let (status, body) = self.answer(&request, login.as_deref());
            let head = format!("HTTP/1.1 {status} said\r\ncontent-length: {}\r\n\r\n", body.len());
            output.write_all((head + &body).as_bytes())?;
        }
    }

    /// The result of `look` on it.
    pub fn seen<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        let told = self.clone();
        attached("opensearch://ann:correct%20horse@", move |stream| told.serve(&stream), look)
    }
}
