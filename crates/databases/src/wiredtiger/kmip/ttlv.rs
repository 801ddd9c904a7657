//! The encoding of KMIP: tag, type, length, value, and structures of them (KMIP 1.2, section 9.1).
//!
//! Every value is padded with zeros to whole words of 8 bytes. The form is canonical: a parsed message is written again
//! as the same bytes. Types that no message here needs are kept unparsed.

/// Bytes of tag, type and length.
pub const HEAD_BYTES: usize = 8;
/// Every value is padded to a multiple of this, bytes.
const WORD: usize = 8;
/// Structures within structures, at most: a key is six deep.
const DEPTH_MAX: usize = 16;

/// A tag with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The tag, 24 bits.
    pub tag: u32,
    /// Its value.
    pub value: Value<'a>,
}

/// A value. Text and bytes stay in the received buffer.
#[derive(Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Items in order.
    Structure(Vec<Item<'a>>),
    /// A signed number.
    Integer(i32),
    /// One of the numbers that the specification names.
    Enumeration(u32),
    /// UTF-8.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An unparsed type, with its bytes.
    Other(u8, &'a [u8]),
}

/// Bytes can be a key: they are not shown.
impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Structure(items) => formatter.debug_list().entries(items).finish(),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Enumeration(number) => write!(formatter, "{number:#x}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Bytes(bytes) | Self::Other(_, bytes) => write!(formatter, "{} bytes", bytes.len()),
        }
    }
}

impl<'a> Item<'a> {
    /// An item.
    pub fn new(tag: u32, value: Value<'a>) -> Self {
        Self { tag, value }
    }

    /// The value of the first item with `tag` in this structure.
    pub fn get(&self, tag: u32) -> Option<&Value<'a>> {
        self.item(tag).map(|item| &item.value)
    }

    /// The first item with `tag` in this structure.
    pub fn item(&self, tag: u32) -> Option<&Self> {
        match &self.value {
            Value::Structure(items) => items.iter().find(|item| item.tag == tag),
            _ => None,
        }
    }

    /// The first item at the end of `path`, a tag for each level.
    pub fn at(&self, path: &[u32]) -> Option<&Self> {
        path.iter().try_fold(self, |item, tag| item.item(*tag))
    }

    /// Adds the encoded item to `target`.
    pub fn write(&self, target: &mut Vec<u8>) {
        target.extend_from_slice(&self.tag.to_be_bytes()[1..]);
        target.push(self.value.kind());
        let length = target.len();
        target.extend_from_slice(&[0; 4]);
        let start = target.len();
        match &self.value {
            Value::Structure(items) => items.iter().for_each(|item| item.write(target)),
            Value::Integer(number) => target.extend_from_slice(&number.to_be_bytes()),
            Value::Enumeration(number) => target.extend_from_slice(&number.to_be_bytes()),
            Value::Text(text) => target.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) | Value::Other(_, bytes) => target.extend_from_slice(bytes),
        }
        // Requests hold a few hundred bytes.
        let written = u32::try_from(target.len() - start).unwrap_or(u32::MAX);
        target[length..start].copy_from_slice(&written.to_be_bytes());
        target.resize(start + (target.len() - start).next_multiple_of(WORD), 0);
    }
}

impl Value<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::Structure(_) => 1,
            Self::Integer(_) => 2,
            Self::Enumeration(_) => 5,
            Self::Text(_) => 7,
            Self::Bytes(_) => 8,
            Self::Other(kind, _) => *kind,
        }
    }
}

/// Length of the whole message that begins with `head`, bytes, including its head; `None` if it is longer than `limit`.
pub fn message_bytes(head: [u8; HEAD_BYTES], limit: usize) -> Option<usize> {
    let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
    length.checked_next_multiple_of(WORD)?.checked_add(HEAD_BYTES).filter(|bytes| *bytes <= limit)
}

/// The one item that `bytes` are; `None` when they are anything else.
pub fn parse(bytes: &[u8]) -> Option<Item<'_>> {
    match parse_first(bytes, DEPTH_MAX)? {
        (item, []) => Some(item),
        _ => None,
    }
}

/// The first item of `bytes`, and the bytes after it.
fn parse_first(bytes: &[u8], depth: usize) -> Option<(Item<'_>, &[u8])> {
    let (&[tag0, tag1, tag2, kind, length @ ..], rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    let (padded, rest) = rest.split_at_checked(length.checked_next_multiple_of(WORD)?)?;
    let (content, padding) = padded.split_at(length);
    if padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    let tag = u32::from_be_bytes([0, tag0, tag1, tag2]);
    Some((Item::new(tag, parse_value(kind, content, depth)?), rest))
}

fn parse_value(kind: u8, content: &[u8], depth: usize) -> Option<Value<'_>> {
    Some(match kind {
        1 => Value::Structure(parse_all(content, depth.checked_sub(1)?)?),
        2 => Value::Integer(i32::from_be_bytes(content.try_into().ok()?)),
        5 => Value::Enumeration(u32::from_be_bytes(content.try_into().ok()?)),
        7 => Value::Text(std::str::from_utf8(content).ok()?),
        8 => Value::Bytes(content),
        // Long integer, boolean, time: a word each; interval: half of one; big integer: words.
        3 | 6 | 9 if content.len() == WORD => Value::Other(kind, content),
        10 if content.len() == WORD / 2 => Value::Other(kind, content),
        4 if content.len().is_multiple_of(WORD) => Value::Other(kind, content),
        _ => return None,
    })
}

