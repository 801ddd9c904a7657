//! The client against written answers, and against PyKMIP's server.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use expect_test::expect;
use proptest::prelude::*;
use tithe_harness::{protection::Materials, sandbox::certificates};

use super::*;

fn structure<'a>(tag: u32, items: Vec<Item<'a>>) -> Item<'a> {
    Item::new(tag, Value::Structure(items))
}

/// An answer that gives `material` with `algorithm`, and `more` in the key's block.
fn answer<'a>(material: Value<'a>, algorithm: u32, more: Vec<Item<'a>>) -> Item<'a> {
    let mut block = vec![
        Item::new(tag::KEY_FORMAT_TYPE, Value::Enumeration(RAW)),
        structure(tag::KEY_VALUE, vec![Item::new(tag::KEY_MATERIAL, material)]),
        Item::new(tag::CRYPTOGRAPHIC_ALGORITHM, Value::Enumeration(algorithm)),
    ];
    block.extend(more);
    let payload = structure(tag::SYMMETRIC_KEY, vec![structure(tag::KEY_BLOCK, block)]);
    let done = vec![
        Item::new(tag::RESULT_STATUS, Value::Enumeration(SUCCESS)),
        structure(tag::RESPONSE_PAYLOAD, vec![payload]),
    ];
    structure(tag::RESPONSE_MESSAGE, vec![structure(tag::BATCH_ITEM, done)])
}

fn refused<'a>(items: Vec<Item<'a>>) -> Item<'a> {
    let mut done = vec![Item::new(tag::RESULT_STATUS, Value::Enumeration(1))];
    done.extend(items);
    structure(tag::RESPONSE_MESSAGE, vec![structure(tag::BATCH_ITEM, done)])
}

