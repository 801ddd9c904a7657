//! Servers of the test's own, for tests that attach to one.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use tithe_databases::{cassandra::Cassandra, mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_harness::serve;
use tithe_machine::{
    credentials::Credentials,
    launch::{Address, Content, Install, Launch, Place, Search, Server as Launched, Step},
    sandbox::{Sandbox, ports::Port, process::Running},
};
use tithe_plugin::{
    database::Database,
    product::Product,
    session::Table,
    setup::{Authentication, Setup, TlsVersion, Transport},
};

use super::{
    made,
    small::{replace, small_logs, warm_up_soon},
};

/// The installed PostgreSQL; without one the test is skipped with a notice, or fails if `CI` is set.
pub fn installed() -> Option<Install> {
    found(&Postgres)
}

/// The installed server of `database`; as [`installed`] if there is none.
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
pub fn found(database: &dyn Product) -> Option<Install> {
    match database.find(&Search::default()) {
        Ok(install) => Some(install),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing:?}"),
        Err(missing) => {
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

/// A port of 127.0.0.1 for a server that is about to be started, reserved until it is dropped.
pub fn free_port() -> Port {
    Port::draw(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("a port")
}

/// [`small_logs`] of `database` as text of experiments.
pub fn small_logs_text(database: &str) -> String {
    let line = |(name, value)| format!("[settings]\n{name} = \"{value}\"\n");
    small_logs(database).into_iter().map(line).collect()
}

/// Starts the `launch` for `place`, on a copy of a fresh data folder of its kind if that may be shared. When dropped it
/// ends at once: data that it has not written are not needed.
pub fn start_on_copy(
    database: &dyn Product,
    install: &Install,
    (sandbox, place): (&Sandbox, &Place),
    launch: &Launch,
    setup: &Setup,
) -> (Launched, Option<Running>) {
    made::prepare(sandbox, place, launch, made::kind(database, install, setup));
    let launch = Launch { stop_signal: launch.discard_signal, ..launch.clone() };
    serve::serve(database, sandbox, place, &launch, setup).expect("the server starts")
}

/// A running PostgreSQL, which stops when it is dropped, before its folder is removed.
pub struct Server {
    programs: PathBuf,
    launched: Launched,
    credentials: Credentials,
    _running: Option<Running>,
    _sandbox: Sandbox,
}

/// A server of another product, which stops when it is dropped.
pub struct OtherServer {
    database: &'static dyn Product,
    setup: Setup,
    launched: Launched,
    authority: PathBuf,
    _running: Option<Running>,
    _sandbox: Sandbox,
}

impl OtherServer {
    /// A plain Redis.
    pub fn redis() -> Option<Self> {
        Self::redis_with("")
    }

    /// A plain MariaDB.
    pub fn mariadb() -> Option<Self> {
        Self::without_tls(false)
    }

    /// A Redis whose settings file ends with `settings`; CERTIFICATES there is replaced by its own.
    pub fn redis_with(settings: &str) -> Option<Self> {
        let plain = |_: &Credentials| Setup::bare();
        Self::start(&Redis, plain, |launch, place, credentials| {
            let (certificate, key) = (&credentials.server_certificate, &credentials.server_key);
            let own = format!("tls-cert-file {}\ntls-key-file {}", certificate.display(), key.display());
            append(launch, place, "redis.conf", &settings.replace("CERTIFICATES", &own));
        })
    }

    /// A Redis that only accepts its accounts, and the one in `account`, a line of its file of accounts.
    pub fn redis_of(account: &str) -> Option<Self> {
        let setup = |credentials: &Credentials| {
            let mut setup = Setup::plain(Default::default(), credentials.clone());
            setup.authentication = Authentication::Password { mechanism: "acl".to_owned() };
            setup
        };
        Self::start(&Redis, setup, |launch, place, _| append(launch, place, "users.acl", account))
    }

    /// A MariaDB, or a MySQL if `mysql`, which offers TLS to clients, with further `settings` and `accounts`; FOLDER
    /// there is replaced by its own.
    pub fn mariadb_with(mysql: bool, settings: &str, accounts: &str) -> Option<Self> {
        let database: &'static dyn Product = if mysql { &MySql } else { &MariaDb };
        let plain = |_: &Credentials| Setup::bare();
        Self::start(database, plain, |launch, place, credentials| {
            let settings = settings.replace("FOLDER", &place.folder.display().to_string());
            let (certificate, key) = (&credentials.server_certificate, &credentials.server_key);
            let tls = format!("ssl_cert = {}\nssl_key = {}\n", certificate.display(), key.display());
            append(launch, place, "my.cnf", &(settings + &tls));
            append(launch, place, "accounts.sql", accounts);
        })
    }

    /// A plain MariaDB, or a plain MySQL if `mysql`.
    pub fn without_tls(mysql: bool) -> Option<Self> {
        let database: &'static dyn Product = if mysql { &MySql } else { &MariaDb };
        Self::start(database, |_| Setup::bare(), |_, _, _| ())
    }

    /// A plain node of Cassandra.
    pub fn cassandra() -> Option<Self> {
        Self::start(&Cassandra, |_| Setup::bare(), |_, _, _| ())
    }

    /// A node of Cassandra with passwords, which offers TLS to clients, and `nodetool` to its own machine; its
    /// administrator has run `statements`.
    pub fn cassandra_with(statements: &[String]) -> Option<Self> {
        let setup = |credentials: &Credentials| {
            let mut setup = Setup::plain(Default::default(), credentials.clone());
            setup.transport = Transport::tls(TlsVersion::V1_3, false);
            setup.authentication = Authentication::Password { mechanism: "PasswordAuthenticator".to_owned() };
            setup.statements = statements.to_vec();
            setup
        };
        let free = free_port();
        let port = format!("-Dcassandra-foreground=yes\n{MANAGEMENT}{}", free.number());
        Self::start(&Cassandra, setup, |launch, _, _| {
            replace(launch, "enabled: true, optional: false", "enabled: true, optional: true");
            replace(launch, "-Dcassandra-foreground=yes", &port);
        })
    }

    /// The shell command that runs `nodetool` for a node that it reaches.
    pub fn nodetool(&self) -> String {
        let options = fs::read_to_string(self.launched.folder.join("node1/java.options")).expect("the options");
        let port = options.lines().find_map(|line| line.strip_prefix(MANAGEMENT)).expect("a port");
        let kept = ["--add-", "-cp ", "\"-Dcassandra.config="];
        let kept: Vec<&str> = options.lines().filter(|line| kept.iter().any(|start| line.starts_with(start))).collect();
        format!(
            "java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions \
             -XX:-BytecodeVerificationRemote {} org.apache.cassandra.tools.NodeTool -h 127.0.0.1 -p {port}",
            kept.join(" ")
        )
    }

    fn start(
        database: &'static dyn Product,
        setup: impl FnOnce(&Credentials) -> Setup,
        change: impl FnOnce(&mut Launch, &Place, &Credentials),
    ) -> Option<Self> {
        let install = found(database)?;
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let credentials = sandbox.credentials().expect("credentials");
        let mut setup = setup(&credentials);
        setup.settings.extend(small_logs(database.id()));
        let place = sandbox.place("attached").expect("a place");
        let mut launch = database.launch(&install, &setup, &place);
        warm_up_soon(database.id(), &mut launch);
        change(&mut launch, &place, &credentials);
        let (launched, running) = start_on_copy(database, &install, (&sandbox, &place), &launch, &setup);
        let authority = credentials.authority;
        let server = Self { database, setup, launched, authority, _running: running, _sandbox: sandbox };
        if !server.setup.statements.is_empty() {
            server.as_administrator(&server.setup.statements);
        }
        Some(server)
    }

    /// Runs `statements` as the administrator of a server with accounts.
    pub fn as_administrator(&self, statements: &[String]) {
        let setup = Setup { statements: statements.to_vec(), ..self.setup.clone() };
        let table = Table { name: "before".to_owned(), fields: 1, field_prefix: "field".to_owned() };
        self.database.create(&self.launched, &setup, &table).expect("the administrator's statements");
        self.database.remove(&self.launched, &setup, &table).expect("nothing is left");
    }

    /// Its answer to `question`, as its measured clients would get it.
    pub fn asked(&self, question: &str) -> String {
        self.database.ask(&self.launched, &self.setup, question).expect("an answer").unwrap_or_default()
    }

    /// The file of the authority that signed its certificate.
    pub fn authority(&self) -> String {
        self.authority.display().to_string()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.launched.folder
    }

    /// `host:port`, with the address or the name of this machine's loopback.
    pub fn place(&self, host: &str) -> String {
        format!("{host}:{}", self.port())
    }

    fn port(&self) -> u16 {
        let Address::Tcp { port, .. } = &self.launched.address else { panic!("a TCP server") };
        *port
    }

    /// Its main process.
    pub fn process(&self) -> i32 {
        self.launched.process.expect("it was started here")
    }

    /// Runs `command`, with its parts separated by spaces, on a Redis.
    pub fn tell_redis(&self, command: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).expect("connected");
        write!(stream, "{command}\r\n").expect("sent");
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"+OK", "{command}");
    }

    /// Runs `statement` on a MariaDB.
    pub fn tell_mariadb(&self, statement: &str) {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-h127.0.0.1", "-utithe", &format!("-P{}", self.port()), "-e", statement])
            .output()
            .expect("mariadb runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The option of a node's virtual machine that names the port at which `nodetool` reaches it.
const MANAGEMENT: &str = "-Dcassandra.jmx.local.port=";

/// Adds `text` to the file `name` of the server, before the steps that create its data.
fn append(launch: &mut Launch, place: &Place, name: &str, text: &str) {
    let path = place.folder.join(name);
    let is_file = |step: &Step| matches!(step, Step::Write { path: written, .. } if *written == path);
    let number = launch.steps.iter().position(is_file).expect("the file is written");
    launch.steps.insert(number + 1, Step::Append { path, content: text.to_owned() });
}

impl Server {
    /// Starts a server with pgaudit preloaded, so that sessions can switch it. It offers TLS to clients.
    pub fn start() -> Option<Self> {
        Self::start_after(|_| Vec::new())
    }

    /// The same, which counts statements.
    pub fn counting() -> Option<Self> {
        let counts = |folder: &Path| Step::Append {
            path: folder.join("data/postgresql.conf"),
            content: "shared_preload_libraries = 'pgaudit, pg_stat_statements'\n".to_owned(),
        };
        Self::start_after(|folder| vec![counts(folder)])
    }

    /// The same as a standby, which waits for a primary that never comes.
    pub fn standby() -> Option<Self> {
        let signal = |folder: &Path| Step::Write {
            path: folder.join("data/standby.signal"),
            content: Content::Text(String::new()),
            mode: 0o600,
        };
        Self::start_after(|folder| vec![signal(folder)])
    }

    /// The same after further `steps` in its folder.
    fn start_after(steps: impl FnOnce(&Path) -> Vec<Step>) -> Option<Self> {
        let install = installed()?;
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let credentials = sandbox.credentials().expect("credentials");
        let mut setup = Setup::bare();
        setup.settings.insert("shared_preload_libraries".to_owned(), "pgaudit".to_owned());
        let place = sandbox.place("attached").expect("a place");
        let mut launch = Postgres.launch(&install, &setup, &place);
        // As managed servers do: the log is in files that only the server knows.
        launch.steps.push(Step::Append {
            path: place.folder.join("data/postgresql.conf"),
            content: format!(
                "logging_collector = 'on'\nunix_socket_directories = '{}'\nssl = 'on'\nssl_cert_file = '{}'\n\
                 ssl_key_file = '{}'\n",
                place.folder.display(),
                credentials.server_certificate.display(),
                credentials.server_key.display()
            ),
        });
        launch.steps.push(Step::Append {
            path: place.folder.join("data/pg_hba.conf"),
            content: "local all all trust\n".to_owned(),
        });
        launch.steps.extend(steps(&place.folder));
        let (launched, running) = start_on_copy(&Postgres, &install, (&sandbox, &place), &launch, &setup);
        Some(Self { programs: install.programs, launched, credentials, _running: running, _sandbox: sandbox })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.launched.folder
    }

    /// The file of the authority that signed its certificate.
    pub fn authority(&self) -> String {
        self.credentials.authority.display().to_string()
    }

    /// The process that writes its log.
    pub fn log_writer(&self) -> i32 {
        let process = self.launched.process.expect("it was started here");
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).expect("its processes");
        let title = |child: &str| fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let writer = children.split(' ').find(|child| title(child).contains("logger"));
        writer.and_then(|writer| writer.parse().ok()).expect("a process that writes its log")
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        let Address::Tcp { port, .. } = &self.launched.address else { panic!("a TCP server") };
        *port
    }

    /// Its URL, without a password.
    pub fn address(&self) -> String {
        self.url("").replace(":@", "@")
    }

    /// Its URL in experiments; `password` is given although the server requires none.
    pub fn url(&self, password: &str) -> String {
        let Address::Tcp { host, port } = &self.launched.address else { panic!("a TCP server") };
        format!("postgres://tithe:{password}@{host}:{port}/postgres")
    }

    /// Its certificates and keys.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Its URL, with TLS or without, for an account that has no password.
    pub fn url_of(&self, account: &str, tls: bool) -> String {
        let Address::Tcp { host, port } = &self.launched.address else { panic!("a TCP server") };
        let options = match tls {
            true => format!("?sslmode=verify-full&sslrootcert={}", self.credentials.authority.display()),
            false => String::new(),
        };
        format!("postgres://{account}@{host}:{port}/postgres{options}")
    }

    /// Puts `rules` before its existing access rules.
    pub fn add_rules(&self, rules: &str) {
        let file = self.folder().join("data/pg_hba.conf");
        let others = fs::read_to_string(&file).expect("the rules");
        fs::write(&file, format!("{rules}{others}")).expect("written");
        self.psql("SELECT pg_reload_conf()");
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    /// `host:port`.
    pub fn place(&self) -> String {
        let Address::Tcp { host, port } = &self.launched.address else { panic!("a TCP server") };
        format!("{host}:{port}")
    }

    /// The command that runs statements as its owner.
    pub fn psql_command(&self, statements: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url("none"), "-c", statements]);
        command
    }

    /// Runs statements as its owner and returns the first column of the last one's rows.
    pub fn psql(&self, statements: &str) -> String {
        let output = self.psql_command(statements).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
