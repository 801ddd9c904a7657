//! The observers of a run, and the questions that it asks them.

use std::{
    collections::BTreeSet,
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    paths::Paths,
    remote::{Ends, Known, RemoteMatches, RemoteUsage, ServerMachine},
    secret::hex,
};
use tithe_model::{experiment::Arm, invalid::Invalid, plan::Plan, record::Machine};

use super::membership::{self, patiently};
use crate::agents::{
    link::{Answer, Link},
    message::{Hello, read, write},
    query::{FileFingerprint, Query, QueryReply, SlotUsage, Watched, observer},
};

/// How long an answer may take that needs only the kernel.
const WITHIN: Duration = Duration::from_secs(5);

/// How long a search through all files of a server may take.
const SEARCH_WITHIN: Duration = Duration::from_secs(900);

/// An observer on the machine of an attached server.
pub struct ServerObserver {
    link: Arc<dyn Link>,
    hello: Hello,
}

impl fmt::Debug for ServerObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerObserver").field("name", &self.hello.name).finish_non_exhaustive()
    }
}

/// The observers that `plan` names, once all are there, waiting for at most `wait`.
///
/// # Errors
/// Which are missing; when two have one name, or one runs another version.
pub fn gather(
    link: &Arc<dyn Link>,
    plan: &Plan,
    wait: Duration,
    cancelled: &AtomicBool,
) -> Result<Vec<Arc<ServerObserver>>, Fault> {
    let of_arm = |arm: &Arm| Some(arm.observer.as_ref()?.name.clone());
    let names: BTreeSet<String> = plan.experiment.arms.iter().filter_map(of_arm).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let deadline = Instant::now() + wait;
    loop {
        let there = patiently((deadline, cancelled), || membership::observers(&**link))?;
        let missing = names.iter().find(|name| there.iter().all(|hello| hello.name != **name));
        match missing {
            Some(name) if Instant::now() > deadline || cancelled.load(Ordering::SeqCst) => {
                let there: Vec<&str> = there.iter().map(|hello| hello.name.as_str()).collect();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                return Err(Fault::Refused(format!(
                    "observer {name} is not there: start `tithe observe --name {name}` on the machine of the server; \
                     there are: {there}"
                )));
            }
            Some(_) => {}
            None => {
                membership::alike(&there).map_err(Fault::Refused)?;
                let named = there.into_iter().filter(|hello| names.contains(&hello.name));
                return Ok(named.map(|hello| Arc::new(ServerObserver { link: link.clone(), hello })).collect());
            }
        }
    }
}

impl ServerObserver {
    /// Its description of itself.
    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The machine that it is on.
    pub fn machine(&self) -> &Machine {
        &self.hello.machine
    }

    fn lost(&self) -> Fault {
        Fault::Connection(format!("observer {} was lost", self.hello.name))
    }

    fn ask(&self, query: &Query, within: Duration) -> Result<QueryReply, Fault> {
        match self.link.request(&observer(&self.hello.name), &write(query)?, within)? {
            Answer::Reply(reply) => read(&reply).ok_or_else(|| self.odd()),
            Answer::NoResponders | Answer::TimedOut => Err(self.lost()),
        }
    }

    /// The error if it answers something else.
    fn odd(&self) -> Fault {
        Fault::Connection(format!("observer {} answered another question than it was asked", self.hello.name))
    }

    /// The error if `reply` is not what was asked for.
    fn instead(&self, reply: QueryReply) -> Fault {
        match reply {
            QueryReply::Refused(why) => Fault::Refused(format!("observer {}: {why}", self.hello.name)),
            _ => self.odd(),
        }
    }

    /// Starts its reading of what servers use in the slots of a frame.
    pub(super) fn watch(&self, watched: Watched) -> Result<(), Fault> {
        match self.ask(&Query::Watch(Box::new(watched)), WITHIN)? {
            QueryReply::Watching => Ok(()),
            other => Err(self.instead(other)),
        }
    }

    /// What it has read of the frame of `ticket`.
    pub(super) fn used(&self, ticket: u64, invalid: bool) -> Result<Vec<SlotUsage>, Invalid> {
        let in_words = |fault: Fault| Invalid::Other(fault.to_string());
        match self.ask(&Query::Used { ticket, invalid }, WITHIN).map_err(in_words)? {
            QueryReply::Slots(slots) => Ok(slots),
            // The text comes from an observer, not from a server.
            QueryReply::Refused(why) => {
                Err(Invalid::OfObserver(self.hello.name.clone(), Box::new(Invalid::read(&why))))
            }
            other => Err(in_words(self.instead(other))),
        }
    }

