//! The security matrix of one running server: ten features, each with its evidence.
//!
//! The rows are those of a published table that compares products by their documentation. Here documentation only
//! decides whether a product offers a feature at all. An inspection changes nothing on the server: it reads settings,
//! and tries logins that must be refused, which a server may log. Only [`with_canary`] writes: into a table of its own,
//! which it removes.
//!
//! Every answer has a [`Scope`](tithe_plugin::matrix::Scope): one login attempt proves nothing about other accounts. So
//! a server is judged as a whole only if the account may read its rules and lists.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{Check, CheckContext, seen_by},
    matrix::{Feature, FeatureStatus},
    product::{CanaryChecks, Product},
    session::Table,
    setup::Setup,
};

/// How long the other end of a port may take to send something before it counts as silent.
const DOOR_TIMEOUT: Duration = Duration::from_secs(1);

/// The first answer at `place` (`host:port`) to a client that speaks no protocol: what the server sends by itself, or
/// its answer to a line of text. `None` if the port is closed or silent.
pub fn met(place: &str) -> Option<String> {
    let address = place.to_socket_addrs().ok()?.next()?;
    let mut socket = TcpStream::connect_timeout(&address, DOOR_TIMEOUT).ok()?;
    socket.set_read_timeout(Some(DOOR_TIMEOUT)).ok()?;
    if let Some(said) = heard(&mut socket) {
        return Some(format!("it greets with `{said}`"));
    }
    socket.write_all(b"PING\r\n").ok()?;
    heard(&mut socket).map(|said| format!("to a line of text it answers `{said}`"))
}

