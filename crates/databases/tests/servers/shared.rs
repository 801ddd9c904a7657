//! One plain server a product, which proofs look at beside the servers of their own.
//!
//! It runs for as long as this program, and one test at a time has it. A test that changes more than Tithe's own table
//! starts a server of its own.

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

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so`, and fails where it does not become so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

type Servers = BTreeMap<&'static str, Arc<Mutex<Option<Sandbox>>>>;

static PLAIN: Mutex<Servers> = Mutex::new(BTreeMap::new());

/// What `with` makes of the plain server of `tested`, which nobody else has meanwhile; `None`, said loudly, when
/// something is not installed.
pub fn with_plain<T>(tested: &'static Tested, with: impl FnOnce(&Sandbox) -> T) -> Option<T> {
    let server = of(tested.database.id());
    let mut server = locked(&server);
    if server.is_none() {
        *server = start(tested);
    }
    server.as_ref().map(with)
}

fn of(product: &'static str) -> Arc<Mutex<Option<Sandbox>>> {
    let mut servers = locked(&PLAIN);
    if servers.is_empty() {
        at_end::call(end);
    }
    servers.entry(product).or_default().clone()
}

/// A server dies with the thread that has started it, so that one has to outlive all tests.
fn start(tested: &'static Tested) -> Option<Sandbox> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more when the test has failed.
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
