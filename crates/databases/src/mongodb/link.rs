//! One driver with one connection, in the calling thread.
//!
//! The driver's own blocking interface uses a pool of threads, whose processor time would belong to no lane. Here every
//! driver has a scheduler without threads: the caller does the sending, waiting, TLS and BSON, and is charged for it.
//! For the same reason the driver's background check of the server's state is made rare. Nothing is sent twice: retries
//! are off, so that a failure counts as a failure.

use std::{future::Future, pin::pin, time::Duration};

use mongodb::{
    Client, Collection,
    bson::{Document, RawDocumentBuf},
    error::{Error, ErrorKind, WriteFailure},
    options::{ClientOptions, ServerMonitoringMode},
};
use tithe_machine::{fault::Fault, proc};
use tithe_plugin::{
    session::timeout_s,
    wire::kept::{self, too_much},
};
use tokio::runtime::Runtime;

/// How long to search for a server that accepts the connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two checks of the server's state while there is no error.
const HEARTBEAT: Duration = Duration::from_secs(3600);

/// Time between two looks at how much an answer has taken.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A driver with one connection.
pub struct Link {
    // Dropped before the scheduler that its tasks run in.
    client: Client,
    runtime: Runtime,
    options: ClientOptions,
}

impl Link {
    /// A driver with `options`, which connects at its first request.
    ///
    /// # Errors
    /// [`Fault::Machine`] when there is no scheduler; [`Fault::Refused`] for options that cannot be.
    pub fn new(mut options: ClientOptions) -> Result<Self, Fault> {
        let runtime = scheduler()?;
        options.app_name = Some("tithe".to_owned());
        options.max_pool_size = Some(1);
        options.retry_reads = Some(false);
        options.retry_writes = Some(false);
        options.server_selection_timeout = Some(TIMEOUT);
        options.connect_timeout = Some(TIMEOUT);
        options.heartbeat_freq = Some(HEARTBEAT);
        options.server_monitoring_mode = Some(ServerMonitoringMode::Poll);
        let client = {
            let _entered = runtime.enter();
            Client::with_options(options.clone()).map_err(|error| fault(&error))?
        };
        Ok(Self { client, runtime, options })
    }

    /// The driver's options.
    pub fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// The records of `collection` in `database`.
    pub fn collection(&self, database: &str, collection: &str) -> Collection<RawDocumentBuf> {
        self.client.database(database).collection(collection)
    }

    /// Runs `work` to its end in this thread. The driver itself waits for an answer without a limit.
    ///
    /// # Errors
    /// The error of the driver or the server; [`Fault::Connection`] if there is no answer for [`timeout_s`] seconds.
    pub fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        let timeout_s = timeout_s();
        let timeout = Duration::from_secs(timeout_s.into());
        match self.runtime.block_on(async { tokio::time::timeout(timeout, work).await }) {
            Ok(done) => done.map_err(|error| fault(&error)),
            Err(_) => Err(Fault::Connection(format!("the server did not answer for {timeout_s} s"))),
        }
    }

    /// As [`Link::wait`], for questions of Tithe's own. The driver believes the server about how long a message may be,
    /// so that the growth of the program is watched.
    ///
    /// # Errors
    /// As [`Link::wait`], and [`Fault::Protocol`] for an answer without end.
    fn answer<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        let most = proc::resident_bytes().unwrap_or_default().saturating_add(kept::MOST as u64);
        self.wait(async {
            let mut work = pin!(work);
            loop {
                match tokio::time::timeout(LOOK_EVERY, &mut work).await {
                    Ok(answer) => return answer.map(Some),
                    Err(_) if proc::resident_bytes().is_some_and(|now| now > most) => return Ok(None),
                    Err(_) => {}
                }
            }
        })?
        .ok_or_else(|| too_much("an answer", kept::MOST))
    }

    /// Runs one command in `database`.
    ///
    /// # Errors
    /// As [`Link::wait`].
    pub fn run(&self, database: &str, command: Document) -> Result<Document, Fault> {
        self.answer(async { self.client.database(database).run_command(command).await })
    }

    /// Runs one command of an administrator.
    ///
    /// # Errors
    /// As [`Link::wait`].
    pub fn admin(&self, command: Document) -> Result<Document, Fault> {
        self.run("admin", command)
    }

    /// Names of the collections in `database`.
    ///
    /// # Errors
    /// As [`Link::wait`].
    pub fn collections(&self, database: &str) -> Result<Vec<String>, Fault> {
        self.answer(async { self.client.database(database).list_collection_names().await })
    }
}

/// A scheduler that works in the thread that waits.
///
/// # Errors
/// [`Fault::Machine`] if the kernel provides none.
pub fn scheduler() -> Result<Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::machine("a scheduler for the driver", error))
}

/// Codes of errors that say no: `Unauthorized`, `AuthenticationFailed` (MongoDB, `error_codes.yml`).
const REFUSALS: [i32; 2] = [13, 18];

/// The TLS library's words for a server that answers with something else.
const NO_TLS: &str = "received corrupt message";

/// An error of the driver in Tithe's words.
pub fn fault(error: &Error) -> Fault {
    match &*error.kind {
        ErrorKind::Authentication { message, .. } => Fault::Refused(message.clone()),
        ErrorKind::Command(command) if REFUSALS.contains(&command.code) => Fault::Refused(command.message.clone()),
        ErrorKind::Command(command) => Fault::Server(format!("{} (code {})", command.message, command.code)),
        ErrorKind::Write(WriteFailure::WriteError(write)) => {
            Fault::Server(format!("{} (code {})", write.message, write.code))
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(write)) => {
            Fault::Server(format!("write concern: {} (code {})", write.message, write.code))
        }
        ErrorKind::IncompatibleServer { message, .. }
        | ErrorKind::InvalidArgument { message, .. }
        | ErrorKind::InvalidTlsConfig { message, .. } => Fault::Refused(message.clone()),
        ErrorKind::InvalidResponse { message, .. } => Fault::Protocol(message.clone()),
        ErrorKind::Io(error) => Fault::Connection(error.to_string()),
        other => {
            let words = other.to_string();
            let hint = if words.contains(NO_TLS) { ": the server does not answer with TLS" } else { "" };
            Fault::Connection(words + hint)
        }
    }
}
