//! A server that answers as a test says.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::TcpStream,
};

use tithe_machine::launch::Server;

use crate::test_setup::attached;

/// The state and the answers of a server.
#[derive(Clone)]
pub struct Told {
    /// It asks for a password.
    pub asks: bool,
    /// Its answer to `stats`.
    pub stats: Vec<(&'static str, &'static str)>,
    /// Its answer to `stats settings`.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Keys and values of its items.
    pub items: &'static [(&'static str, &'static str)],
    /// It removes items, or says so.
    pub removes: bool,
}

/// A server that asks for a password at its only listener, which has no TLS.
pub fn tight() -> Told {
    Told {
        asks: true,
        stats: vec![("pid", "7")],
        settings: vec![
            ("tcpport", "11211"),
            ("auth_enabled_ascii", "/users"),
            ("ssl_enabled", "no"),
            ("udpport", "0"),
            ("inter", "127.0.0.1"),
        ],
        items: &[],
        removes: false,
    }
}

fn listed(pairs: &[(&str, &str)]) -> String {
    pairs.iter().map(|(name, value)| format!("STAT {name} {value}\r\n")).collect::<String>() + "END\r\n"
}

impl Told {
    /// The same, with another setting.
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value));
        self
    }

    /// A server that asks nobody, otherwise the same.
    pub fn open(self) -> Self {
        Self { asks: false, ..self.with("auth_enabled_ascii", "no") }
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let (mut input, mut output) = (BufReader::new(stream), stream);
        let mut known = !self.asks;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let answer = match line.trim_end() {
                // User and password are the value of an item.
                login if login.starts_with("set auth ") => {
                    let mut login = String::new();
                    input.read_line(&mut login)?;
                    known |= login.trim_end() == "ann correct horse";
                    let answer = if known { "STORED\r\n" } else { "CLIENT_ERROR authentication failure\r\n" };
                    answer.to_owned()
                }
                _ if !known => "CLIENT_ERROR unauthenticated\r\n".to_owned(),
                "lru_crawler metadump all" => {
                    self.items.iter().map(|(key, _)| format!("key={key} exp=-1\n")).collect::<String>() + "END\r\n"
                }
                request if request.starts_with("get ") => {
                    let item = self.items.iter().find(|(key, _)| *key == &request[4..]);
                    let item = item.map(|(key, value)| format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len()));
                    item.unwrap_or_default() + "END\r\n"
                }
                request if request.starts_with("delete ") && self.removes => "DELETED\r\n".to_owned(),
                "version" => "VERSION 1.6.18\r\n".to_owned(),
                "stats" => listed(&self.stats),
                "stats settings" => listed(&self.settings),
                _ => "ERROR\r\n".to_owned(),
            };
            output.write_all(answer.as_bytes())?;
        }
    }

    /// The result of `look` on it.
    pub fn seen<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        let told = self.clone();
        attached("memcached://ann:correct%20horse@", move |stream| told.serve(&stream), look)
    }
}
