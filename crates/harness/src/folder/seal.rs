//! Checksums of a run folder: each JSON object in it ends with the CRC-32 of what precedes.
//!
//! A checksum finds accidents: a flipped bit, a lost row, a slip of an editor. It is no signature: someone who can
//! write to the folder can compute it, and an object without one is taken as it is. CRC-32 (IEEE 802.3) finds every
//! change within 32 neighbouring bits, and all but one in 2^32 others.

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

/// False where `object` ends with a checksum that is not the one of its text after the rows that `rows` has seen.
pub(super) fn is_whole(object: &str, mut rows: Hasher) -> bool {
    let Some((sealed, sum)) = object.rsplit_once(MEMBER) else { return true };
    let sum = sum.trim_end().strip_suffix('}').map(|sum| sum.trim().trim_matches('"'));
    // Elsewhere than at the end it is a member of somebody who wrote the object again.
    let (Some(sum), Some(sealed)) = (sum, sealed.trim_end().strip_suffix(',')) else { return true };
    if sum.contains(['{', '}', ',', ':']) {
        return true;
    }
    rows.update(sealed.as_bytes());
    u32::from_str_radix(sum, 16).is_ok_and(|sum| sum == rows.finalize())
}
