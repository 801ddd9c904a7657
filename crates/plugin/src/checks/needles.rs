//! Searches for needles in bytes.
//!
//! A needle is searched for as it is, in hexadecimal of either case, and in base64 at each of its three alignments:
//! PostgreSQL, for example, logs binary parameters in hexadecimal. A stream is read in overlapping pieces, so that no
//! needle is missed at a border.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, Read},
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use tithe_machine::secret::hex;

/// The form in which a needle was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Raw,
    Hexadecimal,
    Base64,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Hexadecimal => "hexadecimal",
            Self::Base64 => "base64",
        }
    }
}

/// Shortest needle in bytes: a shorter one would be found by chance.
pub const NEEDLE_BYTES: usize = 12;
/// Bytes by which a candidate is recognised.
const HEAD: usize = 8;
/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// The needles, in all their forms.
pub struct Needles {
    forms: Vec<NeedleForm>,
    /// For each pair of bytes, whether some form starts with it: skips most of the haystack.
    starts: Vec<bool>,
    heads: HashMap<[u8; HEAD], Vec<usize>>,
    longest: usize,
}

struct NeedleForm {
    what: &'static str,
    number: usize,
    form: Form,
    bytes: Vec<u8>,
}

impl Needles {
    /// Needles with the noun that the finding uses for them, singular: `canary`, `data key`.
    ///
    /// # Panics
    /// If a needle is shorter than [`NEEDLE_BYTES`].
    pub fn new<'a>(needles: impl IntoIterator<Item = (&'static str, &'a [u8])>) -> Self {
        let mut all = Self { forms: Vec::new(), starts: vec![false; 1 << 16], heads: HashMap::new(), longest: HEAD };
        for (number, (what, needle)) in needles.into_iter().enumerate() {
            assert!(needle.len() >= NEEDLE_BYTES, "a {what} of {} bytes is met by chance", needle.len());
            for (form, bytes) in forms(needle) {
                all.add(NeedleForm { what, number, form, bytes });
            }
        }
        all
    }

    /// Adds `form`, unless the same bytes are already included.
    fn add(&mut self, form: NeedleForm) {
        let head = *form.bytes.first_chunk::<HEAD>().expect("every form is longer than its head");
        let candidates = self.heads.entry(head).or_default();
        if candidates.iter().any(|&index| self.forms[index].bytes == form.bytes) {
            return;
        }
        candidates.push(self.forms.len());
        self.starts[pair(&head)] = true;
        self.longest = self.longest.max(form.bytes.len());
        self.forms.push(form);
    }

    /// Calls `hit` for every form in `haystack`, with the position where it ends.
    fn each<'a>(&'a self, haystack: &[u8], mut hit: impl FnMut(usize, &'a NeedleForm)) {
        let zeros_hold_none = !self.starts[0];
        let mut next = 0;
        while let Some(window) = haystack.get(next..).and_then(|rest| rest.first_chunk::<HEAD>()) {
            let start = next;
            // Preallocated files are mostly zeros. The last zero may begin a needle.
            next += if zeros_hold_none && *window == [0; HEAD] { HEAD - 1 } else { 1 };
            if !self.starts[pair(window)] {
                continue;
            }
            let Some(candidates) = self.heads.get(window) else {
                continue;
            };
            for form in candidates.iter().map(|&index| &self.forms[index]) {
                if haystack[start..].starts_with(&form.bytes) {
                    hit(start + form.bytes.len(), form);
                }
            }
        }
    }

    /// The needles found in `haystack`.
    pub fn count(&self, haystack: &[u8]) -> Tally {
        let mut tally = Tally::default();
        self.each(haystack, |_, form| tally.add(form));
        tally
    }

    /// The needles found in `reader`, and how many bytes it delivered.
    ///
    /// # Errors
    /// If reading fails.
    pub fn count_in(&self, reader: &mut dyn Read) -> io::Result<(Tally, u64)> {
        let (mut tally, mut bytes) = (Tally::default(), 0);
        let mut buffer = vec![0; PIECE + self.longest];
        // The end of the last piece precedes the next one: a needle may begin there. Needles that end there were
        // already counted.
        let mut kept = 0;
        loop {
            let read = match reader.read(&mut buffer[kept..]) {
                Ok(0) => return Ok((tally, bytes)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            bytes += read as u64;
            let filled = kept + read;
            self.each(&buffer[..filled], |end, form| {
                if end > kept {
                    tally.add(form);
                }
            });
            let keep = filled.min(self.longest - 1);
            buffer.copy_within(filled - keep..filled, 0);
            kept = keep;
        }
    }
}

fn pair(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

fn forms(needle: &[u8]) -> Vec<(Form, Vec<u8>)> {
    let lower = hex(needle);
    let upper = lower.to_uppercase();
    let mut all = vec![(Form::Raw, needle.to_vec()), (Form::Hexadecimal, lower.clone().into_bytes())];
    if upper != lower {
        all.push((Form::Hexadecimal, upper.into_bytes()));
    }
    all.extend((0..3).map(|before| (Form::Base64, base64_inner(needle, before))));
    all
}

/// The characters of a text's base64 (RFC 4648, section 4) that depend on `needle` alone, if `before` bytes modulo 3
/// precede it and any bytes follow.
fn base64_inner(needle: &[u8], before: usize) -> Vec<u8> {
    let text = STANDARD_NO_PAD.encode([&[0; 2][..before], needle].concat());
    // Six bits a character: the first and the last that share no bits with adjacent bytes.
    let given = (before * 8).div_ceil(6)..(before + needle.len()) * 8 / 6;
    text.as_bytes().get(given).unwrap_or_default().to_vec()
}

/// How often needles were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    hits: u64,
    distinct: BTreeSet<(&'static str, usize)>,
    forms: BTreeSet<Form>,
}

impl Tally {
    /// A tally that an observer reports: its `hits`, needles and forms, by the names of [`Tally::forms`].
    pub fn told(hits: u64, needles: impl Iterator<Item = (&'static str, usize)>, forms: &[String]) -> Self {
        let all = [Form::Raw, Form::Hexadecimal, Form::Base64].into_iter();
        let forms = all.filter(|form| forms.iter().any(|name| name == form.name())).collect();
        Self { hits, distinct: needles.collect(), forms }
    }

    /// The found needles, by their place in the list of needles.
    pub fn needles(&self) -> Vec<usize> {
        self.distinct.iter().map(|(_, number)| *number).collect()
    }

    /// Their forms: `raw`, `hexadecimal`, `base64`.
    pub fn forms(&self) -> Vec<&'static str> {
        self.forms.iter().map(|form| form.name()).collect()
    }

    fn add(&mut self, form: &NeedleForm) {
        self.hits += 1;
        self.distinct.insert((form.what, form.number));
        self.forms.insert(form.form);
    }

    /// Adds what `other` found.
    pub fn merge(&mut self, other: &Self) {
        self.hits += other.hits;
        self.distinct.extend(&other.distinct);
        self.forms.extend(&other.forms);
    }

    /// How often any needle was found.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// How many different needles called `what` were found.
    pub fn distinct(&self, what: &str) -> usize {
        self.distinct.iter().filter(|(name, _)| *name == what).count()
    }

    /// `12 canaries, 1 data key found 44 times as raw and hexadecimal`, the forms only if they are not just raw;
    /// nothing found: `nothing`.
    pub fn describe(&self) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (what, _) in &self.distinct {
            *kinds.entry(what).or_default() += 1;
        }
        if kinds.is_empty() {
            return "nothing".to_owned();
        }
        let kinds: Vec<_> = kinds.into_iter().map(|(what, count)| counted(what, count)).collect();
        let text = format!("{} found {}", kinds.join(", "), times(self.hits));
        let forms: Vec<_> = self.forms.iter().map(|form| form.name()).collect();
        if forms == [Form::Raw.name()] { text } else { format!("{text} as {}", forms.join(" and ")) }
    }
}

fn counted(what: &str, count: usize) -> String {
    match what.strip_suffix("ry") {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ries"),
        None => format!("{count} {what}s"),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests;
