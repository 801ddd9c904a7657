//! Is another program's traffic to the server readable?

use std::sync::atomic::AtomicBool;

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::quantity::size;

use super::relay::{Conversation, Relay};
use crate::{
    evidence::{Check, CheckContext, CheckEntry},
    program::{Job, Program},
    workspace::Workspace,
};

/// Lets the program work for a second through Tithe's relay, and searches the traffic for words that it sends. Every
/// connection must begin with a TLS handshake. Id `program-wire`.
///
/// If no such words are known, the check reports that it did not run, and proves nothing.
pub struct ProgramWire<'a> {
    program: &'a dyn Program,
}

impl<'a> ProgramWire<'a> {
    /// A check of the traffic of `program`.
    pub fn new(program: &'a dyn Program) -> Self {
        Self { program }
    }
}

impl Check for ProgramWire<'_> {
    fn entry(&self) -> CheckEntry {
        if self.program.needle().is_some() {
            CheckEntry::claim("program-wire")
        } else {
            CheckEntry::disclosure("program-wire")
        }
    }

    fn claim(&self) -> String {
        format!("what {} sends is unreadable on the wire", self.program.name())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(needle) = self.program.needle() else {
            return Ok(Observation::Unknown(format!(
                "the connections of {} were not checked: no words are known that it sends",
                self.program.name()
            )));
        };
        let Address::Tcp { host, port } = &context.server.address else {
            return Ok(Observation::Unknown("there is no server that Tithe has launched".to_owned()));
        };
        let relay = Relay::start(host, *port)?;
        let server = Server { address: relay.address(), ..context.server.clone() };
        let workspace = Workspace::new(
            self.program,
            context.database,
            &server,
            context.setup,
            &format!("look-{:016x}", context.nonce),
        )?;
        let job = Job { clients: 1, rate: None, seconds: 1, seed: 1 };
        let outcome = workspace.run(self.program, &job, &AtomicBool::new(false));
        workspace.clear();
        outcome?;
        Ok(conclude(&relay.finish(), needle))
    }
}

