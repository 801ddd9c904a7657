//! An observer: sees, on the machine of an attached server, what cannot be seen from another one.
//!
//! It answers a coordinator's questions about the servers and files that it was started for, and about nothing else. It
//! reads and never writes, starts no program and opens only the connection to the broker. Between questions it keeps
//! only its readings of a frame.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tithe_machine::{
    fault::Fault,
    fingerprint::sha256,
    paths::Paths,
    proc::ProcessSnapshot,
    remote::{Ends, Known, RemoteFile, RemoteMatches, RemoteUsage},
    secret::Secret,
    watch::peer,
};
use tithe_model::record::Machine;
use tithe_plugin::checks::{
    needles::{NEEDLE_BYTES, Needles},
    scan::{self, File, FileKind},
};

use super::{
    link::{Delivery, Link, Subscription},
    message::{Hello, PROTOCOL, ROLL_CALL, read, write},
    query::{FileFingerprint, Query, QueryReply, SlotUsage, Watched, observer, observer_clock},
    server_watch::{ServerWatch, served},
};
use crate::load::{frame::machines::Serving, reading::sizes};

/// Longest wait for a message: ctrl-C is noticed after at most this time.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The longest settings file that is read, bytes.
const SETTINGS_BYTES_MAX: u64 = 16 << 20;

/// Most slots of a frame that is read: a message that asks for more is a mistake.
const SLOTS_MAX: u64 = 1 << 24;

/// What an observer may read, from its command line.
pub struct ObserverConfig {
    /// Its name.
    pub name: String,
    /// Ports of the servers that it may read.
    pub ports: Vec<u16>,
    /// Files and folders that it may open, including everything below them.
    pub files: Vec<PathBuf>,
    /// Its machine.
    pub machine: Machine,
}

/// Answers until `cancelled`; `tell` gets every refusal.
///
/// # Errors
/// When the link cannot be used at all. A link that is lost later is waited for.
pub fn serve(
    link: &dyn Link,
    config: &ObserverConfig,
    cancelled: &AtomicBool,
    tell: &mut dyn FnMut(String),
) -> Result<(), Fault> {
    let hello = Hello {
        id: Secret::random(8).expose_hex(),
        name: config.name.clone(),
        tithe: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        lanes: 0,
        machine: config.machine.clone(),
        busy_with: None,
        observes: true,
    };
    let _clock = link.tell_time(&observer_clock(&config.name))?;
    let mut calls = link.subscribe(ROLL_CALL)?;
    let mut questions = link.subscribe(&observer(&config.name))?;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // In a thread of its own, so that it does not seem absent during a long search.
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                answer(link, &mut *calls, |_| write(&hello));
            }
        });
        let mut watching = None;
        while !cancelled.load(Ordering::SeqCst) {
            answer(link, &mut *questions, |body| {
                let reply = match read::<Query>(body) {
                    Some(query) => seen(config, query, &mut watching),
                    None => QueryReply::Refused("the question is not understood: run one version of tithe".to_owned()),
                };
                if let QueryReply::Refused(why) = &reply {
                    tell(why.clone());
                }
                write(&reply)
            });
        }
        ended.store(true, Ordering::SeqCst);
    });
    Ok(())
}

/// Answers the next message of `subscription`, if one comes. A coordinator that gets no answer asks again.
fn answer(link: &dyn Link, subscription: &mut dyn Subscription, say: impl FnOnce(&[u8]) -> Result<Vec<u8>, Fault>) {
    let delivery = subscription.next(POLL_INTERVAL).unwrap_or_else(|_| {
        // A lost link comes back.
        std::thread::sleep(POLL_INTERVAL);
        None
    });
    if let Some(Delivery { body, reply_to: Some(reply_to) }) = delivery {
        let _ = say(&body).and_then(|answer| link.publish(&reply_to, &answer));
    }
}

/// The frame that is being read, by its ticket.
type Watching = Option<(u64, ServerWatch)>;

