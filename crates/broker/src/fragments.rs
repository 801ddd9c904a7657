//! Messages in parts: split into what a broker carries in one piece, and reassembled. No clock, no socket.
//!
//! Each part begins with a header of [`HEADER_BYTES`], numbers in network order:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `TTP1` |
//! | 16 | the sender, drawn at random when it connected |
//! | 8 | the number of the message among all of that sender's |
//! | 4 | the number of the part, from 0 |
//! | 4 | how many parts there are |
//! | 8 | the length of the whole message, bytes |
//! | 32 | SHA-256 of the whole message |
//!
//! All parts but the last have the same length, the smallest possible for their number. So the header determines each
//! length, and a part of another length is refused. The hash protects against mixed-up parts. It does not protect
//! against the broker, which could compute its own: TLS authenticates the broker.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use ring::digest::{SHA256, digest};
use tithe_harness::agents::link::MESSAGE_BYTES_MAX;
use tithe_machine::fault::Fault;

/// Length of the header of each part, bytes.
pub const HEADER_BYTES: usize = 76;

/// Minimum room that a part must have in addition to its header, bytes.
pub const ROOM_BYTES_MIN: usize = 1024;

/// Shortest possible part of a message of several parts, bytes: the message is one byte longer than the least room.
const PART_BYTES_MIN: usize = ROOM_BYTES_MIN / 2;

/// Memory of a waiting part in addition to its bytes.
const PART_OVERHEAD_BYTES: usize = 64;

/// Number of messages of a sender whose arrival is remembered; older ones count as arrived.
const WINDOW: u64 = 1024;

/// Maximum number of senders remembered at once. For one more, the one that was silent for longest is forgotten.
const SENDERS_MAX: usize = 1024;

/// Maximum number of incomplete messages of one sender.
const OPEN_MAX: usize = 64;

/// Interval of the check for incomplete messages that have timed out, ns.
const EXPIRY_INTERVAL_NS: u64 = 500_000_000;

const TAG: [u8; 4] = *b"TTP1";

type Id = [u8; 16];

/// Numbers and splits the messages of one connection.
pub struct Sender {
    id: Id,
    sent: AtomicU64,
}

impl Sender {
    /// A sender with the unique `id`.
    pub fn new(id: [u8; 16]) -> Self {
        Self { id, sent: AtomicU64::new(0) }
    }

    /// The parts of `message`, each no longer than `room` bytes.
    ///
    /// # Errors
    /// If it is longer than [`MESSAGE_BYTES_MAX`], or `room` is less than [`HEADER_BYTES`] + [`ROOM_BYTES_MIN`].
    pub fn split<'a>(&self, message: &'a [u8], room: usize) -> Result<impl Iterator<Item = Vec<u8>> + use<'a>, Fault> {
        if message.len() > MESSAGE_BYTES_MAX {
            let length = message.len();
            return Err(Fault::Machine(format!("a message of {length} bytes is longer than {MESSAGE_BYTES_MAX}")));
        }
        let body = room.checked_sub(HEADER_BYTES).filter(|body| *body >= ROOM_BYTES_MIN).ok_or_else(|| {
            let least = HEADER_BYTES + ROOM_BYTES_MIN;
            Fault::Refused(format!("carries no message longer than {room} bytes: max_payload must be {least} or more"))
        })?;
        let shape = Shape::with(message.len(), body);
        let whole = Whole { shape, digest: sha256(message) };
        let (sender, number) = (self.id, self.sent.fetch_add(1, Ordering::Relaxed));
        let part = move |part| Header { sender, number, part, whole }.before(&message[shape.range(part)]);
        Ok((0..shape.parts).map(part))
    }
}

/// The division of a message into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    length: usize,
    parts: u32,
}

impl Shape {
    /// As few parts as possible of at most `body` bytes for a message of `length` bytes.
    fn with(length: usize, body: usize) -> Self {
        let size = length.div_ceil(length.div_ceil(body).max(1));
        Self { length, parts: parts_of(length, size) }
    }

    /// From the values of a header; `None` if no [`Sender`] would divide a message like this.
    fn read(length: u64, parts: u32) -> Option<Self> {
        let length = usize::try_from(length).ok().filter(|length| *length <= MESSAGE_BYTES_MAX)?;
        let shape = Self { length, parts };
        let is_whole = parts > 0 && parts == parts_of(length, shape.size());
        (is_whole && (parts == 1 || shape.size() >= PART_BYTES_MIN)).then_some(shape)
    }

