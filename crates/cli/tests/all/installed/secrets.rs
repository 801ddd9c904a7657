//! Passwords and keys of real runs: while servers run, none is in an argument, an environment or a file of another
//! account, and none is anywhere afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tithe_machine::{proc::ProcessSnapshot, sandbox::is_sandbox};

use crate::support::{
    Bench, err, out,
    process::Process,
    server::{Server, found, small_logs_text},
    status,
};

/// Files with secrets that servers read, by their names; keys of certificates end in `.key`, those of WiredTiger in
/// `.master-key`.
const HOLDERS: [&str; 7] =
    ["password", "password.conf", "users", "accounts.sql", "keys", "keyring", "component_keyring_file"];

/// The shortest hexadecimal word in such a file that counts as a password or a key.
const SHORTEST: usize = 32;

/// Larger files hold data.
const LARGEST: u64 = 4 << 20;

/// Secrets by the place where they were found first, and the other places where they were seen.
#[derive(Default)]
struct Watch {
    secrets: BTreeMap<Vec<u8>, PathBuf>,
    hits: BTreeSet<String>,
    /// The keys of an embedded database are in the memory of its process alone.
    is_embedded: bool,
    /// When it has read files last.
    files_read: Option<Instant>,
}

/// Files are read in the first look after so long: servers have hundreds. On a busy machine that is every look.
const FILES_EVERY: Duration = Duration::from_millis(500);

impl Watch {
    /// Searches all processes below `process`, and all files below `folder`.
    fn look(&mut self, process: i32, folder: &Path) {
        let is_due = self.files_read.is_none_or(|read| read.elapsed() >= FILES_EVERY);
        let files = if is_due { files(folder) } else { Vec::new() };
        if is_due {
            self.files_read = Some(Instant::now());
        }
        for path in files.iter().filter(|path| is_holder(path)) {
            let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
            for secret in secrets(&text) {
                self.secrets.entry(secret).or_insert_with(|| path.clone());
            }
        }
        for below in ProcessSnapshot::take().tree(process) {
            // The program's own environment comes from the user.
            let told = if below == process { &["cmdline"][..] } else { &["cmdline", "environ"] };
            if below != process && self.is_embedded {
                for secret in handed_over(below) {
                    self.secrets.entry(secret).or_insert_with(|| format!("/proc/{below}/mem").into());
                }
            }
            for name in told {
                let path = PathBuf::from(format!("/proc/{below}/{name}"));
                self.search(&path, &fs::read(&path).unwrap_or_default());
            }
        }
        for path in files {
            let mode = fs::metadata(&path).map_or(0, |seen| seen.permissions().mode());
            let may_hold = path.ancestors().any(is_sandbox) && mode & 0o077 == 0;
            if !may_hold {
                self.search(&path, &fs::read(&path).unwrap_or_default());
            }
        }
    }

    fn search(&mut self, path: &Path, bytes: &[u8]) {
        if self.secrets.keys().any(|secret| holds(bytes, secret)) {
            self.hits.insert(path.display().to_string());
        }
    }
}

fn holds(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret)
}

/// Passwords and lines of keys in the text of a file with secrets.
fn secrets(text: &str) -> Vec<Vec<u8>> {
    let is_private = text.contains("PRIVATE KEY");
    let lines = text.lines().filter(|line| is_private && line.len() >= SHORTEST && !line.starts_with("-----"));
    let words = text.split(|character: char| !character.is_ascii_hexdigit());
    let words = words.filter(|word| !is_private && word.len() >= SHORTEST);
    lines.chain(words).map(|secret| secret.as_bytes().to_vec()).collect()
}

/// The keys in the memory of `process`, which got them as `"key":"HEXADECIMAL"` through its standard input.
fn handed_over(process: i32) -> BTreeSet<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let Ok(memory) = fs::File::open(format!("/proc/{process}/mem")) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let ends = range.map(|(from, to)| [from, to].map(|end| u64::from_str_radix(end, 16).unwrap_or_default()));
        let Some([from, to]) = ends.filter(|[from, to]| to - from <= LARGEST) else { continue };
        let mut bytes = vec![0; (to - from) as usize];
        if memory.read_exact_at(&mut bytes, from).is_err() {
            continue;
        }
        for name in ["\"password\":\"", "\"key\":\"", "\"second_key\":\""] {
            let places = bytes.windows(name.len()).enumerate().filter(|(_, window)| *window == name.as_bytes());
            let words = places.map(|(at, _)| &bytes[at + name.len()..]);
            let words = words.map(|rest| rest.iter().copied().take_while(u8::is_ascii_hexdigit).collect::<Vec<u8>>());
            found.extend(words.filter(|word| word.len() >= SHORTEST));
        }
    }
    found
}

