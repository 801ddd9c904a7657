//! Reads the frames and slots of a run folder cell by cell: a report then needs the memory of one cell, however many
//! there are.
//!
//! A frame with a line in `frames.jsonl` has all its slots in `slots.csv`: they were written before. If they are
//! missing or cannot be read, the file was damaged, and the frame is invalid for that reason.

mod frame_rows;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead, BufReader},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tithe_machine::fault::Fault;
use tithe_model::{
    experiment::Design,
    invalid::Invalid,
    plan::Plan,
    record::{ArmFrame, Frame, Slot},
    slots,
};

use super::json::json_lines;
use frame_rows::FrameRows;

const FRAMES: &str = "frames.jsonl";
const SLOTS: &str = "slots.csv";

/// The frames and slots of a run folder, not yet read.
pub struct Parts {
    path: PathBuf,
    arms: usize,
    /// How the arms of each cell share the machine.
    designs: Vec<Design>,
    frames: Lines,
    slots: Lines,
    /// Columns of the slots' file; `None` if its first line does not name them.
    columns: Option<usize>,
}

/// What was recorded of one cell.
#[derive(Debug, Default)]
pub struct CellRecords {
    /// Its frames.
    pub frames: Vec<Frame>,
    /// The slots of those frames. A frame whose slots are damaged has none: what is left of them may be wrong, and a
    /// resumed run would count its time as load.
    pub slots: Vec<Slot>,
    /// Frames that are invalid because their slots are damaged: each with the file and its line.
    pub damage: Vec<String>,
}

