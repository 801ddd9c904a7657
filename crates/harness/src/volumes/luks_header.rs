//! The header of a LUKS2 disk, read according to the specification.
//!
//! LUKS2 On-Disk Format Specification 1.1 (Milan Brož, 2022): chapter 2.1 for the binary header, 3 for the JSON area.
//! Of the JSON only the parts for reports are read: the segment, its digest and the digest's first key slot.

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use serde::Deserialize;
use tithe_machine::fault::Fault;

/// The first bytes on the disk.
const MAGIC: &[u8] = b"LUKS\xba\xbe";

/// Length of the binary header; the JSON area follows.
const BINARY_BYTES: usize = 4096;

/// Longest header that the specification allows (2.1, table of sizes).
const LONGEST: u64 = 4 << 20;

/// The header's description of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `aes-xts-plain64`.
    pub cipher: String,
    /// Length of the key of the data, bits.
    pub key_bits: u64,
    /// Bytes that are encrypted as one unit.
    pub sector_bytes: u64,
    /// Where the data begin on the disk, bytes.
    pub data_offset: u64,
    /// Digest of the data's key, in base64: another key has another digest.
    pub digest: String,
}

#[derive(Deserialize)]
struct Json {
    keyslots: BTreeMap<String, Keyslot>,
    segments: BTreeMap<String, Segment>,
    digests: BTreeMap<String, Digest>,
}

#[derive(Deserialize)]
struct Keyslot {
    key_size: u64,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(rename = "type")]
    kind: String,
    offset: String,
    encryption: String,
    sector_size: u64,
}

#[derive(Deserialize)]
struct Digest {
    keyslots: Vec<String>,
    segments: Vec<String>,
    digest: String,
}

impl Header {
    /// Reads the header at the start of `disk`.
    ///
    /// # Errors
    /// What deviates from the specification.
    pub fn read(disk: &Path) -> Result<Self, Fault> {
        let failed = |error: std::io::Error| Fault::machine(disk.display(), error);
        let mut bytes = Vec::new();
        File::open(disk).map_err(failed)?.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
        Self::parse(&bytes).map_err(|problem| Fault::Wrong(format!("the header of the disk: {problem}")))
    }

    /// The header in the first bytes of a disk.
    ///
    /// # Errors
    /// What deviates from the specification.
    pub fn parse(disk: &[u8]) -> Result<Self, String> {
        let binary = disk.get(..BINARY_BYTES).ok_or("it is too short")?;
        if !binary.starts_with(MAGIC) {
            return Err("there is no LUKS header".to_owned());
        }
        // All numbers are big-endian: version at 6, length of the whole header at 8.
        let version = u16::from_be_bytes([binary[6], binary[7]]);
        if version != 2 {
            return Err(format!("it is of version {version}"));
        }
        let length = binary[8..16].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let area = usize::try_from(length).ok().and_then(|length| disk.get(BINARY_BYTES..length));
        let area = area.ok_or_else(|| format!("it claims to be {length} bytes long"))?;
        // The text ends with the first zero byte.
        let text = area.split(|byte| *byte == 0).next().unwrap_or_default();
        let json: Json = serde_json::from_slice(text).map_err(|error| format!("its JSON area: {error}"))?;
        let segments: Vec<_> = json.segments.iter().collect();
        // During a re-encryption a disk has several segments: what is done, what is in progress, what is left.
        let [(name, segment)] = segments[..] else {
            return Err(format!("it has {} segments in place of one", segments.len()));
        };
        let digest = json.digests.values().find(|digest| digest.segments.contains(name));
        let digest = digest.ok_or("its segment has no digest")?;
        let slot =
            digest.keyslots.first().and_then(|slot| json.keyslots.get(slot)).ok_or("its digest has no key slot")?;
        if segment.kind != "crypt" {
            return Err(format!("its segment is of type {}", segment.kind));
        }
        let key_bits = slot.key_size.checked_mul(8).ok_or("its key is too long")?;
        Ok(Self {
            cipher: segment.encryption.clone(),
            key_bits,
            sector_bytes: segment.sector_size,
            data_offset: segment.offset.parse().map_err(|_| "its segment begins nowhere")?,
            digest: digest.digest.clone(),
        })
    }

    /// `LUKS2, aes-xts-plain64, key of 512 bits, sectors of 512 bytes`.
    pub fn in_words(&self) -> String {
        let Self { cipher, key_bits, sector_bytes, .. } = self;
        format!("LUKS2, {cipher}, key of {key_bits} bits, sectors of {sector_bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    const JSON: &str = r#"{"keyslots":{"0":{"type":"luks2","key_size":64,"af":{"type":"luks1"}}},"tokens":{},
        "segments":{"0":{"type":"crypt","offset":"16777216","size":"dynamic","iv_tweak":"0",
        "encryption":"aes-xts-plain64","sector_size":512}},"digests":{"0":{"type":"pbkdf2","keyslots":["0"],"segments":["0"],"digest":"c2FsdA=="}},"config":{"json_size":"12288"}}"#;

    fn disk(json: &str) -> Vec<u8> {
        let mut disk = vec![0; 16384];
        disk[..6].copy_from_slice(MAGIC);
        disk[7] = 2;
        disk[8..16].copy_from_slice(&16384u64.to_be_bytes());
        disk[BINARY_BYTES..BINARY_BYTES + json.len()].copy_from_slice(json.as_bytes());
        disk
    }

    fn check(disk: &[u8], expected: Expect) {
        expected.assert_eq(&Header::parse(disk).map_or_else(|problem| problem, |header| header.in_words()));
    }

    #[test]
    fn a_header_says_cipher_key_and_sector() {
        check(&disk(JSON), expect!["LUKS2, aes-xts-plain64, key of 512 bits, sectors of 512 bytes"]);
    }

    #[test]
    fn what_is_none_says_why() {
        check(&disk(JSON)[..4000], expect!["it is too short"]);
        check(&vec![0; 8192], expect!["there is no LUKS header"]);
        let mut one = disk(JSON);
        one[7] = 1;
        check(&one, expect!["it is of version 1"]);
        let mut long = disk(JSON);
        long[8] = 1;
        check(&long, expect!["it claims to be 72057594037944320 bytes long"]);
        check(
            &disk(&JSON.replace("crypt", "linear")),
            expect!["its JSON area: missing field `encryption` at line 3 column 58"],
        );
        check(&disk(&JSON.replace("\"segments\":[\"0\"]", "\"segments\":[]")), expect!["its segment has no digest"]);
        check(
            &disk(&JSON.replace("\"keyslots\":[\"0\"]", "\"keyslots\":[\"7\"]")),
            expect!["its digest has no key slot"],
        );
        check(&disk(&JSON.replace("16777216", "far")), expect!["its segment begins nowhere"]);
        let segment = r#""0":{"type":"crypt","offset":"0","encryption":"aes-xts-plain64","sector_size":512}"#;
        let two = format!("{segment},{}", segment.replacen('0', "1", 1));
        check(
            &disk(&format!(r#"{{"keyslots":{{}},"segments":{{{two}}},"digests":{{}}}}"#)),
            expect!["it has 2 segments in place of one"],
        );
        check(&disk("{"), expect!["its JSON area: EOF while parsing an object at line 1 column 1"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..64), at in 0usize..5000) {
            let mut disk = disk(JSON);
            let end = (at + bytes.len()).min(disk.len());
            disk[at..end].copy_from_slice(&bytes[..end - at]);
            if let Ok(header) = Header::parse(&disk) {
                prop_assert!(header.key_bits % 8 == 0);
            }
        }
    }
}
