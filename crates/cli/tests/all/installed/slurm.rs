//! A matrix carried out by Slurm: a controller and three nodes in namespaces of their own, on this machine's kernel.
//!
//! Without Slurm, munge or namespaces these tests are skipped with a notice; with `CI` set they fail. All files are in
//! the test's own folder; the installed packages need no settings and no running service.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Bench, FEW_OPERATIONS, err, hosts::Hosts, known_costs, out, process::Process, sealed, status, wait_in_steps,
    wait_until,
};

/// Where the programs are.
const FOLDERS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Number of tasks in the array of empty ones, unless `TITHE_EMPTY_TASKS` is set: more than the cluster runs at once.
const EMPTY_TASKS: usize = 30;

/// The cluster's settings, with FOLDER for the test's. Nodes have eight processors, whatever the machine has, so that
/// short tasks do not wait for the controller, which schedules once a second. A node that does not answer counts as
/// lost after 10 s: while many tasks run on few processors, it may need seconds.
const SETTINGS: &str = "\
ClusterName=tithe
SlurmctldHost=host1(10.77.0.1)
NodeName=host[2-4] NodeAddr=10.77.0.[2-4] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=FOLDER/munge
StateSaveLocation=FOLDER/state
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdSpoolDir=FOLDER/%n
SlurmdPidFile=FOLDER/%n.pid
SlurmdLogFile=FOLDER/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
JobCompType=jobcomp/filetxt
JobCompLoc=FOLDER/ended.txt
ReturnToService=2
SlurmdTimeout=10
KillWait=2
";

/// A controller on the first host and a node on each of the others, which end when this is dropped.
struct Cluster<'a> {
    bench: &'a Bench,
    running: Vec<Process>,
    hosts: Hosts,
}

impl<'a> Cluster<'a> {
    /// A cluster with its files in the folder of `bench`, whose nodes are ready.
    #[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
    fn start(bench: &'a Bench) -> Option<Self> {
        for name in ["munged", "slurmctld", "slurmd", "sbatch"] {
            if program(name).is_none() {
                assert!(std::env::var_os("CI").is_none(), "{name} is not installed");
                eprintln!("SKIPPED: {name} is not installed (Debian, Ubuntu: apt-get install slurmctld slurmd)");
                return None;
            }
        }
        let mut cluster = Self { bench, running: Vec::new(), hosts: Hosts::new(4)? };
        let at = |name: &str| bench.path(name).display().to_string();
        bench.file("slurm.conf", &SETTINGS.replace("FOLDER", &at("cluster")));
        for folder in ["cluster", "cluster/state", "cluster/host2", "cluster/host3", "cluster/host4", "disk"] {
            fs::create_dir(bench.path(folder)).expect("a folder");
        }
        let key = bench.file("cluster/munge.key", &"no secret: all that knows it is in this folder. ".repeat(3));
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("permissions");
        let files = [
            ("key-file", "munge.key"),
            ("socket", "munge"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ];
        let munge = files.map(|(option, file)| format!("--{option}={}", at(&format!("cluster/{file}"))));
        cluster.spawn(0, Command::new("munged").args(["--foreground", "--force"]).args(munge));
        wait_until(|| bench.path("cluster/munge").exists());
        cluster.spawn(0, Command::new("slurmctld").arg("-D"));
        for index in 1..4 {
            cluster.spawn(index, Command::new("slurmd").args(["-D", "-N", &format!("host{}", index + 1)]));
        }
        await_answer(|| cluster.said("sinfo", &["-h", "-o", "%D %t"]) == "3 idle\n");
        assert_eq!(cluster.said("sinfo", &["-h", "-o", "%D %t"]), "3 idle\n", "{}", cluster.logs());
        Some(cluster)
    }

    fn spawn(&mut self, index: usize, command: &mut Command) {
        self.prepare(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = self.hosts[index].spawn(command);
        self.running.push(process);
    }

    /// Adds the cluster, tithe and the simulated database to the environment of `command`.
    fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let tithe = Path::new(env!("CARGO_BIN_EXE_tithe")).parent().expect("a folder");
        command
            .current_dir(self.bench.path("."))
            .env("PATH", format!("{}:{FOLDERS}", tithe.display()))
            .env("SLURM_CONF", self.bench.path("slurm.conf"))
            .env("TMPDIR", self.bench.path("disk"))
            .env("TITHE_SIMULATED", "1")
    }

    /// Runs Slurm's `program` on the host of the controller.
    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        self.hosts[0].output(self.prepare(command.args(arguments)))
    }