/// The answer to `query`.
fn seen(config: &ObserverConfig, query: Query, watching: &mut Watching) -> QueryReply {
    let reply = match query {
        Query::Server { client, server, programs, serving } => {
            let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
            config.server(Ends { client, server }, Known { programs: &programs, serving }).map(QueryReply::Server)
        }
        Query::Usage { process, paths } => config.usage(process, &paths).map(QueryReply::Usage),
        Query::Watch(watched) => config.watch(*watched, watching).map(|()| QueryReply::Watching),
        Query::Used { ticket, invalid } => used(ticket, invalid, watching).map(QueryReply::Slots),
        Query::Search { needles, paths } => config.search(&needles, &paths).map(QueryReply::Found),
        Query::Fingerprints(paths) => {
            Ok(QueryReply::Fingerprints(paths.iter().map(|path| config.fingerprint(path)).collect()))
        }
    };
    reply.unwrap_or_else(QueryReply::Refused)
}

impl ObserverConfig {
    /// The main process of the server at the other end of a connection.
    fn server(&self, ends: Ends, known: Known<'_>) -> Result<i32, String> {
        let Ends { client, server } = ends;
        let unknown =
            || format!("no connection from {client} to {server} is known here: what lies between may change addresses");
        let process = peer::server_at(ends, known)?.ok_or_else(unknown)?;
        self.may_look_at(process).map(|()| process)
    }

    /// Checks that `process` is one of the servers that this observer was started for.
    fn may_look_at(&self, process: i32) -> Result<(), String> {
        if self.ports.iter().any(|port| peer::listens(process, *port)) {
            return Ok(());
        }
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        Err(format!(
            "process {process} is not a server that it may read: it was started for those that listen on these ports, \
             as far as its account may see them: {}",
            ports.join(", ")
        ))
    }

    /// Checks that `path` lies below what this observer may open.
    fn may_open(&self, path: &Path) -> Result<PathBuf, String> {
        let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        let below = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        if self.files.iter().any(below) {
            return Ok(real);
        }
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
        Err(format!("it may not open {}; it was started for these files: {files}", path.display()))
    }

    /// The same of all `paths`.
    fn may_open_all(&self, paths: &Paths) -> Result<(), String> {
        paths.all().try_for_each(|path| self.may_open(path).map(drop))
    }

    fn usage(&self, process: i32, paths: &Paths) -> Result<RemoteUsage, String> {
        self.may_look_at(process)?;
        self.may_open_all(paths)?;
        Ok(RemoteUsage {
            tree: ProcessSnapshot::take().usage(process),
            log_bytes: (!paths.logs.is_empty()).then(|| sizes(&paths.logs).0),
            disk_bytes: (!paths.data.is_empty()).then(|| sizes(&paths.data).1),
        })
    }

    /// Begins to read a frame. If another frame is still being read, that one was given up.
    fn watch(&self, watched: Watched, watching: &mut Watching) -> Result<(), String> {
        let Watched { ticket, schedule, lanes, mains, serving } = watched;
        let slots = [schedule.blocks as usize, lanes, mains.len()]
            .iter()
            .try_fold(1u64, |slots, more| slots.checked_mul(*more as u64).filter(|slots| *slots <= SLOTS_MAX));
        if slots.is_none() || schedule.arms != mains.len() || schedule.slot_ns == 0 {
            return Err("a frame cannot have so many slots".to_owned());
        }
        mains.iter().flatten().try_for_each(|main| self.may_look_at(*main))?;
        let snapshot = ProcessSnapshot::take();
        let belongs = |serving: &&Serving| {
            let main = mains.get(serving.arm).copied().flatten();
            main.is_some_and(|main| snapshot.tree(main).contains(&serving.process))
        };
        let of_these: Vec<_> = serving.iter().filter(belongs).copied().collect();
        if let Some((_, given_up)) = watching.take() {
            drop(given_up.finish(true));
        }
        *watching = Some((ticket, ServerWatch::start(schedule, &served(lanes, &mains, &of_these))));
        Ok(())
    }

