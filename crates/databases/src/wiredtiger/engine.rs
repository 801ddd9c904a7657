//! One open database of WiredTiger, behind a safe interface: opening, errors, threads, closing.
//!
//! The engine works in its own threads (eviction, checkpoint, journal), which inherit the name of the thread that
//! opened it. By that name their processor time is assigned to the right arm.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use tithe_machine::fault::Fault;

use super::{
    encryptor::{self, cipher::PageCipher},
    ffi,
    library::Library,
    messages::Messages,
    settings::Settings,
};

/// An open database. Closed when dropped, after every session.
pub struct Engine {
    raw: NonNull<ffi::Connection>,
    library: &'static Library,
    messages: Arc<Messages>,
    cipher: Option<Arc<dyn PageCipher>>,
    threads: String,
    failed: AtomicBool,
    flusher: Option<Flusher>,
    /// The engine calls it until it is closed.
    _handler: Box<Handler>,
}

// SAFETY: a connection may be used from any thread and from several at a time ("Multithreading" in WiredTiger's
// documentation), and so may all other fields.
unsafe impl Send for Engine {}
// SAFETY: as above.
unsafe impl Sync for Engine {}

impl Engine {
    /// Opens the database in `folder`, or creates one there; `cipher` encrypts everything except the turtle file.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the engine's message if it does not open: no database, another cipher, a wrong key.
    pub fn open(
        library: &'static Library,
        folder: &Path,
        settings: &Settings,
        cipher: Option<Arc<dyn PageCipher>>,
    ) -> Result<Arc<Self>, Fault> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        // The kernel keeps 15 characters.
        let threads = format!("wt-engine-{}", OPENED.fetch_add(1, Ordering::Relaxed) % 100_000);
        let configuration = settings.connection(library, cipher.is_some())?;
        let messages = Arc::new(Messages::default());
        let handler = Box::new(Handler::new(messages.clone()));
        let home = text(folder.as_os_str().as_bytes())?;
        let opened = {
            let handler = Sendable((&raw const *handler).cast_mut());
            let (cipher, messages) = (cipher.clone(), messages.clone());
            let open = move || open(library, &home, handler, &configuration, cipher, &messages);
            let thread = thread::Builder::new().name(threads.clone()).spawn(open);
            thread.map_err(|error| Fault::machine("cannot start a thread", error))?.join()
        };
        let Sendable(raw) = opened.map_err(|_| Fault::Machine("opening panicked".to_owned()))?.map_err(|status| {
            let said = messages.take();
            Fault::Refused(format!("{} ({said})", library.words(status)))
        })?;
        let raw = NonNull::new(raw).ok_or_else(|| Fault::Machine("the engine gives no connection".to_owned()))?;
        let mut engine = Self {
            raw,
            library,
            messages,
            cipher,
            threads,
            failed: AtomicBool::new(false),
            flusher: None,
            _handler: handler,
        };
        if settings.commit_interval_ms > 0 {
            let session = engine.raw_session()?;
            engine.flusher = Some(Flusher::start(session, &engine.threads, settings.commit_interval_ms)?);
        }
        Ok(Arc::new(engine))
    }

    /// An open session, which the caller closes before the engine.
    ///
    /// # Errors
    /// When the engine has no more.
    pub fn raw_session(&self) -> Result<NonNull<ffi::Session>, Fault> {
        let mut session = ptr::null_mut();
        // SAFETY: the connection is open; the configuration ends with a zero byte; the session is written before it
        // returns. Reads and writes see a snapshot, as MongoDB's do.
        let status = unsafe {
            let open_session = (*self.raw.as_ptr()).open_session;
            open_session(self.raw.as_ptr(), ptr::null_mut(), c"isolation=snapshot".as_ptr(), &raw mut session)
        };
        self.check(status)?;
        NonNull::new(session).ok_or_else(|| Fault::Machine("the engine gives no session".to_owned()))
    }

    /// The encryption of this database; `None` if it is plain.
    pub fn cipher(&self) -> Option<Arc<dyn PageCipher>> {
        self.cipher.clone()
    }

    /// The engine's own text for `status`, with its earlier messages.
    #[cold]
    pub fn fault(&self, status: c_int) -> Fault {
        if [ffi::ERROR, ffi::PANIC].contains(&status) {
            self.failed.store(true, Ordering::Relaxed);
        }
        let said = self.messages.take();
        let words = self.library.words(status);
        Fault::Server(if said.is_empty() { words } else { format!("{words} ({said})") })
    }

    /// True if it could not read or write a page. Such an engine may never close: it waits for transactions that it can
    /// no longer end.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn check(&self, status: c_int) -> Result<(), Fault> {
        if status == ffi::OK { Ok(()) } else { Err(self.fault(status)) }
    }

    /// Processor time of the engine's own threads so far, ns.
    pub fn threads_cpu_ns(&self) -> u64 {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
        let of_task = |task: PathBuf| {
            let known = fs::read_to_string(task.join("comm")).ok()?;
            // The first number of schedstat is the time on the processor, ns (proc(5)).
            let text = fs::read_to_string(task.join("schedstat")).ok().filter(|_| known.trim_end() == self.threads)?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(|task| of_task(task.path())).sum()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.flusher = None;
        // SAFETY: every session holds the engine, so there is none left; the connection is not used again. Data that
        // cannot be written now is in the journal.
        unsafe { ((*self.raw.as_ptr()).close)(self.raw.as_ptr(), ptr::null()) };
    }
}