    /// Its output.
    fn said(&self, program: &str, arguments: &[&str]) -> String {
        out(&self.output(program, arguments))
    }

    /// Runs Slurm's `program`, which must succeed.
    fn done(&self, program: &str, arguments: &[&str]) {
        let output = self.output(program, arguments);
        assert_eq!(status(&output), 0, "{}{}", err(&output), self.logs());
    }

    /// Waits until no job is left.
    fn wait_for_jobs(&self) {
        let are_gone = || {
            let jobs = self.output("squeue", &["-h"]);
            status(&jobs) == 0 && jobs.stdout.is_empty()
        };
        await_answer(are_gone);
        assert!(are_gone(), "{}{}", self.said("squeue", &[]), self.logs());
    }

    /// The last lines of its programs' logs, to find the cause of a failure.
    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.bench.path(&format!("cluster/{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("\n{name}:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"))
        };
        ["slurmctld", "host2", "host3", "host4"].map(tail).concat()
    }
}

/// As [`wait_until`] for a question to a program of Slurm's: the answer takes about as long as the usual pause, and the
/// controller schedules once a second.
fn await_answer(holds: impl Fn() -> bool) {
    wait_in_steps(Duration::from_millis(200), holds);
}

/// The path of an installed program.
fn program(name: &str) -> Option<PathBuf> {
    FOLDERS.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The lines of a text, each with its number of occurrences.
fn counted(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        *lines.entry(line).or_default() += 1;
    }
    lines
}

