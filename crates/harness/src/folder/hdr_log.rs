//! Latencies as an HdrHistogram log: text that other tools of the field read.
//!
//! Tithe's buckets are exactly those of an HdrHistogram with a unit of 1 ns and two significant digits, so its counts
//! are written as they are. The layout is that of HdrHistogram 2.1 (`HistogramLogWriter`, histogram encoding V2,
//! compressed). The tests compare it with what the crate `hdrhistogram` writes and reads.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use miniz_oxide::deflate::{CompressionLevel, compress_to_vec_zlib};
use tithe_model::{
    histogram::{self, Histogram},
    record::Frame,
};

/// The first bytes of an encoded histogram, and of a compressed one. The low byte means that counts have a varying
/// length.
const COOKIE: u32 = 0x1c84_9313;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;
/// Two digits are enough for Tithe's 0.8 % buckets.
const SIGNIFICANT_DIGITS: u32 = 2;
/// The smallest highest value that a histogram of this form can have.
const LEAST_HIGHEST: u64 = 2;

/// The top of a log whose first interval is `frame`.
pub fn header(frame: &Frame) -> String {
    format!(
        "#latencies in nanoseconds, one interval a frame; Intended-… counts from the intended start\n\
         #[StartTime: {:.3} (seconds since epoch)]\n\
         #[BaseTime: 0.000 (seconds since epoch)]\n",
        seconds(frame.start_unix_ns)
    )
}

