//! A closed loop of clients that pause between operations, like users at terminals who type and think.
//!
//! A client's time runs only during its arm's slots: the rest of a pause when a slot ends is waited for in the arm's
//! next one. So every arm behaves as if it were used alone, and one slot holds what many clients do in a short time.

use std::{cmp::Reverse, collections::BinaryHeap};

use tithe_machine::fault::Fault;

use super::{Arm, ClientConnection, slot_run::SlotRun};

/// When each waiting client continues, ns, and its number; the next one on top.
type Due = BinaryHeap<Reverse<(u64, usize)>>;

impl ClientConnection<'_> {
    /// The pause before the next operation, ns. Prepares the operation if it is not prepared yet.
    fn pause_ns(&mut self) -> u64 {
        *self.pause_left_ns.get_or_insert_with(|| {
            self.client.prepare();
            self.client.pause_ns()
        })
    }
}

impl SlotRun<'_> {
    /// Begins each operation when the pause before it is over.
    pub(super) fn paced(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let begun_ns = self.first_ns;
        let mut due: Due = arm
            .connections
            .iter_mut()
            .enumerate()
            .map(|(number, conn)| Reverse((begun_ns + conn.pause_ns(), number)))
            .collect();
        let mut busy = 0;
        loop {
            busy += self.begin_due(arm, &mut due)?;
            let now = self.clock.now();
            let next_ns = due.peek().map_or(self.turn.end_ns, |due| due.0.0.min(self.turn.end_ns));
            let Some(poll) = arm.poll.as_mut().filter(|_| busy > 0) else {
                if now >= self.turn.end_ns {
                    break;
                }
                self.idle_until(next_ns);
                continue;
            };
            // After the slot's end only answers are waited for.
            let deadline = (now < self.turn.end_ns).then(|| next_ns.saturating_sub(now));
            for number in poll.wait(deadline)? {
                let conn = &mut arm.connections[number];
                if self.advance(conn, &mut arm.recorder)? {
                    busy -= 1;
                    due.push(Reverse((self.last_ns + conn.pause_ns(), number)));
                }
            }
        }
        // The pauses are part of the slot.
        self.last_ns = self.clock.now();
        for Reverse((at_ns, number)) in due {
            arm.connections[number].pause_left_ns = Some(at_ns.saturating_sub(self.last_ns));
        }
        Ok(())
    }

    /// Begins what is due before the slot's end; returns how many operations are now in progress because of it. An arm
    /// without a poll has one connection or an embedded database, and ends each operation at once.
    fn begin_due(&mut self, arm: &mut Arm<'_>, due: &mut Due) -> Result<usize, Fault> {
        let mut begun = 0;
        loop {
            let now = self.clock.now();
            let is_due = |next: &Reverse<(u64, usize)>| next.0.0 <= now && now < self.turn.end_ns;
            let Some(Reverse((_, number))) = due.peek().copied().filter(is_due) else { return Ok(begun) };
            due.pop();
            let conn = &mut arm.connections[number];
            conn.pause_left_ns = None;
            self.begin_prepared(conn, &mut arm.recorder, None)?;
            if arm.poll.is_some() {
                begun += 1;
            } else {
                self.finish(conn, &mut arm.recorder)?;
                due.push(Reverse((self.last_ns + conn.pause_ns(), number)));
            }
        }
    }
}