fn is_holder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_named = HOLDERS.contains(&&*name) || name.ends_with(".key") || name.ends_with(".master-key");
    path.ancestors().any(is_sandbox) && is_named
}

/// Small files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match fs::symlink_metadata(&path) {
                Ok(seen) if seen.is_dir() => open.push(path),
                Ok(seen) if seen.is_file() && seen.size() <= LARGEST => all.push(path),
                _ => {}
            }
        }
    }
    all
}

/// Runs `command` in the folder of `bench` and searches all the time, also for the `known` secrets.
fn watched(bench: &Bench, mut command: Command, known: &[&str], is_embedded: bool) -> Watch {
    let mut watch = Watch { is_embedded, ..Watch::default() };
    watch.secrets.extend(known.iter().map(|secret| (secret.as_bytes().to_vec(), PathBuf::from("the test"))));
    let folder = bench.path(".");
    let mut tithe = Process::heard(command.env("TMPDIR", bench.path(".")));
    while !tithe.has_ended() {
        watch.look(tithe.id() as i32, &folder);
        std::thread::sleep(Duration::from_millis(30));
    }
    let id = tithe.id() as i32;
    let output = tithe.output();
    watch.files_read = None;
    // On a busy machine slots this short may have no operation, which is irrelevant for secrets.
    assert!([0, 4, 7].contains(&status(&output)), "{}{}", out(&output), err(&output));
    // Its content in reports, in every format.
    watch.look(id, &folder);
    for format in ["text", "html", "markdown", "json", "csv"] {
        let report = bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", format]);
        watch.search(Path::new(format), &report.stdout);
        watch.search(Path::new(format), &report.stderr);
    }
    watch.search(Path::new("standard output"), &output.stdout);
    watch.search(Path::new("standard error"), &output.stderr);
    watch
}

/// One short frame of every arm after the other.
fn experiment(database: &str, arms: &[&str]) -> String {
    let arm = |(number, protections): (usize, &&str)| {
        format!("[[arm]]\nname = \"arm {number}\"\nprotections = [{protections}]\n")
    };
    let arms: String = arms.iter().enumerate().map(arm).collect();
    format!(
        "title = \"Secrets\"\ndatabase = \"{database}\"\n{}[data]\nrecords = 100\n[measure]\ndesign = \"slices\"\n\
         slot = \"40 ms\"\nbudget = \"4 s\"\nwarmup = \"0 s\"\nprecision = \"90%\"\nstarts = 1\naa_arm = false\n\
         [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n{arms}",
        small_logs_text(database)
    )
}

/// A run on `database` with these `arms` reveals none of its passwords and keys.
fn keeps(database: &str, arms: &[&str]) {
    let all = tithe_databases::all();
    let product = all.iter().find(|product| product.entry().id == database).expect("a database");
    if found(*product).is_none() {
        return;
    }
    let bench = Bench::new(&format!("secrets-{database}"));
    bench.file("e.toml", &experiment(database, arms));
    let is_embedded = product.embedded();
    let watch = watched(&bench, bench.command(&["run", "e.toml", "--quiet"]), &[], is_embedded);
    // Keys of the run's certificates, and the password, which etcd and Cassandra have in no file.
    let names: BTreeSet<_> = watch.secrets.values().filter_map(|path| path.file_name()).collect();
    let (secrets, places) = match database {
        _ if is_embedded => (1, 0),
        "etcd" | "cassandra" => (3, 1),
        _ => (3, 2),
    };
    assert!(
        watch.secrets.len() > secrets && names.len() > places,
        "{database}: {} secrets of {names:?} only",
        watch.secrets.len()
    );
    assert_eq!(watch.hits, BTreeSet::new(), "{database}");
}

