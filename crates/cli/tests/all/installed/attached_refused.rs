//! Running servers that cannot be measured as they are, and networks that fail. Both are reported soon, with what to
//! change, and nothing new is left on the server.

use crate::support;

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use support::{
    Bench, err, out,
    process::Process,
    server::{OtherServer, Server},
    status, wait_until,
};

use super::attached::{CAREFUL, arm, in_slices, schemas, verified};

/// Two plain arms at `url` are not measured; the message contains these `words`.
pub fn refused(database: &str, url: &str, words: &[&str]) {
    let bench = Bench::new("attached-refused");
    let arms = [arm("plain", url, ""), arm("again", url, "")].concat();
    let (status, told) = verified(&bench, database, &arms);
    assert_eq!(status, 4, "{told}");
    assert!(words.iter().all(|words| told.contains(words)), "{words:?}: {told}");
    assert!(told.contains("arm plain: ") && !told.contains("invalid frame"), "{told}");
}

pub fn accepted(database: &str, url: &str) {
    let bench = Bench::new("attached-accepted");
    let (status, told) = verified(&bench, database, &[arm("plain", url, ""), arm("again", url, "")].concat());
    assert_eq!(status, 0, "{told}");
}

#[test]
fn a_postgres_that_takes_no_writes_or_closes_connections_is_refused() {
    let Some(standby) = Server::standby() else { return };
    refused("postgres", &standby.url_of("tithe", false), &["it is a standby", "name its primary"]);
    drop(standby);
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let url = server.url_of("careful", false);
    server.psql("ALTER ROLE careful SET default_transaction_read_only = on");
    refused("postgres", &url, &["run `ALTER ROLE careful SET default_transaction_read_only = off`"]);
    server.psql("ALTER ROLE careful SET default_transaction_read_only = off");
    server.psql("ALTER ROLE careful SET idle_session_timeout = '5s'");
    refused("postgres", &url, &["idle for 5 s", "run `ALTER ROLE careful SET idle_session_timeout = 0`"]);
    server.psql("ALTER ROLE careful SET idle_session_timeout = 0");
    // An authority that did not sign its certificate.
    let bench = Bench::new("attached-authority");
    bench.certificate("other.pem");
    let other = server.url_of("careful", true);
    let other = other.split_once("sslrootcert=").map_or(other.as_str(), |(before, _)| before).to_owned();
    let arms = [
        arm("plain", &url, ""),
        arm("tls", &format!("{other}sslrootcert=other.pem"), "protections = [{ use = \"tls\" }]"),
    ];
    let (status, told) = verified(&bench, "postgres", &arms.concat());
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("arm tls: TLS: the server's certificate") && told.contains("that is trusted here"), "{told}");
    assert_eq!(schemas(&server), "0");
}

#[test]
fn a_redis_that_is_a_replica_closes_connections_or_wants_another_password_is_refused() {
    let Some(server) = OtherServer::redis() else { return };
    let url = format!("redis://{}", server.place("127.0.0.1"));
    server.tell_redis("CONFIG SET timeout 5");
    refused("redis", &url, &["idle for 5 s", "run `CONFIG SET timeout 0`"]);
    server.tell_redis("CONFIG SET timeout 0");
    // There is no server at that address.
    server.tell_redis("REPLICAOF 127.0.0.1 1");
    refused("redis", &url, &["it is a replica", "name the master"]);
    server.tell_redis("REPLICAOF NO ONE");
    accepted("redis", &url);
    server.tell_redis("CONFIG SET requirepass hunter2");
    let wrong = url.replace("redis://", "redis://:hunter3@");
    let bench = Bench::new("attached-password");
    let (status, told) = verified(&bench, "redis", &[arm("plain", &wrong, ""), arm("again", &wrong, "")].concat());
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("arm plain: WRONGPASS") && !told.contains("hunter"), "{told}");
}

#[test]
fn a_mariadb_that_takes_no_writes_or_closes_connections_is_refused() {
    let Some(server) = OtherServer::mariadb() else { return };
    let url = format!("mariadb://tithe@{}", server.place("127.0.0.1"));
    server.tell_mariadb("SET GLOBAL read_only = 1");
    refused("mariadb", &url, &["it is read-only", "SET GLOBAL read_only = OFF"]);
    server.tell_mariadb("SET GLOBAL read_only = 0, GLOBAL wait_timeout = 5");
    refused("mariadb", &url, &["idle for 5 s", "run `SET GLOBAL wait_timeout = 28800`"]);
    server.tell_mariadb("SET GLOBAL wait_timeout = 28800");
    accepted("mariadb", &url);
}

