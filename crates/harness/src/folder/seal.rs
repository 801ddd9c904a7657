//! Checksums of a run folder: each JSON object in it ends with the CRC-32 of the text before it.
//!
//! A checksum finds accidents: a flipped bit, a lost row, a mistake in an editor. It is no signature: everyone who can
//! write to the folder can compute it, and an object without a checksum is accepted. CRC-32 (IEEE 802.3) finds every
//! change within 32 consecutive bits, and misses one in 2^32 others.

use crc32fast::Hasher;

/// The member's name.
const MEMBER: &str = "\"crc32\":";

/// Ends `object`, the text of a JSON object that is not empty, with the checksum of `rows` and of its own text.
pub(super) fn seal(object: &mut Vec<u8>, rows: &[u8]) {
    let end = object.iter().rposition(|byte| *byte == b'}').unwrap_or_default();
    let is_pretty = object[..end].ends_with(b"\n");
    object.truncate(end);
    object.truncate(object.trim_ascii_end().len());
    let mut hasher = Hasher::new();
    hasher.update(rows);
    hasher.update(object);
    let sum = hasher.finalize();
    let member =
        if is_pretty { format!(",\n  {MEMBER} \"{sum:08x}\"\n}}") } else { format!(",{MEMBER}\"{sum:08x}\"}}") };
    object.extend_from_slice(member.as_bytes());
}

/// False if `object` ends with a checksum that does not match its text and the rows that `rows` has seen.
pub(super) fn is_whole(object: &str, mut rows: Hasher) -> bool {
    let Some((sealed, sum)) = object.rsplit_once(MEMBER) else { return true };
    let sum = sum.trim_end().strip_suffix('}').map(|sum| sum.trim().trim_matches('"'));
    // If it is not at the end, another program has written the object again, and the member is its own.
    let (Some(sum), Some(sealed)) = (sum, sealed.trim_end().strip_suffix(',')) else { return true };
    if sum.contains(['{', '}', ',', ':']) {
        return true;
    }
    rows.update(sealed.as_bytes());
    u32::from_str_radix(sum, 16).is_ok_and(|sum| sum == rows.finalize())
}
