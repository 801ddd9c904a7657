use expect_test::expect;
use proptest::{collection::vec, prelude::*};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn reassembler() -> Reassembler {
    Reassembler::new(Limits::USUAL)
}

fn split(sender: &Sender, message: &[u8], room: usize) -> Vec<Vec<u8>> {
    sender.split(message, room).expect("it can be sent").collect()
}

/// The results of a reassembler for `parts`, in their order: the length of each message, the text of each fault.
fn said(reassembler: &mut Reassembler, parts: &[Vec<u8>]) -> Vec<String> {
    let say = |part: &Vec<u8>| match reassembler.take(part, 0) {
        Ok(Some(message)) => format!("{} bytes", message.len()),
        Ok(None) => "waits".to_owned(),
        Err(fault) => fault.to_string(),
    };
    parts.iter().map(say).collect()
}

#[test]
fn a_header_is_as_its_table_says() {
    let parts = split(&Sender::new(*b"0123456789abcdef"), b"hello", 2000);
    let text: String = parts[0].iter().map(|byte| format!("{byte:02x}")).collect();
    expect![
        "5454503130313233343536373839616263646566000000000000000000000000000000010000000000000005\
             2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b982468656c6c6f"
    ]
    .assert_eq(&text);
    assert_eq!(parts[0].len(), HEADER_BYTES + 5);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let sender = Sender::new([0; 16]);
    let refused = |message: &[u8], room| sender.split(message, room).map(Iterator::count).unwrap_err().to_string();
    expect!["refused: carries no message longer than 1099 bytes: max_payload must be 1100 or more"]
        .assert_eq(&refused(b"", HEADER_BYTES + ROOM_BYTES_MIN - 1));
    expect!["a message of 67108865 bytes is longer than 67108864"]
        .assert_eq(&refused(&vec![0; MESSAGE_BYTES_MAX + 1], 1 << 20));
}

