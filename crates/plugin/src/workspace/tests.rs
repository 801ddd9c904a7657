use std::os::unix::fs::PermissionsExt as _;

use tithe_machine::secret::Secret;
use tithe_model::catalogue::DatabaseEntry;

use super::*;
use crate::{
    session::SqlSession,
    simulated::{Simulated, table_bench::TableBench, test_bench::Bench},
    sql::STANDARD,
    test_workload::Described,
};

/// A shell, as a program that offers load and as one that restores data.
#[derive(Default)]
struct Shell {
    /// It is not on this machine.
    is_missing: bool,
    /// What an administrator runs first.
    statements: Vec<String>,
    /// What it does to load or restore data.
    prepares: Vec<String>,
    /// What it does in a slice.
    runs: String,
    /// The user's own data.
    from: PathBuf,
}

impl Shell {
    fn running(script: &str) -> Self {
        Self { runs: script.to_owned(), ..Self::default() }
    }

    fn preparing(scripts: &[&str]) -> Self {
        Self { prepares: owned(scripts), ..Self::default() }
    }

    fn found(&self) -> Result<PathBuf, Missing> {
        let missing = Missing { what: "a shell".to_owned(), looked_in: Vec::new(), how_to_install: Vec::new() };
        if self.is_missing { Err(missing) } else { Ok("/bin/sh".into()) }
    }

    fn preparations(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        self.prepares.iter().map(|script| command(at, script)).collect()
    }

    /// What it knows about its place, and a secret.
    fn known(at: &ProgramContext<'_>) -> Vec<(String, Content)> {
        let ProgramContext { executable, protocol, reach, folder, data } = at;
        let folders = [executable, folder, data].map(|path| path.display().to_string()).join(" ");
        let context = format!("{folders} {protocol:?} {}", reach.port);
        let secret = Content::Secret(Secret::new(b"hunter2".to_vec()));
        vec![("context".to_owned(), Content::Text(context)), ("password".to_owned(), secret)]
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn command(at: &ProgramContext<'_>, script: &str) -> Command {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    Command { program: at.executable.to_owned(), arguments, ..Command::default() }
}

impl Program for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn drives(&self) -> &[WireProtocol] {
        &[WireProtocol::Postgres]
    }

    fn writes(&self) -> bool {
        true
    }

    fn find(&self) -> Result<PathBuf, Missing> {
        self.found()
    }

    fn statements(&self, _at: &ProgramContext<'_>) -> Vec<String> {
        self.statements.clone()
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        Ok(Self::known(at))
    }

    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        self.preparations(at)
    }

    fn run(&self, at: &ProgramContext<'_>, _job: &Job) -> Command {
        command(at, &self.runs)
    }

    fn read(&self, _at: &ProgramContext<'_>, _job: &Job, printed: &str) -> Result<ProgramReport, Fault> {
        let transactions = printed.trim().parse().map_err(|_| Fault::Wrong(format!("it printed {printed}")))?;
        Ok(ProgramReport { transactions, ..ProgramReport::default() })
    }

    fn needle(&self) -> Option<&[u8]> {
        None
    }