fn parse_all(mut bytes: &[u8], depth: usize) -> Option<Vec<Item<'_>>> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let (item, rest) = parse_first(bytes, depth)?;
        items.push(item);
        bytes = rest;
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use tithe_machine::secret::hex;

    use super::*;

    fn check(item: &Item<'_>, expect: expect_test::Expect) {
        let mut bytes = Vec::new();
        item.write(&mut bytes);
        assert_eq!(parse(&bytes).as_ref(), Some(item));
        expect.assert_eq(&bytes.chunks(4).map(hex).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn values_are_encoded_as_the_specifications_examples() {
        // KMIP 1.2, section 9.1.2.
        check(&Item::new(0x42_0020, Value::Integer(8)), expect!["42002002 00000004 00000008 00000000"]);
        check(&Item::new(0x42_0020, Value::Enumeration(255)), expect!["42002005 00000004 000000ff 00000000"]);
        check(
            &Item::new(0x42_0020, Value::Text("Hello World")),
            expect!["42002007 0000000b 48656c6c 6f20576f 726c6400 00000000"],
        );
        check(&Item::new(0x42_0020, Value::Bytes(&[1, 2, 3])), expect!["42002008 00000003 01020300 00000000"]);
        let items = vec![Item::new(0x42_0004, Value::Enumeration(254)), Item::new(0x42_0005, Value::Integer(255))];
        check(
            &Item::new(0x42_0020, Value::Structure(items)),
            expect!["42002001 00000020 42000405 00000004 000000fe 00000000 42000502 00000004 000000ff 00000000"],
        );
    }

    #[test]
    fn a_message_is_bounded_and_so_is_its_depth() {
        assert_eq!(message_bytes([0x42, 0, 0x7b, 1, 0, 0, 0, 0x20], 64), Some(40));
        assert_eq!(message_bytes([0x42, 0, 0x7b, 1, 0xff, 0xff, 0xff, 0xff], 64), None);
        let nested = |depth| {
            (0..depth).fold(Item::new(1, Value::Integer(1)), |item, _| Item::new(1, Value::Structure(vec![item])))
        };
        let parses = |item: &Item<'_>| {
            let mut bytes = Vec::new();
            item.write(&mut bytes);
            parse(&bytes).is_some()
        };
        assert!(parses(&nested(DEPTH_MAX)));
        assert!(!parses(&nested(DEPTH_MAX + 1)));
    }

    /// An item that owns its content.
    #[derive(Debug, Clone)]
    enum Owned {
        Structure(Vec<(u32, Owned)>),
        Integer(i32),
        Enumeration(u32),
        Text(String),
        Bytes(Vec<u8>),
        Time([u8; 8]),
    }

    impl Owned {
        fn value(&self) -> Value<'_> {
            match self {
                Self::Structure(items) => {
                    Value::Structure(items.iter().map(|(tag, value)| Item::new(*tag, value.value())).collect())
                }
                Self::Integer(number) => Value::Integer(*number),
                Self::Enumeration(number) => Value::Enumeration(*number),
                Self::Text(text) => Value::Text(text),
                Self::Bytes(bytes) => Value::Bytes(bytes),
                Self::Time(bytes) => Value::Other(9, bytes),
            }
        }
    }

    fn any_value() -> impl Strategy<Value = Owned> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Owned::Integer),
            any::<u32>().prop_map(Owned::Enumeration),
            ".{0,20}".prop_map(Owned::Text),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Owned::Bytes),
            any::<[u8; 8]>().prop_map(Owned::Time),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop::collection::vec((0u32..1 << 24, inner), 0..5).prop_map(Owned::Structure)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_shorter_is(value in any_value(), tag in 0u32..1 << 24, cut: prop::sample::Index) {
            let item = Item::new(tag, value.value());
            let mut bytes = Vec::new();
            item.write(&mut bytes);
            prop_assert_eq!(parse(&bytes), Some(item));
            prop_assert_eq!(parse(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn foreign_bytes_are_refused_or_canonical(value in any_value(), place: prop::sample::Index, byte: u8) {
            let mut bytes = Vec::new();
            Item::new(0x42_007b, value.value()).write(&mut bytes);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Some(item) = parse(&bytes) {
                let mut again = Vec::new();
                item.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn noise_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(item) = parse(&bytes) {
                let mut again = Vec::new();
                item.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
