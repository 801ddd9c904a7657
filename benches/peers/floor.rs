//! The smallest possible cost of a load generator here: Tithe's own loop around an empty request.
//!
//! A thread per connection answers requests of 70 bytes with 1,200 bytes, about the traffic of a read of 1 KB, or with
//! 40 bytes, that of a statement of pgbench's scripts. There is no protocol, no key, no value and no check. The cost of
//! this loop is the kernel's.
//!
//! A database does more between request and answer than that thread and leaves less of the kernel's data in the
//! processor's caches. So there is a second floor: the same loop sends the bytes of `select-only` to the real server
//! and reads nothing of the answer but its end. What Tithe costs above that floor is Tithe's own.

use std::{
    io::{Read, Write as _},
    net::TcpListener,
    os::fd::{AsFd, BorrowedFd},
};

use tithe_harness::load::{
    Schedule,
    lane::{Arm, ClientConnection, Lane},
    pause_gate::PauseGate,
    recorder::Recorder,
    timeout::Timeout,
};
use tithe_machine::{clock::Clock, fault::Fault, proc::ServerTask};
use tithe_model::experiment::{Arrivals, Design};
use tithe_plugin::{
    session::{Connection, Discard, KeyValueSession, Progress, Request, Rows, Session},
    wire::Wire,
    workload::{Client, PartRecorder},
};

use crate::contest::{Contestant, number_after};

/// Bytes of a request.
const REQUEST: usize = 70;
const ANSWER: [u8; 1200] = [b'a'; 1200];
const SLOT_NS: u64 = 20_000_000;

/// Answers all connections until this process ends; returns the port.
///
/// # Errors
/// When no port is free.
pub fn serve() -> Result<u16, Fault> {
    let failed = |error| Fault::machine("echo server", error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // Such a small request is never split on the loopback device.
                let _ = stream.set_nodelay(true);
                let mut request = [0; REQUEST];
                while stream.read_exact(&mut request).is_ok()
                    && stream.write_all(&ANSWER[..Traffic::of(request[0]).answer()]).is_ok()
                {}
            });
        }
    });
    Ok(port)
}

/// What an operation exchanges with the server. Requests to the echo server begin with its number.
#[derive(Debug, Clone, Copy)]
pub enum Traffic {
    /// A request and a record.
    Record,
    /// This many statements, one after the other, each answered by a short row.
    Statements(u8),
    /// The prepared statement of `select-only`, sent to PostgreSQL.
    Select,
}

impl Traffic {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Record,
            u8::MAX => Self::Select,
            count => Self::Statements(count),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Record => 0,
            Self::Statements(count) => count,
            Self::Select => u8::MAX,
        }
    }

    /// Requests of an operation.
    fn requests(self) -> u8 {
        if let Self::Statements(count) = self { count } else { 1 }
    }

    /// Bytes of each answer of the echo server.
    fn answer(self) -> usize {
        match self {
            Self::Record => ANSWER.len(),
            Self::Statements(_) | Self::Select => 40,
        }
    }

    /// True if `received` ends with the last byte of an answer.
    fn is_whole(self, received: &[u8]) -> bool {
        match self {
            // ReadyForQuery is the last message of every answer.
            Self::Select => received.len() > 5 && received[received.len() - 6..].starts_with(b"Z\0\0\0\x05"),
            _ => received.len() >= self.answer(),
        }
    }
}

/// A contestant with `clients` connections to the server on `port`, which is the echo server except for
/// [`Traffic::Select`].
///
/// # Errors
/// When this program cannot find its own path.
pub fn contestant(port: u16, clients: u32, traffic: Traffic) -> Result<Contestant, Fault> {
    Ok(Contestant {
        name: if let Traffic::Select = traffic { "floor (same server)" } else { "floor (echo)" }.to_owned(),
        ours: false,
        program: std::env::current_exe().map_err(|error| Fault::machine("this program", error))?,
        arguments: vec!["floor".to_owned(), port.to_string(), clients.to_string(), traffic.number().to_string()],
        short: vec!["1".to_owned()],
        long: vec!["100".to_owned()],
        operations: |text| number_after(text, "operations"),
        every: 1,
    })
}