    fn search(&self, needles: &[String], paths: &Paths) -> Result<RemoteMatches, String> {
        self.may_open_all(paths)?;
        let needles: Option<Vec<Secret>> = needles.iter().map(|needle| Secret::of_hex(needle)).collect();
        let long = |needle: &Secret| needle.expose().len() >= NEEDLE_BYTES;
        let needles = needles.filter(|all| all.iter().all(long)).ok_or("a needle is none")?;
        let needles = Needles::new(needles.iter().map(|needle| ("needle", needle.expose())));
        let mut unreadable = Vec::new();
        // The target of a link may lie elsewhere.
        let mut may_open = |file: &File| match self.may_open(&file.path) {
            Ok(_) => true,
            // A file that vanishes meanwhile is skipped.
            Err(why) if !matches!(file.path.try_exists(), Ok(false)) => {
                unreadable.push(why);
                false
            }
            Err(_) => false,
        };
        let mut files = scan::files_in(paths);
        files.retain(&mut may_open);
        let report = scan::scan(&needles, files);
        unreadable.extend(report.unreadable);
        let found = report.found.into_iter().map(|(file, tally)| RemoteFile {
            holds_data: file.kind == FileKind::Data,
            name: file.name,
            hits: tally.hits(),
            needles: tally.needles(),
            forms: tally.forms().into_iter().map(str::to_owned).collect(),
        });
        Ok(RemoteMatches { files: report.files, bytes: report.bytes, found: found.collect(), unreadable })
    }

    /// The fingerprint of a settings file.
    fn fingerprint(&self, path: &Path) -> Result<FileFingerprint, String> {
        let path = self.may_open(path)?;
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        if std::fs::metadata(&path).map_err(told)?.len() > SETTINGS_BYTES_MAX {
            return Err(format!("{} is too long for a file of settings", path.display()));
        }
        let bytes = std::fs::read(&path).map_err(told)?;
        Ok(FileFingerprint { bytes: bytes.len() as u64, sha256: sha256(&bytes) })
    }
}

