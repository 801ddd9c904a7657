//! A member of a cluster that answers calls as a test says: the server's side of gRPC over HTTP/2.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

use tithe_machine::launch::Server;

use super::{
    hpack,
    messages::{
        AUTHENTICATE, Fields, MEMBERS, RANGE, ROLE_GET, STATUS, USER_GET, USER_LIST, put_bytes, put_message, put_number,
    },
};
use crate::test_setup::attached;

/// Kind, first key and end of a permission.
type Permission = (u64, &'static str, &'static str);

/// The state of a cluster.
#[derive(Clone)]
pub struct Told {
    /// Users log in.
    pub auth: bool,
    /// The member's version.
    pub version: &'static str,
    /// The URL for other members and the URL for clients of each member.
    pub members: &'static [(&'static str, &'static str)],
    /// Users, each with its roles.
    pub users: &'static [(&'static str, &'static [&'static str])],
    /// Roles, each with its permissions.
    pub roles: &'static [(&'static str, &'static [Permission])],
    /// Keys and their values.
    pub keys: &'static [(&'static str, &'static str)],
    /// What the account is refused: calls by their path, and ranges by their first key.
    pub refused: &'static [&'static str],
}

/// A member that asks for logins, with a single administrator and TLS between members.
pub fn tight() -> Told {
    Told {
        auth: true,
        version: "3.6.14",
        members: &[("https://a:2380", "http://a:2379")],
        users: &[("root", &["root"]), ("app", &["app"])],
        roles: &[("app", &[(2, "app/", "app0")])],
        keys: &[],
        refused: &[],
    }
}

/// The message of an answer, or code and words of an error.
type Answer = Result<Vec<u8>, (&'static str, &'static str)>;

/// Bytes that begin a connection.
const PREFACE: usize = 24;
// Kinds of frames, and flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Bytes before a message.
const MESSAGE_HEAD: usize = 5;

impl Told {
    /// The answer to a call of `path` by a client that is `known` if it has shown the token of its login.
    fn answer(&self, path: &str, message: &[u8], known: bool) -> Answer {
        let text = |field: u64| {
            let texts = Fields(message).texts(field).unwrap_or_default();
            texts.into_iter().next().unwrap_or_default()
        };
        let mut out = Vec::new();
        if path == AUTHENTICATE {
            let login = [text(1), text(2)].join(" ");
            if !self.auth {
                return Err(("9", "etcdserver: authentication is not enabled"));
            }
            if login != "ann correct horse" {
                return Err(("3", "etcdserver: authentication failed, invalid user ID or password"));
            }
            put_bytes(&mut out, 2, &[b"secret"]);
            return Ok(out);
        }
        if self.auth && !known {
            return Err(("3", "etcdserver: user name is empty"));
        }
        let asked = if path == RANGE { text(1) } else { path.to_owned() };
        if self.refused.iter().any(|refused| *refused == asked) {
            return Err(("7", "etcdserver: permission denied"));
        }
        match path {
            RANGE => {
                let end = text(2);
                let is_asked = |key: &str| match end.is_empty() {
                    true => key == asked,
                    false => (asked.as_str()..end.as_str()).contains(&key),
                };
                for (key, value) in self.keys.iter().filter(|(key, _)| is_asked(key)) {
                    put_message(&mut out, 2, |out| {
                        put_bytes(out, 1, &[key.as_bytes()]);
                        put_bytes(out, 5, &[value.as_bytes()]);
                    });
                }
            }
            STATUS => put_bytes(&mut out, 2, &[self.version.as_bytes()]),
            MEMBERS => {
                for (peer, client) in self.members {
                    put_message(&mut out, 2, |out| {
                        put_bytes(out, 2, &[b"a"]);
                        put_bytes(out, 3, &[peer.as_bytes()]);
                        put_bytes(out, 4, &[client.as_bytes()]);
                    });
                }
            }
            USER_LIST => self.users.iter().for_each(|(name, _)| put_bytes(&mut out, 2, &[name.as_bytes()])),
            USER_GET => {
                let user = self.users.iter().find(|(name, _)| *name == text(1));
                for role in user.map_or(&[][..], |(_, roles)| *roles) {
                    put_bytes(&mut out, 2, &[role.as_bytes()]);
                }
            }
            ROLE_GET => {
                let role = self.roles.iter().find(|(name, _)| *name == text(1));
                for (kind, key, end) in role.map_or(&[][..], |(_, permissions)| *permissions) {
                    put_message(&mut out, 2, |out| {
                        put_number(out, 1, *kind);
                        put_bytes(out, 2, &[key.as_bytes()]);
                        put_bytes(out, 3, &[end.as_bytes()]);
                    });
                }
            }
            _ => {}
        }
        Ok(out)
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut preface = [0_u8; PREFACE];
        stream.read_exact(&mut preface)?;
        let (mut path, mut known, mut message) = (String::new(), false, Vec::new());
        loop {
            let mut head = [0_u8; 9];
            stream.read_exact(&mut head)?;
            let mut payload = vec![0_u8; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload)?;
            match head[3] {
                HEADERS => {
                    path = path_in(&payload);
                    known = payload.windows(5).any(|part| part == b"token");
                    message.clear();
                }
                DATA => {
                    message.extend_from_slice(&payload);
                    if head[4] & END_STREAM != 0 {
                        let answer = self.answer(&path, &message[MESSAGE_HEAD..], known);
                        stream.write_all(&frames(&answer, &head[5..]))?;
                    }
                }
                // Settings and windows.
                _ => {}
            }
        }
    }

    /// The result of `look` on it.
    pub fn seen<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        let told = self.clone();
        attached("etcd://ann:correct%20horse@", move |stream| told.serve(&stream), look)
    }
}

/// The path among the header fields of a request, which are written out: its length is before it.
fn path_in(fields: &[u8]) -> String {
    const BEGIN: &[u8] = b"/etcdserverpb.";
    let begin = fields.windows(BEGIN.len()).position(|part| part == BEGIN).expect("a path");
    let length = usize::from(fields[begin - 1]);
    String::from_utf8_lossy(&fields[begin..begin + length]).into_owned()
}

/// The frames of `answer` on the stream of its request.
fn frames(answer: &Answer, stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(message) = answer {
        let head = (message.len() as u32).to_be_bytes();
        put_frame(&mut out, [DATA, 0], stream, &[&[0_u8][..], &head, message.as_slice()].concat());
    }
    let (code, words) = answer.as_ref().err().copied().unwrap_or(("0", ""));
    let mut fields = Vec::new();
    hpack::put_field(&mut fields, 0, "grpc-status", code.as_bytes());
    hpack::put_field(&mut fields, 0, "grpc-message", words.as_bytes());
    put_frame(&mut out, [HEADERS, END_STREAM | END_HEADERS], stream, &fields);
    out
}

fn put_frame(out: &mut Vec<u8>, kind_and_flags: [u8; 2], stream: &[u8], payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&kind_and_flags);
    out.extend_from_slice(stream);
    out.extend_from_slice(payload);
}