impl Parts {
    /// Those of the folder at `path`, which was measured by `plan`.
    pub(super) fn open(path: &Path, plan: &Plan) -> Result<Self, Fault> {
        let failed = |name: &'static str| {
            move |error| {
                Fault::machine(format!("cannot read {name} in {} (is this a run folder?)", path.display()), error)
            }
        };
        let cells = plan.cells.len();
        let frames = Lines::index(&path.join(FRAMES), cells, &line_of_frame).map_err(failed(FRAMES))?;
        let slots = Lines::index(&path.join(SLOTS), cells, &line_of_slot).map_err(failed(SLOTS))?;
        let parts = Self {
            path: path.to_owned(),
            arms: plan.experiment.arms.len(),
            designs: plan.cells.iter().map(|cell| cell.design).collect(),
            columns: slots.first().map_err(failed(SLOTS))?.as_deref().and_then(slots::columns_of),
            frames,
            slots,
        };
        if parts.frames.strays.is_empty() { Ok(parts) } else { Err(parts.foreign()) }
    }

    /// The frames of cell `cell`, and the slots of those frames, each in the order of their files.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn cell(&self, cell: usize) -> Result<CellRecords, Fault> {
        let failed = |error| Fault::machine(format!("cannot read {}", self.path.display()), error);
        let name = format!("cell {cell} in {FRAMES}");
        let text = self.frames.of(cell).map_err(failed)?;
        let (frames, lines): (Vec<Frame>, Vec<&str>) = json_lines(&text, &name)?.into_iter().unzip();
        if frames.iter().any(|frame| frame.arms.len() != self.arms) {
            return Err(self.foreign());
        }
        if let Some(frame) = frames.iter().find(|frame| !frame.arms.iter().all(ArmFrame::is_possible)) {
            let (number, path) = (frame.frame, self.path.display());
            let why =
                format!("{FRAMES} in {path}: frame {number} of cell {cell} has more operations than there can be");
            return Err(Fault::Machine(why));
        }
        let mut numbers = BTreeSet::new();
        if let Some(frame) = frames.iter().find(|frame| !numbers.insert(frame.frame)) {
            let (number, path) = (frame.frame, self.path.display());
            return Err(Fault::Machine(format!("{FRAMES} in {path}: frame {number} of cell {cell} is there twice")));
        }
        let mut records = CellRecords { frames, ..CellRecords::default() };
        let mut rows_by_frame: BTreeMap<u32, FrameRows> =
            records.frames.iter().map(|frame| (frame.frame, FrameRows::default())).collect();
        let mut strays = self.slots.strays.clone();
        self.slots
            .each(cell, |number, line| self.row(number, line, &mut rows_by_frame, &mut strays, &mut records.slots))
            .map_err(failed)?;
        let mut damaged = BTreeSet::new();
        let each = records.frames.iter_mut().zip(lines);
        for (frame, line) in each.filter(|(frame, _)| frame.invalid.is_none()) {
            let frame_rows = &rows_by_frame[&frame.frame];
            let flaw = match self.columns {
                Some(_) => frame_rows.flaw(frame, line, self.designs[cell], &strays),
                None => {
                    let columns = slots::COLUMNS;
                    Some(format!("line 1 of {SLOTS} does not name its columns: it should begin with `{columns}`"))
                }
            };
            if let Some(flaw) = flaw {
                records.damage.push(format!("cell {cell}, frame {}: {flaw}", frame.frame));
                frame.invalid = Some(Invalid::Other(flaw));
                damaged.insert(frame.frame);
            }
        }
        records.slots.retain(|slot| !damaged.contains(&slot.frame));
        Ok(records)
    }

    /// Takes line `number` of the slots' file.
    fn row(
        &self,
        number: usize,
        line: &str,
        rows_by_frame: &mut BTreeMap<u32, FrameRows>,
        strays: &mut Vec<usize>,
        slots: &mut Vec<Slot>,
    ) {
        let whole = line.strip_suffix('\n').ok_or_else(|| "it is cut short".to_owned());
        let slot = whole.and_then(|row| slots::read(row, self.columns.unwrap_or_default()));
        let slot = slot.and_then(|slot| match (slot.arm as usize) < self.arms {
            true => Ok(slot),
            false => Err(format!("there is no arm {}", slot.arm)),
        });
        let mut of = line.split(',').nth(1).and_then(|frame| rows_by_frame.get_mut(&frame.parse().ok()?));
        if let Some(frame_rows) = &mut of {
            frame_rows.text.update(line.as_bytes());
        }
        match (slot, of) {
            (Ok(slot), Some(frame_rows)) => {
                frame_rows.add(number, &slot);
                slots.push(slot);
            }
            (Err(flaw), Some(frame_rows)) => frame_rows.refuse(number, flaw),
            // Of a frame that did not complete.
            (Ok(_), None) => {}
            (Err(_), None) => strays.push(number),
        }
    }

    /// True if there is a frame of cell `cell`.
    pub(super) fn has_frames(&self, cell: usize) -> bool {
        !self.frames.stretches[cell].is_empty()
    }

    fn foreign(&self) -> Fault {
        Fault::Machine(format!("{FRAMES} in {} does not belong to its plan.json", self.path.display()))
    }
}

/// Where a file has the lines of each cell.
struct Lines {
    file: File,
    /// Ranges of consecutive lines, by cell.
    stretches: Vec<Vec<Stretch>>,
    /// Numbers of the lines that belong to no cell, or to a cell that the plan does not have.
    strays: Vec<usize>,
}

/// A range of consecutive lines of one cell.
struct Stretch {
    bytes: Range<u64>,
    /// Number of the first line, from 1.
    line: usize,
}

/// What a line is.
enum Line {
    Cell(usize),
    /// It is ignored.
    Nothing,
    /// It does not belong in this file.
    Stray,
}

/// What a line with its number is.
type LineOf<'a> = &'a dyn Fn(&[u8], usize) -> io::Result<Line>;

