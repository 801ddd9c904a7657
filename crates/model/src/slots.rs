//! The text of `slots.csv`: one row per slot.

use crate::record::Slot;

/// Column names of `slots.csv`.
pub const COLUMNS: &str = "cell,frame,block,lane,arm,operations,counted,wall_ns,latency_sum_ns,client_cpu_ns,server_cpu_ns,wait_ns,\
     stalled_ns";

/// Columns that files of every build have: the first ones.
const COLUMNS_MIN: usize = 12;

/// The row of `slot`, with its end.
pub fn line(slot: &Slot) -> String {
    let Slot {
        cell,
        frame,
        block,
        lane,
        arm,
        operations,
        counted,
        wall_ns,
        latency_sum_ns,
        client_cpu_ns,
        server_cpu_ns,
        wait_ns,
        stalled_ns,
    } = slot;
    let stalled_ns = stalled_ns.map(|ns| ns.to_string()).unwrap_or_default();
    format!(
        "{cell},{frame},{block},{lane},{arm},{operations},{counted},{wall_ns},{latency_sum_ns},{client_cpu_ns},{server_cpu_ns},{wait_ns},\
         {stalled_ns}\n"
    )
}

/// The number of columns of a `slots.csv` that begins with the line `header`; `None` if they are not those of
/// [`COLUMNS`]. An older build wrote only the first ones.
pub fn columns_of(header: &str) -> Option<usize> {
    let columns = header.split(',').count();
    let ours: Vec<&str> = COLUMNS.split(',').take(columns).collect();
    (columns >= COLUMNS_MIN && header == ours.join(",")).then_some(columns)
}

/// Reads one row of a `slots.csv` with this many `columns`.
///
/// # Errors
/// The problem with the row.
pub fn read(line: &str, columns: usize) -> Result<Slot, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number of this file"));
    let texts: Vec<&str> = line.split(',').collect();
    if texts.len() != columns {
        return Err(format!("it has {} of {columns} fields", texts.len()));
    }
    let (first, last) = texts.split_at(COLUMNS_MIN);
    let fields: Vec<u64> = first.iter().map(|text| number(text)).collect::<Result<_, _>>()?;
    // The column that older builds did not write may also be empty.
    let stalled_ns = last.iter().find(|text| !text.is_empty()).map(|text| number(text)).transpose()?;
    let [
        cell,
        frame,
        block,
        lane,
        arm,
        operations,
        counted,
        wall_ns,
        latency_sum_ns,
        client_cpu_ns,
        server_cpu_ns,
        wait_ns,
    ] = fields[..]
    else {
        return Err(format!("it has {} fields", fields.len()));
    };
    let small = |value: u64| u32::try_from(value).map_err(|_| format!("{value} is not a number of anything here"));
    Ok(Slot {
        cell: small(cell)?,
        frame: small(frame)?,
        block: small(block)?,
        lane: small(lane)?,
        arm: small(arm)?,
        operations,
        counted,
        wall_ns,
        latency_sum_ns,
        client_cpu_ns,
        server_cpu_ns,
        wait_ns,
        stalled_ns,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_survive_their_file() {
        let slot = Slot {
            cell: 1,
            frame: 2,
            block: 3,
            lane: 4,
            arm: 5,
            operations: 6,
            counted: 7,
            wall_ns: 8,
            latency_sum_ns: 9,
            client_cpu_ns: 10,
            server_cpu_ns: 11,
            wait_ns: 12,
            stalled_ns: Some(13),
        };
        let columns = columns_of(COLUMNS).expect("its own header");
        assert_eq!(read(line(&slot).trim_end(), columns), Ok(slot));
        let untold = Slot { stalled_ns: None, ..slot };
        assert_eq!(read(line(&untold).trim_end_matches('\n'), columns), Ok(untold));
        let earlier = COLUMNS.strip_suffix(",stalled_ns").and_then(columns_of).expect("an earlier header");
        assert_eq!(read("1,2,3,4,5,6,7,8,9,10,11,12", earlier), Ok(untold));
        let refused = |line: &str| read(line, columns).expect_err("no row");
        assert_eq!(refused("1,2,3"), format!("it has 3 of {columns} fields"));
        assert_eq!(refused("1,2,3,4,5,6,7,8,9,10,11,x,"), "\"x\" is not a number of this file");
        assert_eq!(refused("1,2,3,4,5,6,7,-8,9,10,11,12,13"), "\"-8\" is not a number of this file");
        assert_eq!(columns_of("cell,frame"), None);
        assert_eq!(columns_of(&COLUMNS.replace("wall_ns", "wall_us")), None);
    }

    proptest! {
        #[test]
        fn every_slot_survives_its_file(numbers: [u32; 5], amounts: [u64; 7], stalled_ns: Option<u64>) {
            let fields = numbers.map(u64::from).into_iter().chain(amounts).map(|field| field.to_string());
            let last = stalled_ns.map_or(String::new(), |ns| ns.to_string());
            let row = fields.chain([last]).collect::<Vec<_>>().join(",");
            let columns = columns_of(COLUMNS).expect("its own header");
            let slot = read(&row, columns).expect("a row");
            prop_assert_eq!((slot.cell, slot.wait_ns, slot.stalled_ns), (numbers[0], amounts[6], stalled_ns));
            prop_assert_eq!(line(&slot), format!("{row}\n"));
            prop_assert_eq!(read(line(&slot).trim_end_matches('\n'), columns), Ok(slot));
        }

        #[test]
        fn any_text_is_a_row_or_refused(text in "(([0-9]{1,20}|[ -~]{0,3}),){11,12}[0-9]{0,3}|[ -~]*", now: bool) {
            let columns = if now { columns_of(COLUMNS).expect("its own header") } else { COLUMNS_MIN };
            let fields = text.split(',').count();
            prop_assert!(read(&text, columns).is_err() || fields == columns);
            prop_assert!(columns_of(&text).is_none());
        }
    }
}