    fn describe(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl Restore for Shell {
    fn path(&self) -> &Path {
        &self.from
    }

    fn refuses(&self, _database: &DatabaseEntry, _version: &str) -> Option<String> {
        None
    }

    fn find(&self, _protocol: WireProtocol) -> Result<PathBuf, Missing> {
        self.found()
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        Ok(Self::known(at))
    }

    fn commands(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        self.preparations(at)
    }

    fn through(&self, _session: &mut dyn SqlSession) -> Result<(), Fault> {
        Ok(())
    }

    fn enter(&self, _protocol: WireProtocol) -> Option<String> {
        None
    }
}

/// An arm whose certificates are next to its data.
fn arm() -> Bench {
    let mut bench = Bench::plain();
    bench.setup.credentials.authority = bench.server.folder.join("authority.pem");
    bench
}

fn workspace(shell: &Shell, bench: &Bench) -> Result<Workspace, Fault> {
    Workspace::new(shell, &TableBench::new(&STANDARD), &bench.server, &bench.setup, "load")
}

fn for_restore(shell: &Shell, bench: &Bench) -> Result<Workspace, Fault> {
    Workspace::for_restore(shell, &TableBench::new(&STANDARD), &bench.server, &bench.setup)
}

fn log(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.log()).unwrap_or_default()
}

const JOB: Job = Job { clients: 1, rate: None, seconds: 1, seed: 0 };
static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn a_program_has_its_files_and_two_folders_until_they_are_cleared() {
    let bench = arm();
    let made = workspace(&Shell::default(), &bench).expect("its folders");
    let Workspace { folder, data, .. } = &made;
    let name = bench.server.folder.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(*folder, bench.server.folder.join(format!("load-{name}")));
    assert_eq!(*data, bench.server.folder.join("load"));
    let context = format!("/bin/sh {} {} Postgres 7", folder.display(), data.display());
    assert_eq!(fs::read_to_string(folder.join("context")).ok(), Some(context));
    assert_eq!(fs::read_to_string(folder.join("password")).ok().as_deref(), Some("hunter2"));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!([mode(&folder.join("password")), mode(folder), mode(data)], [0o600, 0o700, 0o700]);
    assert!(workspace(&Shell::default(), &bench).is_err(), "another one would change its files");
    made.clear();
    assert!(!folder.exists() && !data.exists());
    assert!(workspace(&Shell::default(), &bench).is_ok());
}

#[test]
fn a_program_must_be_there_and_speak_the_protocol_of_the_server() {
    let bench = arm();
    let missing = Shell { is_missing: true, ..Shell::default() };
    let gone = || Some(Fault::Machine("a shell is gone".to_owned()));
    assert_eq!([workspace(&missing, &bench).err(), for_restore(&missing, &bench).err()], [gone(), gone()]);
    let words = "no other program speaks the protocol of simulated database";
    let refused = || Some(Fault::Refused(words.to_owned()));
    let shell = Shell::default();
    let load = Workspace::new(&shell, &Simulated, &bench.server, &bench.setup, "load");
    let restore = Workspace::for_restore(&shell, &Simulated, &bench.server, &bench.setup);
    assert_eq!([load.err(), restore.err()], [refused(), refused()]);
}

#[test]
fn a_slice_is_what_the_program_prints_and_all_output_is_kept() {
    let bench = arm();
    let made = workspace(&Shell::default(), &bench).expect("its folders");
    for _ in 0..2 {
        let slice = made.run(&Shell::running("echo 42"), &JOB, &NEVER).expect("it works").expect("not cancelled");
        assert_eq!(slice.reported, ProgramReport { transactions: 42, ..ProgramReport::default() });
    }
    let twice = "== /bin/sh\n42\n\n".repeat(2);
    assert_eq!(log(&made), twice);
    let failed = made.run(&Shell::running("echo no such table >&2; exit 3"), &JOB, &NEVER);
    assert_eq!(failed, Err(Fault::Machine("/bin/sh failed (exit status: 3): no such table".to_owned())));
    assert_eq!(log(&made), format!("{twice}== /bin/sh\nno such table\n\n"));
    let unclear = made.run(&Shell::running("echo many"), &JOB, &NEVER);
    assert_eq!(unclear, Err(Fault::Wrong("it printed many\n".to_owned())));
    let cancelled = made.run(&Shell::running("exec sleep 600"), &JOB, &AtomicBool::new(true));
    assert_eq!(cancelled, Ok(None));
}

/// Whether data are loaded by the programs of `scripts`, and the log of those that ran.
fn prepared(scripts: &[&str], cancelled: &AtomicBool) -> [(Result<(), Fault>, String); 2] {
    let bench = arm();
    let shell = Shell { from: bench.server.folder.join("mine"), ..Shell::preparing(scripts) };
    fs::write(&shell.from, "my rows").expect("written");
    let (database, workload) = (TableBench::new(&STANDARD), Described { speaks_sql: true, ..Described::default() });
    let load = workspace(&shell, &bench).expect("its folders");
    let loaded = load.prepare(&shell, &database, &bench.server, &bench.setup, &workload, cancelled);
    assert!(database.notes().is_empty(), "a program without statements needs no session");
    let restore = for_restore(&shell, &bench).expect("its folders");
    let restored = restore.restore(&shell, cancelled);
    [(loaded, log(&load)), (restored, log(&restore))]
}

#[test]
fn data_are_loaded_by_all_programs_in_order_up_to_one_that_fails() {
    let both = |outcome: Result<(), Fault>, log: &str| [(); 2].map(|()| (outcome.clone(), log.to_owned()));
    let all = prepared(&["echo one", "echo two"], &NEVER);
    assert_eq!(all, both(Ok(()), "== /bin/sh\none\n\n== /bin/sh\ntwo\n\n"));
    let failed = Err(Fault::Machine("/bin/sh failed (exit status: 1): ".to_owned()));
    assert_eq!(prepared(&["exit 1", "echo two"], &NEVER), both(failed, "== /bin/sh\n\n"));
    let cancelled = prepared(&["exec sleep 600", "echo two"], &AtomicBool::new(true));
    assert_eq!(cancelled, both(Ok(()), "== /bin/sh\n\n"));
}

#[test]
fn an_administrator_runs_a_programs_statements_before_its_commands() {
    let bench = arm();
    let database = TableBench::new(&STANDARD);
    let shell = Shell { statements: owned(&["CREATE a", "CREATE b"]), ..Shell::preparing(&["exit 1"]) };
    let workload = Described { speaks_sql: true, ..Described::default() };
    let load = workspace(&shell, &bench).expect("its folders");
    let loaded = load.prepare(&shell, &database, &bench.server, &bench.setup, &workload, &NEVER);
    assert!(loaded.is_err(), "its command fails");
    assert_eq!(database.notes(), ["connect", "statement: CREATE a", "statement: CREATE b"]);
}

#[test]
fn the_users_own_data_are_copied_next_to_the_program_and_removed_by_themselves() {
    let bench = arm();
    let [file, folder] = ["mine.sql", "mine"].map(|name| bench.server.folder.join(name));
    fs::create_dir(&folder).expect("made");
    for path in [&file, &folder.join("rows.csv")] {
        fs::write(path, "my rows").expect("written");
    }
    for (from, script) in [(&file, "cat dump"), (&folder, "cat dump/rows.csv")] {
        let shell = Shell { from: from.clone(), ..Shell::preparing(&[script]) };
        let made = for_restore(&shell, &bench).expect("copied");
        assert_eq!(made.restore(&shell, &NEVER), Ok(()));
        assert_eq!(log(&made), "== /bin/sh\nmy rows\n");
        assert_eq!(fs::read_to_string(made.folder.join("password")).ok().as_deref(), Some("hunter2"));
        made.clear_data();
        assert!(!made.folder.join(PLACE).exists() && made.log().exists() && from.exists());
        made.clear();
        assert!(!made.folder.exists() && from.exists());
    }
    let nowhere = Shell { from: bench.server.folder.join("nowhere"), ..Shell::default() };
    let missing = for_restore(&nowhere, &bench).err().map(|fault| fault.to_string()).unwrap_or_default();
    assert!(missing.starts_with(&nowhere.from.display().to_string()), "{missing}");
}
