//! The client against a database in memory that can give wrong answers.

use std::{
    collections::{BTreeMap, VecDeque},
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard},
};

use expect_test::{Expect, expect};
use tithe_machine::proc::ServerTask;
use tithe_plugin::{
    session::{Connection, KeyValueSession, Progress, Rows},
    workload::PartRecorder,
};

use super::*;

type Row = Vec<Vec<u8>>;

/// A returned row: its key and its fields.
type Delivered = (Option<Vec<u8>>, Vec<(usize, Vec<u8>)>);

/// A table, and its requests.
#[derive(Default)]
struct Memory {
    rows: BTreeMap<Vec<u8>, Row>,
    requests: Vec<String>,
    bulks: Vec<usize>,
    refuse_inserts: bool,
    /// Drop the last field of every returned row.
    short_rows: bool,
    /// Return the rows of a scan from the last to the first.
    descending: bool,
    /// Forget every write.
    forgetful: bool,
}

/// A session on a shared table; it returns `Pending` once before each answer, as a network does.
struct MemorySession {
    memory: Arc<Mutex<Memory>>,
    answers: VecDeque<Answer>,
}

enum Answer {
    Wait,
    Rows(Vec<Delivered>),
    Written(u64),
    Refused,
}

impl MemorySession {
    fn open(memory: &Arc<Mutex<Memory>>) -> Session {
        Session::KeyValue(Box::new(Self { memory: Arc::clone(memory), answers: VecDeque::new() }))
    }
}

impl Connection for MemorySession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl Memory {
    fn pick(&self, row: &Row, fields: Fields) -> Vec<(usize, Vec<u8>)> {
        let count = row.len() - usize::from(self.short_rows);
        let all = row.iter().cloned().enumerate().take(count);
        all.filter(|&(field, _)| fields == Fields::All || fields == Fields::One(field)).collect()
    }

    fn answer(&mut self, request: &Request<'_>) -> Answer {
        match *request {
            Request::Read { key, fields } => {
                let row = self.rows.get(key).map(|row| (None, self.pick(row, fields)));
                Answer::Rows(row.into_iter().collect())
            }
            Request::Scan { start, count, fields } => {
                let range = self.rows.range(start.to_vec()..).take(count as usize);
                let mut rows: Vec<_> = range.map(|(key, row)| (Some(key.clone()), self.pick(row, fields))).collect();
                if self.descending {
                    rows.reverse();
                }
                Answer::Rows(rows)
            }
            Request::Update { key, values } => match self.rows.get_mut(key) {
                Some(row) => {
                    for &(field, value) in values.iter().filter(|_| !self.forgetful) {
                        row[field] = value.to_vec();
                    }
                    Answer::Written(1)
                }
                None => Answer::Written(0),
            },
            Request::Insert { .. } if self.refuse_inserts => Answer::Refused,
            Request::Insert { key, values } => {
                self.rows.insert(key.to_vec(), values.iter().map(|(_, value)| value.to_vec()).collect());
                Answer::Written(1)
            }
            Request::Delete { key } => Answer::Written(u64::from(self.rows.remove(key).is_some())),
        }
    }
}

impl KeyValueSession for MemorySession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let mut memory = self.memory.lock().unwrap();
        let text = format!("{request:?}");
        memory.requests.push(text);
        let answer = memory.answer(request);
        self.answers.extend([Answer::Wait, answer]);
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        match self.answers.pop_front().expect("a request was submitted") {
            Answer::Wait => Ok(Progress::Pending),
            Answer::Written(count) => Ok(Progress::Done(count)),
            Answer::Refused => Err(Fault::Server("refused".to_owned())),
            Answer::Rows(answer) => {
                for (key, fields) in &answer {
                    rows.row(key.as_deref());
                    fields.iter().for_each(|(field, value)| rows.field(*field, Some(value)));
                }
                Ok(Progress::Done(answer.len() as u64))
            }
        }
    }

    fn begin_bulk(&mut self) -> Result<(), Fault> {
        self.memory.lock().unwrap().bulks.push(0);
        Ok(())
    }

    fn end_bulk(&mut self) -> Result<(), Fault> {
        let mut memory = self.memory.lock().unwrap();
        let so_far = memory.bulks.iter().sum::<usize>();
        let count = memory.rows.len() - so_far;
        *memory.bulks.last_mut().unwrap() = count;
        Ok(())
    }
}

