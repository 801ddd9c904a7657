//! One plain server of each [`Tested`], with which proofs compare their own servers.
//!
//! It runs as long as this program, and is used by one test at a time. A test that changes more than Tithe's own table
//! starts its own server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use crate::{
    at_end::{self, locked},
    sandbox::Sandbox,
    tested::Tested,
};

/// How long a test waits for an expected event.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so` is true, and fails if it does not become true.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// By the address of the [`Tested`]: two servers may be of one product.
type Servers = BTreeMap<usize, Arc<Mutex<Option<Sandbox>>>>;

static PLAIN: Mutex<Servers> = Mutex::new(BTreeMap::new());

/// The result of `with` on the plain server of `tested`, which no other test uses at the same time; `None`, with a
/// message, if something is not installed.
pub fn with_plain<T>(tested: &'static Tested, with: impl FnOnce(&Sandbox) -> T) -> Option<T> {
    let server = of(tested);
    let mut server = locked(&server);
    if server.is_none() {
        *server = start(tested);
    }
    server.as_ref().map(with)
}

fn of(tested: &'static Tested) -> Arc<Mutex<Option<Sandbox>>> {
    let mut servers = locked(&PLAIN);
    if servers.is_empty() {
        at_end::call(end);
    }
    servers.entry(std::ptr::from_ref(tested).addr()).or_default().clone()
}

/// A server dies with the thread that started it, so that thread has to outlive all tests.
fn start(tested: &'static Tested) -> Option<Sandbox> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // If the test has failed, there is no receiver.
        let _ = tell.send((tested.start)(&[]));
        loop {
            std::thread::park();
        }
    });
    told.recv().expect("the plain server starts")
}

fn end() {
    for server in std::mem::take(&mut *locked(&PLAIN)).into_values() {
        // The process that still has it is being killed, and its server with it.
        drop(server.try_lock().map(|mut server| server.take()));
    }
}
