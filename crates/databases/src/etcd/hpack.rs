//! Header fields of HTTP/2: requests are written without compression, answers are read. Source: RFC 7541.
//!
//! Left out: the dynamic table, which the client asks the server not to use, and the names of the static table, none of
//! which shows how a call ended.

use tithe_machine::fault::Fault;

/// Longest text that is accepted: the server's text about an error.
const LONGEST: usize = 64 * 1024;

/// Code lengths of the bytes 0 to 255 and of the end, bits (RFC 7541, appendix B). The code is canonical: codes of one
/// length follow each other in the order of their bytes.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

/// Writes a number into a byte with `prefix` bits for it and the bits `flags`, and into further bytes if needed
/// (section 5.1).
fn put_number(out: &mut Vec<u8>, flags: u8, prefix: u32, mut number: usize) {
    let most = (1_usize << prefix) - 1;
    if number < most {
        out.push(flags | number as u8);
        return;
    }
    out.push(flags | most as u8);
    number -= most;
    while number >= 128 {
        out.push((number % 128) as u8 | 128);
        number /= 128;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, 0, 7, text.len());
    out.extend_from_slice(text);
}

/// Writes a field of the static table, whole (section 6.1).
pub fn put_indexed(out: &mut Vec<u8>, index: usize) {
    put_number(out, 0x80, 7, index);
}

/// Writes a field whose name is in the static table, or is `name` if `index` is 0. Neither side stores it (section
/// 6.2.2).
pub fn put_field(out: &mut Vec<u8>, index: usize, name: &str, value: &[u8]) {
    put_number(out, 0, 4, index);
    if index == 0 {
        put_text(out, name.as_bytes());
    }
    put_text(out, value);
}

/// A name with its value.
pub type Field = (Vec<u8>, Vec<u8>);

/// The fields of `block` whose names are written out in it.
///
/// # Errors
/// [`Fault::Protocol`] for bytes that are not a block, and for a block that uses the dynamic table.
pub fn fields(mut block: &[u8]) -> Result<Vec<Field>, Fault> {
    let mut fields = Vec::new();
    while let Some(&first) = block.first() {
        let prefix = match first {
            // Whole from a table.
            128.. => 7,
            // To be kept, and a new size of the table.
            64..=127 => 6,
            32..=63 => 5,
            // Not to be kept.
            0..=31 => 4,
        };
        let index = number(&mut block, prefix)?;
        if matches!(first, 128.. | 32..=63) {
            continue;
        }
        let name = if index == 0 { Some(text(&mut block)?) } else { None };
        let value = text(&mut block)?;
        fields.extend(name.map(|name| (name, value)));
    }
    Ok(fields)
}

fn number(block: &mut &[u8], prefix: u32) -> Result<usize, Fault> {
    let most = (1_usize << prefix) - 1;
    let mut number = usize::from(take(block, 1)?[0]) & most;
    if number < most {
        return Ok(number);
    }
    for shift in [0, 7, 14, 21] {
        let byte = take(block, 1)?[0];
        number += usize::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(malformed("a number"))
}

fn text(block: &mut &[u8]) -> Result<Vec<u8>, Fault> {
    let coded = block.first().is_some_and(|byte| byte & 128 != 0);
    let length = number(block, 7)?;
    if length > LONGEST {
        return Err(malformed("a long text"));
    }
    let bytes = take(block, length)?;
    if coded { decoded(bytes) } else { Ok(bytes.to_vec()) }
}

fn take<'b>(block: &mut &'b [u8], count: usize) -> Result<&'b [u8], Fault> {
    let (taken, rest) = block.split_at_checked(count).ok_or_else(|| malformed("it ends early"))?;
    *block = rest;
    Ok(taken)
}

/// Decodes Huffman-coded bytes (section 5.2).
fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let (mut code, mut length, mut first, mut decoded) = (0_u32, 0_u8, 0_u32, Vec::new());
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| u32::from((byte >> bit) & 1)));
    let mut ones = 0;
    for bit in bits {
        (code, length, ones) = ((code << 1) | bit, length + 1, if bit == 1 { ones + 1 } else { 0 });
        first <<= 1;
        let of_length = LENGTHS.iter().filter(|it| **it == length).count() as u32;
        if code - first < of_length {
            let symbols = LENGTHS.iter().enumerate().filter(|(_, it)| **it == length).map(|(symbol, _)| symbol);
            let symbol = symbols.clone().nth((code - first) as usize).and_then(|symbol| u8::try_from(symbol).ok());
            decoded.push(symbol.ok_or_else(|| malformed("the end within a text"))?);
            (code, length, first) = (0, 0, 0);
        } else {
            first += of_length;
        }
    }
    // The padding of the last byte is ones.
    if length < 8 && ones >= length { Ok(decoded) } else { Err(malformed("a text ends in the middle of a code")) }
}

fn malformed(what: &str) -> Fault {
    Fault::Protocol(format!("the server does not speak HTTP/2: in a block of header fields: {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_standard() {
        // Appendices C.1 and C.4.1.
        let mut out = Vec::new();
        put_number(&mut out, 0xe0, 5, 1337);
        assert_eq!((number(&mut &out[..], 5), &out[..]), (Ok(1337), &[0xff, 0x9a, 0x0a][..]));
        let coded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&coded), Ok(b"www.example.com".to_vec()));
        let coded = [0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf];
        assert_eq!(decoded(&coded), Ok(b"custom-value".to_vec()));
    }

    #[test]
    fn names_that_are_spelled_out_are_read() {
        let mut block = vec![0x3f, 0xe1, 0x1f, 0x88];
        put_field(&mut block, 31, "content-type", b"application/grpc");
        put_field(&mut block, 0, "grpc-status", b"0");
        block.extend_from_slice(&[0x40, 1, b'a', 0x81, 0x8f]);
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(fields(&block), Ok(vec![pair("grpc-status", "0"), pair("a", "b")]));
    }

    proptest! {
        #[test]
        fn foreign_blocks_never_panic(block in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = fields(&block);
        }
    }
}
