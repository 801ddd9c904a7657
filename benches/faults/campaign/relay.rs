//! A relay between the program and a server, which damages the traffic once a fault asks for it.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// What befalls bytes on their way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Every piece is held back for so many ms.
    Delay(u64),
    /// Drops all traffic in both directions; the connections stay open.
    Swallow,
    /// All connections are cut, and none is taken for a second.
    Cut,
    /// The next piece loses its second half.
    Truncate,
    /// The next piece comes twice.
    Double,
    /// One byte of the next piece is another one.
    Flip(u64),
    /// What the server says does not end.
    Endless,
    /// Values in answers are others of the same length.
    OtherValues,
}

#[derive(Default)]
struct State {
    harm: Mutex<Option<Harm>>,
    open: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
    /// Endless words that were said, bytes.
    said: AtomicU64,
    /// Pieces with other values.
    changed: AtomicU64,
}

/// It passes what comes to one server, until it is dropped.
pub struct Relay {
    address: SocketAddr,
    state: Arc<State>,
}

impl Relay {
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the relay");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let ours = Arc::clone(&state);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if ours.closed.load(Ordering::SeqCst) {
                    break;
                }
                if ours.harm() == Some(Harm::Cut) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(target) else { continue };
                let pair = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
                let (Some(forth), Some((to, from)), Some(kept)) = (pair(), pair(), pair()) else { continue };
                ours.open.lock().unwrap_or_else(PoisonError::into_inner).extend([kept.0, kept.1]);
                carry(forth, false, &ours);
                carry((from, to), true, &ours);
            }
        });
        Self { address, state }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many pieces went on with other values than they came with.
    pub fn changed(&self) -> u64 {
        self.state.changed.load(Ordering::SeqCst)
    }

    pub fn harm(&self, harm: Option<Harm>) {
        *self.state.harm.lock().unwrap_or_else(PoisonError::into_inner) = harm;
        if matches!(harm, Some(Harm::Cut)) {
            self.state.cut();
        }
    }

    /// Cuts what is still open, so that a server is alone again.
    pub fn heal(&self) {
        self.harm(None);
        self.state.cut();
    }
}

impl State {
    fn harm(&self) -> Option<Harm> {
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The harm to the next piece; what befalls one piece alone is over then.
    fn take(&self) -> Option<Harm> {
        let mut harm = self.harm.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *harm;
        if matches!(now, Some(Harm::Truncate | Harm::Double | Harm::Flip(_))) {
            *harm = None;
        }
        now
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.heal();
        // Wakes the thread that waits in accept(2).
        let _ = TcpStream::connect(self.address);
    }
}

/// More than the program may take from a server that does not end, bytes.
const ENDLESS_MOST: u64 = 512 << 20;

/// Values of records are longer than this, and other words of servers mostly shorter, bytes.
const VALUE_LEAST: usize = 60;

/// Replaces one byte in the middle of each long run of printable bytes in `piece`; true where there was one.
fn change_values(piece: &mut [u8]) -> bool {
    let mut changed = false;
    for run in piece.split_mut(|byte| !(b' '..=b'~').contains(byte)).filter(|run| run.len() >= VALUE_LEAST) {
        let middle = &mut run[VALUE_LEAST / 2];
        *middle = if *middle == b'x' { b'y' } else { b'x' };
        changed = true;
    }
    changed
}

/// Carries what comes from the first to the second; `answers` where that is what a server says.
fn carry((mut from, mut to): (TcpStream, TcpStream), answers: bool, state: &Arc<State>) {
    let state = Arc::clone(state);
    let _ = to.set_nodelay(true);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let piece = &mut buffer[..length];
            let harm = if answers { state.take() } else { state.harm().filter(|harm| *harm == Harm::Swallow) };
            let passed = match harm {
                None | Some(Harm::Cut) => to.write_all(piece),
                Some(Harm::Delay(ms)) => {
                    thread::sleep(Duration::from_millis(ms));
                    to.write_all(piece)
                }
                Some(Harm::Swallow) => Ok(()),
                Some(Harm::Truncate) => to.write_all(&piece[..length / 2]),
                Some(Harm::Double) => to.write_all(piece).and_then(|()| to.write_all(piece)),
                Some(Harm::Flip(at)) => {
                    piece[at as usize % length] ^= 1 << (at % 7);
                    to.write_all(piece)
                }
                Some(Harm::OtherValues) => {
                    state.changed.fetch_add(u64::from(change_values(piece)), Ordering::SeqCst);
                    to.write_all(piece)
                }
                Some(Harm::Endless) => {
                    let mut said = to.write_all(piece);
                    while said.is_ok() && state.said.fetch_add(length as u64, Ordering::SeqCst) < ENDLESS_MOST {
                        said = to.write_all(piece);
                    }
                    said
                }
            };
            if passed.is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