/// The beginning of the data from `socket`, on one line.
fn heard(socket: &mut TcpStream) -> Option<String> {
    const SHOWN: usize = 60;
    let mut bytes = [0; SHOWN];
    let count = socket.read(&mut bytes).ok().filter(|count| *count > 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let printable = text.trim_end().chars().map(|c| if c.is_control() || c == '\u{fffd}' { '·' } else { c });
    Some(printable.collect())
}

/// Writes canaries into a table of its own, and adds the result to `cells`. If a canary disproves what settings
/// promise, the feature is no longer called enforced. A feature whose canary could not be checked becomes "cannot
/// tell". A canary that is not found improves no state, because files that were not searched may contain it. If Tithe
/// does not know where to search, it writes nothing and reports that.
///
/// # Errors
/// When the table cannot be made or removed.
pub fn with_canary(
    product: &dyn Product,
    server: &Server,
    setup: &Setup,
    cells: &mut [FeatureStatus],
) -> Result<(), Fault> {
    let Some(find) = product.canary_checks() else {
        let looked_for = |cell: &&mut FeatureStatus| [Feature::AtRest, Feature::Auditing].contains(&cell.feature);
        cells.iter_mut().filter(looked_for).for_each(|cell| cell.seen.push_str("; canary: no check for this product"));
        return Ok(());
    };
    let nonce = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let table = Table { name: format!("tithe_inspect_{nonce:016x}"), fields: 2, field_prefix: "field".to_owned() };
    create(product, server, setup, &table)?;
    let looked = find(server, setup, &table).map(|CanaryChecks { paths, audit }| {
        let server = Server { paths, ..server.clone() };
        let on_disk = |places| -> (Feature, Box<dyn Check>) {
            (Feature::AtRest, Box::new(DiskCanary::new(places, Targets::Everything)))
        };
        let of_log = audit.into_iter().map(|check| (Feature::Auditing, check));
        let checks = [on_disk(Places::DATA), on_disk(Places::JOURNAL)].into_iter().chain(of_log);
        for (number, (feature, check)) in (0..).zip(checks) {
            let nonce = nonce.wrapping_add(number);
            let mut context = CheckContext {
                database: product,
                server: &server,
                setup,
                table: &table,
                protected: true,
                nonce,
                narrowed: None,
            };
            let observation = seen_by(&*check, &mut context);
            cells
                .iter_mut()
                .filter(|cell| cell.feature == feature)
                .for_each(|cell| cell.add(&check.claim(), &observation));
        }
    });
    // The table is removed whatever the result is.
    product.remove(server, setup, &table).and(looked)
}

/// Makes `table`. If that fails, the parts that were made before are removed again. Tithe cannot remove what it did not
/// make: that is refused for the same reason.
///
/// # Errors
/// Why it cannot be made, whatever happens to the parts that were made.
pub(crate) fn create(product: &dyn Product, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let created = product.create(server, setup, table);
    if created.is_err() {
        // The reason why it could not be made is more useful than the reason why it could not be removed.
        let _ = product.remove(server, setup, table);
    }
    created
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::Mutex};

    use tithe_machine::{
        launch::{Address, Install, Launch, Missing, Place, Search},
        paths::Paths,
    };
    use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};
    use tithe_plugin::{
        database::{Connect, Database},
        product::FindCanaryChecks,
        protection::Protection,
        session::Session,
    };

    use super::*;

    /// A server that refuses a table after it has made a part of it.
    #[derive(Default)]
    struct Refusing {
        asked: Mutex<Vec<&'static str>>,
    }

    impl Refusing {
        /// Notes that it was asked for this, and refuses.
        fn refuse<T>(&self, asked: &'static str) -> Result<T, Fault> {
            self.asked.lock().expect("no test panics here").push(asked);
            Err(Fault::Refused(asked.to_owned()))
        }
    }

    impl Database for Refusing {
        fn entry(&self) -> &'static DatabaseEntry {
            &DatabaseEntry::BARE
        }

        fn find(&self, _search: &Search) -> Result<Install, Missing> {
            Ok(Install::default())
        }

        fn launch(&self, _install: &Install, _setup: &Setup, _place: &Place) -> Launch {
            Launch::default()
        }

        fn connect(&self, _server: &Server, _setup: &Setup, _how: &Connect) -> Result<Session, Fault> {
            self.refuse("connect")
        }

        fn create(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            self.refuse("create")
        }

        fn remove(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            self.refuse("remove")
        }

        fn quiesce(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            self.refuse("quiesce")
        }

        fn facts(&self, _server: &Server, _setup: &Setup) -> Result<ArmFacts, Fault> {
            self.refuse("facts")
        }
    }

    impl Product for Refusing {
        fn protections(&self) -> &'static [&'static dyn Protection] {
            &[]
        }

        fn canary_checks(&self) -> Option<FindCanaryChecks> {
            Some(|_, _, _| Ok(CanaryChecks { paths: Paths::default(), audit: Vec::new() }))
        }
    }

    #[test]
    fn what_was_made_before_a_refusal_is_removed_and_the_refusal_is_told() {
        let product = Refusing::default();
        let server = Server::at(Address::Nowhere);
        let outcome = with_canary(&product, &server, &Setup::bare(), &mut []);
        assert_eq!(outcome, Err(Fault::Refused("create".to_owned())));
        assert_eq!(*product.asked.lock().expect("no test panics here"), ["create", "remove"]);
    }

    /// What `met` returns for a port that sends `said` by itself, or as an answer.
    fn met_at(said: &'static [u8], by_itself: bool) -> Option<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let place = listener.local_addr().expect("an address").to_string();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            if !by_itself {
                let _ = socket.read(&mut [0; 60]);
            }
            let _ = socket.write_all(said);
        });
        let met = met(&place);
        server.join().expect("the server ends");
        met
    }

    #[test]
    fn what_is_at_a_port_is_named_by_its_words() {
        // On a busy machine the server may be later than a client waits, so there are some tries.
        let is_met = |said: &'static [u8], by_itself: bool, expected: Option<&str>| {
            (0..10).any(|_| met_at(said, by_itself).as_deref() == expected)
        };
        assert!(is_met(b"J\0\0\0\n8.0.33\xff", true, Some("it greets with `J····8.0.33·`")));
        assert!(is_met(b"+PONG\r\n", false, Some("to a line of text it answers `+PONG`")));
        assert!(is_met(b"", false, None));
    }
}