/// The observation for `conversations`, which must not contain `needle`.
fn conclude(conversations: &[Conversation], needle: &[u8]) -> Observation {
    let count = |bytes: &[u8]| bytes.windows(needle.len()).filter(|words| *words == needle).count();
    let hits: usize = conversations.iter().map(|talk| count(&talk.sent)).sum();
    let handshakes = conversations.iter().filter(|talk| talk.tls_handshake().is_some()).count();
    let bytes: usize = conversations.iter().map(|talk| talk.sent.len()).sum();
    let name = String::from_utf8_lossy(needle);
    let seen = format!(
        "`{name}` {hits} times in the first {} that the program sent; TLS handshake on {handshakes} of {} connections",
        size(bytes as u64),
        conversations.len()
    );
    match conversations.len() {
        0 => Observation::Unknown("nothing passed the relay".to_owned()),
        all if hits == 0 && handshakes == all => Observation::Protected(seen),
        _ if hits > 0 => Observation::Exposed(seen),
        _ => Observation::Unknown(seen),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{self, Read as _, Write as _},
        net::{TcpListener, TcpStream},
        path::PathBuf,
    };

    use tithe_machine::launch::{Command, Content, Missing};
    use tithe_model::{catalogue::WireProtocol, record::Role};

    use super::*;
    use crate::{
        program::{ProgramContext, ProgramReport},
        simulated::{table_bench::TableBench, test_bench::Bench},
        sql::STANDARD,
    };

    const HELLO: &[u8] = &[0x16, 3, 1, 0, 0xf5, 1, 0, 0, 0xf1, 3, 3, 0x42];
    const NEEDLE: &[u8] = b"sbtest1";

    /// A program that sends words, waits for an answer, and ends as its script does.
    #[derive(Clone, Copy)]
    struct Talker {
        needle: Option<&'static [u8]>,
        sends: &'static [u8],
        script: &'static str,
    }

    impl Program for Talker {
        fn name(&self) -> &str {
            "talker"
        }

        fn drives(&self) -> &[WireProtocol] {
            &[WireProtocol::Postgres]
        }

        fn writes(&self) -> bool {
            false
        }

        fn find(&self) -> Result<PathBuf, Missing> {
            Ok("/bin/sh".into())
        }

        fn files(&self, _at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
            Ok(Vec::new())
        }

        fn prepare(&self, _at: &ProgramContext<'_>) -> Vec<Command> {
            Vec::new()
        }

        fn run(&self, at: &ProgramContext<'_>, _job: &Job) -> Command {
            let mut stream = TcpStream::connect(("127.0.0.1", at.reach.port)).expect("a connection");
            stream.write_all(self.sends).expect("sent");
            stream.read_exact(&mut [0]).expect("an answer");
            let arguments = vec!["-c".to_owned(), self.script.to_owned()];
            Command { program: at.executable.to_owned(), arguments, ..Command::default() }
        }

        fn read(&self, _at: &ProgramContext<'_>, _job: &Job, _printed: &str) -> Result<ProgramReport, Fault> {
            Ok(ProgramReport::default())
        }

        fn needle(&self) -> Option<&[u8]> {
            self.needle
        }

        fn describe(&self) -> Vec<(String, String)> {
            Vec::new()
        }
    }

    /// A program that sends these words, of which `sbtest1` are known.
    fn sending(sends: &'static [u8]) -> Talker {
        Talker { needle: Some(NEEDLE), sends, script: "exit 0" }
    }

    /// The address of a server that answers its first connection after this many bytes.
    fn answering(bytes: usize) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::spawn(move || -> io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut vec![0; bytes])?;
            stream.write_all(b"!")
        });
        Address::Tcp { host: "127.0.0.1".to_owned(), port }
    }

    /// What is observed of `program` on a server at `address`; no folder of the check is left behind.
    fn observed(program: Talker, address: Address) -> Result<Observation, Fault> {
        let mut bench = Bench::plain();
        bench.setup.credentials.authority = bench.server.folder.join("authority.pem");
        bench.server.address = address;
        let database = TableBench::new(&STANDARD);
        let seen = ProgramWire::new(&program).observe(&mut CheckContext { database: &database, ..bench.context() });
        let entries = fs::read_dir(&bench.server.folder).expect("its folder");
        let mut names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        assert!(!names.any(|name| name.starts_with("look-")), "{seen:?}");
        seen
    }

    #[test]
    fn a_program_on_a_launched_server_works_through_a_relay() {
        let words = sending(b"SELECT c FROM sbtest1");
        let told = |program: Talker| format!("{:?}", observed(program, answering(program.sends.len())));
        let (exposed, hidden) = (told(words), told(sending(HELLO)));
        assert!(exposed.starts_with("Ok(Exposed(\"`sbtest1` 1 times in the first "), "{exposed}");
        assert!(hidden.starts_with("Ok(Protected(") && hidden.contains("on 1 of 1 connections"), "{hidden}");
        let failed = told(Talker { script: "exit 3", ..words });
        assert!(failed.starts_with("Err(Machine(\"/bin/sh failed"), "{failed}");
        let nowhere = "there is no server that Tithe has launched".to_owned();
        assert_eq!(observed(words, Address::Nowhere), Ok(Observation::Unknown(nowhere)));
    }

    #[test]
    fn a_program_of_which_no_words_are_known_proves_nothing() {
        let unknown = Talker { needle: None, ..sending(b"?") };
        let words = "the connections of talker were not checked: no words are known that it sends".to_owned();
        assert_eq!(observed(unknown, answering(1)), Ok(Observation::Unknown(words)));
        let role = |program: Talker| ProgramWire::new(&program).entry().role;
        assert_eq!([role(unknown), role(sending(b"?"))], [Role::Disclosure, Role::Claim]);
    }

    fn talk(sent: &[&[u8]]) -> Conversation {
        Conversation { sent: sent.concat(), ..Conversation::default() }
    }

    #[test]
    fn words_in_the_clear_expose_and_silence_without_tls_proves_nothing() {
        let reported = |talks: &[Conversation]| conclude(talks, NEEDLE);
        assert!(matches!(reported(&[]), Observation::Unknown(_)));
        assert!(matches!(reported(&[talk(&[b"SELECT c FROM sbtest1"])]), Observation::Exposed(_)));
        assert!(matches!(reported(&[talk(&[b"\x17\x03\x03"])]), Observation::Unknown(_)));
        assert!(matches!(reported(&[talk(&[HELLO, b"\x17\x03\x03"])]), Observation::Protected(_)));
        assert!(matches!(reported(&[talk(&[HELLO]), talk(&[b"sbtest1"])]), Observation::Exposed(_)));
        assert!(matches!(reported(&[talk(&[HELLO]), talk(&[b"?"])]), Observation::Unknown(_)));
    }
}
