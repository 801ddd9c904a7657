//! One connection with its client, and how it is closed and opened again.

use tithe_machine::{fault::Fault, watch::process::TaskWatch};
use tithe_model::connecting::Connecting;
use tithe_plugin::{
    session::{Connection, Session},
    workload::Client,
};

use super::poll::Epoll;

/// How a client closes its connection and opens a new one during the measurement.
pub struct Reconnect<'a> {
    /// The number of operations of one connection.
    pub every: u32,
    /// Opens a connection in the same way as the first one.
    pub open: Box<dyn Fn() -> Result<(Session, Connecting), Fault> + Send + 'a>,
}

/// One connection with its client.
pub struct ClientConnection<'a> {
    /// The connection; `None` if it could not be opened again, which breaks the arm.
    pub(super) session: Option<Session>,
    /// The client.
    pub client: Box<dyn Client>,
    /// Number of the client over all lanes.
    pub number: u64,
    pub(super) reconnect: Option<Reconnect<'a>>,
    /// Operations of the connection so far; not counted without a reconnect.
    pub(super) served: u32,
    /// The cost of opening it and the connections before it.
    pub connecting: Connecting,
    /// Bytes sent and received by the connections before this one.
    earlier_bytes: (u64, u64),
    /// The epoll descriptor and the number under which a new connection is registered.
    pub(super) poll: Option<(Epoll, usize)>,
    pub(super) watch: Option<TaskWatch>,
    pub(super) busy: Option<Busy>,
    /// The rest of the pause before the operation that is prepared, ns; `None` when none is prepared.
    pub(super) pause_left_ns: Option<u64>,
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Busy {
    pub begun_ns: u64,
    pub part_ns: u64,
    pub intended_ns: u64,
}

impl<'a> ClientConnection<'a> {
    /// Joins `client` number `number` at `session`.
    pub fn new(mut session: Session, mut client: Box<dyn Client>, number: u64) -> Self {
        client.set_number(number);
        let watch = TaskWatch::server(&session.connection().server_task());
        Self {
            session: Some(session),
            client,
            number,
            reconnect: None,
            served: 0,
            connecting: Connecting::default(),
            earlier_bytes: (0, 0),
            poll: None,
            watch,
            busy: None,
            pause_left_ns: None,
        }
    }

    /// The same, whose connection is closed and opened again by `reconnect`.
    #[must_use]
    pub fn reconnecting(mut self, reconnect: Option<Reconnect<'a>>) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Fills the caches that this connection reads through.
    ///
    /// # Errors
    /// The server's error.
    pub fn warm(&mut self) -> Result<(), Fault> {
        self.connection()?.warm()
    }

    /// The change that its operations have made to its session since the last call, if it lasts.
    ///
    /// # Errors
    /// The server's error.
    pub fn lasting_change(&mut self) -> Result<Option<String>, Fault> {
        self.client.lasting_change(open(&mut self.session)?)
    }

    /// Tells the client to remove what earlier slots have added.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn put_back(&mut self) -> Result<(), Fault> {
        self.client.put_back(open(&mut self.session)?)
    }

    /// The process that serves it, as its server numbers it, if the server reports it.
    pub fn serving_process(&mut self) -> Option<i32> {
        self.connection().ok()?.serving_process()
    }

    #[inline]
    pub(super) fn connection(&mut self) -> Result<&mut dyn Connection, Fault> {
        open(&mut self.session).map(Session::connection)
    }

    /// True when the connection has done all of its operations.
    pub(super) fn is_spent(&self) -> bool {
        self.reconnect.as_ref().is_some_and(|reconnect| self.served >= reconnect.every)
    }

    /// Closes the connection, then opens a new one and prepares it.
    pub(super) fn reopen(&mut self) -> Result<(), Fault> {
        let Some(reconnect) = &self.reconnect else { return Ok(()) };
        if let Some(mut ended) = self.session.take() {
            let (sent, received) = ended.connection().wire_bytes();
            self.earlier_bytes = (self.earlier_bytes.0 + sent, self.earlier_bytes.1 + received);
        }
        let (mut session, connecting) = (reconnect.open)()?;
        self.connecting.add(&connecting);
        self.client.open(&mut session)?;
        // The kernel forgets a closed descriptor by itself (epoll(7)).
        if let (Some((epoll, number)), Some(descriptor)) = (&self.poll, session.connection().descriptor()) {
            epoll.add(descriptor, *number)?;
        }
        self.session = Some(session);
        self.served = 0;
        Ok(())
    }

    pub(super) fn wire_bytes(&mut self) -> (u64, u64) {
        let (sent, received) = self.connection().map_or((0, 0), |connection| connection.wire_bytes());
        (self.earlier_bytes.0 + sent, self.earlier_bytes.1 + received)
    }
}

/// The session of a connection.
#[inline]
pub(super) fn open(session: &mut Option<Session>) -> Result<&mut Session, Fault> {
    session.as_mut().ok_or_else(|| Fault::Connection("the connection could not be opened again".to_owned()))
}