#[test]
fn an_answer_gives_a_key_of_aes_256_or_says_why_not() {
    let key = [7; KEY_BYTES];
    assert_eq!(*key_in(&answer(Value::Bytes(&key), AES, vec![])).unwrap(), key);
    let mut texts = String::new();
    let mut note = |answer: Item<'_>| texts += &format!("{}\n", key_in(&answer).unwrap_err());
    note(answer(Value::Bytes(&key[..16]), AES, vec![]));
    note(answer(Value::Bytes(&key), 2, vec![]));
    note(answer(Value::Structure(vec![]), AES, vec![]));
    note(answer(Value::Bytes(&key), AES, vec![structure(tag::KEY_WRAPPING_DATA, vec![])]));
    note(refused(vec![Item::new(tag::RESULT_MESSAGE, Value::Text("Could not locate object: 9"))]));
    note(refused(vec![Item::new(tag::RESULT_REASON, Value::Enumeration(1))]));
    note(refused(vec![]));
    note(structure(tag::RESPONSE_MESSAGE, vec![]));
    note(structure(tag::REQUEST_MESSAGE, vec![]));
    expect![[r#"
        refused: the key has 128 bits and not 256
        refused: the key is not one of AES
        refused: the server does not give the key in raw form
        refused: the server gives the key wrapped by another
        refused: the server says: Could not locate object: 9
        refused: the server gives reason 0x1 of KMIP
        refused: the server gives no reason
        protocol: the answer is not one to a Get of KMIP
        protocol: the answer is not one to a Get of KMIP
    "#]]
    .assert_eq(&texts);
}

#[test]
fn addresses_are_a_host_and_a_port() {
    assert_eq!(host_and_port("kmip.example.org:5696").unwrap(), ("kmip.example.org", 5696));
    assert_eq!(host_and_port("[::1]:5696").unwrap(), ("::1", 5696));
    for wrong in ["kmip.example.org", ":5696", "kmip:99999", "kmip:port", ""] {
        assert!(host_and_port(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_changed_answer_never_gives_another_length(place: prop::sample::Index, byte: u8) {
        let key = [7; KEY_BYTES];
        let mut bytes = Vec::new();
        answer(Value::Bytes(&key), AES, vec![]).write(&mut bytes);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        // Whatever the change says, it is a whole key or an error.
        if let Some(Ok(key)) = ttlv::parse(&bytes).map(|answer| key_in(&answer)) {
            prop_assert_eq!(key.len(), KEY_BYTES);
        }
    }
}

/// A key server of PyKMIP with its certificates, in a temporary folder; stopped when dropped.
pub struct TestServer {
    folder: tempfile::TempDir,
    process: Child,
    pub materials: Materials,
    pub address: String,
}

/// PyKMIP as `tools/install-test-needs` installs it.
fn python() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-needs/pykmip/bin/python");
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "PyKMIP is missing");
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    {
        eprintln!("SKIPPED: PyKMIP is missing; tools/install-test-needs");
    }
    None
}

impl TestServer {
    /// Starts one; `None` where PyKMIP is not installed.
    pub fn start() -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let materials = certificates::prepare(&folder.path().join("certificates")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(path("policy")).unwrap();
        let configuration = format!(
            "[server]\nhostname=127.0.0.1\nport={port}\ncertificate_path={}\nkey_path={}\nca_path={}\n\
             auth_suite=TLS1.2\ntls_cipher_suites=ECDHE-ECDSA-AES256-GCM-SHA384\nenable_tls_client_auth=True\n\
             policy_path={}\ndatabase_path={}\nlogging_level=INFO\n",
            materials.server_certificate.display(),
            materials.server_key.display(),
            materials.authority.display(),
            path("policy"),
            path("kmip.db"),
        );
        fs::write(path("server.conf"), configuration).unwrap();
        let process = Command::new(python.with_file_name("pykmip-server"))
            .args(["-f", &path("server.conf"), "-l", &path("log")])
            // It starts a helper process, which is stopped with it, and which leaves a folder for temporary files.
            .process_group(0)
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("errors")).unwrap())
            .spawn()
            .unwrap();
        let mut server = Self { folder, process, materials, address: format!("127.0.0.1:{port}") };
        server.wait();
        Some(server)
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        while std::net::TcpStream::connect(&self.address).is_err() {
            if self.process.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(120) {
                let mut errors = String::new();
                fs::File::open(self.folder.path().join("errors")).unwrap().read_to_string(&mut errors).unwrap();
                panic!("PyKMIP does not start: {errors}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes an active key of `bits` with PyKMIP's own client; returns its identifier.
    pub fn make_key(&self, bits: u32) -> String {
        let (host, port) = self.address.rsplit_once(':').unwrap();
        let program = format!(
            "from kmip.pie.client import ProxyKmipClient\nfrom kmip import enums\n\
             c = ProxyKmipClient(hostname='{host}', port={port}, cert='{}', key='{}', ca='{}', \
             config='none', config_file='/dev/null', ssl_version='PROTOCOL_TLSv1_2')\n\
             c.open(); u = c.create(enums.CryptographicAlgorithm.AES, {bits}); c.activate(u); c.close(); print(u)",
            self.materials.client_certificate.display(),
            self.materials.client_key.display(),
            self.materials.authority.display(),
        );
        let output = Command::new(python().unwrap()).args(["-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// How a client of the server reaches the key `id`.
    pub fn key(&self, id: &str) -> KeyServer {
        KeyServer {
            address: self.address.clone(),
            key_id: id.to_owned(),
            certificate: self.materials.client_certificate.clone(),
            key: self.materials.client_key.clone(),
            authority: self.materials.authority.clone(),
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // SAFETY: the group is the server's own, and lasts until its leader is waited for.
        unsafe { libc::kill(-(self.process.id() as i32), libc::SIGKILL) };
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_gives_its_clients_their_key_and_nobody_else_anything() {
    let Some(server) = TestServer::start() else { return };
    let id = server.make_key(256);
    let good = server.key(&id);
    let key = fetch(&good).unwrap();
    assert_eq!(fetch(&good).unwrap(), key);
    assert_ne!(fetch(&server.key(&server.make_key(256))).unwrap(), key);

    let mut texts = String::new();
    let mut note = |what: &str, asked: &KeyServer| {
        let text = fetch(asked).unwrap_err().to_string().replace(&server.folder.path().display().to_string(), "FOLDER");
        texts += &format!("{what}: {text}\n");
    };
    note("unknown key", &server.key("4711"));
    note("128 bits", &server.key(&server.make_key(128)));
    note("another authority", &KeyServer { authority: server.materials.stranger.clone(), ..good.clone() });
    note("no authority", &KeyServer { authority: PathBuf::from("FOLDER/none.pem"), ..good.clone() });
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o644)).unwrap();
    note("key file for all", &good);
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o600)).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent = KeyServer { address: free.to_string(), ..good.clone() };
    let text = fetch(&absent).unwrap_err().to_string().replace(&free.port().to_string(), "PORT");
    texts += &format!("no server: {text}\n");
    expect![[r#"
        unknown key: refused: the server says: Could not locate object: 4711
        128 bits: refused: the key has 128 bits and not 256
        another authority: refused: TLS: invalid peer certificate: UnknownIssuer
        no authority: FOLDER/none.pem: I/O error: No such file or directory (os error 2)
        key file for all: refused: FOLDER/certificates/client.key is readable by others than its owner (mode 644): chmod 600
        no server: connection: 127.0.0.1:PORT: Connection refused (os error 111)
    "#]]
    .assert_eq(&texts);
    // The server's own refusal, and the server is still there afterwards.
    assert!(fetch_as(&good, Trust::Authority(&good.authority), None).is_err());
    assert_eq!(fetch(&good).unwrap(), key);
}
