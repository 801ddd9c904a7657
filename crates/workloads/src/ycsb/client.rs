//! One YCSB client: prepares an operation, sends it, checks the answer.

use std::sync::Arc;

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Discard, Fields, KeyValueSession, Progress, Request, Session},
    workload::{Client, PartRecorder},
};

use super::{
    Shared,
    operation::{Operation, Records, Stream},
    operation_kind::OperationKind,
    record::Record,
    values::VERSIONS,
    verify::Verifier,
};

/// One client on the data of one arm.
pub(super) struct YcsbClient {
    shared: Arc<Shared>,
    records: Arc<Records>,
    stream: Stream,
    operation: Operation,
    stage: Stage,
    record: Record,
    verifier: Verifier,
}

/// The state of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Ended, or none yet.
    Idle,
    /// Prepared and not sent.
    Prepared,
    /// Rows are awaited.
    Reading,
    /// The answer to a write is awaited.
    Writing,
}

impl YcsbClient {
    pub(super) fn new(shared: Arc<Shared>, records: Arc<Records>) -> Self {
        let operation = Operation {
            kind: OperationKind::Read,
            record: 0,
            read: Fields::All,
            write: Fields::All,
            count: 0,
            mark: 0,
        };
        Self {
            stream: shared.stream.clone(),
            operation,
            stage: Stage::Idle,
            record: Record::new(&shared),
            verifier: Verifier::new(Arc::clone(&shared)),
            shared,
            records,
        }
    }

    fn read(&mut self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        let Operation { kind, read: fields, count, .. } = self.operation;
        let (key, limit) = (self.record.key(), (kind == OperationKind::Scan).then_some(count));
        self.stage = Stage::Reading;
        self.verifier.begin(&self.record, fields, limit, session.scans_in_key_order());
        session.submit(&match limit {
            Some(count) => Request::Scan { start: key, count, fields },
            None => Request::Read { key, fields },
        })
    }

    fn write(&mut self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        self.stage = Stage::Writing;
        let insert = self.operation.kind == OperationKind::Insert;
        self.record.with(&self.shared, |key, values| {
            session.submit(&if insert { Request::Insert { key, values } } else { Request::Update { key, values } })
        })
    }

    /// Reads the available rows; sends the second half of a read-modify-write.
    fn take_rows(
        &mut self,
        session: &mut dyn KeyValueSession,
        parts: &mut dyn PartRecorder,
    ) -> Result<Progress, Fault> {
        if session.advance(&mut self.verifier)? == Progress::Pending {
            return Ok(Progress::Pending);
        }
        let (records, record) = (&self.records, self.operation.record);
        let rows = self.verifier.end(self.record.key(), || records.is_doubtful(record))?;
        if self.operation.kind != OperationKind::ReadModifyWrite {
            return Ok(Progress::Done(rows));
        }
        parts.part(self.shared.index_of(OperationKind::Read));
        self.write(session)?;
        // An embedded database has already done the work; with any other there is nothing to read yet.
        match session.descriptor() {
            None => self.take_write(session, parts),
            Some(_) => Ok(Progress::Pending),
        }
    }

    fn take_write(
        &mut self,
        session: &mut dyn KeyValueSession,
        parts: &mut dyn PartRecorder,
    ) -> Result<Progress, Fault> {
        let Progress::Done(rows) = session.advance(&mut Discard)? else { return Ok(Progress::Pending) };
        if rows == 0 && !self.records.is_doubtful(self.operation.record) {
            let key = self.record.key().escape_ascii();
            return Err(Fault::Wrong(format!("{key}: the write changed no row")));
        }
        match self.operation.kind {
            OperationKind::Insert => self.records.acknowledge(self.operation.record).map_err(full)?,
            OperationKind::ReadModifyWrite => parts.part(self.shared.index_of(OperationKind::Update)),
            OperationKind::Read | OperationKind::Update | OperationKind::Scan => {}
        }
        Ok(Progress::Done(rows))
    }

    /// Settles the number of a failed insert.
    fn abandon(&mut self) -> Result<(), Fault> {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle);
        if self.operation.kind != OperationKind::Insert {
            return Ok(());
        }
        match stage {
            Stage::Prepared => self.records.give_back(self.operation.record),
            Stage::Writing => self.records.doubt(self.operation.record).map_err(full)?,
            Stage::Idle | Stage::Reading => {}
        }
        Ok(())
    }
}

fn full(error: super::generator::WindowFull) -> Fault {
    Fault::machine("insert", error)
}

impl Client for YcsbClient {
    fn seed(&mut self, seed: u64) {
        self.stream.seed(seed);
    }

    fn prepare(&mut self) {
        // The only error is a full window, which the next acknowledged insert reports.
        let _ = self.abandon();
        self.operation = self.stream.next(&self.records);
        self.record.set(&self.shared, self.records.number_of(self.operation.record));
        if self.operation.kind.writes() {
            self.record.fill(&self.shared, self.operation.write, version(self.operation.mark));
        }
        self.stage = Stage::Prepared;
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        let session = key_value(session)?;
        match self.operation.kind {
            OperationKind::Read | OperationKind::Scan | OperationKind::ReadModifyWrite => self.read(session),
            OperationKind::Update | OperationKind::Insert => self.write(session),
        }
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let session = key_value(session)?;
        let progress = match self.stage {
            Stage::Reading => self.take_rows(session, parts),
            Stage::Writing => self.take_write(session, parts),
            Stage::Idle | Stage::Prepared => Err(Fault::Machine("no operation was submitted".to_owned())),
        };
        match progress {
            Ok(Progress::Pending) => {}
            Ok(Progress::Done(_)) => self.stage = Stage::Idle,
            Err(_) => self.abandon()?,
        }
        progress
    }

    fn operation(&self) -> usize {
        self.shared.index_of(self.operation.kind)
    }
}

impl Drop for YcsbClient {
    fn drop(&mut self) {
        // A full window can no longer be reported here.
        let _ = self.abandon();
    }
}

/// One of the versions of a value: the upper bits of a product, so that it is independent of the draws from the same
/// state.
fn version(mark: u64) -> usize {
    (mark.wrapping_mul(0xC2B2_AE3D_27D4_EB4F) >> 32) as usize % VERSIONS
}

/// The key-value shape of `session`.
pub(crate) fn key_value(session: &mut Session) -> Result<&mut (dyn KeyValueSession + 'static), Fault> {
    match session {
        Session::KeyValue(session) => Ok(session.as_mut()),
        Session::Sql(_) => {
            Err(Fault::Protocol("YCSB speaks to records by key; this session speaks SQL only".to_owned()))
        }
    }
}