#[test]
fn somebody_elses_lock_on_tithes_table_is_named() {
    let Some(server) = Server::start() else { return };
    server.psql(
        "CREATE SCHEMA tithe; COMMENT ON SCHEMA tithe IS 'made by tithe'; CREATE TABLE tithe.usertable (a int); \
         COMMENT ON TABLE tithe.usertable IS 'made by tithe'",
    );
    let locking = "BEGIN; LOCK TABLE tithe.usertable; SELECT pg_sleep(3000)";
    let mut holder = Process::unheard(&mut server.psql_command(locking));
    let locked = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                  AND relation = 'tithe.usertable'::regclass";
    wait_until(|| server.psql(locked) == "1");
    let url = server.url_of("tithe", false);
    let arms = [arm("plain", &url, ""), arm("again", &url, "")].concat();
    let bench = Bench::new("attached-locked");
    let (status, told) = verified(&bench, "postgres", &arms);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("for a lock on what is Tithe's own, held by process "), "{told}");
    assert!(told.contains("of tithe psql: let that session end"), "{told}");
    server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'psql' AND pid <> pg_backend_pid()",
    );
    holder.wait();
    accepted("postgres", &url);
    assert_eq!(schemas(&server), "0");
}

/// A network that leads to one server until it is cut.
struct Network {
    port: u16,
    is_cut: Arc<AtomicBool>,
    /// It drops all data silently.
    is_hung: Arc<AtomicBool>,
    /// On connections that begin from now on, it drops everything after the first message of either side.
    hangs_soon: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    fn to(place: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let network = Self {
            port: listener.local_addr().expect("bound").port(),
            is_cut: Arc::default(),
            is_hung: Arc::default(),
            hangs_soon: Arc::default(),
            streams: Arc::default(),
        };
        let (is_cut, streams) = (Arc::clone(&network.is_cut), Arc::clone(&network.streams));
        let (is_hung, hangs_soon) = (Arc::clone(&network.is_hung), Arc::clone(&network.hangs_soon));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    return;
                }
                let server = TcpStream::connect(&place).expect("the server is there");
                let again = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
                streams.lock().expect("no panic").extend([again(&client), again(&server)]);
                let passed = if hangs_soon.load(Ordering::SeqCst) { 1 } else { usize::MAX };
                pass_on(again(&client), again(&server), &is_hung, passed);
                pass_on(server, client, &is_hung, passed);
            }
        });
        network
    }

    /// Ends every connection, and accepts no further one.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        // The thread that waits for the next connection then checks the flag.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.streams.lock().expect("no panic").iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

/// Forwards data from `from`, at most as often as `times`.
fn pass_on(mut from: TcpStream, mut to: TcpStream, is_hung: &Arc<AtomicBool>, mut times: usize) {
    let is_hung = Arc::clone(is_hung);
    std::thread::spawn(move || {
        let mut heard = [0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut heard) {
            let passes = times > 0 && !is_hung.load(Ordering::SeqCst);
            times = times.saturating_sub(1);
            if passes && to.write_all(&heard[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A network drops everything, or everything after the first message on connections that begin `soon`. A run with this
/// number of `clients` reports it after some seconds.
fn told_that_nobody_answers(clients: u8, soon: bool) {
    let Some(server) = Server::start() else { return };
    let network = Network::to(server.place());
    let url = format!("postgres://tithe@127.0.0.1:{}/postgres", network.port);
    let bench = Bench::new(&format!("attached-hung-{clients}-{soon}"));
    let text = in_slices("postgres", &[arm("plain", &url, ""), arm("again", &url, "")].concat());
    bench.file("e.toml", &text.replace("clients = 2", &format!("clients = {clients}")));
    let tithe = Process::heard(&mut bench.command(&["run", "e.toml"]));
    wait_until(|| bench.frames_so_far() >= 2);
    let hangs = if soon { &network.hangs_soon } else { &network.is_hung };
    hangs.store(true, Ordering::SeqCst);
    let output = tithe.output();
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 4, "{told}");
    assert!(told.contains("did not answer for 1") && !told.contains("did not answer for 6"), "{told}");
    accepted("postgres", &server.url_of("tithe", false));
    assert_eq!(schemas(&server), "0");
}

#[test]
fn a_network_that_swallows_everything_is_told_long_before_any_answer_is_given_up() {
    told_that_nobody_answers(1, false);
}

#[test]
fn a_network_that_swallows_everything_of_many_clients_is_told_as_soon() {
    told_that_nobody_answers(8, false);
}

#[test]
fn a_network_that_swallows_what_opens_a_frame_is_told_as_soon() {
    told_that_nobody_answers(8, true);
}

#[test]
fn a_network_that_is_cut_ends_the_run_and_keeps_its_frames() {
    let Some(server) = Server::start() else { return };
    let network = Network::to(server.place());
    let url = format!("postgres://tithe@127.0.0.1:{}/postgres", network.port);
    let bench = Bench::new("attached-cut");
    bench.file("e.toml", &in_slices("postgres", &[arm("plain", &url, ""), arm("again", &url, "")].concat()));
    let tithe = Process::heard(&mut bench.command(&["run", "e.toml"]));
    wait_until(|| bench.frames_so_far() >= 2);
    network.cut();
    let output = tithe.output();
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 4, "{told}");
    assert!(told.contains("connection") && told.contains("was not removed"), "{told}");
    assert!(bench.frames_so_far() >= 2, "{told}");
    // The relay of its connections is not the server.
    let cells = bench.kept("cells/0.json");
    assert!(cells.contains("not seen: its connections end in ") && cells.contains("which passes them on"), "{cells}");
    // The next run removes what this one could not remove.
    accepted("postgres", &server.url_of("tithe", false));
    assert_eq!(schemas(&server), "0");
}