/// Collects the parts of operations.
#[derive(Default)]
struct PartList(Vec<usize>);

impl PartRecorder for PartList {
    fn part(&mut self, operation: usize) {
        self.0.push(operation);
    }
}

/// One arm: a loaded table, a session and a client.
struct Arm {
    workload: Arc<Ycsb>,
    memory: Arc<Mutex<Memory>>,
    state: Arc<dyn ArmState>,
    session: Session,
    client: Box<dyn Client>,
    parts: PartList,
}

fn workload(text: &str, values: Values) -> Arc<Ycsb> {
    Arc::new(Ycsb::new(&properties::parse(text).unwrap(), 200, values, 3).unwrap())
}

impl Arm {
    fn new(workload: &Arc<Ycsb>) -> Self {
        let memory = Arc::new(Mutex::new(Memory::default()));
        let mut session = MemorySession::open(&memory);
        workload.load(&mut session, 0, 1, &AtomicU64::new(0)).unwrap();
        let state = workload.arm_state();
        let client = workload.client(&state);
        let arm = Self { workload: Arc::clone(workload), memory, state, session, client, parts: PartList::default() };
        arm.memory().requests.clear();
        arm
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap()
    }

    fn newest(&self) -> i64 {
        let state: Arc<dyn Any + Send + Sync> = Arc::<dyn ArmState>::clone(&self.state);
        state.downcast::<Records>().unwrap().newest()
    }

    /// Runs one operation.
    fn step(&mut self) -> Result<u64, Fault> {
        self.client.prepare();
        self.client.submit(&mut self.session)?;
        loop {
            if let Progress::Done(rows) = self.client.advance(&mut self.session, &mut self.parts)? {
                return Ok(rows);
            }
        }
    }

    fn run(&mut self, seed: u64, operations: usize) -> Result<(), Fault> {
        self.client.seed(seed);
        (0..operations).try_for_each(|_| self.step().map(drop))
    }

    /// The fault that occurs within 1000 operations.
    fn fault(&mut self) -> Fault {
        self.run(1, 1000).expect_err("the lie is found")
    }
}

const ALL_KINDS: &str = "readproportion=0.2\nupdateproportion=0.2\ninsertproportion=0.2\nscanproportion=0.2\n\
    readmodifywriteproportion=0.2\nmaxscanlength=20\nfieldlength=12\nfieldcount=3\n";

fn with(text: &str) -> String {
    format!("{ALL_KINDS}{text}\n")
}

#[test]
fn every_kind_runs_and_every_row_is_right() {
    let lengths = "fieldlengthdistribution=uniform";
    for text in ["", "dataintegrity=true", "readallfields=false", "writeallfields=true", lengths] {
        for distribution in ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"] {
            let mut arm =
                Arm::new(&workload(&with(&format!("{text}\nrequestdistribution={distribution}")), Values::Ycsb));
            arm.run(42, 2000).unwrap_or_else(|fault| panic!("{text} {distribution}: {fault}"));
            assert!(arm.newest() > 500, "inserts are acknowledged");
            assert_eq!(arm.memory().rows.len() as i64, arm.newest() + 1);
        }
    }
    let mut arm = Arm::new(&workload(ALL_KINDS, Values::Incompressible));
    arm.run(42, 2000).unwrap();
}