    /// The fingerprint of each of `files`; the reason if it cannot be read.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn fingerprints(&self, files: &[PathBuf]) -> Result<Vec<Result<FileFingerprint, String>>, Fault> {
        match self.ask(&Query::Fingerprints(files.to_vec()), WITHIN)? {
            QueryReply::Fingerprints(told) if told.len() == files.len() => Ok(told),
            other => Err(self.instead(other)),
        }
    }
}

impl ServerMachine for ServerObserver {
    fn name(&self) -> &str {
        &self.hello.name
    }

    fn server_at(&self, ends: Ends, known: Known<'_>) -> Result<Result<i32, String>, Fault> {
        let Ends { client, server } = ends;
        let programs = known.programs.iter().map(|program| (*program).to_owned()).collect();
        match self.ask(&Query::Server { client, server, programs, serving: known.serving }, WITHIN)? {
            QueryReply::Server(process) => Ok(Ok(process)),
            QueryReply::Refused(why) => Ok(Err(format!("observer {}: {why}", self.hello.name))),
            other => Err(self.instead(other)),
        }
    }

    fn usage(&self, process: i32, paths: &Paths) -> Result<RemoteUsage, Fault> {
        match self.ask(&Query::Usage { process, paths: paths.clone() }, WITHIN)? {
            QueryReply::Usage(usage) => Ok(usage),
            other => Err(self.instead(other)),
        }
    }