/// The other side of [`contestant`].
///
/// # Errors
/// Any problem that would invalidate a frame.
pub fn generate(arguments: &[String]) -> Result<(), Fault> {
    let numbers: Option<Vec<u32>> = arguments.iter().map(|text| text.parse().ok()).collect();
    let Some([port, clients, traffic, blocks]) = numbers.as_deref() else {
        return Err(Fault::Machine("usage: floor PORT CLIENTS STATEMENTS SLOTS".to_owned()));
    };
    let traffic = Traffic::of(*traffic as u8);
    let conn = |number: u32| {
        let mut wire = Wire::connect("127.0.0.1", *port as u16)?;
        let request = match traffic {
            Traffic::Select => prepare_select(&mut wire)?,
            _ => vec![traffic.number(); REQUEST],
        };
        wire.set_blocking(*clients == 1)?;
        Ok(ClientConnection::new(
            Session::KeyValue(Box::new(Exchange { wire, traffic, request, account: number, answered: 0 })),
            Box::new(Nothing),
            u64::from(number),
        ))
    };
    let connections = (0..*clients).map(conn).collect::<Result<Vec<_>, Fault>>()?;
    let nothing = (Vec::new(), Vec::new());
    let arm = Arm::new(connections, Recorder::new(1, false, false), nothing, Timeout::LONGEST)?;
    let clock = Clock::Real;
    let start_ns = clock.now();
    let schedule = Schedule {
        seed: 1,
        frame: 0,
        blocks: *blocks,
        arms: 1,
        design: Design::Interleaved,
        frames: 1,
        slot_ns: SLOT_NS,
        settling_ns: 0,
        start_ns,
    };
    let mut lane = Lane::new(0, 1, clock, Arrivals::Closed, vec![arm], 0);
    let slots = lane.run(&schedule, &PauseGate::open_to(schedule.arms), &|| false);
    match lane.arms[0].recorder.invalid.take() {
        Some(reason) => Err(Fault::Wrong(reason)),
        None => {
            println!("operations {}", slots.iter().map(|slot| slot.operations).sum::<u64>());
            Ok(())
        }
    }
}

/// Logs in to PostgreSQL, which trusts this user, and prepares the statement of `select-only`. Returns the messages
/// that execute it once; [`Exchange::ask`] writes the account's number into them. See "Message Formats" in PostgreSQL's
/// manual.
fn prepare_select(wire: &mut Wire) -> Result<Vec<u8>, Fault> {
    let message = |kind: &[u8], body: &[u8]| [kind, &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let statement = b"s\0SELECT abalance FROM pgbench_accounts WHERE aid = $1\0\0\0";
    for request in [
        message(b"", b"\0\x03\0\0user\0tithe\0database\0postgres\0\0"),
        [message(b"P", statement), message(b"S", b"")].concat(),
    ] {
        wire.output().extend_from_slice(&request);
        wire.flush()?;
        while !Traffic::Select.is_whole(wire.unread()) {
            wire.fill()?;
        }
        wire.consume(wire.unread().len());
    }
    let bind = [b"\0s\0\0\0\0\x01\0\0\0\x05", ACCOUNT, b"\0\0"].concat();
    Ok([message(b"B", &bind), message(b"E", b"\0\0\0\0\0"), message(b"S", b"")].concat())
}

/// Stands for an account's number in a request.
const ACCOUNT: &[u8] = b"#####";

/// One connection to [`serve`] or PostgreSQL.
struct Exchange {
    wire: Wire,
    traffic: Traffic,
    request: Vec<u8>,
    /// Numbers of accounts follow from each other.
    account: u32,
    /// Answers of this operation so far.
    answered: u8,
}

impl Exchange {
    fn ask(&mut self) -> Result<(), Fault> {
        let output = self.wire.output();
        output.extend_from_slice(&self.request);
        if let Traffic::Select = self.traffic {
            // A generator of full period modulo 2^32 (Numerical Recipes, 7.1).
            self.account = self.account.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mut number = 1 + (self.account >> 8) % 99_999;
            for digit in output[ACCOUNT_AT..ACCOUNT_AT + ACCOUNT.len()].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        self.wire.flush()
    }
}

/// Where the number is in the request: after the head of Bind, the names, the formats, the count and the length.
const ACCOUNT_AT: usize = 5 + 11;

impl Connection for Exchange {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wire.as_fd())
    }

    fn wants_write(&self) -> bool {
        self.wire.wants_write()
    }

    fn blocks(&self) -> bool {
        self.wire.blocks()
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }
}

impl KeyValueSession for Exchange {
    fn submit(&mut self, _request: &Request<'_>) -> Result<(), Fault> {
        self.answered = 0;
        self.ask()
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        while !self.traffic.is_whole(self.wire.unread()) {
            if !self.wire.fill()? {
                return Ok(Progress::Pending);
            }
        }
        self.wire.consume(self.wire.unread().len());
        self.answered += 1;
        if self.answered < self.traffic.requests() {
            self.ask()?;
            return Ok(Progress::Pending);
        }
        Ok(Progress::Done(1))
    }
}

/// A client without preparation and checks.
struct Nothing;

impl Client for Nothing {
    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        match session {
            Session::KeyValue(session) => session.submit(&Request::Delete { key: b"" }),
            Session::Sql(_) => Err(Fault::Protocol("the echo speaks no SQL".to_owned())),
        }
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        match session {
            Session::KeyValue(session) => session.advance(&mut Discard),
            Session::Sql(_) => Err(Fault::Protocol("the echo speaks no SQL".to_owned())),
        }
    }

    fn operation(&self) -> usize {
        0
    }
}
