use std::{
    collections::{BTreeMap, VecDeque},
    os::fd::BorrowedFd,
    thread,
    time::Duration,
};

use expect_test::{Expect, expect};
use tithe_machine::proc::ServerTask;
use tithe_model::experiment::{Data, Values};
use tithe_plugin::{
    session::{Connection, Progress, Rows, Statement},
    sql::{STANDARD, definition},
    workload::PartRecorder,
};

use super::*;

fn bulk(properties: &[(&str, &str)]) -> Box<dyn Workload> {
    let properties: BTreeMap<String, String> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let described = experiment::Workload { name: "b".to_owned(), kind: "bulk".to_owned(), properties, prepare: None };
    make(&described, &Data { records: 1, values: Values::Ycsb }, 7).expect("possible properties")
}

/// A session that records its statements, and gives prepared answers.
struct Told {
    sent: Arc<Mutex<String>>,
    answers: VecDeque<Result<u64, Fault>>,
    pipelines: bool,
    prepared: Vec<String>,
}

impl Told {
    fn new(answers: &[Result<u64, &str>], pipelines: bool) -> Self {
        let answer = |answer: &Result<u64, &str>| answer.map_err(|words| Fault::Server(words.to_owned()));
        Self { sent: Arc::default(), answers: answers.iter().map(answer).collect(), pipelines, prepared: Vec::new() }
    }
}

impl Connection for Told {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn run_statement(&mut self, _statement: &str) -> Result<(), Fault> {
        Ok(())
    }
}

impl SqlSession for Told {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.prepared.push(sql.to_owned());
        Ok(Statement(self.prepared.len() - 1))
    }

    fn pipelines(&self) -> bool {
        self.pipelines
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let value = |parameter: &Parameter<'_>| match parameter {
            Parameter::Integer(number) => number.to_string(),
            Parameter::Text(text) | Parameter::Bytes(text) => String::from_utf8_lossy(text).into_owned(),
            Parameter::Null => "NULL".to_owned(),
        };
        let values: Vec<String> = parameters.iter().map(value).collect();
        *self.sent.lock().expect("one thread") += &format!("{} ← {}\n", self.prepared[statement.0], values.join(" "));
        Ok(())
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        *self.sent.lock().expect("one thread") +=
            &format!("{table} ({})\n{}", columns.join(", "), String::from_utf8_lossy(lines));
        Ok(true)
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let answer = self.answers.pop_front().expect("something was asked for");
        *self.sent.lock().expect("one thread") += &format!("→ {answer:?}\n");
        answer.map(Progress::Done)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        *self.sent.lock().expect("one thread") += &format!("{sql}\n");
        Ok(Vec::new())
    }
}

struct NoParts;

impl PartRecorder for NoParts {
    fn part(&mut self, _operation: usize) {}
}

/// The client's messages to a session in `batches` slots of a batch each, and their results.
fn check(properties: &[(&str, &str)], told: Told, batches: usize, expect: Expect) {
    let workload = bulk(&[&[("batch", "2"), ("keep", "4"), ("fields", "1"), ("length", "3")], properties].concat());
    let clients = workload.offered_by().clients().expect("clients");
    let mut client = clients.client(&clients.arm_state());
    let sent = Arc::clone(&told.sent);
    let mut session = Session::Sql(Box::new(told));
    let mut outcomes = String::new();
    for slot in 0..batches {
        client.seed(slot as u64);
        client.put_back(&mut session).expect("emptied");
        client.prepare();
        client.submit(&mut session).expect("sent");
        outcomes += &format!("{:?}\n", client.advance(&mut session, &mut NoParts));
    }
    let sent = sent.lock().expect("one thread").clone();
    expect.assert_eq(&format!("{sent}{outcomes}{} statements", client.statements()));
}

