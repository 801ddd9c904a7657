//! Which operation comes next, on which record: `site.ycsb.workloads.CoreWorkload` without its database.
//!
//! The random numbers are drawn in YCSB's order, including those for the bytes of values (they are skipped, because
//! Tithe's values have another source). So the stream with a seed is that of a YCSB thread with that seed, whose
//! database binding reads every value once and as a whole, as the JDBC binding does.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use tithe_plugin::session::Fields;

use super::{
    config::{Config, Distribution, KeySpace},
    generator::{
        AcknowledgedCounter, Choice, Exponential, Hotspot, Latest, ScrambledZipfian, Sequential, ThreadLocalRandom,
        Uniform, WindowFull, Zipfian, draws_of_bytes,
    },
    operation_kind::OperationKind,
    values::Lengths,
};

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The kind.
    pub kind: OperationKind,
    /// Number of the record, the first one of a scan.
    pub record: i64,
    /// Fields to fetch, if it fetches.
    pub read: Fields,
    /// Fields to write, if it writes.
    pub write: Fields,
    /// Largest number of records, of a scan.
    pub count: u32,
    /// Position of the random stream when the operation was complete: the same for the same seed.
    pub mark: u64,
}

/// Shared by the clients of one arm: which records exist.
///
/// It must be as fresh as the data. Its memory stays the same however long the workload runs, except about eight bytes
/// for each failed insert.
#[derive(Debug)]
pub struct Records {
    /// Records before the first insert.
    loaded: i64,
    /// The part of the inserted records, out of how many; the others belong to other load machines.
    part: AtomicI64,
    parts: AtomicI64,
    inserted: AcknowledgedCounter,
    /// Draws of the sequential distribution so far.
    position: AtomicI64,
    /// Numbers that were reserved for an insert that was never sent.
    returned: Mutex<Vec<i64>>,
    /// Numbers whose insert failed: such a record may exist or not.
    doubtful: Mutex<BTreeSet<i64>>,
}

impl Records {
    /// `0..count` are loaded.
    pub fn new(count: i64) -> Self {
        Self {
            loaded: count,
            part: AtomicI64::new(0),
            parts: AtomicI64::new(1),
            inserted: AcknowledgedCounter::new(count),
            position: AtomicI64::new(0),
            returned: Mutex::default(),
            doubtful: Mutex::default(),
        }
    }

    /// Makes inserted records part `part` of `parts`: those of all parts together are the ones that a single load
    /// machine would insert.
    pub fn divide(&self, part: i64, parts: i64) {
        self.part.store(part, Ordering::Relaxed);
        self.parts.store(parts.max(1), Ordering::Relaxed);
    }

    /// The number of this part's `record` among the records of all parts, from which its key is made.
    #[inline]
    pub fn number_of(&self, record: i64) -> i64 {
        if record < self.loaded {
            return record;
        }
        let inserted = (record - self.loaded) * self.parts.load(Ordering::Relaxed);
        self.loaded + inserted + self.part.load(Ordering::Relaxed)
    }

    /// The newest record before which none is missing.
    pub fn newest(&self) -> i64 {
        self.inserted.last()
    }

    /// A number for a new record.
    pub fn reserve(&self) -> i64 {
        let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner).pop();
        returned.unwrap_or_else(|| self.inserted.next())
    }

    /// The insert of `record` was not sent; another one may use the number.
    pub fn give_back(&self, record: i64) {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// The insert of `record` was answered.
    ///
    /// # Errors
    /// If too many inserts wait for an earlier one.
    pub fn acknowledge(&self, record: i64) -> Result<(), WindowFull> {
        self.inserted.acknowledge(record)
    }

    /// The insert of `record` failed, or its answer never came. As in YCSB it counts as answered, so that the newest
    /// record advances; if a read does not find it, no data are lost.
    ///
    /// # Errors
    /// As [`Records::acknowledge`].
    pub fn doubt(&self, record: i64) -> Result<(), WindowFull> {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner).insert(record);
        self.inserted.acknowledge(record)
    }

    /// Its state while no client is at work: draws of the sequential distribution, the next number, and three lists,
    /// each after its length: numbers without an answer, returned ones, and doubtful ones.
    pub fn reached(&self) -> Vec<i64> {
        let (next, open) = self.inserted.reached();
        let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let mut reached = vec![self.position.load(Ordering::Relaxed), next];
        for list in [open, returned, doubtful] {
            reached.push(list.len() as i64);
            reached.extend(list);
        }
        reached
    }

    /// Continues from the state that another one, on the same data, has [`reached`](Self::reached). An invalid state is
    /// ignored.
    pub fn go_on(&self, reached: &[i64]) {
        let [position, next, lists @ ..] = reached else { return };
        let list = |rest: &[i64]| {
            let (length, rest) = rest.split_first()?;
            let (list, rest) = rest.split_at_checked(usize::try_from(*length).ok()?)?;
            Some((list.to_vec(), rest.to_vec()))
        };
        let Some((open, rest)) = list(lists) else { return };
        let Some((returned, rest)) = list(&rest) else { return };
        let Some((doubtful, _)) = list(&rest) else { return };
        self.position.store(*position, Ordering::Relaxed);
        self.inserted.go_on(*next, &open);
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = returned;
        *self.doubtful.lock().unwrap_or_else(PoisonError::into_inner) = doubtful.into_iter().collect();
    }

    /// True when the insert of `record` failed.
    pub fn is_doubtful(&self, record: i64) -> bool {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner).contains(&record)
    }
}

