//! Reads the frames and slots of a run folder cell by cell: a report then takes the memory of one cell, however many there
//! are.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufRead, BufReader},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tithe_model::record::{Frame, Slot};

use super::{json_lines, slot_of};
use crate::fault::Fault;

const FRAMES: &str = "frames.jsonl";
const SLOTS: &str = "slots.csv";

/// The frames and slots of a run folder, not yet read.
pub struct Parts {
    path: PathBuf,
    arms: usize,
    frames: Lines,
    slots: Lines,
}

impl Parts {
    /// Those of the folder at `path`, whose plan has so many `cells` and `arms`.
    pub(super) fn open(path: &Path, cells: usize, arms: usize) -> Result<Self, Fault> {
        let failed = |name: &'static str| {
            move |error| {
                Fault::machine(format!("cannot read {name} in {} (is this a run folder?)", path.display()), error)
            }
        };
        let frames = Lines::index(&path.join(FRAMES), cells, &cell_of_frame).map_err(failed(FRAMES))?;
        let slots = Lines::index(&path.join(SLOTS), cells, &|line, _| Ok(cell_of_slot(line))).map_err(failed(SLOTS))?;
        let parts = Self { path: path.to_owned(), arms, frames, slots };
        if parts.frames.foreign { Err(parts.foreign()) } else { Ok(parts) }
    }

    /// The frames of cell `cell`, and the slots of those frames, each in the order of their files.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn cell(&self, cell: usize) -> Result<(Vec<Frame>, Vec<Slot>), Fault> {
        let failed = |error| Fault::machine(format!("cannot read {}", self.path.display()), error);
        let name = format!("cell {cell} in {FRAMES}");
        let frames: Vec<Frame> = json_lines(&self.frames.of(cell).map_err(failed)?, &name)?;
        if frames.iter().any(|frame| frame.arms.len() != self.arms) {
            return Err(self.foreign());
        }
        let known: HashSet<u32> = frames.iter().map(|frame| frame.frame).collect();
        let text = self.slots.of(cell).map_err(failed)?;
        let ours = |slot: &Slot| known.contains(&slot.frame) && (slot.arm as usize) < self.arms;
        let slots = text.lines().filter_map(slot_of).filter(ours).collect();
        Ok((frames, slots))
    }

    fn foreign(&self) -> Fault {
        Fault::Machine(format!("{FRAMES} in {} does not belong to its plan.json", self.path.display()))
    }
}

/// Where the lines of each cell stand in a file.
struct Lines {
    file: File,
    /// Bytes of neighbouring lines, by cell.
    stretches: Vec<Vec<Range<u64>>>,
    /// A line is of a cell that the plan does not have.
    foreign: bool,
}

/// The cell that a line with its number is about; `None` for a line that counts for nothing.
type CellOf<'a> = &'a dyn Fn(&[u8], usize) -> io::Result<Option<usize>>;

impl Lines {
    fn index(path: &Path, cells: usize, cell_of: CellOf<'_>) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut reader = BufReader::new(&file);
        let mut stretches: Vec<Vec<Range<u64>>> = vec![Vec::new(); cells];
        let mut foreign = false;
        let mut line = Vec::new();
        let mut begin = 0;
        for number in 1.. {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                break;
            }
            let end = begin + length;
            if let Some(cell) = cell_of(&line, number)? {
                match stretches.get_mut(cell).map(|stretches| (stretches.last_mut(), begin)) {
                    Some((Some(last), begin)) if last.end == begin => last.end = end,
                    Some(_) => stretches[cell].push(begin..end),
                    None => foreign = true,
                }
            }
            begin = end;
        }
        Ok(Self { file, stretches, foreign })
    }

    fn of(&self, cell: usize) -> io::Result<String> {
        let mut bytes = Vec::new();
        for stretch in &self.stretches[cell] {
            let from = bytes.len();
            bytes.resize(from + (stretch.end - stretch.start) as usize, 0);
            self.file.read_exact_at(&mut bytes[from..], stretch.start)?;
        }
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

#[derive(Deserialize)]
struct CellOnly {
    cell: u32,
}

/// The last line may be cut short, which is what a kill leaves, and then counts for nothing.
fn cell_of_frame(line: &[u8], number: usize) -> io::Result<Option<usize>> {
    match serde_json::from_slice::<CellOnly>(line) {
        Ok(frame) => Ok(Some(frame.cell as usize)),
        Err(_) if !line.ends_with(b"\n") => Ok(None),
        Err(error) => Err(io::Error::other(format!("line {number}: {error}"))),
    }
}

/// Rows that are cut short, and the header, are of no cell.
fn cell_of_slot(line: &[u8]) -> Option<usize> {
    let field = line.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(text: &[u8], cells: usize) -> io::Result<Lines> {
        let name = format!("tithe-test-parts-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text)?;
        let lines = Lines::index(&path, cells, &cell_of_frame);
        std::fs::remove_file(&path)?;
        lines
    }

    #[test]
    fn lines_come_by_cell_and_a_torn_one_not_at_all() {
        let text = "{\"cell\":0,\"n\":1}\n{\"cell\":1}\n{\"cell\":1,\"n\":2}\n{\"cell\":0}\n{\"cell\":1,";
        let lines = index(text.as_bytes(), 3).expect("lines");
        let of = |cell| lines.of(cell).expect("text");
        assert_eq!(of(0), "{\"cell\":0,\"n\":1}\n{\"cell\":0}\n");
        assert_eq!(of(1), "{\"cell\":1}\n{\"cell\":1,\"n\":2}\n");
        assert_eq!(of(2), "");
        assert!(!lines.foreign && index(text.as_bytes(), 1).expect("lines").foreign);
        assert!(
            index(b"{\"cell\":0}\n{\"cell\n{\"cell\":0}\n", 1).is_err_and(|error| error.to_string().contains("line 2"))
        );
    }

    proptest! {
        #[test]
        fn every_line_is_of_one_cell(cells in proptest::collection::vec(0usize..4, 0..30)) {
            let text: String = cells.iter().map(|cell| format!("{{\"cell\":{cell}}}\n")).collect();
            let lines = index(text.as_bytes(), 4).expect("lines");
            for cell in 0..4 {
                let count = cells.iter().filter(|of| **of == cell).count();
                prop_assert_eq!(lines.of(cell).expect("text"), format!("{{\"cell\":{cell}}}\n").repeat(count));
            }
        }

        #[test]
        fn any_bytes_are_taken_or_refused(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(lines) = index(&text, 2) {
                let _ = (lines.of(0), lines.of(1));
            }
            let _ = cell_of_slot(&text);
        }
    }
}