#[test]
fn the_same_seed_gives_the_same_requests_to_two_arms() {
    let workload = workload(ALL_KINDS, Values::Ycsb);
    let (mut first, mut second) = (Arm::new(&workload), Arm::new(&workload));
    first.run(1, 300).unwrap();
    second.run(1, 300).unwrap();
    assert_eq!(first.memory().requests, second.memory().requests);
    first.memory().requests.clear();
    first.run(2, 300).unwrap();
    assert_ne!(first.memory().requests, second.memory().requests);
}

#[test]
fn inserts_go_on_over_seeds() {
    let mut arm = Arm::new(&workload("readproportion=0\nupdateproportion=0\ninsertproportion=1", Values::Ycsb));
    for seed in 0..3 {
        arm.run(7, 10).unwrap();
        assert_eq!(arm.newest(), 199 + 10 * (seed + 1));
    }
}

#[test]
fn a_read_modify_write_has_two_parts() {
    let text = "readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1";
    let mut arm = Arm::new(&workload(text, Values::Ycsb));
    arm.run(1, 2).unwrap();
    let names = arm.workload.operations();
    assert_eq!(names, ["READ", "UPDATE", "READ-MODIFY-WRITE"]);
    assert_eq!(arm.parts.0.iter().map(|&part| names[part]).collect::<Vec<_>>(), ["READ", "UPDATE", "READ", "UPDATE"]);
    assert_eq!(names[arm.client.operation()], "READ-MODIFY-WRITE");
    let verbs: Vec<String> = arm.memory().requests.iter().map(|it| it.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(verbs, ["Read", "Update", "Read", "Update"]);
}

/// Runs operations on an arm whose table was changed by `lie`, and compares the fault.
fn check_fault(text: &str, lie: impl FnOnce(&mut Memory), expected: &Expect) {
    let mut arm = Arm::new(&workload(text, Values::Ycsb));
    lie(&mut arm.memory());
    expected.assert_eq(&arm.fault().to_string());
}

const READS: &str = "readproportion=1\nupdateproportion=0\ninsertorder=ordered\nzeropadding=3\nfieldcount=3";
const SCANS: &str = "readproportion=0\nupdateproportion=0\nscanproportion=1\nmaxscanlength=9\ninsertorder=ordered\n\
    zeropadding=3\nfieldcount=3";
const WRITES: &str = "readproportion=0\nupdateproportion=1\ninsertorder=ordered\nzeropadding=3\nfieldcount=3";

fn change_all(memory: &mut Memory, change: impl Fn(&mut Row)) {
    memory.rows.values_mut().for_each(change);
}

#[test]
fn a_changed_byte_is_found() {
    let flip = |memory: &mut Memory| change_all(memory, |row| row[1][50] ^= 1);
    check_fault(
        READS,
        flip,
        &expect!["wrong answer: user072: field1 has a value of 100 bytes that was never written there"],
    );
    check_fault(
        SCANS,
        flip,
        &expect!["wrong answer: user072: field1 has a value of 100 bytes that was never written there"],
    );
    check_fault(
        &format!("{READS}\ndataintegrity=true"),
        flip,
        &expect!["wrong answer: user072: field1 has a value of 100 bytes that was never written there"],
    );
}

#[test]
fn a_value_of_another_field_or_row_is_found() {
    check_fault(
        READS,
        |memory| change_all(memory, |row| row.swap(0, 2)),
        &expect!["wrong answer: user072: field0 has a value of 100 bytes that was never written there"],
    );
    let exchange = |memory: &mut Memory| {
        let rows: Vec<Row> = memory.rows.values().rev().cloned().collect();
        memory.rows.values_mut().zip(rows).for_each(|(row, other)| *row = other);
    };
    check_fault(
        READS,
        exchange,
        &expect!["wrong answer: user072: field0 has a value of 100 bytes that was never written there"],
    );
    check_fault(
        SCANS,
        exchange,
        &expect!["wrong answer: user072: field0 has a value of 100 bytes that was never written there"],
    );
}

#[test]
fn a_cut_value_and_a_missing_field_are_found() {
    check_fault(
        READS,
        |memory| change_all(memory, |row| row[2].truncate(99)),
        &expect!["wrong answer: user072: field2 has a value of 99 bytes that was never written there"],
    );
    check_fault(READS, |memory| memory.short_rows = true, &expect!["wrong answer: user072: 2 of 3 fields"]);
    check_fault(SCANS, |memory| memory.short_rows = true, &expect!["wrong answer: user072: 2 of 3 fields"]);
}

#[test]
fn a_missing_row_is_found() {
    let remove = |memory: &mut Memory| memory.rows.retain(|key, _| key.ends_with(b"7"));
    check_fault(READS, remove, &expect!["wrong answer: user072: there is no row, though it was written"]);
    check_fault(SCANS, remove, &expect!["wrong answer: user072: there is no row, though it was written"]);
    check_fault(WRITES, remove, &expect!["wrong answer: user072: the write changed no row"]);
}

#[test]
fn a_scan_out_of_order_is_found() {
    check_fault(
        SCANS,
        |memory| memory.descending = true,
        &expect!["wrong answer: user074: the scanned keys do not ascend"],
    );
}

/// The limit in the module's documentation is real: a lost update is not found.
#[test]
fn a_lost_update_is_not_found() {
    let mut arm = Arm::new(&workload(&format!("{WRITES}\nreadproportion=1"), Values::Ycsb));
    arm.memory().forgetful = true;
    arm.run(1, 1000).unwrap();
}

#[test]
fn a_failed_insert_is_a_failed_operation_and_no_lost_row() {
    let text = "readproportion=1\nupdateproportion=0\ninsertproportion=1\nrequestdistribution=latest";
    let mut arm = Arm::new(&workload(text, Values::Ycsb));
    arm.memory().refuse_inserts = true;
    arm.client.seed(5);
    let outcomes: Vec<_> = (0..200).map(|_| arm.step()).collect();
    let count = |wanted: &str| outcomes.iter().filter(|it| format!("{it:?}").contains(wanted)).count();
    assert!(count("refused") > 50);
    assert!(count("no row, as its insert had failed") > 10);
    assert_eq!(count("Wrong"), 0);
    assert_eq!(arm.newest(), 199 + count("refused") as i64);
}

#[test]
fn an_insert_that_was_not_sent_gives_its_number_back() {
    let workload = workload("readproportion=0\nupdateproportion=0\ninsertproportion=1", Values::Ycsb);
    let mut arm = Arm::new(&workload);
    let mut other = workload.client(&arm.state);
    other.seed(1);
    other.prepare();
    arm.run(2, 1).unwrap();
    assert_eq!(arm.newest(), 199, "200 is the other client's");
    drop(other);
    arm.run(2, 1).unwrap();
    assert_eq!(arm.newest(), 201);
}

#[test]
fn an_insert_without_an_answer_does_not_hold_up_the_others() {
    let workload = workload("readproportion=0\nupdateproportion=0\ninsertproportion=1", Values::Ycsb);
    let mut arm = Arm::new(&workload);
    let mut other = workload.client(&arm.state);
    other.prepare();
    other.submit(&mut MemorySession::open(&arm.memory)).unwrap();
    drop(other);
    arm.run(2, 1).unwrap();
    assert_eq!(arm.newest(), 201);
}

#[test]
fn partitions_load_every_record_once_in_groups() {
    let workload = Ycsb::new(&BTreeMap::new(), 2500, Values::Ycsb, 3).unwrap();
    let memory = Arc::new(Mutex::new(Memory::default()));
    let done = AtomicU64::new(0);
    for partition in 0..2 {
        workload.load(&mut MemorySession::open(&memory), partition, 2, &done).unwrap();
    }
    assert_eq!((memory.lock().unwrap().rows.len(), done.into_inner()), (2500, 2500));
    assert_eq!(memory.lock().unwrap().bulks, [1000, 250, 1000, 250]);
}

#[test]
fn the_description_names_what_changes_the_load() {
    let describe = |text: &str, expected: Expect| {
        let lines = workload(text, Values::Ycsb).describe();
        expected.assert_eq(&lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>());
    };
    describe(
        "threadcount=4\ndb.passwd=secret",
        expect![[r#"
            requestdistribution: uniform
            READ: 95 %
            UPDATE: 5 %
            fields: 10 of 100 bytes
            values: ycsb
            threadcount: 4, where the experiment has no `clients`
            db.passwd: ignored: the experiment's database and arms decide it
        "#]],
    );
    describe(
        &with("requestdistribution=hotspot\ninsertorder=ordered\nwriteallfields=true"),
        expect![[r#"
        requestdistribution: hotspot, 80 % of operations on 20 % of records
        READ: 20 %
        UPDATE: 20 %
        INSERT: 20 %
        SCAN: 20 %
        READ-MODIFY-WRITE: 20 %
        fields: 3 of 12 bytes
        values: ycsb
        scan length: 1 to 20, uniform
        writeallfields: true
        insertorder: ordered
    "#]],
    );
}

#[test]
fn problems_of_the_experiment_are_told_with_those_of_the_file() {
    let problems = |text: &str, values| {
        let properties = properties::parse(text).unwrap();
        let problems = Ycsb::new(&properties, 100, values, 3).err().unwrap_or_default();
        problems.iter().map(|(name, problem, _)| format!("{name}: {problem}\n")).collect::<String>()
    };
    expect![[r#"
        readallfields: "1" is neither true nor false
        insertstart: records 100 to 99 are asked for, of 100 records
    "#]]
    .assert_eq(&problems("insertstart=100\nreadallfields=1", Values::Ycsb));
    expect![[r#"
        dataintegrity: values that follow from their key are not incompressible
    "#]]
    .assert_eq(&problems("dataintegrity=true", Values::Incompressible));
    expect![[r#"
        fieldlengthhistogram: /no/such: No such file or directory (os error 2)
    "#]]
    .assert_eq(&problems("fieldlengthdistribution=histogram\nfieldlengthhistogram=/no/such", Values::Ycsb));
}

#[test]
fn another_process_goes_on_with_the_records_that_one_has_inserted() {
    let records = Records::new(200);
    let numbers: Vec<i64> = (0..5).map(|_| records.reserve()).collect();
    for number in [200, 203] {
        records.acknowledge(number).unwrap();
    }
    records.doubt(201).unwrap();
    records.give_back(202);
    let other = Records::new(200);
    other.go_on(&records.reached());
    assert_eq!(other.reached(), records.reached());
    assert_eq!((other.newest(), other.is_doubtful(201), other.is_doubtful(200)), (201, true, false));
    assert_eq!([other.reserve(), other.reserve()], [202, 205], "{numbers:?}");
    let untouched = Records::new(200);
    for nonsense in [&[][..], &[1], &[1, 300], &[1, 300, 9, 1], &[1, 300, -1], &[1, 300, 0, 0]] {
        untouched.go_on(nonsense);
        assert_eq!(untouched.reached(), Records::new(200).reached(), "{nonsense:?}");
    }
}

#[test]
fn parts_share_what_was_loaded_and_insert_each_record_once() {
    let parts: Vec<Records> = (0..3).map(|_| Records::new(10)).collect();
    (0..).zip(&parts).for_each(|(part, records)| records.divide(part, 3));
    let loaded = |records: &Records| (0..10).all(|record| records.number_of(record) == record);
    assert!(parts.iter().all(loaded));
    let inserted = |records: &Records| (0..4).map(|_| records.number_of(records.reserve())).collect::<Vec<i64>>();
    let mut numbers: Vec<i64> = parts.iter().flat_map(inserted).collect();
    assert_eq!(numbers[..4], [10, 13, 16, 19]);
    numbers.sort_unstable();
    assert_eq!(numbers, (10..22).collect::<Vec<i64>>());
    let whole = Records::new(10);
    assert_eq!(whole.number_of(whole.reserve()), 10);
}
