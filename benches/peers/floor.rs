//! The smallest possible cost of a load generator here: Tithe's own loop around an empty request.
//!
//! A thread per connection answers requests of 70 bytes with 1,200 bytes, about the traffic of a read of 1 KB, or with
//! 40 bytes, that of a statement of pgbench's scripts. There is no protocol, no key, no value and no check. The cost of
//! this loop is the kernel's; everything that Tithe costs above it is Tithe's own.

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

/// What an operation exchanges with the server. Requests begin with its number.
#[derive(Debug, Clone, Copy)]
pub enum Traffic {
    /// A request and a record.
    Record,
    /// This many statements, one after the other, each answered by a short row.
    Statements(u8),
}

impl Traffic {
    fn of(number: u8) -> Self {
        if number == 0 { Self::Record } else { Self::Statements(number) }
    }

    fn number(self) -> u8 {
        match self {
            Self::Record => 0,
            Self::Statements(count) => count,
        }
    }

    /// Bytes of each answer.
    fn answer(self) -> usize {
        match self {
            Self::Record => ANSWER.len(),
            Self::Statements(_) => 40,
        }
    }
}

/// A contestant with `clients` connections to the echo server.
///
/// # Errors
/// When this program cannot find its own path.
pub fn contestant(port: u16, clients: u32, traffic: Traffic) -> Result<Contestant, Fault> {
    Ok(Contestant {
        name: "floor (echo)".to_owned(),
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
        wire.set_blocking(*clients == 1)?;
        Ok(ClientConnection::new(
            Session::KeyValue(Box::new(Echo { wire, traffic, answered: 0 })),
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

/// One connection to [`serve`].
struct Echo {
    wire: Wire,
    traffic: Traffic,
    /// Answers of this operation so far.
    answered: u8,
}

impl Echo {
    fn ask(&mut self) -> Result<(), Fault> {
        self.wire.output().extend_from_slice(&[self.traffic.number(); REQUEST]);
        self.wire.flush()
    }
}

impl Connection for Echo {
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

impl KeyValueSession for Echo {
    fn submit(&mut self, _request: &Request<'_>) -> Result<(), Fault> {
        self.answered = 0;
        self.ask()
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        while self.wire.unread().len() < self.traffic.answer() {
            if !self.wire.fill()? {
                return Ok(Progress::Pending);
            }
        }
        self.wire.consume(self.traffic.answer());
        self.answered += 1;
        if self.answered < self.traffic.number() {
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
