//! A relay that delays bytes by a given time, which may differ between the directions: an asymmetric path.
//!
//! Kernels may lack the module that delays packets, and a relay needs no privileges. It delays data, not the TCP
//! handshake, and forwards each piece of data as one piece.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// A relay in front of one server, until it is dropped. It is in the network of the thread that has started it.
pub struct DelayRelay {
    listener: Arc<TcpListener>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    acceptor: Option<JoinHandle<()>>,
}

impl DelayRelay {
    /// Listens at `listen`, at a free port if that is 0. Delays data from clients to `target` by `there`, and data from
    /// it by `back`.
    pub fn start(listen: SocketAddr, target: SocketAddr, there: Duration, back: Duration) -> Self {
        let listener = Arc::new(TcpListener::bind(listen).expect("a port for the relay"));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (ours, open) = (Arc::clone(&listener), Arc::clone(&streams));
        let acceptor = thread::spawn(move || {
            while let Ok((client, _)) = ours.accept() {
                let Ok(server) = TcpStream::connect(target) else { continue };
                let pair = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
                let (Some(forth), Some((to, from)), Some(kept)) = (pair(), pair(), pair()) else { continue };
                open.lock().unwrap_or_else(PoisonError::into_inner).extend([kept.0, kept.1]);
                carry(forth.0, forth.1, there);
                carry(from, to, back);
            }
        });
        Self { listener, streams, acceptor: Some(acceptor) }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a socket that listens")
    }
}

impl Drop for DelayRelay {
    fn drop(&mut self) {
        // Wakes the thread that waits in accept(2).
        let _ = TcpStream::from(OwnedFd::from(self.listener.try_clone().expect("a socket"))).shutdown(Shutdown::Both);
        let _ = self.acceptor.take().map(JoinHandle::join);
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards data `from` one side `to` the other, each piece with this `delay`.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, pieces) = mpsc::channel::<(Instant, Vec<u8>)>();
    let _ = to.set_nodelay(true);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
        // The end of the stream is delayed like the bytes before it.
        let _ = sender.send((Instant::now() + delay, Vec::new()));
    });
    thread::spawn(move || {
        for (due, piece) in pieces {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if piece.is_empty() || to.write_all(&piece).is_err() {
                let _ = to.shutdown(Shutdown::Write);
                break;
            }
        }
    });
}