/// Chooses records.
#[derive(Debug, Clone)]
enum Chooser {
    Uniform(Uniform),
    Zipfian(ScrambledZipfian),
    Latest(Latest),
    Hotspot(Hotspot),
    Sequential(Sequential),
    Exponential(Exponential),
}

impl Chooser {
    fn new(distribution: &Distribution, space: &KeySpace) -> Self {
        let &KeySpace { records, first, last, expected_inserts } = space;
        match *distribution {
            Distribution::Uniform => Self::Uniform(Uniform::new(first, last)),
            // One more than the records and the expected ones, as in YCSB.
            Distribution::Zipfian => Self::Zipfian(ScrambledZipfian::new(first, last + 1 + expected_inserts)),
            Distribution::Latest => Self::Latest(Latest::new(records - 1)),
            Distribution::Hotspot(data, operations) => Self::Hotspot(Hotspot::new(first, last, data, operations)),
            Distribution::Sequential => Self::Sequential(Sequential::new(first, last)),
            Distribution::Exponential(percentile, fraction) => {
                Self::Exponential(Exponential::new(percentile, records as f64 * fraction))
            }
        }
    }

    /// A record that exists. A draw outside is repeated, as in YCSB.
    #[inline]
    fn next(&mut self, random: &mut ThreadLocalRandom, records: &Records) -> i64 {
        loop {
            let newest = records.newest();
            let record = match self {
                Self::Uniform(uniform) => uniform.next(random),
                Self::Zipfian(zipfian) => zipfian.next(random),
                Self::Latest(latest) => latest.next(newest, random),
                Self::Hotspot(hotspot) => hotspot.next(random),
                Self::Sequential(sequential) => sequential.next(&records.position),
                Self::Exponential(exponential) => newest - i64::from(exponential.next(random) as i32),
            };
            if (0..=newest).contains(&record) {
                return record;
            }
        }
    }
}

/// Chooses the number of records of a scan.
#[derive(Debug, Clone)]
enum ScanLength {
    Uniform(Uniform),
    Zipfian(Zipfian),
}

/// The operations of one client.
#[derive(Debug, Clone)]
pub struct Stream {
    random: ThreadLocalRandom,
    kinds: Choice<OperationKind>,
    records: Chooser,
    field: Uniform,
    scan: ScanLength,
    read_all: bool,
    write_all: bool,
    fields: usize,
    /// Lengths of values that YCSB would make from random bytes; `None` if values are derived from their keys.
    lengths: Option<Lengths>,
}

impl Stream {
    /// The operations that `config` describes, on the records of `space`. `latest` takes about 20 ns a record here.
    pub fn new(config: &Config, space: &KeySpace, lengths: &Lengths) -> Self {
        let (shortest, longest) = config.scan;
        Self {
            random: ThreadLocalRandom::new(0),
            kinds: Choice::new(&config.weights),
            records: Chooser::new(&config.distribution, space),
            field: Uniform::new(0, config.fields as i64 - 1),
            scan: if config.scan_zipfian {
                ScanLength::Zipfian(Zipfian::new(shortest, longest))
            } else {
                ScanLength::Uniform(Uniform::new(shortest, longest))
            },
            read_all: config.read_all,
            write_all: config.write_all,
            fields: config.fields,
            lengths: (!config.integrity).then(|| lengths.clone()),
        }
    }

    /// Restarts, from `seed`.
    pub fn seed(&mut self, seed: u64) {
        self.random = ThreadLocalRandom::new(seed);
    }

    /// The next operation. An insert gets a new number of `records`, and must be acknowledged there.
    pub fn next(&mut self, records: &Records) -> Operation {
        let kind = self.kinds.next(&mut self.random);
        let record = match kind {
            OperationKind::Insert => records.reserve(),
            _ => self.records.next(&mut self.random, records),
        };
        let count = match (kind, &self.scan) {
            (OperationKind::Scan, ScanLength::Uniform(length)) => length.next(&mut self.random) as u32,
            (OperationKind::Scan, ScanLength::Zipfian(length)) => length.next(&mut self.random) as u32,
            _ => 0,
        };
        let read = match kind {
            OperationKind::Read | OperationKind::Scan | OperationKind::ReadModifyWrite => self.fields(self.read_all),
            OperationKind::Update | OperationKind::Insert => Fields::All,
        };
        let write = match kind {
            OperationKind::Update | OperationKind::ReadModifyWrite => self.fields(self.write_all),
            OperationKind::Read | OperationKind::Insert | OperationKind::Scan => Fields::All,
        };
        if kind.writes() {
            self.skip_values(if write == Fields::All { self.fields } else { 1 });
        }
        Operation { kind, record, read, write, count, mark: self.random.state() }
    }

    #[inline]
    fn fields(&mut self, all: bool) -> Fields {
        if all { Fields::All } else { Fields::One(self.field.next(&mut self.random) as usize) }
    }

    /// YCSB draws all lengths first, each with one more number, and the bytes when the database reads them.
    #[inline]
    fn skip_values(&mut self, count: usize) {
        let Some(lengths) = &self.lengths else { return };
        let mut bytes = 0;
        for _ in 0..count {
            let draws = draws_of_bytes(lengths.next(&mut self.random));
            self.random.skip(1);
            bytes += draws - 1;
        }
        self.random.skip(bytes);
    }
}
