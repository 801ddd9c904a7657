//! The messages of etcd's calls: protocol buffers, written and read in place. Sources: "Encoding" (protobuf.dev); etcd,
//! `api/etcdserverpb/rpc.proto`, `api/mvccpb/kv.proto`, `api/authpb/auth.proto`.

use tithe_machine::fault::Fault;

// Calls.
pub const RANGE: &str = "/etcdserverpb.KV/Range";
pub const TXN: &str = "/etcdserverpb.KV/Txn";
pub const DELETE_RANGE: &str = "/etcdserverpb.KV/DeleteRange";
pub const PUT: &str = "/etcdserverpb.KV/Put";
pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub const DEFRAGMENT: &str = "/etcdserverpb.Maintenance/Defragment";
pub const MEMBERS: &str = "/etcdserverpb.Cluster/MemberList";
pub const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
pub const AUTH_ENABLE: &str = "/etcdserverpb.Auth/AuthEnable";
pub const USER_ADD: &str = "/etcdserverpb.Auth/UserAdd";
pub const USER_GET: &str = "/etcdserverpb.Auth/UserGet";
pub const USER_LIST: &str = "/etcdserverpb.Auth/UserList";
pub const USER_GRANT_ROLE: &str = "/etcdserverpb.Auth/UserGrantRole";
pub const ROLE_ADD: &str = "/etcdserverpb.Auth/RoleAdd";
pub const ROLE_GET: &str = "/etcdserverpb.Auth/RoleGet";
pub const ROLE_GRANT_PERMISSION: &str = "/etcdserverpb.Auth/RoleGrantPermission";

/// The call of a statement of the user's own, which has no arguments: `Maintenance/Defragment`.
pub fn path_of(statement: &str) -> String {
    // A name, whatever a statement of an experiment holds.
    let name: String = statement.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '/').collect();
    format!("/etcdserverpb.{name}")
}

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of any kind.
    Number(u64),
    /// Bytes, a text or another message.
    Bytes(&'a [u8]),
}

/// Writes a number in as many bytes as it needs.
fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push((number % 128) as u8 | 128);
        number /= 128;
    }
    out.push(number as u8);
}

/// Writes the field `field`, a number.
pub fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, number);
}

/// Writes the field `field`, whose bytes are given in pieces.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, field: u32, pieces: &[&[u8]]) {
    put_varint(out, (u64::from(field) << 3) | 2);
    put_varint(out, pieces.iter().map(|piece| piece.len() as u64).sum());
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// Writes the field `field`, another message, which `put` writes.
#[inline]
pub fn put_message(out: &mut Vec<u8>, field: u32, put: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, (u64::from(field) << 3) | 2);
    let begins = out.len();
    put(out);
    let mut length = Vec::with_capacity(4);
    put_varint(&mut length, (out.len() - begins) as u64);
    out.splice(begins..begins, length);
}

/// The fields of a message, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.bytes(8)?),
            2 => {
                let count = self.varint()?;
                Value::Bytes(self.bytes(count)?)
            }
            5 => Value::Bytes(self.bytes(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }

    /// The last field `field` as a number; 0 if there is none, as the protocol defines.
    ///
    /// # Errors
    /// [`Fault::Protocol`] for bytes that are not a message.
    pub fn number(self, field: u64) -> Result<u64, Fault> {
        let mut found = 0;
        for one in self {
            if let (number, Value::Number(value)) = one?
                && number == field
            {
                found = value;
            }
        }
        Ok(found)
    }

    /// All fields `field` as bytes.
    ///
    /// # Errors
    /// As [`Fields::number`].
    pub fn all(self, field: u64) -> Result<Vec<&'a [u8]>, Fault> {
        let mut found = Vec::new();
        for one in self {
            if let (number, Value::Bytes(value)) = one?
                && number == field
            {
                found.push(value);
            }
        }
        Ok(found)
    }

    /// The first of these; empty if there is none.
    ///
    /// # Errors
    /// As [`Fields::number`].
    pub fn first(self, field: u64) -> Result<&'a [u8], Fault> {
        Ok(self.all(field)?.first().copied().unwrap_or_default())
    }

    /// The same as texts.
    ///
    /// # Errors
    /// As [`Fields::number`].
    pub fn texts(self, field: u64) -> Result<Vec<String>, Fault> {
        Ok(self.all(field)?.into_iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| Fault::Protocol("the server's answer is not a message of etcd's".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_encoding() {
        let mut out = Vec::new();
        put_number(&mut out, 1, 150);
        put_bytes(&mut out, 2, &[b"test", b"ing"]);
        put_message(&mut out, 3, |out| put_number(out, 1, 150));
        let expected = [&[0x08, 0x96, 0x01][..], &[0x12, 0x07], b"testing", &[0x1a, 0x03, 0x08, 0x96, 0x01]].concat();
        assert_eq!(out, expected);
        assert_eq!(Fields(&out).number(1), Ok(150));
        assert_eq!(Fields(&out).texts(2), Ok(vec!["testing".to_owned()]));
        assert_eq!(Fields(Fields(&out).first(3).expect("a message")).number(1), Ok(150));
        assert!(Fields(&out[..4]).number(9).is_err());
    }

    proptest! {
        #[test]
        fn foreign_messages_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Fields(&bytes).number(1);
        }
    }
}