/// Opens a connection in the calling thread.
fn open(
    library: &Library,
    home: &CStr,
    handler: Sendable<Handler>,
    configuration: &str,
    cipher: Option<Arc<dyn PageCipher>>,
    messages: &Arc<Messages>,
) -> Result<Sendable<ffi::Connection>, c_int> {
    let configuration = CString::new(configuration).map_err(|_| ffi::ERROR)?;
    let mut connection = ptr::null_mut();
    let mut open = || {
        // SAFETY: texts end with a zero byte; the handler outlives the connection and begins with the engine's own
        // structure; the connection is written before it returns.
        unsafe { (library.open)(home.as_ptr(), handler.0.cast(), configuration.as_ptr(), &raw mut connection) }
    };
    let status = match cipher {
        Some(cipher) => encryptor::offering(cipher, messages.clone(), open),
        None => open(),
    };
    if status == ffi::OK { Ok(Sendable(connection)) } else { Err(status) }
}

/// A pointer that is passed to the thread that opens the engine, or back.
struct Sendable<T>(*mut T);

// SAFETY: the sender waits until the other thread has ended.
unsafe impl<T> Send for Sendable<T> {}

/// The handler to which the engine reports errors: its own structure comes first.
#[repr(C)]
struct Handler {
    functions: ffi::EventHandler,
    messages: Arc<Messages>,
}

impl Handler {
    fn new(messages: Arc<Messages>) -> Self {
        let functions = ffi::EventHandler {
            error: handle_error,
            message: handle_message,
            progress: ptr::null(),
            close: ptr::null(),
        };
        Self { functions, messages }
    }
}

unsafe extern "C" fn handle_error(
    handler: *mut ffi::EventHandler,
    _session: *mut ffi::Session,
    _error: c_int,
    message: *const c_char,
) -> c_int {
    // SAFETY: the engine passes the handler that it was given, and a text that ends with a zero byte.
    let (handler, message) = unsafe { (&*handler.cast::<Handler>(), CStr::from_ptr(message)) };
    handler.messages.add(without_place(&message.to_string_lossy()).to_owned());
    ffi::OK
}

/// Progress and advice, which are ignored.
unsafe extern "C" fn handle_message(
    _handler: *mut ffi::EventHandler,
    _session: *mut ffi::Session,
    _message: *const c_char,
) -> c_int {
    ffi::OK
}

/// A message without the time and the addresses at its start: `[1700000000:1][12:0x7f], file:a.wt: words`.
fn without_place(message: &str) -> &str {
    message.rsplit_once("], ").map_or(message, |(_, words)| words)
}

/// Repeatedly makes the journal durable, as MongoDB's journal flusher does. Ends when dropped.
struct Flusher {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Flusher {
    fn start(session: NonNull<ffi::Session>, threads: &str, interval_ms: u64) -> Result<Self, Fault> {
        let (stop, stopped) = mpsc::channel();
        let session = Sendable(session.as_ptr());
        let flush = move || {
            let Sendable(session) = { session };
            let pause = Duration::from_millis(interval_ms);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                // SAFETY: the session is open and only used by this thread. If the journal cannot be written, commits
                // fail, which reports the error where it is visible.
                unsafe { ((*session).log_flush)(session, c"sync=on".as_ptr()) };
            }
            // SAFETY: as above; it is not used again.
            unsafe { ((*session).close)(session, ptr::null()) };
        };
        let thread = thread::Builder::new().name(threads.to_owned()).spawn(flush);
        let thread = thread.map_err(|error| Fault::machine("cannot start a thread", error))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// `bytes` with a zero byte at the end.
fn text(bytes: &[u8]) -> Result<CString, Fault> {
    CString::new(bytes).map_err(|_| Fault::Refused("a name cannot hold a zero byte".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_place() {
        let message = "[1763716000:1][12:0x7f5d], file:WiredTiger.wt, connection: encryption failed";
        assert_eq!(without_place(message), "file:WiredTiger.wt, connection: encryption failed");
        assert_eq!(without_place("words"), "words");
    }
}
