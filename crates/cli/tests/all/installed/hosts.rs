//! The simulated hosts that other tests use: which can reach each other, what their clocks read, and that nothing of
//! them is left.

use crate::support;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    time::{Duration, Instant},
};

use support::{delay::DelayRelay, hosts::Hosts, out, wait_until};

/// The devices of the network that this process is in.
fn devices() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").expect("the kernel tells");
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// The processes in `network`.
fn processes_in(network: u64) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("a folder").flatten();
    let is_in = |path: &std::path::Path| fs::metadata(path.join("ns/net")).is_ok_and(|found| found.ino() == network);
    all.map(|entry| entry.path()).filter(|path| is_in(path)).map(|path| path.display().to_string()).collect()
}

#[test]
fn hosts_reach_each_other_and_leave_the_machine_alone() {
    let before = devices();
    let Some(hosts) = Hosts::new(3) else { return };
    let place = SocketAddr::from((hosts[0].address(), 0));
    assert!(TcpListener::bind(place).is_err(), "the address is the machine's as well");
    let listener = hosts[0].within(|| TcpListener::bind(place).expect("a port of the host's"));
    let place = listener.local_addr().expect("an address");
    for host in &hosts[1..] {
        let mut client = host.within(|| TcpStream::connect(place).expect("the other host answers"));
        let (mut server, from) = listener.accept().expect("a client");
        assert_eq!(from.ip(), host.address());
        client.write_all(b"?").expect("sent");
        server.read_exact(&mut [0]).expect("it arrives");
    }
    let names: Vec<String> = hosts.iter().map(|host| out(&host.output(Command::new("uname").arg("-n")))).collect();
    assert_eq!(names, ["host1\n", "host2\n", "host3\n"]);
    // In some kernels every network also has tunnels.
    let own = hosts[2].within(devices);
    assert!(["eth0", "lo"].iter().all(|name| own.iter().any(|device| device == name)), "{own:?}");
    assert_eq!(devices(), before);
}

#[test]
fn clocks_are_ahead_by_what_was_asked_for() {
    const DAY_S: f64 = 86_400.0;
    let Some(hosts) = Hosts::with_clock_offsets_ns(&[0, 86_400_250_000_000]) else { return };
    let uptime_s = |text: &str| text.split(' ').next().and_then(|s| s.parse::<f64>().ok()).expect("seconds");
    let own_s = || uptime_s(&fs::read_to_string("/proc/uptime").expect("the kernel tells"));
    for (host, ahead_s) in hosts.iter().zip([0.0, DAY_S + 0.25]) {
        let before_s = own_s();
        let seen_s = uptime_s(&out(&host.output(Command::new("cat").arg("/proc/uptime"))));
        // The kernel truncates to hundredths of a second.
        let possible_s = before_s + ahead_s - 0.011..=own_s() + ahead_s + 0.011;
        assert!(possible_s.contains(&seen_s), "{seen_s} is not in {possible_s:?}");
    }
}

#[test]
fn nothing_is_left_of_hosts_after_a_panic_either() {
    for panics in [false, true] {
        let (mut network, mut kept) = (0, None);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let hosts = Hosts::new(2)?;
            network = hosts[1].network();
            // As long as its network is open here, no network of another test gets its number.
            kept = Some(hosts[1].within(|| fs::File::open("/proc/thread-self/ns/net").expect("its network")));
            let _process = hosts[1].spawn(Command::new("sleep").arg("1000"));
            // A process that no other one waits for, and that only SIGKILL ends.
            let daemon = "trap '' HUP INT TERM; exec >/dev/null 2>&1; sleep 1000 & sleep 1000 &";
            assert!(hosts[1].output(Command::new("setsid").args(["-f", "sh", "-c", daemon])).status.success());
            // Its shell starts them after `setsid` has ended.
            wait_until(|| processes_in(network).len() >= 3);
            assert!(processes_in(network).len() >= 3, "{:?}", processes_in(network));
            assert!(!panics, "as was asked for");
            Some(())
        }));
        if matches!(outcome, Ok(None)) {
            return;
        }
        assert_eq!(outcome.is_err(), panics);
        assert_eq!(processes_in(network), Vec::<String>::new());
        drop(kept);
    }
}

#[test]
fn bytes_are_held_back_in_one_direction() {
    const DELAY: Duration = Duration::from_millis(200);
    let Some(hosts) = Hosts::new(3) else { return };
    let listener = hosts[0].within(|| TcpListener::bind((hosts[0].address(), 0)).expect("a port"));
    let target = listener.local_addr().expect("an address");
    let relay = hosts[1].within(|| DelayRelay::start((hosts[1].address(), 0).into(), target, DELAY, Duration::ZERO));
    let mut client = hosts[2].within(|| TcpStream::connect(relay.address()).expect("the relay answers"));
    let (mut server, from) = listener.accept().expect("the relay comes");
    assert_eq!(from.ip(), hosts[1].address());
    let asked = Instant::now();
    client.write_all(b"question").expect("sent");
    let mut heard = [0; 8];
    server.read_exact(&mut heard).expect("it arrives");
    assert!(asked.elapsed() >= DELAY, "{:?}", asked.elapsed());
    assert_eq!(&heard, b"question");
    server.write_all(b"answer").expect("sent");
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the end goes through as well");
    assert_eq!(answer, "answer");
}
