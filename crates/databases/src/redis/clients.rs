//! The clients that Redis lists (documentation, "CLIENT LIST"). It does not report their transport, but each of its
//! ports has either TLS or plaintext, never both.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    connections::{ClientConnection, ConnectionList, Spoken, port_of},
    setup::Setup,
};

use super::{
    connection::{RedisConnection, named},
    target::of_clients,
};
use crate::inspect::ENDS_TLS;

/// `CLIENT LIST`, read through a separate connection.
pub struct Clients {
    connection: RedisConnection,
    /// Number of this connection.
    own: String,
    /// The transport of this connection, as the client sees it: all clients of the same port have the same.
    spoken: Spoken,
    /// The port that this connection reached.
    reached: u16,
    /// The ports for TLS and for plaintext, if the server reports them.
    ports: Option<[String; 2]>,
}

impl Clients {
    /// Opens the connection.
    ///
    /// # Errors
    /// A refusal of either side, with the missing right; a broken connection.
    pub fn open(server: &Server, setup: &Setup) -> Result<Self, Fault> {
        let target = of_clients(server, setup)?;
        let mut connection = RedisConnection::open(&target)?;
        let own = connection.call(&["CLIENT", "ID"]).map_err(named)?.text().unwrap_or_default();
        let tls = connection.tls_facts().map(|tls| tls.suite());
        let mut port = |name: &str| connection.setting(name).map(Option::unwrap_or_default);
        let ports = port("tls-port").and_then(|tls| Ok([tls, port("port")?])).ok();
        let spoken = own_transport(tls, ports.as_ref());
        Ok(Self { connection, own, spoken, reached: target.port, ports })
    }
}

impl ConnectionList for Clients {
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault> {
        let listed = self.connection.call(&["CLIENT", "LIST"]).map_err(named)?;
        let Some(list) = listed.text() else { return Err(Fault::Protocol("CLIENT LIST gave no text".to_owned())) };
        Ok(read(&list, &self.own, (&self.spoken, self.reached), self.ports.as_ref()))
    }
}

/// The transport of this connection, whose client sees `tls`. A server without a port for TLS is behind something that
/// ends it, and lists its connections beside those of clients.
fn own_transport(tls: Option<String>, ports: Option<&[String; 2]>) -> Spoken {
    match (tls, ports) {
        (Some(_), Some([of_tls, _])) if of_tls == "0" => {
            Spoken::Untold(format!("{ENDS_TLS}, whose tls-port is 0: ask the server"))
        }
        (Some(tls), _) => Spoken::Tls(tls),
        (None, _) => Spoken::Plaintext,
    }
}

/// The connections in `text`; the transport of the one numbered `own`, which has `reached` this port, is `spoken`. If
/// the server hides its settings and sees another port, something is in between, which may end TLS.
fn read(
    text: &str,
    own: &str,
    (spoken, reached): (&Spoken, u16),
    ports: Option<&[String; 2]>,
) -> Vec<ClientConnection> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::read).collect();
    let own_port = lines.iter().find(|line| line.id == own).and_then(|line| line.local);
    let spoken = match (spoken, own_port) {
        (Spoken::Tls(_), Some(port)) if ports.is_none() && port != reached => {
            Spoken::Untold(format!("the server sees port {port}, not {reached}: something in between may end TLS"))
        }
        _ => spoken.clone(),
    };
    let connection = |line: &Line<'_>| ClientConnection {
        id: line.id.to_owned(),
        account: line.user.to_owned(),
        port: port_of(line.from),
        spoken: match (line.local, ports) {
            _ if line.from.starts_with('/') => Spoken::Local,
            (Some(port), _) if Some(port) == own_port => spoken.clone(),
            (Some(port), Some([tls, _])) if port.to_string() == *tls => Spoken::Tls(format!("TLS, by port {port}")),
            (Some(port), Some([_, plain])) if port.to_string() == *plain => Spoken::Plaintext,
            _ => Spoken::Untold("the account needs `+config|get` to know what other ports speak".to_owned()),
        },
        is_own: line.id == own,
    };
    lines.iter().map(connection).collect()
}

/// The value called `name` in a line of `CLIENT LIST`.
pub fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').filter_map(|pair| pair.split_once('=')).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// A line of the list.
struct Line<'a> {
    id: &'a str,
    user: &'a str,
    from: &'a str,
    /// The server's port.
    local: Option<u16>,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let value = |name: &str| value(line, name);
        let (id, from) = (value("id")?, value("addr")?);
        Some(Self { id, user: value("user").unwrap_or_default(), from, local: value("laddr").and_then(port_of) })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn tls_that_ends_before_the_server_is_not_that_of_its_port() {
        let (tls, ports) = (|| Some("TLSv1.3".to_owned()), |of_tls: &str| [of_tls, "6379"].map(str::to_owned));
        assert_eq!(own_transport(tls(), Some(&ports("6380"))), Spoken::Tls("TLSv1.3".to_owned()));
        assert_eq!(own_transport(tls(), None), Spoken::Tls("TLSv1.3".to_owned()));
        assert!(matches!(own_transport(tls(), Some(&ports("0"))), Spoken::Untold(_)));
        assert_eq!(own_transport(None, Some(&ports("0"))), Spoken::Plaintext);
    }

    #[test]
    fn clients_speak_what_their_port_speaks() {
        let text = "\
id=3 addr=10.0.0.1:50001 laddr=10.0.0.9:6380 fd=8 name= age=1 user=tithe cmd=client|list
id=4 addr=10.0.0.2:50002 laddr=10.0.0.9:6380 fd=9 name= age=1 user=app
id=5 addr=10.0.0.2:50003 laddr=10.0.0.9:6379 fd=9 name= age=1 user=app
id=6 addr=/run/redis.sock:0 laddr=/run/redis.sock:0 fd=9 name= age=1 user=app
";
        let reaching = |reached: u16, ports: Option<&[String; 2]>| {
            let all = read(text, "3", (&Spoken::Tls("TLSv1.3".to_owned()), reached), ports);
            all.iter().map(|one| format!("{} {} {:?}\n", one.id, one.account, one.spoken)).collect::<String>()
        };
        let lines = |ports: Option<&[String; 2]>| reaching(6380, ports);
        expect![[r#"
            3 tithe Tls("TLSv1.3")
            4 app Tls("TLSv1.3")
            5 app Untold("the account needs `+config|get` to know what other ports speak")
            6 app Local
        "#]]
        .assert_eq(&lines(None));
        let ports = ["6380", "6379"].map(str::to_owned);
        assert!(lines(Some(&ports)).contains("5 app Plaintext"));
        let behind = reaching(16380, None);
        assert!(behind.contains("3 tithe Untold(") && behind.contains("4 app Untold("), "{behind}");
        assert!(reaching(16380, Some(&ports)).contains("4 app Tls("), "its settings say what the port speaks");
    }
}