impl Lines {
    fn index(path: &Path, cells: usize, line_of: LineOf<'_>) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut reader = BufReader::new(&file);
        let mut stretches: Vec<Vec<Stretch>> = (0..cells).map(|_| Vec::new()).collect();
        let mut strays = Vec::new();
        let mut line = Vec::new();
        let mut begin = 0;
        for number in 1.. {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                break;
            }
            let end = begin + length;
            match line_of(&line, number)? {
                Line::Cell(cell) if cell < cells => match stretches[cell].last_mut() {
                    Some(last) if last.bytes.end == begin => last.bytes.end = end,
                    _ => stretches[cell].push(Stretch { bytes: begin..end, line: number }),
                },
                Line::Cell(_) | Line::Stray => strays.push(number),
                Line::Nothing => {}
            }
            begin = end;
        }
        Ok(Self { file, stretches, strays })
    }

    /// The first line, without its end; `None` if the file is empty.
    fn first(&self) -> io::Result<Option<String>> {
        let mut bytes = vec![0; 4096];
        let length = self.file.read_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).lines().next().map(str::to_owned))
    }

    fn of(&self, cell: usize) -> io::Result<String> {
        let mut text = String::new();
        for stretch in &self.stretches[cell] {
            text += &String::from_utf8(self.read(stretch)?).map_err(io::Error::other)?;
        }
        Ok(text)
    }

    /// Calls `take` with each line of cell `cell`, its number and its end. Bytes that are not text are replaced by
    /// replacement characters.
    fn each(&self, cell: usize, mut take: impl FnMut(usize, &str)) -> io::Result<()> {
        for stretch in &self.stretches[cell] {
            let bytes = self.read(stretch)?;
            let text = String::from_utf8_lossy(&bytes);
            text.split_inclusive('\n').enumerate().for_each(|(index, line)| take(stretch.line + index, line));
        }
        Ok(())
    }

    fn read(&self, stretch: &Stretch) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (stretch.bytes.end - stretch.bytes.start) as usize];
        self.file.read_exact_at(&mut bytes, stretch.bytes.start)?;
        Ok(bytes)
    }
}

#[derive(Deserialize)]
struct CellOnly {
    cell: u32,
}

/// The last line may be cut short by a kill; then it is ignored.
fn line_of_frame(line: &[u8], number: usize) -> io::Result<Line> {
    match serde_json::from_slice::<CellOnly>(line) {
        Ok(frame) => Ok(Line::Cell(frame.cell as usize)),
        Err(error) if error.is_eof() && !line.ends_with(b"\n") => Ok(Line::Nothing),
        Err(error) => Err(io::Error::other(format!("line {number}: {error}"))),
    }
}

/// The first line is the header, and the last one may be cut short.
fn line_of_slot(line: &[u8], number: usize) -> io::Result<Line> {
    let field = line.split(|byte| *byte == b',').next().and_then(|field| std::str::from_utf8(field).ok());
    Ok(match field.and_then(|field| field.parse().ok()) {
        Some(cell) => Line::Cell(cell),
        None if number == 1 || !line.ends_with(b"\n") => Line::Nothing,
        None => Line::Stray,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(text: &[u8], cells: usize) -> io::Result<Lines> {
        let name = format!("tithe-test-parts-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text)?;
        let lines = Lines::index(&path, cells, &line_of_frame);
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
        assert!(lines.strays.is_empty());
        assert_eq!(lines.stretches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 0], "lines that follow each other");
        assert_eq!(index(text.as_bytes(), 1).expect("lines").strays, [2, 3]);
        let mut numbered = Vec::new();
        lines.each(1, |number, line| numbered.push((number, line.len()))).expect("text");
        assert_eq!(numbered, [(2, 11), (3, 17)]);
        assert!(
            index(b"{\"cell\":0}\n{\"cell\n{\"cell\":0}\n", 1).is_err_and(|error| error.to_string().contains("line 2"))
        );
    }

    #[test]
    fn rows_are_told_from_the_header_and_from_what_is_no_row() {
        let of = |line: &[u8], number: usize| match line_of_slot(line, number).expect("a line") {
            Line::Cell(cell) => cell.to_string(),
            Line::Nothing => "nothing".to_owned(),
            Line::Stray => "stray".to_owned(),
        };
        let lines: [(&[u8], usize, &str); 7] = [
            (b"cell,frame\n", 1, "nothing"),
            (b"3,0\n", 2, "3"),
            (b"3", 9, "3"),
            (b"x,0\n", 2, "stray"),
            (b"\xff,0\n", 2, "stray"),
            (b"\n", 2, "stray"),
            (b"x,0", 9, "nothing"),
        ];
        for (line, number, expected) in lines {
            assert_eq!(of(line, number), expected, "{line:?}");
        }
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
            let _ = line_of_slot(&text, 2);
        }
    }
}
