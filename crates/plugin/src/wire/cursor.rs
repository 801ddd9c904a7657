//! Reads the parts of a received message in order: shared by the readers of all protocols.
//!
//! Data from a server are untrusted input: every length is checked against the available bytes, and nothing is
//! allocated because of a length field. The encoding of texts and values is in the code of each protocol.

use std::marker::PhantomData;

use tithe_machine::fault::Fault;

/// How one protocol packs its messages.
pub trait Format {
    /// The error if a unit ends before its parts do, as a sentence without a full stop.
    const CUT_SHORT: &'static str;
}

/// The unread rest of a message, packet or frame of the format `F`.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a, F> {
    rest: &'a [u8],
    format: PhantomData<F>,
}

impl<'a, F: Format> Cursor<'a, F> {
    /// At the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, format: PhantomData }
    }

    /// The unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The fault of a unit that ends before its parts do.
    pub fn cut_short() -> Fault {
        Fault::Protocol(F::CUT_SHORT.to_owned())
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if there are fewer; then none is consumed.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(Self::cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes, as an array.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(Self::cut_short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    /// The next 16 bits as a signed number, highest byte first.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn be_i16(&mut self) -> Result<i16, Fault> {
        self.array().map(i16::from_be_bytes)
    }

    /// The next 32 bits as a signed number, highest byte first.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn be_i32(&mut self) -> Result<i32, Fault> {
        self.array().map(i32::from_be_bytes)
    }

    /// The next 16 bits as a number, highest byte first.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn be_u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next 32 bits as a number, highest byte first.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn be_u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next `N` bytes, eight at most, as a number, lowest byte first.
    ///
    /// # Errors
    /// As [`Cursor::bytes`].
    #[inline]
    pub fn le<const N: usize>(&mut self) -> Result<u64, Fault> {
        const { assert!(N <= 8, "a number of 64 bits has eight bytes") };
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(self.bytes(N)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// The bytes before the next zero byte, which is consumed too.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if there is none.
    pub fn zero_ended(&mut self) -> Result<&'a [u8], Fault> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or_else(Self::cut_short)?;
        let text = self.bytes(end)?;
        self.byte()?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    struct Letters;

    impl Format for Letters {
        const CUT_SHORT: &'static str = "a letter ends too early";
    }

    #[test]
    fn parts_are_read_in_order() {
        let mut cursor =
            Cursor::<Letters>::new(b"\x01\x02\x03\xff\xfe\x01\x02\x03\x04\xff\xff\xff\xfdab\0c\x05\x06\x07");
        assert_eq!((cursor.byte(), cursor.be_u16(), cursor.be_i16()), (Ok(1), Ok(0x203), Ok(-2)));
        assert_eq!((cursor.be_u32(), cursor.be_i32()), (Ok(0x102_0304), Ok(-3)));
        assert_eq!((cursor.zero_ended(), cursor.bytes(1)), (Ok(&b"ab"[..]), Ok(&b"c"[..])));
        assert_eq!((cursor.le::<3>(), cursor.rest()), (Ok(0x7_0605), &b""[..]));
    }

    #[test]
    fn what_is_too_short_is_a_fault_in_the_words_of_its_format_and_stays() {
        let mut cursor = Cursor::<Letters>::new(b"abc");
        let fault = Fault::Protocol("a letter ends too early".to_owned());
        assert_eq!(cursor.bytes(4), Err(fault.clone()));
        assert_eq!(cursor.be_u32(), Err(fault.clone()));
        assert_eq!(cursor.le::<8>(), Err(fault.clone()));
        assert_eq!(cursor.zero_ended(), Err(fault));
        assert_eq!(cursor.rest(), b"abc");
    }
}