/// The line of one interval: the latencies `seen` in `frame`, labelled with `tag`. `None` for a tag that contains a
/// field separator.
pub fn interval(tag: &str, frame: &Frame, seen: &Histogram) -> Option<String> {
    if tag.contains([',', ' ', '\r', '\n']) {
        return None;
    }
    let (start, length) = (seconds(frame.start_unix_ns), seconds(frame.duration_ns));
    let counts = STANDARD.encode(compressed(seen));
    Some(format!("Tag={tag},{start:.3},{length:.3},{:.3},{counts}\n", highest(seen) as f64))
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// The highest value of the last bucket that is not empty, ns; 0 if all are empty.
fn highest(seen: &Histogram) -> u64 {
    seen.buckets().last().map_or(0, |(index, _)| histogram::bounds(index).1 - 1)
}

fn compressed(seen: &Histogram) -> Vec<u8> {
    let packed = compress_to_vec_zlib(&encoded(seen), CompressionLevel::DefaultLevel as u8);
    [&COMPRESSED_COOKIE.to_be_bytes()[..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
}

/// Header, then the counts.
fn encoded(seen: &Histogram) -> Vec<u8> {
    let counts = counts(seen);
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    bytes.extend((counts.len() as u32).to_be_bytes());
    // The offset by which the counts are shifted.
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend(SIGNIFICANT_DIGITS.to_be_bytes());
    // The lowest value that can be distinguished from zero.
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend(highest(seen).max(LEAST_HIGHEST).to_be_bytes());
    // The factor of all values.
    bytes.extend(1_f64.to_be_bytes());
    bytes.extend(counts);
    bytes
}

/// The counts up to the last that is not zero. Several zeros in a row are written as their number, negative.
fn counts(seen: &Histogram) -> Vec<u8> {
    let (mut bytes, mut next) = (Vec::new(), 0);
    for (index, count) in seen.buckets() {
        match index - next {
            0 => {}
            1 => varint(0, &mut bytes),
            zeros => varint(-(zeros as i64), &mut bytes),
        }
        varint(count as i64, &mut bytes);
        next = index + 1;
    }
    if bytes.is_empty() {
        varint(0, &mut bytes);
    }
    bytes
}

/// `number` in at most nine bytes: its sign in the lowest bit, then seven bits per byte, the lowest first. The highest
/// bit of a byte means that another byte follows; the ninth byte is used whole.
fn varint(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer, interval_log};
    use proptest::prelude::*;

    use super::*;

    const START_UNIX_NS: u64 = 1_700_000_000_123_456_789;
    /// Length of the header before the counts of an encoded histogram, bytes.
    const HEADER: usize = 40;

    fn frame() -> Frame {
        Frame {
            start_unix_ns: START_UNIX_NS,
            duration_ns: 1_234_567_890,
            slot_ns: 20_000_000,
            settling_ns: 1_000_000,
            ..Frame::default()
        }
    }

    /// The same counts as the crate holds them.
    fn standard(seen: &Histogram) -> hdrhistogram::Histogram<u64> {
        let mut standard = hdrhistogram::Histogram::new(SIGNIFICANT_DIGITS as u8).expect("two digits");
        for (index, count) in seen.buckets() {
            standard.record_n(histogram::bounds(index).0, count).expect("room");
        }
        standard
    }

    /// Header and interval as the crate writes them.
    fn by_the_crate(tag: &str, seen: &Histogram) -> String {
        let (mut text, mut serializer) = (Vec::new(), V2Serializer::new());
        let start = Duration::from_nanos(START_UNIX_NS);
        let mut builder = interval_log::IntervalLogWriterBuilder::new();
        builder
            .add_comment("latencies in nanoseconds, one interval a frame; Intended-… counts from the intended start");
        builder.with_start_time(UNIX_EPOCH + start).with_base_time(UNIX_EPOCH);
        let mut writer = builder.begin_log_with(&mut text, &mut serializer).expect("memory");
        let tag = interval_log::Tag::new(tag);
        let length = Duration::from_nanos(frame().duration_ns);
        writer.write_histogram(&standard(seen), start, length, tag).expect("memory");
        String::from_utf8(text).expect("text")
    }

    fn of(latencies: &[(u64, u32)]) -> Histogram {
        let mut seen = Histogram::default();
        latencies.iter().for_each(|(latency, count)| seen.add(histogram::index(*latency), u64::from(*count)));
        seen
    }

    proptest! {
        #[test]
        fn other_tools_read_what_was_counted(
            latencies in proptest::collection::vec((0..1_u64 << 45, 1..u32::MAX), 0..50),
            small in proptest::collection::vec((0..400_u64, 1..3_u32), 0..50),
        ) {
            let seen = of(&[latencies, small].concat());
            let text = header(&frame()) + &interval("READ", &frame(), &seen).expect("a tag");
            let expected = by_the_crate("READ", &seen);
            let words = |text: &str| text.rsplit_once(',').map(|(words, _)| words.to_owned());
            prop_assert_eq!(words(&text), words(&expected));

            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&standard(&seen), &mut bytes).expect("memory");
            prop_assert_eq!(&encoded(&seen)[HEADER..], &bytes[HEADER..]);

            let packed = STANDARD.decode(text.trim_end().rsplit(',').next().expect("counts")).expect("base64");
            let read: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut &packed[..]).expect("V2");
            prop_assert_eq!(read.len(), seen.total());
            for (index, count) in seen.buckets() {
                prop_assert_eq!(read.count_at(histogram::bounds(index).0), count);
            }
        }

        #[test]
        fn a_number_is_as_long_as_it_must_be(number: i64) {
            let mut bytes = Vec::new();
            varint(number, &mut bytes);
            let (last, rest) = bytes.split_last().expect("a byte");
            let folded = (number.unsigned_abs() << 1).wrapping_sub(u64::from(number < 0));
            let bits = 64 - folded.leading_zeros() as usize;
            prop_assert_eq!(bytes.len(), bits.div_ceil(7).clamp(1, 9));
            prop_assert!(rest.iter().all(|byte| byte & 0x80 != 0) && (rest.len() == 8 || last & 0x80 == 0));
        }
    }

    #[test]
    fn a_tag_that_would_break_the_line_is_refused() {
        let seen = of(&[(1, 1)]);
        assert!(["a,b", "a b", "a\nb"].iter().all(|tag| interval(tag, &frame(), &seen).is_none()));
    }
}