/// What was used in the frame of `ticket`.
fn used(ticket: u64, invalid: bool, watching: &mut Watching) -> Result<Vec<SlotUsage>, String> {
    match watching.take_if(|(of, _)| *of == ticket) {
        Some((_, watch)) => watch.finish(invalid).map(|figures| figures.told()).map_err(|why| why.to_string()),
        None => Err("it was restarted and has not read this frame".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_machine::secret::hex;
    use tithe_model::experiment::Design;

    use super::*;
    use crate::load::Schedule;

    fn config(ports: &[u16], files: &[&Path]) -> ObserverConfig {
        ObserverConfig {
            name: "db1".to_owned(),
            ports: ports.to_vec(),
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            machine: Machine::default(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tithe-observer-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("data")).expect("a folder");
        folder
    }

    fn told<T>(result: Result<T, String>, folder: &Path) -> String {
        let why = result.err().unwrap_or_else(|| "seen".to_owned());
        let here = std::process::id().to_string();
        why.replace(&folder.canonicalize().expect("it is there").display().to_string(), "FOLDER").replace(&here, "HERE")
    }

    #[test]
    fn files_are_opened_below_what_is_allowed_and_nowhere_else() {
        let folder = folder("files").canonicalize().expect("it is there");
        let data = folder.join("data");
        std::fs::write(data.join("base"), "a canary that is long enough").expect("written");
        std::fs::write(folder.join("secret"), "a canary that is long enough").expect("written");
        std::os::unix::fs::symlink(folder.join("secret"), data.join("link")).expect("a link");
        let observer = config(&[], &[&data]);
        let needles = [hex(b"a canary that is long enough")];
        let of = |path: PathBuf| Paths { data: vec![path], ..Paths::default() };
        let found = observer.search(&needles, &of(data.clone())).expect("a search");
        assert_eq!((found.files, found.found.len(), found.found[0].hits), (1, 1, 1));
        let lines = [
            found.unreadable.join("; ").replace(&folder.display().to_string(), "FOLDER"),
            told(observer.search(&needles, &of(folder.clone())), &folder),
            told(observer.search(&needles, &of(data.join("../secret"))), &folder),
            told(observer.search(&["00".to_owned()], &of(data.clone())), &folder),
            told(observer.search(&["zz".to_owned()], &of(data.clone())), &folder),
            told(observer.fingerprint(&data.join("link")), &folder),
            told(observer.fingerprint(&data.join("base")), &folder),
            told(config(&[], &[]).fingerprint(&data.join("base")), &folder),
        ];
        let _ = std::fs::remove_dir_all(&folder);
        expect![[r#"
            it may not open FOLDER/data/link; it was started for these files: FOLDER/data
            it may not open FOLDER; it was started for these files: FOLDER/data
            it may not open FOLDER/data/../secret; it was started for these files: FOLDER/data
            a needle is none
            a needle is none
            it may not open FOLDER/data/link; it was started for these files: FOLDER/data
            seen
            it may not open FOLDER/data/base; it was started for these files: none
        "#]]
        .assert_eq(&lines.map(|line| line + "\n").concat());
    }

    #[test]
    fn processes_are_looked_at_where_they_listen_on_a_port_that_is_allowed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let folder = folder("ports");
        let me = std::process::id() as i32;
        assert!(config(&[port], &[]).usage(me, &Paths::default()).is_ok_and(|usage| usage.tree.cpu_ns > 0));
        let refused = told(config(&[1], &[]).usage(me, &Paths::default()), &folder);
        expect!["process HERE is not a server that it may read: it was started for those that listen on these ports, as far as its account may see them: 1"].assert_eq(&refused);
        assert!(config(&[port], &[]).usage(1, &Paths::default()).is_err(), "another process");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_frame_that_cannot_be_is_refused() {
        let schedule = |blocks, arms| Schedule {
            seed: 1,
            frame: 0,
            blocks,
            arms,
            design: Design::Interleaved,
            frames: 1,
            slot_ns: 1_000,
            settling_ns: 0,
            start_ns: 0,
        };
        let watch = |schedule, lanes, mains| {
            let watched = Watched { ticket: 7, schedule, lanes, mains, serving: Vec::new() };
            config(&[], &[]).watch(watched, &mut None).is_ok()
        };
        assert!(watch(schedule(4, 2), 2, vec![None, None]));
        assert!(!watch(schedule(u32::MAX, 2), 2, vec![None, None]), "blocks");
        assert!(!watch(schedule(4, 2), usize::MAX, vec![None, None]), "lanes");
        assert!(!watch(schedule(4, 2), 2, vec![None]), "arms");
        assert!(!watch(schedule(4, 1), 2, vec![Some(1)]), "another process");
        assert!(!watch(Schedule { slot_ns: 0, ..schedule(4, 2) }, 2, vec![None, None]), "slots that take no time");
        assert!(used(7, true, &mut None).is_err());
        let mut watching = Some((8, ServerWatch::start(schedule(4, 2), &[])));
        assert!(used(7, true, &mut watching).is_err() && watching.is_some(), "another frame is being read");
        assert!(used(8, true, &mut watching).is_ok_and(|slots| slots.is_empty()) && watching.is_none());
    }

    #[test]
    fn only_what_is_named_is_counted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let folder = folder("usage");
        std::fs::write(folder.join("data/base"), vec![1; 5000]).expect("written");
        let observer = config(&[port], &[&folder]);
        let seen = |data: bool, logs: bool| {
            let named = |is_named: bool| if is_named { vec![folder.join("data")] } else { Vec::new() };
            let paths = Paths { data: named(data), logs: named(logs), ..Paths::default() };
            let usage = observer.usage(std::process::id() as i32, &paths).expect("it is seen");
            (usage.disk_bytes.is_some_and(|bytes| bytes > 0), usage.log_bytes)
        };
        assert_eq!([seen(false, false), seen(true, false)], [(false, None), (true, None)]);
        assert_eq!([seen(false, true), seen(true, true)], [(false, Some(5000)), (true, Some(5000))]);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_file_of_settings_has_a_length_that_one_can_have() {
        let folder = folder("settings");
        let path = folder.join("settings");
        let observer = config(&[], &[&folder]);
        let length = |bytes: u64| {
            let file = std::fs::File::create(&path).expect("a file");
            file.set_len(bytes).expect("it is that long");
            observer.fingerprint(&path).map(|seen| seen.bytes).ok()
        };
        let lengths = [0, SETTINGS_BYTES_MAX, SETTINGS_BYTES_MAX + 1].map(length);
        assert_eq!(lengths, [Some(0), Some(SETTINGS_BYTES_MAX), None]);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