#[test]
fn lines_are_sent_as_one_request_and_the_table_is_emptied_before_a_slot() {
    check(
        &[("way", "copy")],
        Told::new(&[Ok(2), Ok(2), Ok(2)], true),
        3,
        expect![[r#"
            bulk (b_id, b_parent, b_number, b_text0)
            2	2	31021	rqc
            3	3	13771	2a1
            → Ok(2)
            DELETE FROM bulk
            bulk (b_id, b_parent, b_number, b_text0)
            4	4	62042	hmj
            5	5	44792	2y4
            → Ok(2)
            bulk (b_id, b_parent, b_number, b_text0)
            6	6	27542	xeo
            7	7	10292	zw0
            → Ok(2)
            Ok(Done(2))
            Ok(Done(2))
            Ok(Done(2))
            3 statements"#]],
    );
    check(
        &[("way", "load"), ("table", "trigger")],
        Told::new(&[Ok(2), Ok(1), Err("disk full")], true),
        3,
        expect![[r#"
            bulk (b_id, b_parent, b_number, b_text0)
            2	2	31021	rqc
            3	3	13771	2a1
            → Ok(2)
            DELETE FROM bulk
            DELETE FROM bulk_log
            bulk (b_id, b_parent, b_number, b_text0)
            4	4	62042	hmj
            5	5	44792	2y4
            → Ok(1)
            bulk (b_id, b_parent, b_number, b_text0)
            6	6	27542	xeo
            7	7	10292	zw0
            → Err(Server("disk full"))
            Ok(Done(2))
            Err(Wrong("of a batch of 2 rows the server has taken 1"))
            Err(Server("disk full"))
            3 statements"#]],
    );
}

#[test]
fn while_one_client_empties_the_table_the_others_wait() {
    let config = Config { way: Way::Copy, batch: 2, fields: 1, length: 3, keep: 4, table: Kind::Trigger };
    let shared = Arc::new(Shared { tables: tables::tables(&config), text: RandomText::new(7, config.length), config });
    let loaded = Arc::new(Loaded::with(4));
    let put_back = |told: Told| {
        let mut client = Loader::new(Arc::clone(&shared), Arc::clone(&loaded));
        client.put_back(&mut Session::Sql(Box::new(told))).expect("emptied");
    };
    let (first, second) = (Told::new(&[], true), Told::new(&[], true));
    let sent = [&first, &second].map(|told| Arc::clone(&told.sent));
    // The statements of the first client last until this is released.
    let held = sent[0].lock().expect("no thread panicked");
    thread::scope(|scope| {
        let emptying = scope.spawn(|| put_back(first));
        for _ in 0..2000 {
            if loaded.emptying.try_lock().is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let waiting = scope.spawn(|| put_back(second));
        thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "it would load into a table that is being emptied");
        drop(held);
        emptying.join().expect("no panic");
        waiting.join().expect("no panic");
    });
    let sent = sent.map(|text| text.lock().expect("no thread panicked").clone());
    assert_eq!(sent, ["DELETE FROM bulk\nDELETE FROM bulk_log\n", ""]);
}

#[test]
fn rows_of_one_insert_or_of_several_under_way_at_once() {
    check(
        &[("way", "multi"), ("table", "keyed")],
        Told::new(&[Ok(2)], true),
        1,
        expect![[r#"
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?), (?, ?, ?, ?) ← 2 2 31021 rqc 3 3 13771 2a1
            → Ok(2)
            Ok(Done(2))
            1 statements"#]],
    );
    check(
        &[("way", "single")],
        Told::new(&[Ok(0), Ok(1), Ok(1), Ok(1)], true),
        1,
        expect![[r#"
            BEGIN ← 
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 2 2 31021 rqc
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 3 3 13771 2a1
            COMMIT ← 
            → Ok(0)
            → Ok(1)
            → Ok(1)
            → Ok(1)
            Ok(Done(2))
            4 statements"#]],
    );
    // After a statement that changes nothing, SQLite reports the changes of the one before.
    check(
        &[("way", "single")],
        Told::new(&[Ok(0), Ok(1), Ok(1), Ok(1)], false),
        1,
        expect![[r#"
            BEGIN ← 
            → Ok(0)
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 2 2 31021 rqc
            → Ok(1)
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 3 3 13771 2a1
            → Ok(1)
            COMMIT ← 
            → Ok(1)
            Ok(Done(2))
            4 statements"#]],
    );
    // The error is returned after all answers have arrived, so that the session can continue.
    let failing = Told::new(&[Ok(0), Err("first"), Err("second"), Ok(0), Ok(0), Ok(1), Ok(1), Ok(0)], true);
    check(
        &[("way", "single")],
        failing,
        2,
        expect![[r#"
            BEGIN ← 
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 2 2 31021 rqc
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 3 3 13771 2a1
            COMMIT ← 
            → Ok(0)
            → Err(Server("first"))
            → Err(Server("second"))
            → Ok(0)
            BEGIN ← 
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 4 4 62042 hmj
            INSERT INTO bulk (b_id, b_parent, b_number, b_text0) VALUES (?, ?, ?, ?) ← 5 5 44792 2y4
            COMMIT ← 
            → Ok(0)
            → Ok(1)
            → Ok(1)
            → Ok(0)
            Err(Server("first"))
            Ok(Done(2))
            8 statements"#]],
    );
}

#[test]
fn tables_have_what_was_asked_for_in_each_dialect() {
    let mut told = String::new();
    for kind in ["plain", "keyed", "foreign", "trigger", "partitioned"] {
        let workload = bulk(&[("table", kind), ("fields", "2"), ("length", "9")]);
        for (name, grammar) in [("postgres", Grammar::Postgres), ("mysql", Grammar::MySql), ("sqlite", Grammar::Sqlite)]
        {
            for table in workload.tables() {
                let (end, more) = workload.completes(table, grammar);
                let definition = definition(table, &STANDARD, &|_| None) + &end;
                told += &format!("{kind} {name}: {definition}\n");
                more.iter().for_each(|statement| told += &format!("  {statement}\n"));
            }
        }
    }
    expect![[r#"
        plain postgres: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        plain mysql: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        plain sqlite: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        keyed postgres: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL, PRIMARY KEY (b_id))
        keyed mysql: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL, PRIMARY KEY (b_id))
        keyed sqlite: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL, PRIMARY KEY (b_id))
        foreign postgres: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        foreign postgres: CREATE TABLE bulk_parent (p_id integer NOT NULL, PRIMARY KEY (p_id))
          ALTER TABLE bulk ADD FOREIGN KEY (b_parent) REFERENCES bulk_parent (p_id)
        foreign mysql: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        foreign mysql: CREATE TABLE bulk_parent (p_id integer NOT NULL, PRIMARY KEY (p_id))
          ALTER TABLE bulk ADD FOREIGN KEY (b_parent) REFERENCES bulk_parent (p_id)
        foreign sqlite: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        foreign sqlite: CREATE TABLE bulk_parent (p_id integer NOT NULL, PRIMARY KEY (p_id))
          ALTER TABLE bulk ADD FOREIGN KEY (b_parent) REFERENCES bulk_parent (p_id)
        trigger postgres: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        trigger postgres: CREATE TABLE bulk_log (l_id bigint NOT NULL)
          CREATE OR REPLACE FUNCTION bulk_logged() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO bulk_log (l_id) VALUES (NEW.b_id); RETURN NULL; END'
          COMMENT ON FUNCTION bulk_logged() IS '{mark}'
          CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW EXECUTE FUNCTION bulk_logged()
        trigger mysql: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        trigger mysql: CREATE TABLE bulk_log (l_id bigint NOT NULL)
          CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW INSERT INTO bulk_log (l_id) VALUES (NEW.b_id)
        trigger sqlite: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
        trigger sqlite: CREATE TABLE bulk_log (l_id bigint NOT NULL)
          CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW BEGIN INSERT INTO bulk_log (l_id) VALUES (NEW.b_id); END
        partitioned postgres: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL) PARTITION BY HASH (b_id)
          CREATE TABLE bulk_part0 PARTITION OF bulk FOR VALUES WITH (MODULUS 4, REMAINDER 0)
          COMMENT ON TABLE bulk_part0 IS '{mark}'
          CREATE TABLE bulk_part1 PARTITION OF bulk FOR VALUES WITH (MODULUS 4, REMAINDER 1)
          COMMENT ON TABLE bulk_part1 IS '{mark}'
          CREATE TABLE bulk_part2 PARTITION OF bulk FOR VALUES WITH (MODULUS 4, REMAINDER 2)
          COMMENT ON TABLE bulk_part2 IS '{mark}'
          CREATE TABLE bulk_part3 PARTITION OF bulk FOR VALUES WITH (MODULUS 4, REMAINDER 3)
          COMMENT ON TABLE bulk_part3 IS '{mark}'
        partitioned mysql: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
          ALTER TABLE bulk PARTITION BY HASH (b_id) PARTITIONS 4
        partitioned sqlite: CREATE TABLE bulk (b_id bigint NOT NULL, b_parent integer NOT NULL, b_number bigint NOT NULL, b_text0 varchar(9) NOT NULL, b_text1 varchar(9) NOT NULL)
    "#]].assert_eq(&told);
}

#[test]
fn tables_are_emptied_by_one_statement_where_the_product_can() {
    let told = |kind, grammar| tables::emptying(kind, grammar).join("; ");
    assert_eq!(told(Kind::Trigger, Grammar::Postgres), "TRUNCATE TABLE bulk, bulk_log");
    assert_eq!(told(Kind::Trigger, Grammar::MySql), "TRUNCATE TABLE bulk; TRUNCATE TABLE bulk_log");
    assert_eq!(told(Kind::Trigger, Grammar::Sqlite), "DELETE FROM bulk; DELETE FROM bulk_log");
    assert_eq!(told(Kind::Foreign, Grammar::Postgres), "TRUNCATE TABLE bulk");
}

#[test]
fn a_description_says_what_an_operation_is() {
    let mut told = String::new();
    for properties in [&[("way", "copy"), ("table", "foreign")][..], &[("way", "pipeline"), ("batch", "50")]] {
        let workload = bulk(properties);
        let lines = workload.describe().into_iter().map(|(name, value)| format!("{name}: {value}\n"));
        told += &lines.collect::<String>();
        told += &format!(
            "{:?}, {} an operation, {} rows\n",
            workload.operations(),
            workload.operations_per_request(),
            workload.rows(9)
        );
    }
    expect![[r#"
        an operation: a row; latencies are of requests of 1000 rows
        way: copy
        a row: three numbers and 4 texts of 20 bytes
        rows: the table is emptied before a slot once 100000 were loaded
        table: foreign
        ["COPY"], 1000 an operation, 2000 rows
        an operation: a row; latencies are of requests of 50 rows
        way: pipeline
        a row: a key and 4 fields of 20 bytes
        rows: the same 100000 are written again and again
        ["PIPELINE"], 50 an operation, 100000 rows
    "#]]
    .assert_eq(&told);
}

#[test]
fn states_of_one_arm_on_several_machines_add_rows_of_their_own() {
    let workload = bulk(&[]);
    let clients = workload.offered_by().clients().expect("clients");
    let state = clients.arm_state();
    state.divide(3, 4);
    expect!["[206158431208, 1000]"].assert_eq(&format!("{:?}", state.reached()));
    let other = clients.arm_state();
    other.go_on(&[5000, 2000]);
    expect!["[5000, 2000]"].assert_eq(&format!("{:?}", other.reached()));
    // The numbers for checking the table stay below 2⁶³.
    assert!(
        tables::number_of(1024 * PART) < 65_521
            && (1024 * PART).checked_mul(48_271).is_some_and(|product| i64::try_from(product).is_ok())
    );
}