    /// Length of each part but the last, bytes.
    fn size(self) -> usize {
        self.length.div_ceil(self.parts as usize)
    }

    /// The range of the message that `part` holds.
    fn range(self, part: u32) -> Range<usize> {
        let begin = part as usize * self.size();
        begin..(begin + self.size()).min(self.length)
    }
}

/// Number of parts of `size` bytes for a message of `length` bytes; one if it is empty.
fn parts_of(length: usize, size: usize) -> u32 {
    if size == 0 { 1 } else { length.div_ceil(size) as u32 }
}

/// The header fields that all parts of a message share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Whole {
    shape: Shape,
    digest: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    sender: Id,
    number: u64,
    part: u32,
    whole: Whole,
}

impl Header {
    fn before(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&TAG);
        bytes.extend_from_slice(&self.sender);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.part.to_be_bytes());
        bytes.extend_from_slice(&self.whole.shape.parts.to_be_bytes());
        bytes.extend_from_slice(&(self.whole.shape.length as u64).to_be_bytes());
        bytes.extend_from_slice(&self.whole.digest);
        bytes.extend_from_slice(body);
        bytes
    }

    /// The header of `part` and its data; `None` if no [`Sender`] writes such a header.
    fn read(mut part: &[u8]) -> Option<(Self, &[u8])> {
        if take::<4>(&mut part)? != TAG {
            return None;
        }
        let sender = take(&mut part)?;
        let number = u64::from_be_bytes(take(&mut part)?);
        let own = u32::from_be_bytes(take(&mut part)?);
        let parts = u32::from_be_bytes(take(&mut part)?);
        let shape = Shape::read(u64::from_be_bytes(take(&mut part)?), parts)?;
        let whole = Whole { shape, digest: take(&mut part)? };
        let is_as_long = own < parts && part.len() == shape.range(own).len();
        is_as_long.then_some((Self { sender, number, part: own, whole }, part))
    }
}

/// Removes the first bytes of `bytes` and returns them.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn sha256(message: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, message).as_ref());
    bytes
}

/// Limits on incomplete messages.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For one sender, bytes.
    pub sender_bytes: usize,
    /// For all senders, bytes.
    pub bytes: usize,
    /// Maximum time without a further part, ns.
    pub timeout_ns: u64,
}

impl Limits {
    /// Two of the longest messages for one sender, eight for all together, ten seconds.
    pub const USUAL: Self = Self {
        sender_bytes: 2 * (MESSAGE_BYTES_MAX + (1 << 20)),
        bytes: 8 * (MESSAGE_BYTES_MAX + (1 << 20)),
        timeout_ns: 10_000_000_000,
    };
}

/// Reassembles messages. Each message that it returns is complete, unchanged, and returned only once.
pub struct Reassembler {
    limits: Limits,
    senders: HashMap<Id, Known>,
    /// Size of all waiting parts of all senders.
    bytes: usize,
    looked_ns: u64,
}

/// State of a sender.
#[derive(Default)]
struct Known {
    came: Came,
    open: HashMap<u64, Open>,
    bytes: usize,
    heard_ns: u64,
}

/// Which messages of a sender have already arrived.
#[derive(Default)]
struct Came {
    /// One more than the highest number that arrived.
    next: u64,
    recent: BTreeSet<u64>,
}

impl Came {
    fn has(&self, number: u64) -> bool {
        number < self.oldest() || self.recent.contains(&number)
    }

    fn add(&mut self, number: u64) {
        self.next = self.next.max(number.saturating_add(1));
        self.recent.insert(number);
        self.recent = self.recent.split_off(&self.oldest());
    }

    fn oldest(&self) -> u64 {
        self.next.saturating_sub(WINDOW)
    }
}

/// An incomplete message.
struct Open {
    whole: Whole,
    parts: BTreeMap<u32, Box<[u8]>>,
    bytes: usize,
    heard_ns: u64,
}

impl Open {
    fn is_complete(&self) -> bool {
        self.parts.len() == self.whole.shape.parts as usize
    }

    fn torn(&self) -> Fault {
        let Shape { length, parts } = self.whole.shape;
        Fault::Protocol(format!("of a message of {length} bytes came {} of {parts} parts", self.parts.len()))
    }
}

impl Reassembler {
    /// A reassembler with these `limits`.
    pub fn new(limits: Limits) -> Self {
        Self { limits, senders: HashMap::new(), bytes: 0, looked_ns: 0 }
    }