    fn search(&self, needles: &[(&'static str, &[u8])], paths: &Paths) -> Result<RemoteMatches, Fault> {
        let needles = needles.iter().map(|(_, needle)| hex(needle)).collect();
        match self.ask(&Query::Search { needles, paths: paths.clone() }, SEARCH_WITHIN)? {
            QueryReply::Found(found) => Ok(found),
            other => Err(self.instead(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        net::{SocketAddr, TcpListener},
        path::Path,
    };

    use tithe_model::experiment::{Design, Observed};

    use super::*;
    use crate::{
        agents::{
            observer::ObserverConfig,
            tests::{WAIT, at_last, hello, local::Hub, plan, with_observers},
        },
        load::Schedule,
    };

    const CANARY: &[u8] = b"a canary that is long enough";

    /// An observer of this `name` that may read servers on these `ports` and these `files`.
    fn config(name: &str, ports: &[u16], files: &[&Path]) -> ObserverConfig {
        ObserverConfig {
            name: name.to_owned(),
            ports: ports.to_vec(),
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            machine: Machine::default(),
        }
    }

    /// A plan whose second arm has an observer of this `name`.
    fn observed_by(name: &str) -> Plan {
        let mut plan = plan("c");
        let none = Vec::new;
        plan.experiment.arms[1].observer =
            Some(Observed { name: name.to_owned(), data: none(), journal: none(), logs: none(), settings: none() });
        plan
    }

    #[test]
    fn observers_are_those_that_the_plan_names() {
        let cancelled = AtomicBool::new(false);
        with_observers(&["db1", "db2"].map(|name| config(name, &[], &[])), |hub| {
            let link: Arc<dyn Link> = Arc::new(hub.link(0));
            let names = |plan: &Plan| {
                let observers = gather(&link, plan, WAIT, &cancelled).expect("they are there");
                observers.iter().map(|observer| observer.hello().name.clone()).collect::<Vec<String>>()
            };
            assert_eq!(names(&plan("c")), [""; 0]);
            assert_eq!(names(&observed_by("db2")), ["db2"]);
            // A roll call misses an observer that answers late.
            let told = at_last(|| {
                let gathered = gather(&link, &observed_by("db3"), Duration::ZERO, &cancelled).map(drop);
                let told = gathered.expect_err("nobody has this name").to_string();
                Some(told).filter(|told| told.contains("db1, db2"))
            });
            let expected = "refused: observer db3 is not there: start `tithe observe --name db3` on the machine of the \
                            server; there are: db1, db2";
            assert_eq!(told, expected);
        });
    }

    #[test]
    fn an_observer_answers_about_its_servers_and_files_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("settings");
        fs::write(&file, CANARY).expect("written");
        let cancelled = AtomicBool::new(false);
        with_observers(&[config("db1", &[port], &[folder.path()])], |hub| {
            let link: Arc<dyn Link> = Arc::new(hub.link(0));
            let observer = gather(&link, &observed_by("db1"), WAIT, &cancelled).expect("it is there").remove(0);
            let paths = Paths { data: vec![folder.path().to_owned()], ..Paths::default() };
            let usage = observer.usage(std::process::id() as i32, &paths).expect("its server");
            assert!(usage.tree.cpu_ns > 0 && usage.disk_bytes.is_some(), "{usage:?}");
            assert!(observer.usage(1, &paths).is_err(), "another process");
            let found = observer.search(&[("canary", CANARY)], &paths).expect("a search");
            assert_eq!((found.files, found.found.len()), (1, 1));
            let marks = observer.fingerprints(&[file.clone(), PathBuf::from("/")]).expect("an answer");
            let bytes: Vec<Option<u64>> = marks.iter().map(|mark| Some(mark.as_ref().ok()?.bytes)).collect();
            assert_eq!(bytes, [Some(CANARY.len() as u64), None]);
            let [client, server] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 7)));
            let known = Known { programs: &["nobody"], serving: None };
            let unknown = observer.server_at(Ends { client, server }, known).expect("an answer");
            assert!(unknown.as_ref().is_err_and(|why| why.starts_with("observer db1: ")), "{unknown:?}");
        });
    }

    #[test]
    fn an_observer_reads_the_frame_that_it_was_asked_to_read_once() {
        let cancelled = AtomicBool::new(false);
        with_observers(&[config("db1", &[], &[])], |hub| {
            let link: Arc<dyn Link> = Arc::new(hub.link(0));
            let observer = gather(&link, &observed_by("db1"), WAIT, &cancelled).expect("it is there").remove(0);
            let watch = |mains: Vec<Option<i32>>| {
                let schedule = Schedule {
                    seed: 1,
                    frame: 0,
                    blocks: 4,
                    arms: 2,
                    design: Design::Interleaved,
                    frames: 1,
                    slot_ns: 1_000,
                    settling_ns: 0,
                    start_ns: 0,
                };
                observer.watch(Watched { ticket: 7, schedule, lanes: 1, mains, serving: Vec::new() })
            };
            let used = |ticket: u64| observer.used(ticket, true).err().map(|why| why.to_string());
            let unread = Some("refused: observer db1: it was restarted and has not read this frame".to_owned());
            assert_eq!(used(7), unread);
            assert!(watch(vec![Some(1), None]).is_err(), "a server that it may not read");
            assert_eq!(watch(vec![None; 2]), Ok(()));
            assert_eq!([used(8), used(7), used(7)], [unread.clone(), None, unread]);
        });
    }

    #[test]
    fn an_observer_that_answers_another_question_has_not_answered() {
        let told = |reply: QueryReply| {
            let hub = Hub::default();
            let mut questions = hub.link(0).subscribe(&observer("db")).expect("a subject");
            let asked = ServerObserver { link: Arc::new(hub.link(0)), hello: hello("db") };
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let question = questions.next(WAIT).expect("a link").expect("a question");
                    let reply_to = question.reply_to.expect("it waits for an answer");
                    hub.link(0).publish(&reply_to, &write(&reply).expect("JSON")).expect("a link");
                });
                match asked.fingerprints(&[PathBuf::from("/a")]) {
                    Ok(marks) => format!("{} of one", marks.len()),
                    Err(fault) => fault.to_string(),
                }
            })
        };
        let odd = "connection: observer db answered another question than it was asked";
        assert_eq!(told(QueryReply::Fingerprints(vec![Err("no".to_owned())])), "1 of one");
        assert_eq!(told(QueryReply::Fingerprints(Vec::new())), odd);
        assert_eq!(told(QueryReply::Watching), odd);
        assert_eq!(told(QueryReply::Refused("no".to_owned())), "refused: observer db: no");
        let nobody = ServerObserver { link: Arc::new(Hub::default().link(0)), hello: hello("db") };
        let lost = nobody.fingerprints(&[]).expect_err("nobody answers").to_string();
        assert_eq!(lost, "connection: observer db was lost");
    }
}
