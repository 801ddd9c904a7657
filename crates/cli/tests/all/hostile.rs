//! Servers that mean harm, one per line of [`attacks`]: what they send takes little memory and ends in time, and the
//! error names it. A server that lacks TLS, or has the certificate of somebody else, never learns who asks.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustls::{
    ServerConfig, ServerConnection, Stream,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tithe_machine::sandbox::Sandbox;

use crate::support::{Bench, err, out, process::Process};

/// What a server may add to the memory of the program.
const MOST_BYTES: u64 = 64 << 20;
/// When a run counts as endless: several times what the most patient product takes.
const SAFETY: Duration = Duration::from_secs(60);
/// Runs at the same time: most of their time is waiting.
const SIDE_BY_SIDE: usize = 48;
/// What a server sends without end, which nobody should read so far.
const ENDLESS: usize = 1 << 30;
/// Begins the account's name and password, which no server without the right certificate may see.
const SECRET: &str = "decoy";

struct Attack {
    name: String,
    url: String,
    /// What it says by itself, and after each message of the client.
    says: Vec<Vec<u8>>,
    then: Then,
    /// What `tithe doctor` says of it.
    words: &'static str,
}

/// What a server does at the end.
enum Then {
    Repeats(Vec<u8>),
    /// To every message.
    Answers(Vec<u8>),
    /// Sends these bytes one by one, and the last one again and again.
    Drips(&'static [u8]),
    /// Speaks TLS with its certificate.
    Shows(Arc<ServerConfig>),
    Closes,
}
use Then::{Answers, Closes, Drips, Repeats, Shows};

fn many(bytes: &[u8], times: usize) -> Then {
    Repeats(bytes.repeat(times))
}

/// A message of PostgreSQL.
fn pg(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// A packet of MySQL.
fn my(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

/// MySQL's greeting with these capabilities.
fn greeting(capabilities: u16) -> Vec<u8> {
    let [low, high] = capabilities.to_le_bytes();
    let middle = [&b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0"[..], &[low, high], b"\x21\x02\0\xff\xff\x15"].concat();
    my(0, &[&middle[..], &[0; 10], b"ijklmnopqrst\0mysql_native_password\0"].concat())
}

/// A frame of HTTP/2.
fn h2(kind: u8, flags: u8, stream: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[1..], &[kind, flags, 0, 0, 0, stream], body].concat()
}

/// A frame of Cassandra.
fn cql(opcode: u8, body: &[u8]) -> Vec<u8> {
    [&[0x84, 0, 0, 0, opcode], &(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn http(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}").into_bytes()
}

/// A message of MongoDB that claims so many bytes; the server fills in which request it answers.
fn mongo(length: u32, document: &[u8]) -> Vec<u8> {
    let head = [length, 1, 0, 2013].map(u32::to_le_bytes).concat();
    [&head[..], &[0; 5], document].concat()
}

/// The greeting of a MongoDB that sends messages of so many bytes.
fn hello(longest: i32) -> Vec<u8> {
    let number = |name: &str, value: i32| [&[0x10], name.as_bytes(), &[0], &value.to_le_bytes()].concat();
    let numbers = [("maxWireVersion", 21), ("minWireVersion", 0), ("maxBsonObjectSize", 16 << 20)];
    let mut fields: Vec<u8> = numbers.iter().flat_map(|(name, value)| number(name, *value)).collect();
    fields.extend([number("maxMessageSizeBytes", longest), number("maxWriteBatchSize", 1000)].concat());
    fields.extend(b"\x08isWritablePrimary\0\x01\x08helloOk\0\x01\x01ok\0\0\0\0\0\0\0\xf0\x3f");
    let document = [&(fields.len() as u32 + 5).to_le_bytes()[..], &fields, &[0]].concat();
    mongo(document.len() as u32 + 21, &document)
}

/// All attacks; `own` and `other` are files with the certificates of authorities, and `server` is what the first one
/// signed for this machine.
fn attacks(own: &str, other: &str, server: &Arc<ServerConfig>) -> Vec<Attack> {
    let mut attacks = Vec::new();
    let mut add = |name: &str, url: &str, says: &[&[u8]], then, words| {
        let (name, says) = (name.to_owned(), says.iter().map(|said| said.to_vec()).collect());
        attacks.push(Attack { name, url: url.replace("OWN", own).replace("OTHER", other), says, then, words });
    };
    let zeros = || Repeats(vec![0; 1 << 16]);
    let slow = "did not end for 5 s";
    add("mysql: drip", "mysql://tithe@HOST/tithe", &[], Drips(b"\x40"), slow);
    add("mariadb: drip", "mariadb://tithe@HOST/tithe", &[], Drips(b"\x40"), slow);
    add("mongodb: drip", "mongodb://HOST/tithe", &[], Drips(b"\x30\0"), "No available servers");
    add("postgres: drip", "postgres://tithe@HOST/tithe?sslmode=disable", &[], Drips(b"N\0\0\x03"), slow);
    add("redis: drip", "redis://HOST", &[], Drips(b"+"), slow);
    add("memcached: drip", "memcached://HOST", &[], Drips(b"VERSION 1"), slow);
    add("etcd: drip", "etcd://HOST", &[], Drips(b"\0"), slow);
    add("cassandra: drip", "cassandra://HOST", &[], Drips(b"\x84\0\0\0\x06\0\0\x01"), slow);
    add("opensearch: drip", "opensearch://HOST", &[], Drips(b"HTTP/1.1 2"), slow);

    let url = "mongodb://HOST/tithe";
    let claims = |bytes: i32| mongo(bytes as u32, &(bytes - 21).to_le_bytes());
    add("mongodb: 4 GiB", url, &[b"", &mongo(u32::MAX, &[])], zeros(), "No available servers");
    add("mongodb: 250 MB", url, &[b"", &claims(250_000_000)], zeros(), "over maximum");
    add("mongodb: 2 GB", url, &[b"", &hello(i32::MAX), &claims(2_000_000_000)], zeros(), "MiB of memory");

    // Without TLS, with the certificate of another authority, and for another machine.
    let (plain, both) = (greeting(0xf7ff), greeting(0xffff));
    let refuses: &[u8] = b"-ERR unknown command\r\n";
    let mut decoy = |product: &str, url: &str, refuses: &[&[u8]], agrees: &[&[u8]]| {
        let url = url.replace("DECOY", "decoy:decoy-password");
        let elsewhere = url.replace("HOST", "ELSEWHERE");
        add(&format!("{product}: no TLS"), &format!("{url}OWN"), refuses, Closes, "TLS");
        let shows = || Shows(Arc::clone(server));
        add(&format!("{product}: a stranger"), &format!("{url}OTHER"), agrees, shows(), "ertificate");
        add(&format!("{product}: another name"), &format!("{elsewhere}OWN"), agrees, shows(), "ertificate");
    };
    decoy("mongodb", "mongodb://DECOY@HOST/d?tls=true&tlsCAFile=", &[b"", refuses], &[]);
    decoy("postgres", "postgres://DECOY@HOST/d?sslmode=verify-full&sslrootcert=", &[b"", b"N"], &[b"", b"S"]);
    decoy("mysql", "mysql://DECOY@HOST/d?ssl-mode=VERIFY_IDENTITY&ssl-ca=", &[&plain], &[&both, b""]);
    decoy("mariadb", "mariadb://DECOY@HOST/d?ssl-mode=VERIFY_IDENTITY&ssl-ca=", &[&plain], &[&both, b""]);
    decoy("redis", "rediss://DECOY@HOST?ca=", &[b"", refuses], &[]);
    decoy("memcached", "memcacheds://DECOY@HOST?ca=", &[b"", refuses], &[]);
    decoy("etcd", "etcds://DECOY@HOST?ca=", &[b"", refuses], &[]);
    decoy("cassandra", "cassandra://DECOY@HOST?ca=", &[b"", refuses], &[]);
    decoy("opensearch", "opensearchs://DECOY@HOST?ca=", &[b"", refuses], &[]);

    let url = "postgres://tithe@HOST/tithe?sslmode=disable";
    let (enter, ready) = (pg(b'R', &[0; 4]), pg(b'Z', b"I"));
    let letters = [b'x'; 1000];
    let notice = pg(b'N', &[b"SNOTICE\0C00000\0M", &letters[..], b"\0\0"].concat());
    let parameter = pg(b'S', &[b"a\0", &letters[..], b"\0"].concat());
    let columns = pg(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
    let row = pg(b'D', &[b"\0\x01\0\0\x03\xe8", &letters[..]].concat());
    let open = [&enter[..], &ready].concat();
    let ended = "MiB of memory";
    add("postgres: 4 GiB", url, &[b"", b"R\xff\xff\xff\xff"], zeros(), "claims 4294967295 bytes");
    add("postgres: 250 MB", url, &[b"", b"N\x0e\xe6\xb2\x80"], zeros(), "claims 250000000 bytes");
    add("postgres: a message of 32 MB", url, &[b"", b"N\x01\xe0\0\0"], zeros(), ended);
    add("postgres: notices", url, &[b"", &enter], many(&notice, 60), ended);
    add("postgres: parameters", url, &[b"", &enter], many(&parameter, 60), ended);
    add("postgres: rows", url, &[b"", &open, &columns], many(&row, 60), ended);
    add("postgres: rows of nothing", url, &[b"", &open, &columns], many(&pg(b'D', &[0; 2]), 5000), ended);
    add("postgres: empty values", url, &[b"", &open, &columns], many(&pg(b'D', b"\0\x01\0\0\0\0"), 5000), ended);
    add("postgres: columns", url, &[b"", &open], many(&columns, 2000), ended);
    let of_password = "postgres://decoy:decoy-password@HOST/tithe?sslmode=disable";
    add("postgres: the password itself", of_password, &[b"", &pg(b'R', b"\0\0\0\x03")], Closes, "the password itself");

    for product in ["mysql", "mariadb"] {
        let url = &format!("{product}://tithe@HOST/tithe");
        let ok = my(2, b"\0\0\0\x02\0\0\0");
        let column = my(2, b"\x03def\0\0\0\x01a\0\x0c\x21\0\0\x01\0\0\xfd\0\0\0\0\0");
        let columns = [my(1, b"\x01"), column.clone()].concat();
        let row = my(3, &[b"\xfc\xe8\x03", &letters[..]].concat());
        let again = my(2, b"\xfemysql_native_password\0abcdefghijklmnopqrst\0");
        let many_columns = my(1, b"\xfe\0\0\0\0\x01\0\0\0");
        let mut add = |name, says: &[&[u8]], then, words| add(&format!("{product}: {name}"), url, says, then, words);
        add("16 MB", &[b"\xff\xff\xff\0"], zeros(), "a packet of 16 MB or more");
        add("rows", &[&greeting(0xffff), &ok, &columns], many(&row, 60), ended);
        add("empty values", &[&greeting(0xffff), &ok, &columns], many(&my(3, &[0]), 5000), ended);
        add("values in a row", &[&greeting(0xffff), &ok, &columns], many(&my(3, &[0; 1000]), 60), "more values");
        add("columns", &[&greeting(0xffff), &ok, &many_columns], many(&column, 500), "columns");
        add("logins", &[&greeting(0xffff)], many(&again, 100), "login did not end");
    }

    let url = "redis://HOST";
    let kilobyte = [b"$1000\r\n", &letters[..], b"\r\n"].concat();
    add("redis: 4 GiB", url, &[b"", b"$4294967296\r\n"], zeros(), "a value of 4294967296 bytes");
    add("redis: 30 MB", url, &[b"", b"$30000000\r\n"], zeros(), ended);
    add("redis: a line", url, &[b"", b"+"], zeros(), "a line without end");
    add("redis: an array", url, &[b"", b"*1000000\r\n"], many(&kilobyte, 60), ended);
    add("redis: an array of nothing", url, &[b"", b"*1000000\r\n"], many(b"+\r\n", 20_000), ended);
    add("redis: arrays in arrays", url, &[b""], many(b"*1\r\n", 10_000), "arrays in arrays");
    add("redis: wide arrays in arrays", url, &[b""], many(b"*1000000\r\n", 5000), "arrays in arrays");
    add("redis: unasked", url, &[b""], many(b"+OK\r\n", 10_000), "was not requested");

    let url = "memcached://HOST";
    add("memcached: 1 GB", url, &[b"", b"VALUE k 0 1000000000\r\n"], zeros(), "a value of 1000000000 bytes");
    add("memcached: a line", url, &[b"", b"VERSION "], many(b"x", 1 << 16), "a line without end");
    add("memcached: statistics", url, &[b"", b"VERSION 1.6.18\r\n"], many(b"STAT a 1\r\n", 5000), "");
    add("memcached: unasked", url, &[b""], many(b"VERSION 1.6.18\r\n", 5000), "was not requested");

    let url = "etcd://HOST";
    let settings = h2(4, 0, 0, b"");
    let begins = h2(1, 4, 1, &[0x88]);
    let data = h2(0, 0, 1, &[b'x'; 16_000]);
    let fields = h2(9, 0, 1, &b"\0\x01a\x01b".repeat(1000));
    add("etcd: a frame of 16 MB", url, &[&settings, b"\xff\xff\xff\0\0\0\0\0\x01"], zeros(), "a frame longer");
    add("etcd: data", url, &[&settings, &begins], many(&data, 10), ended);
    add(
        "etcd: header fields",
        url,
        &[&settings, &h2(1, 0, 1, &[0x88])],
        many(&fields, 10),
        "header fields without end",
    );
    let beside = "frames of other kinds";
    add("etcd: settings", url, &[&settings, b""], many(&h2(4, 0, 0, b"\0\x03\0\0\0\x64"), 2000), beside);
    add("etcd: pings", url, &[&settings, b""], many(&h2(6, 0, 0, b"12345678"), 2000), beside);
    add("etcd: other streams", url, &[&settings, b""], many(&h2(0, 0, 9, &[b'x'; 16_000]), 10), beside);
    add("etcd: no frames", url, &[&settings, b""], many(&h2(0, 0, 1, b""), 5000), "");

    let url = "cassandra://HOST";
    let described =
        [&b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01c\0\x0d"[..], &600_000u32.to_be_bytes()].concat();
    let rows = cql(8, &[described, vec![0; 2_400_000]].concat());
    add("cassandra: 4 GiB", url, &[b"", b"\x84\0\0\0\x06\xff\xff\xff\xff"], zeros(), "a frame of 4294967295 bytes");
    add("cassandra: 30 MB", url, &[b"", b"\x84\0\0\0\x06\x01\xc9\xc3\x80"], zeros(), ended);
    add("cassandra: events", url, &[b""], many(&cql(0x0c, b"\0\x01a"), 1000), "kind 0x0c");
    add("cassandra: empty values", url, &[b"", &cql(2, b"")], Repeats(rows), ended);

    let url = "opensearch://HOST";
    let length = |bytes: usize| format!("content-length: {bytes}");
    let nested = http(&length(1_000_000), &"[".repeat(1_000_000));
    let list = |item: &str| format!("[{}0]", item.repeat(4_000_000 / item.len()));
    let (numbers, objects) = (list("0,"), list("{\"\":{}},"));
    let (numbers, objects) = (http(&length(numbers.len()), &numbers), http(&length(objects.len()), &objects));
    let chunked = http("transfer-encoding: chunked", "");
    add("opensearch: a head", url, &[b"", b"HTTP/1.1 200 OK\r\n"], many(b"a: b\r\n", 5000), "does not end");
    add("opensearch: 4 GiB", url, &[b"", &http(&length(1 << 32), "")], zeros(), "an answer of 4294967296 bytes");
    add("opensearch: 30 MB", url, &[b"", &http(&length(30_000_000), "")], zeros(), ended);
    add("opensearch: nested", url, &[], Answers(nested), ended);
    add("opensearch: numbers", url, &[], Answers(numbers), ended);
    add("opensearch: objects", url, &[], Answers(objects), ended);
    add("opensearch: chunks", url, &[b"", &chunked], many(b"1000\r\n", 1000), "transfer-encoding: chunked");
    attacks
}

/// Serves one client; `seen` gets what it says.
fn meet(mut client: TcpStream, attack: &Attack, seen: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    // What comes after MySQL's request for TLS is for the server of TLS.
    let mut buffer = vec![0; if matches!(attack.then, Shows(_)) { 36 } else { 1 << 16 }];
    let mut hear = |client: &mut TcpStream| -> std::io::Result<u32> {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..count.min(4096)]);
        Ok(buffer.get(4..8).map_or(0, |number| u32::from_le_bytes([number[0], number[1], number[2], number[3]])))
    };
    for (number, said) in attack.says.iter().enumerate() {
        let request = if number == 0 { 0 } else { hear(&mut client)? };
        let mut said = said.clone();
        if attack.name.starts_with("mongodb") && said.len() > 16 {
            said[8..12].copy_from_slice(&request.to_le_bytes());
        }
        client.write_all(&said)?;
    }
    match &attack.then {
        Repeats(bytes) => (0..ENDLESS / bytes.len()).try_for_each(|_| client.write_all(bytes))?,
        Answers(bytes) => loop {
            hear(&mut client)?;
            client.write_all(bytes)?;
        },
        Drips(bytes) => {
            for byte in bytes.iter().chain(std::iter::repeat(&bytes[bytes.len() - 1])) {
                client.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(250));
            }
        }
        Shows(config) => {
            let mut connection = ServerConnection::new(Arc::clone(config)).expect("a server of TLS");
            let mut said = [0; 4096];
            let count = Stream::new(&mut connection, &mut client).read(&mut said)?;
            seen.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&said[..count]);
        }
        Closes => while hear(&mut client).is_ok() {},
    }
    Ok(())
}

/// Most memory that the process `id` had so far, bytes.
fn peak(id: u32) -> Option<u64> {
    // Until it runs, it is a part of this process.
    std::fs::read_link(format!("/proc/{id}/exe")).ok().filter(|program| program.ends_with("tithe"))?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Runs `tithe` with `command` against the server that `attack` describes; returns its most memory and what is wrong.
fn suffer(attack: &Arc<Attack>, command: &str, bench: &Bench) -> (u64, Vec<String>) {
    let elsewhere = attack.url.contains("ELSEWHERE");
    // The server's certificate names 127.0.0.1.
    let listener = TcpListener::bind(if elsewhere { "127.0.0.9:0" } else { "127.0.0.1:0" }).expect("a port");
    let place = listener.local_addr().expect("bound").to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = (Arc::clone(attack), Arc::clone(&seen));
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let (attack, seen) = server.clone();
            thread::spawn(move || drop(meet(client, &attack, &seen)));
        }
    });
    let url = attack.url.replace("ELSEWHERE", &place).replace("HOST", &place);
    let mut program = Process::heard(&mut bench.command(&[command, &url]));
    let (began, mut most) = (Instant::now(), 0);
    while !program.has_ended() {
        most = most.max(peak(program.id()).unwrap_or_default());
        if began.elapsed() > SAFETY {
            program.kill();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = program.output();
    let text = format!("{}{}", out(&output), err(&output)).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &str| wrong.extend((!holds).then(|| what.to_owned()));
    expect(output.status.code().is_some(), "it was killed");
    expect(command != "doctor" || output.status.code() != Some(0), "no error");
    expect(command != "doctor" || text.contains(attack.words), &format!("not `{}`", attack.words));
    expect(!text.contains("panicked"), "a panic");
    let heard = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let heard = String::from_utf8_lossy(&heard);
    expect(!heard.contains(SECRET) || attack.name == "postgres: the password itself", "it told its name");
    expect(!heard.contains("decoy-password"), "it told its password");
    println!("{:34} {command:8} {:4} MiB  {:.170}", attack.name, most >> 20, text);
    (most, wrong.into_iter().map(|what| format!("{} ({command}): {what}: {text}", attack.name)).collect())
}

/// A server with the certificate that the authority of `folder` signed.
fn with_certificate(certificate: &Path, key: &Path) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(certificate).expect("a file").collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.expect("certificates"), key);
    Arc::new(config.expect("a server"))
}

#[test]
fn servers_that_mean_harm_take_little_memory_and_the_error_names_it() {
    let bench = Bench::new("hostile");
    let sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let credentials = sandbox.credentials().expect("certificates");
    let server = with_certificate(&credentials.server_certificate, &credentials.server_key);
    let (own, other) = (&credentials.authority, &credentials.untrusted_authority);
    let attacks = attacks(&own.display().to_string(), &other.display().to_string(), &server);
    let is_built = |attack: &Attack| cfg!(feature = "mongodb") || !attack.name.starts_with("mongodb");
    let attacks: Vec<_> = attacks.into_iter().filter(is_built).map(Arc::new).collect();
    // A server of another protocol, which is asked what it speaks.
    let harmless = Attack {
        name: "harmless".to_owned(),
        url: "redis://HOST".to_owned(),
        says: vec![vec![], b"hello\r\n".to_vec()],
        then: Closes,
        words: "",
    };
    let (usual, _) = suffer(&Arc::new(harmless), "doctor", &bench);
    assert!(usual > 1 << 20, "its memory was not seen");
    // Those that need patience are first, and need it once.
    let commands =
        |attack: &Attack| if matches!(attack.then, Drips(_)) { &["doctor"][..] } else { &["doctor", "inspect"] };
    let runs: Vec<_> =
        attacks.iter().flat_map(|attack| commands(attack).iter().map(move |command| (attack, *command))).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((attack, command)) = runs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let (most, mut found) = suffer(attack, command, &bench);
                    if most > usual + MOST_BYTES {
                        found.push(format!("{} ({command}): {} MiB, usually {}", attack.name, most >> 20, usual >> 20));
                    }
                    wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
