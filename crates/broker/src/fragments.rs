//! Messages in parts: split into what a broker carries in one piece, and put together again. No clock, no socket.
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
//! All parts but the last are of one length, the least that does with so many parts; so the header says how long each
//! is, and a part of another length is refused. The hash is against parts that were mixed up. It is none against the
//! broker, which could make its own: who may be the broker is TLS's business.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use ring::digest::{SHA256, digest};
use tithe_harness::agents::link::MESSAGE_BYTES_MAX;
use tithe_machine::fault::Fault;

/// Length of what each part begins with, bytes.
pub const HEADER_BYTES: usize = 76;

/// Least that a part must have room for beside its header, bytes.
pub const ROOM_BYTES_MIN: usize = 1024;

/// Shortest part that a message of several can have, bytes: of one that is a byte longer than the least room.
const PART_BYTES_MIN: usize = ROOM_BYTES_MIN / 2;

/// What a part that waits for others costs beside its bytes.
const PART_OVERHEAD_BYTES: usize = 64;

/// Of how many messages of a sender is known that they came; an older one counts as come.
const WINDOW: u64 = 1024;

/// How many senders are known at once. One more, and the one not heard of for the longest time is forgotten.
const SENDERS_MAX: usize = 1024;

/// How many messages of one sender may wait for their parts.
const OPEN_MAX: usize = 64;

/// Time between two looks for messages whose parts do not come any more, ns.
const EXPIRY_INTERVAL_NS: u64 = 500_000_000;

const TAG: [u8; 4] = *b"TTP1";

type Id = [u8; 16];

/// Numbers and splits the messages of one connection.
pub struct Sender {
    id: Id,
    sent: AtomicU64,
}

impl Sender {
    /// A sender that is known by `id`, which nobody else has.
    pub fn new(id: [u8; 16]) -> Self {
        Self { id, sent: AtomicU64::new(0) }
    }

    /// The parts of `message`, each no longer than `room` bytes.
    ///
    /// # Errors
    /// When it is longer than [`MESSAGE_BYTES_MAX`], or `room` is less than [`HEADER_BYTES`] + [`ROOM_BYTES_MIN`].
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

/// How a message is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    length: usize,
    parts: u32,
}

impl Shape {
    /// Parts of no more than `body` bytes for a message of `length` bytes, as few as possible.
    fn with(length: usize, body: usize) -> Self {
        let size = length.div_ceil(length.div_ceil(body).max(1));
        Self { length, parts: parts_of(length, size) }
    }

    /// As a header says it; `None` where no [`Sender`] would divide so.
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

    /// What of the message is in `part`.
    fn range(self, part: u32) -> Range<usize> {
        let begin = part as usize * self.size();
        begin..(begin + self.size()).min(self.length)
    }
}

/// How many parts of `size` bytes a message of `length` bytes has; one where it is empty.
fn parts_of(length: usize, size: usize) -> u32 {
    if size == 0 { 1 } else { length.div_ceil(size) as u32 }
}

/// What all parts of a message say alike.
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

    /// The header of `part` and what follows it; `None` where it is none that a [`Sender`] writes.
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

/// The first bytes of `bytes`, which is left without them.
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

/// How much may wait for its other parts, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of one sender, bytes.
    pub sender_bytes: usize,
    /// Of all senders, bytes.
    pub bytes: usize,
    /// Without a further part, ns.
    pub timeout_ns: u64,
}

impl Limits {
    /// Two of the longest messages of one sender, eight of all of them, ten seconds.
    pub const USUAL: Self = Self {
        sender_bytes: 2 * (MESSAGE_BYTES_MAX + (1 << 20)),
        bytes: 8 * (MESSAGE_BYTES_MAX + (1 << 20)),
        timeout_ns: 10_000_000_000,
    };
}

/// Puts parts together. What is handed over is whole, is what was sent, and was not handed over before.
pub struct Reassembler {
    limits: Limits,
    senders: HashMap<Id, Known>,
    /// What waits, of all senders.
    bytes: usize,
    looked_ns: u64,
}

/// What is known of a sender.
#[derive(Default)]
struct Known {
    came: Came,
    open: HashMap<u64, Open>,
    bytes: usize,
    heard_ns: u64,
}

/// Which messages of a sender came already.
#[derive(Default)]
struct Came {
    /// One more than the highest number that came.
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

/// A message of which not all parts have come.
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
    /// One that keeps `limits`.
    pub fn new(limits: Limits) -> Self {
        Self { limits, senders: HashMap::new(), bytes: 0, looked_ns: 0 }
    }

    /// Takes the part that came at `now_ns`; the message, where it is the last of one.
    ///
    /// # Errors
    /// [`Fault::Protocol`] when it is not as a [`Sender`] writes it, came before, contradicts another part, or is too
    /// much.
    pub fn take(&mut self, part: &[u8], now_ns: u64) -> Result<Option<Vec<u8>>, Fault> {
        let (header, body) =
            Header::read(part).ok_or_else(|| protocol("what came is no part of a message of Tithe's"))?;
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

    /// Forgets messages of which no part came for long; one fault for each.
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

    /// True where no message waits for further parts.
    pub fn is_idle(&self) -> bool {
        self.bytes == 0
    }

    /// What waits for further parts, bytes.
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

    /// The message that `header` is of, where all of it is there.
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

/// `message`, where it is the one that its parts said.
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
