//! Do the members of a cluster use TLS between each other, and refuse all others?

use std::net::SocketAddr;

use tithe_machine::{
    fault::Fault,
    launch::Address,
    observation::Observation,
    proc::ProcessSnapshot,
    watch::peer::{ServerSocket, sockets_of},
};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    wire::Wire,
};

use super::{
    launch::{clients_of, members_of, peers_of},
    store::{administrator, members},
};
use crate::{evidence::peers::tls, target::Tls};

/// Asks every member at its peer URL: TLS with the run's certificate must be served; TLS without a certificate and
/// plaintext must not. Then reads the members' sockets from the kernel: they must listen nowhere else, every connection
/// between them must end at a peer URL, and of several members each must have one. A listener has TLS or plaintext,
/// never both. Id `peer-tls`.
pub struct PeerTls;

impl Check for PeerTls {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("peer-tls")
    }

    fn claim(&self) -> String {
        "members speak TLS among themselves, and refuse plaintext and peers without a certificate".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let (server, setup) = (context.server, context.setup);
        let (Address::Tcp { host, port }, Some(process)) = (&server.address, server.process) else {
            return Ok(Observation::Unknown("an attached server's members are not all on this machine".to_owned()));
        };
        let (count, port) = (members_of(&setup.settings)?, *port);
        let peers: Vec<SocketAddr> = (1..=count).map(|number| SocketAddr::new(peers_of(number), port)).collect();
        let urls: Vec<String> =
            members(&mut administrator(server, setup)?)?.into_iter().flat_map(|member| member.peers).collect();
        let mut seen = vec![format!("the list of members has {}", urls.join(", "))];
        let tried = [
            ("with a certificate", Some(tls(setup, true)), true),
            ("without", Some(tls(setup, false)), false),
            ("in plaintext", None, false),
        ];
        let mut answers = Vec::new();
        for peer in &peers {
            for (how, tls, must) in &tried {
                let answer = ask(*peer, tls.as_ref());
                answers.push((answer.is_ok(), *must));
                let words = answer.map_or_else(|refusal| format!("refused ({refusal})"), |()| "served".to_owned());
                seen.push(format!("{peer} {how}: {words}"));
            }
        }
        let mut clients: Vec<SocketAddr> =
            (2..=count).map(|number| SocketAddr::new(clients_of(number), port)).collect();
        clients.extend(host.parse().map(|host| SocketAddr::new(host, port)));
        let sockets = sockets_of(&ProcessSnapshot::take().tree(process));
        let links = Links::of(&sockets, &peers, &clients);
        if sockets.is_empty() {
            return Ok(Observation::Unknown("the sockets of the members may not be read by this user".to_owned()));
        }
        let open = is_open(&urls, &answers, &peers, &links);
        let Links { among_peers, astray } = links;
        seen.extend(astray);
        let ends = among_peers.len();
        seen.push(format!("{ends} connections between members in the kernel's list, all to these addresses"));
        let quotation = seen.join("; ");
        Ok(if open { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }
}

/// What the sockets of all members show.
#[derive(Debug, PartialEq, Eq)]
struct Links {
    /// The peer address at which each connection between members ends.
    among_peers: Vec<SocketAddr>,
    /// Listeners and connections between members that are neither for clients nor at a peer address.
    astray: Vec<String>,
}

impl Links {
    fn of(sockets: &[ServerSocket], peers: &[SocketAddr], clients: &[SocketAddr]) -> Self {
        let (mut among_peers, mut astray) = (Vec::new(), Vec::new());
        for socket in sockets {
            let known = peers.contains(&socket.local) || clients.contains(&socket.local);
            match socket.remote {
                None if !known => astray.push(format!("a member listens at {} as well", socket.local)),
                None => {}
                // The end of a connection that a member has accepted from another one.
                Some(from) if sockets.contains(&ServerSocket { local: from, remote: Some(socket.local) }) => {
                    if peers.contains(&socket.local) {
                        among_peers.push(socket.local);
                    } else if !peers.contains(&from) && !clients.contains(&from) && !clients.contains(&socket.local) {
                        astray.push(format!("a connection between members from {from} to {}", socket.local));
                    }
                }
                Some(_) => {}
            }
        }
        Self { among_peers, astray }
    }
}

/// True if something between the members is not as it must be: one of their `urls`, an answer (whether it was served,
/// and whether it must be), or the sockets of several members at `peers`.
fn is_open(urls: &[String], answers: &[(bool, bool)], peers: &[SocketAddr], links: &Links) -> bool {
    let is_apart = peers.len() > 1 && peers.iter().any(|peer| !links.among_peers.contains(peer));
    urls.iter().any(|url| !url.starts_with("https:"))
        || answers.iter().any(|(served, must)| served != must)
        || !links.astray.is_empty()
        || is_apart
}

/// Asks a member for its version as another member would.
///
/// # Errors
/// Why it did not answer.
fn ask(peer: SocketAddr, tls: Option<&Tls>) -> Result<(), String> {
    let (host, port) = (peer.ip().to_string(), peer.port());
    let answer = || {
        let mut wire = Wire::connect(&host, port)?;
        if let Some(tls) = tls {
            tls.start(&mut wire, &host, port)?;
        }
        wire.output().extend_from_slice(format!("GET /version HTTP/1.0\r\nHost: {peer}\r\n\r\n").as_bytes());
        wire.flush()?;
        while !wire.unread().windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            wire.fill()?;
        }
        Ok::<_, Fault>(String::from_utf8_lossy(wire.unread()).lines().next().unwrap_or_default().to_owned())
    };
    match answer() {
        Ok(status) if status.contains(" 200 ") => Ok(()),
        Ok(status) => Err(status),
        Err(fault) => Err(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Shutdown, TcpListener},
    };

    use super::*;

    /// What a peer gets from a member that answers this.
    fn asked(said: &'static [u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = listener.local_addr().expect("bound");
        let member = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a peer");
            stream.write_all(said).expect("sent");
            stream.shutdown(Shutdown::Write).expect("shut");
            let mut asked = Vec::new();
            let _ = stream.read_to_end(&mut asked);
            asked
        });
        let answer = ask(peer, None);
        let request = member.join().expect("the member ends");
        assert!(request.starts_with(b"GET /version HTTP/1.0\r\n"), "{request:?}");
        answer
    }

    #[test]
    fn a_member_that_reports_its_version_serves_the_peer() {
        assert_eq!(asked(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"), Ok(()));
        let refused = "HTTP/1.0 400 Bad Request".to_owned();
        assert_eq!(asked(b"HTTP/1.0 400 Bad Request\r\n\r\n200 OK"), Err(refused));
        // An alert of TLS, an answer that is cut off, and a closed connection.
        for broken in [&b"\x15\x03\x03\0\x02\x02\x50"[..], b"HTTP/1.0 200 OK\r\n", b""] {
            assert!(asked(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn members_are_apart_from_others_if_all_signs_say_so() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let peers = [at("127.0.0.11:9"), at("127.0.0.12:9")];
        let urls = |schemes: &[&str]| schemes.iter().map(|it| format!("{it}://127.0.0.11:9")).collect::<Vec<String>>();
        let links = |peers: &[SocketAddr]| Links { among_peers: peers.to_vec(), astray: Vec::new() };
        // With a certificate, without one, and in plaintext.
        let answers = [(true, true), (false, false), (false, false)];
        let of = |urls: &[String], links: &Links| is_open(urls, &answers, &peers, links);
        assert!(!of(&urls(&["https", "https"]), &links(&peers)));
        assert!(of(&urls(&["https", "http"]), &links(&peers)), "a member says that it speaks plaintext");
        assert!(of(&urls(&["https"]), &links(&peers[..1])), "nobody has met the second member");
        assert!(of(&urls(&["https"]), &Links { astray: vec!["elsewhere".to_owned()], ..links(&peers) }));
        for wrong in 0..answers.len() {
            let mut answers = answers;
            answers[wrong].0 ^= true;
            assert!(is_open(&urls(&["https"]), &answers, &peers, &links(&peers)), "{answers:?}");
        }
        let alone = &peers[..1];
        assert!(!is_open(&urls(&["https"]), &answers, alone, &links(&[])), "a single member meets nobody");
    }

    #[test]
    fn sockets_show_where_members_meet() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (peers, clients) = ([at("127.0.0.11:9"), at("127.0.0.12:9")], [at("127.0.0.1:9")]);
        let socket = |local: &str, remote: Option<&str>| ServerSocket { local: at(local), remote: remote.map(at) };
        let links = |sockets: &[ServerSocket]| {
            let links = Links::of(sockets, &peers, &clients);
            (links.among_peers.len(), links.astray)
        };
        let listening = [socket("127.0.0.11:9", None), socket("127.0.0.1:9", None)];
        assert_eq!(links(&listening), (0, vec![]));
        // A client of another process, and two members.
        let client = socket("127.0.0.1:9", Some("127.0.0.1:500"));
        let met = [socket("127.0.0.12:9", Some("127.0.0.1:501")), socket("127.0.0.1:501", Some("127.0.0.12:9"))];
        assert_eq!(links(&[client, met[0], met[1]]), (1, vec![]));
        // etcd's gateway is a client of its own member.
        let gateway = [socket("127.0.0.1:9", Some("127.0.0.1:502")), socket("127.0.0.1:502", Some("127.0.0.1:9"))];
        assert_eq!(links(&gateway), (0, vec![]));
        assert_eq!(links(&[socket("127.0.0.13:9", None)]).1, ["a member listens at 127.0.0.13:9 as well"]);
        let beside = [socket("127.0.0.1:8", Some("127.0.0.1:503")), socket("127.0.0.1:503", Some("127.0.0.1:8"))];
        assert_eq!(links(&beside).1.len(), 2);
    }
}