#[test]
fn of_postgres() {
    let bound = "{ use = \"tls\" }, { use = \"scram\", channel_binding = \"require\" }";
    keeps("postgres", &["{ use = \"scram\" }", bound, "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_mariadb() {
    let password = |plugin: &str| format!("{{ use = \"password\", plugin = \"{plugin}\" }}");
    let [native, ed25519] = ["mysql_native_password", "ed25519"].map(password);
    keeps("mariadb", &[&native, &ed25519, "{ use = \"encryption\" }", "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_mysql() {
    let password = |plugin: &str| format!("{{ use = \"password\", plugin = \"{plugin}\" }}");
    let [caching, native] = ["caching_sha2_password", "mysql_native_password"].map(password);
    keeps("mysql", &[&caching, &native, "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_redis() {
    keeps("redis", &["{ use = \"requirepass\" }", "{ use = \"acl\" }", "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_memcached() {
    keeps("memcached", &["{ use = \"auth-file\" }", "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_etcd() {
    keeps("etcd", &["{ use = \"password\" }", "{ use = \"tls\", mutual = true }"]);
}

#[test]
fn of_cassandra() {
    let all = ["password", "tls", "commitlog-encryption"].map(|name| format!("{{ use = \"{name}\" }}"));
    keeps("cassandra", &[&all.join(", ")]);
}

#[test]
fn of_sqlite() {
    keeps("sqlite", &["{ use = \"page-encryption\" }"]);
}

#[cfg(feature = "wiredtiger")]
#[test]
fn of_wiredtiger() {
    keeps("wiredtiger", &["{ use = \"page-encryption\" }"]);
}

#[test]
fn of_a_server_that_is_attached_to() {
    const PASSWORD: &str = "correct-horse-battery-staple";
    let Some(server) = Server::start() else { return };
    server.psql(&format!(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'; \
         GRANT CREATE ON DATABASE postgres TO app"
    ));
    server.add_rules("host all app 127.0.0.1/32 scram-sha-256\n");
    let bench = Bench::new("secrets-attached");
    let arm = |name: &str, tls, rest: &str| {
        format!("[[arm]]\nname = \"{name}\"\nurl = \"{}\"\n{rest}\n", server.url_of("app", tls))
    };
    let text = experiment("postgres", &[]).replace(&small_logs_text("postgres"), "");
    let text = text.replace("starts = 1\n", "").replace("[[arm]]\nname = \"plain\"\n", &arm("plain", false, ""));
    bench.file("e.toml", &(text + &arm("tls", true, "protections = [{ use = \"tls\" }]")));
    let mut command = bench.command(&["run", "e.toml", "--quiet"]);
    command.env("PGPASSWORD", PASSWORD);
    let watch = watched(&bench, command, &[PASSWORD], false);
    assert_eq!(watch.hits, BTreeSet::new());
}

/// The scan finds secrets that are visible.
#[test]
fn what_is_put_into_plain_sight_is_found() {
    const SECRET: &str = "8f41c2d7a90b36e5f7102948bd6c3ea1";
    let bench = Bench::new("secrets-seen");
    let sandbox = bench.path("tithe-sandbox-1-1");
    fs::create_dir(&sandbox).expect("a folder");
    let write = |path: PathBuf, mode| {
        fs::write(&path, format!("requirepass {SECRET}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        path.display().to_string()
    };
    write(sandbox.join("password.conf"), 0o600);
    let open = write(sandbox.join("open.conf"), 0o640);
    let outside = write(bench.path("frames.jsonl"), 0o600);
    let mut shell = Command::new("sh");
    shell.args(["-c", "SECRET=$0 sleep 600 & wait", SECRET]);
    let mut process = Process::unheard(&mut shell);
    let mut watch = Watch::default();
    let children = || ProcessSnapshot::take().tree(process.id() as i32);
    crate::support::wait_until(|| children().len() == 2);
    let (shell, sleep) = (children()[0], children()[1]);
    // A child has its own environment after exec.
    crate::support::wait_until(|| {
        fs::read(format!("/proc/{sleep}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
    });
    watch.look(shell, &bench.path("."));
    let _ = tithe_machine::proc::signal(sleep, rustix::process::Signal::KILL);
    process.kill();
    let seen: BTreeSet<String> = watch.hits.iter().map(|path| path.replace("/./", "/")).collect();
    let expected = [format!("/proc/{shell}/cmdline"), format!("/proc/{sleep}/environ"), open, outside];
    assert_eq!(seen, BTreeSet::from(expected));
}