    /// Takes the part that came at `now_ns`. Returns the message if the part completes it.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if it is not valid, came before, contradicts another part, or exceeds a limit.
    pub fn take(&mut self, part: &[u8], now_ns: u64) -> Result<Option<Vec<u8>>, Fault> {
        let (header, body) =
            Header::read(part).ok_or_else(|| protocol("what came is not part of a message of Tithe's"))?;
        if !self.senders.contains_key(&header.sender) && self.senders.len() >= SENDERS_MAX {
            self.forget_one();
        }
        let known = self.senders.entry(header.sender).or_default();
        known.heard_ns = now_ns;
        if known.came.has(header.number) {
            return Err(protocol("a message came a second time"));
        }
        if header.whole.shape.parts == 1 && !known.open.contains_key(&header.number) {
            known.came.add(header.number);
            return checked(body.to_vec(), &header.whole).map(Some);
        }
        self.keep(&header, body, now_ns)?;
        self.finish(&header)
    }

    /// Forgets messages that had no new part for too long; one fault for each.
    pub fn expire(&mut self, now_ns: u64) -> Vec<Fault> {
        if now_ns < self.looked_ns.saturating_add(EXPIRY_INTERVAL_NS) {
            return Vec::new();
        }
        self.looked_ns = now_ns;
        let is_old = |open: &Open| now_ns.saturating_sub(open.heard_ns) > self.limits.timeout_ns;
        let mut torn = Vec::new();
        for known in self.senders.values_mut() {
            for (_, old) in known.open.extract_if(|_, open| is_old(open)) {
                known.bytes -= old.bytes;
                self.bytes -= old.bytes;
                torn.push(old.torn());
            }
        }
        torn
    }

    /// True if no message is incomplete.
    pub fn is_idle(&self) -> bool {
        self.bytes == 0
    }

    /// Size of the parts that wait for others, bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.bytes
    }

    fn keep(&mut self, header: &Header, body: &[u8], now_ns: u64) -> Result<(), Fault> {
        let cost = body.len() + PART_OVERHEAD_BYTES;
        let known = self.senders.entry(header.sender).or_default();
        let is_too_much = known.bytes + cost > self.limits.sender_bytes || self.bytes + cost > self.limits.bytes;
        let is_one_more = !known.open.contains_key(&header.number) && known.open.len() >= OPEN_MAX;
        if is_too_much || is_one_more {
            self.forget(header);
            return Err(protocol("more messages come in parts than are kept"));
        }
        let fresh = || Open { whole: header.whole, parts: BTreeMap::new(), bytes: 0, heard_ns: now_ns };
        let open = known.open.entry(header.number).or_insert_with(fresh);
        if open.whole != header.whole {
            return Err(protocol("a part belongs to another message than its number says"));
        }
        if open.parts.contains_key(&header.part) {
            return Err(protocol("a part of a message came a second time"));
        }
        open.parts.insert(header.part, body.into());
        open.heard_ns = now_ns;
        open.bytes += cost;
        known.bytes += cost;
        self.bytes += cost;
        Ok(())
    }

    /// The message of `header`, if it is complete.
    fn finish(&mut self, header: &Header) -> Result<Option<Vec<u8>>, Fault> {
        let known = self.senders.entry(header.sender).or_default();
        if !known.open.get(&header.number).is_some_and(Open::is_complete) {
            return Ok(None);
        }
        known.came.add(header.number);
        let Some(open) = self.forget(header) else { return Ok(None) };
        let mut message = Vec::with_capacity(open.whole.shape.length);
        open.parts.values().for_each(|part| message.extend_from_slice(part));
        checked(message, &open.whole).map(Some)
    }

    fn forget(&mut self, header: &Header) -> Option<Open> {
        let known = self.senders.get_mut(&header.sender)?;
        let open = known.open.remove(&header.number)?;
        known.bytes -= open.bytes;
        self.bytes -= open.bytes;
        Some(open)
    }

    fn forget_one(&mut self) {
        let silent = self.senders.iter().min_by_key(|(_, known)| known.heard_ns).map(|(id, _)| *id);
        if let Some(known) = silent.and_then(|id| self.senders.remove(&id)) {
            self.bytes -= known.bytes;
        }
    }
}

/// `message`, if it has the hash in its parts.
fn checked(message: Vec<u8>, whole: &Whole) -> Result<Vec<u8>, Fault> {
    if sha256(&message) == whole.digest {
        return Ok(message);
    }
    Err(protocol("a message is not what its sender sent: its SHA-256 differs"))
}

fn protocol(words: &str) -> Fault {
    Fault::Protocol(words.to_owned())
}

#[cfg(test)]
mod tests;