#[test]
fn what_is_torn_mixed_or_doubled_is_refused_by_name() {
    let sender = Sender::new([7; 16]);
    let message = vec![1; 3000];
    let parts = split(&sender, &message, 1100);
    let cut = parts[1][..parts[1].len() - 1].to_vec();
    let mut other = parts[1].clone();
    other[75] ^= 1;
    let told = [
        parts[0].clone(),
        cut,
        other,
        parts[0].clone(),
        parts[1].clone(),
        parts[2].clone(),
        parts[2].clone(),
        b"GET / HTTP/1.1".to_vec(),
    ];
    expect![[r#"
        waits
        protocol: what came is not part of a message of Tithe's
        protocol: a part belongs to another message than its number says
        protocol: a part of a message came a second time
        waits
        3000 bytes
        protocol: a message came a second time
        protocol: what came is not part of a message of Tithe's"#]]
    .assert_eq(&said(&mut reassembler(), &told).join("\n"));
}

#[test]
fn a_part_that_was_changed_on_its_way_spoils_its_message() {
    let sender = Sender::new([7; 16]);
    let mut short = split(&sender, b"short", 2000);
    short[0][HEADER_BYTES] ^= 1;
    let mut long = split(&sender, &[1; 3000], 1100);
    long[1][HEADER_BYTES + 9] ^= 1;
    let mut reassembler = reassembler();
    let differs = "protocol: a message is not what its sender sent: its SHA-256 differs";
    assert_eq!(said(&mut reassembler, &short), [differs]);
    assert_eq!(said(&mut reassembler, &long), ["waits", "waits", differs]);
    assert!(reassembler.is_idle());
}

#[test]
fn a_message_whose_parts_stop_coming_is_forgotten() {
    let sender = Sender::new([7; 16]);
    let parts = split(&sender, &[1; 3000], 1100);
    let mut reassembler = reassembler();
    assert_eq!(reassembler.take(&parts[0], 0), Ok(None));
    assert_eq!(reassembler.take(&parts[1], 9 * SECOND_NS), Ok(None));
    assert_eq!(reassembler.expire(18 * SECOND_NS), []);
    let torn = "of a message of 3000 bytes came 2 of 3 parts".to_owned();
    assert_eq!(reassembler.expire(20 * SECOND_NS), [Fault::Protocol(torn)]);
    assert!(reassembler.is_idle());
    assert_eq!(reassembler.take(&parts[2], 21 * SECOND_NS), Ok(None));
}

#[test]
fn neither_one_sender_nor_all_of_them_can_fill_the_memory() {
    let limits = Limits { sender_bytes: 10_000, bytes: 25_000, timeout_ns: SECOND_NS };
    let mut reassembler = Reassembler::new(limits);
    let mut refused = 0;
    for number in 0..200_u8 {
        let sender = Sender::new([number % 20; 16]);
        sender.sent.store(number.into(), Ordering::Relaxed);
        // The last part of each message is missing.
        for part in &split(&sender, &[number; 4000], 1100)[..3] {
            refused += usize::from(reassembler.take(part, 0).is_err());
        }
        assert!(reassembler.waiting_bytes() <= limits.bytes);
        assert!(reassembler.senders.values().all(|known| known.bytes <= limits.sender_bytes));
    }
    assert!(refused > 100, "{refused} parts were refused");
    reassembler.expire(3 * SECOND_NS);
    assert!(reassembler.is_idle());
}

#[test]
fn more_senders_than_are_known_push_out_the_most_silent() {
    let mut reassembler = reassembler();
    for number in 0..SENDERS_MAX as u64 + 10 {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let first = &split(&Sender::new(id), &[1; 3000], 1100)[0];
        assert_eq!(reassembler.take(first, number), Ok(None));
    }
    assert_eq!(reassembler.senders.len(), SENDERS_MAX);
    assert_eq!(reassembler.bytes, reassembler.senders.values().map(|known| known.bytes).sum::<usize>());
}

#[test]
fn a_message_is_known_to_have_come_however_old_it_is() {
    let sender = Sender::new([7; 16]);
    let mut reassembler = reassembler();
    let all: Vec<_> = (0..3 * WINDOW).flat_map(|_| split(&sender, b"x", 2000)).collect();
    assert!(said(&mut reassembler, &all).iter().all(|said| said == "1 bytes"));
    assert!(said(&mut reassembler, &all).iter().all(|said| said == "protocol: a message came a second time"));
    assert!(reassembler.senders[&[7; 16]].came.recent.len() <= WINDOW as usize);
}

/// Messages with the room for their parts, and an order for all parts.
fn messages() -> impl Strategy<Value = (Vec<(Vec<u8>, usize)>, Vec<prop::sample::Index>)> {
    let message = (vec(any::<u8>(), 0..9000), HEADER_BYTES + ROOM_BYTES_MIN..4000_usize);
    (vec(message, 1..5), vec(any::<prop::sample::Index>(), 64))
}

/// `parts` in another order.
fn shuffled(mut parts: Vec<Vec<u8>>, order: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    for (place, index) in order.iter().enumerate().take(parts.len()) {
        let other = index.index(parts.len());
        parts.swap(place, other);
    }
    parts
}

/// Headers that are nearly valid, with some data behind them.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![0..5000_u64, any::<u64>()];
    let parts = prop_oneof![0..6_u32, any::<u32>()];
    (0..3_u8, 0..3_u64, 0..6_u32, parts, length, 0..2_u8, vec(any::<u8>(), 0..2500)).prop_map(
        |(sender, number, part, parts, length, hash, body)| {
            let mut bytes = TAG.to_vec();
            bytes.extend([sender; 16]);
            bytes.extend(number.to_be_bytes());
            bytes.extend(part.to_be_bytes());
            bytes.extend(parts.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend([hash; 32]);
            bytes.extend(body);
            bytes
        },
    )
}

proptest! {
    #[test]
    fn messages_come_out_whole_and_once_in_whatever_order_their_parts_come((messages, order) in messages()) {
        let sender = Sender::new([3; 16]);
        let mut parts = Vec::new();
        for (message, room) in &messages {
            let own = split(&sender, message, *room);
            prop_assert!(own.iter().all(|part| part.len() <= *room));
            prop_assert_eq!(own.len(), message.len().div_ceil(*room - HEADER_BYTES).max(1));
            parts.extend(own);
        }
        let parts = shuffled(parts, &order);
        let mut reassembler = reassembler();
        let mut came: Vec<Vec<u8>> = Vec::new();
        for part in &parts {
            came.extend(reassembler.take(part, 0).expect("it is as it was sent"));
        }
        let mut sent: Vec<Vec<u8>> = messages.into_iter().map(|(message, _)| message).collect();
        came.sort();
        sent.sort();
        prop_assert_eq!(came, sent);
        prop_assert!(reassembler.is_idle());
        prop_assert!(parts.iter().all(|part| reassembler.take(part, 0).is_err()));
    }

    #[test]
    fn no_bytes_make_it_panic_or_make_up_a_message(parts in vec(prop_oneof![vec(any::<u8>(), 0..300), nearly()], 0..40)) {
        let limits = Limits { sender_bytes: 6000, bytes: 9000, timeout_ns: SECOND_NS };
        let mut reassembler = Reassembler::new(limits);
        for (number, part) in parts.iter().enumerate() {
            let now_ns = number as u64 * SECOND_NS / 3;
            // Their hashes match nothing.
            prop_assert!(!matches!(reassembler.take(part, now_ns), Ok(Some(_))));
            reassembler.expire(now_ns);
            prop_assert!(reassembler.waiting_bytes() <= limits.bytes);
            prop_assert_eq!(reassembler.bytes, reassembler.senders.values().map(|known| known.bytes).sum::<usize>());
        }
        reassembler.expire(100 * SECOND_NS);
        prop_assert!(reassembler.is_idle());
    }

    #[test]
    fn what_was_changed_anywhere_never_comes_out_changed(
        message in vec(any::<u8>(), 0..5000),
        changes in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let mut parts = split(&Sender::new([3; 16]), &message, 1100);
        for (part, place, change) in &changes {
            let part = part.index(parts.len());
            let place = place.index(parts[part].len());
            parts[part][place] ^= change;
        }
        let mut reassembler = reassembler();
        for part in &parts {
            if let Ok(Some(came)) = reassembler.take(part, 0) {
                prop_assert_eq!(&came, &message);
            }
        }
    }
}