#[test]
fn every_task_is_done_once_though_a_node_is_killed_in_the_middle_of_one() {
    let bench = Bench::new("slurm");
    let Some(cluster) = Cluster::start(&bench) else { return };
    // The first takes seconds of processor time, so that a node can be killed meanwhile.
    let cheap = known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s");
    bench.file("long.toml", &known_costs("", &sealed(0.05), "5 min").replace("0.2%", "0.01%"));
    bench.file("short.toml", &cheap);
    bench.file("m.toml", "title = \"Slurm\"\nexperiments = [\"long.toml\", \"short.toml\"]\nreplicates = 2\n");
    let script = bench.tithe(&["matrix", "script", "m.toml", "--for", "slurm", "--into", "all"]);
    assert_eq!(status(&script), 0, "{}", err(&script));
    bench.file("job.sh", &out(&script));
    cluster.done("sh", &["job.sh"]);

    // Node host2 has the job's script and the first of its two tasks.
    let measures = |task: usize| {
        let all = names(&bench.path("disk"));
        let name = all.iter().find(|name| name.ends_with(&format!("task-{task:05}")));
        name.is_some_and(|name| {
            let frames = bench.path("disk").join(name).join("frames.jsonl");
            fs::metadata(frames).is_ok_and(|file| file.len() > 0)
        })
    };
    wait_until(|| measures(0) && measures(1));
    cluster.hosts[1].lose_power();
    assert!(measures(0), "it was whole before: {:?}{}", names(&bench.path("all")), cluster.logs());
    let told = bench.tithe(&["matrix", "status", "m.toml", "all"]);
    assert_eq!(status(&told), 4);
    assert!(out(&told).contains(": it ended early, or is still running"), "{}", out(&told));

    // Slurm notices the lost node, and requeues the job by itself.
    let is_back = || cluster.said("squeue", &["-h", "-t", "PENDING", "-o", "%K %r"]).contains("0 BeginTime");
    await_answer(is_back);
    assert!(is_back(), "{}{}", cluster.said("squeue", &[]), cluster.logs());
    // The other node's task may be complete by now.
    let made = |task: usize| {
        let outcome = bench.path(&format!("all/task-{task:05}/task.json"));
        fs::metadata(outcome).and_then(|file| file.modified()).ok()
    };
    let before: Vec<_> = (0..4).map(made).collect();
    // Slurm would wait for two minutes: by then a node that is back has answered all earlier requests. Here the node
    // stays away, and another takes its place.
    let job = cluster.said("squeue", &["-h", "-r", "-t", "PENDING", "-o", "%i %K"]);
    let job = job.lines().find_map(|line| line.strip_suffix(" 0")).expect("the job");
    cluster.done("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]);
    cluster.wait_for_jobs();

    let tasks = ["task-00000", "task-00001", "task-00002", "task-00003"];
    assert_eq!(names(&bench.path("all")), tasks, "{}", cluster.logs());
    assert_eq!(names(&bench.path("disk")), [] as [&str; 0]);
    let outputs = names(&bench.path(".")).into_iter().filter(|name| name.starts_with("slurm-"));
    let outputs: String = outputs.map(|name| fs::read_to_string(bench.path(&name)).expect("text")).collect();
    // A job that is started again writes its output again: a line for each task, and no task is measured twice.
    for (task, before) in before.into_iter().enumerate() {
        let lines = ["is done", "was done before"].map(|how| format!("task {task} {how}: all/task-{task:05}"));
        let count: usize = lines.iter().filter_map(|line| counted(&outputs).get(line.as_str()).copied()).sum();
        assert_eq!(count, 1, "task {task}: {outputs}");
        assert!(before.is_none() || before == made(task), "task {task} was measured twice");
    }
    let told = bench.tithe(&["matrix", "status", "m.toml", "all"]);
    assert_eq!((status(&told), out(&told).as_str()), (0, "Slurm: 4 of 4 tasks whole, on 1 host\n"));
    let gathered = bench.tithe(&["matrix", "gather", "m.toml", "all", "--to", "all.json"]);
    assert_eq!(status(&gathered), 0, "{}", err(&gathered));
    let report = bench.tithe(&["report", "all.json"]);
    assert!(status(&report) == 0 && out(&report).contains("sealed"), "{}{}", out(&report), err(&report));
}

#[test]
fn an_array_of_empty_tasks_is_carried_out() {
    let bench = Bench::new("slurm-array");
    let Some(cluster) = Cluster::start(&bench) else { return };
    let asked = std::env::var("TITHE_EMPTY_TASKS").ok().map(|count| count.parse().expect("a number"));
    let count: usize = asked.unwrap_or(EMPTY_TASKS);
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s"));
    bench.file("m.toml", &format!("title = \"Array\"\nexperiments = [\"e.toml\"]\nreplicates = {count}\n"));
    let first = bench.tithe(&["matrix", "run", "m.toml", "--task", "0", "--into", "all", "--quiet"]);
    assert_eq!(status(&first), 0, "{}", err(&first));
    let text = fs::read_to_string(bench.path("all/task-00000/task.json")).expect("text");
    let mut outcome: Value = serde_json::from_str(&text).expect("JSON");
    for task in 1..count {
        outcome["task"] = json!(task);
        let folder = bench.path(&format!("all/task-{task:05}"));
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("task.json"), outcome.to_string()).expect("written");
    }
    // A task that is done ends at once: such a task is empty, and has the same contract.
    bench.file("job.sh", "#!/bin/sh\nexec tithe matrix run m.toml --task $SLURM_ARRAY_TASK_ID --into all --quiet\n");
    let array = format!("--array=0-{}", count - 1);
    cluster.done("sbatch", &[&array, "--output=said.txt", "--open-mode=append", "job.sh"]);
    cluster.wait_for_jobs();

    let said = fs::read_to_string(bench.path("said.txt")).expect("text");
    let lines: Vec<String> =
        (0..count).map(|task| format!("task {task} was done before: all/task-{task:05}")).collect();
    assert_eq!(counted(&said), lines.iter().map(|line| (line.as_str(), 1)).collect());
    let ended = fs::read_to_string(bench.path("cluster/ended.txt")).expect("text");
    assert_eq!(ended.lines().filter(|line| line.contains("JobState=COMPLETED")).count(), count);
    let told = bench.tithe(&["matrix", "status", "m.toml", "all"]);
    assert_eq!(status(&told), 0, "{}", out(&told));
}
