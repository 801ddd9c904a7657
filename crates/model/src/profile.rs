//! Results of profiled frames: samples of the kernel's clock by arm, side and stack. One [`ProfiledFrame`] per line of
//! `profile.jsonl`.
//!
//! Profiled frames alternate with frames of the same form that are not sampled, so that the cost of sampling is known.
//! They run between the measured ones but are not counted as such: no other figure contains one.

use serde::{Deserialize, Serialize};

use crate::record::Slot;

/// Pairs of a sampled and an unsampled frame, in a cell.
pub const PROFILED_PAIRS: u32 = 20;

/// Most pairs of one start of the servers, in a cell that has several starts; their order is mirrored.
pub const PAIRS_OF_START: u32 = 2;

/// Number of a cell's first profiled frame: above those of all measured ones.
pub const PROFILED_FROM: u32 = 1_000_000;

/// One frame whose threads were sampled, or its partner whose threads were not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfiledFrame {
    /// Index of the cell in the plan.
    pub cell: u32,
    /// Number within the cell; measured frames have smaller ones.
    pub frame: u32,
    /// Number of the start within the cell.
    pub start: u32,
    /// False for a frame that only shows the cost of sampling.
    pub sampled: bool,
    /// Why it must not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Processor time between two samples of one processor, ns.
    pub period_ns: u64,
    /// Samples that the kernel could not keep.
    pub lost: u64,
    /// Samples of other programs, which are left out.
    pub elsewhere: u64,
    /// The arms, in the experiment's order.
    pub arms: Vec<ProfiledArm>,
    /// The functions that stacks name.
    pub functions: Vec<Function>,
    /// Samples with the same arm, side, task and stack.
    pub stacks: Vec<Stack>,
}

/// Totals of one arm's slots in a profiled frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledArm {
    /// Operations that succeeded.
    pub operations: u64,
    /// Processor time of the client threads, ns.
    pub client_cpu_ns: u64,
    /// Processor time of the tasks that serve them, ns; 0 if it is not visible.
    pub server_cpu_ns: u64,
}

impl ProfiledArm {
    /// The totals of arm `arm` over all its `slots`.
    pub fn of(slots: &[Slot], arm: u32) -> Self {
        slots.iter().filter(|slot| slot.arm == arm).fold(Self::default(), |sum, slot| Self {
            operations: sum.operations + slot.operations,
            client_cpu_ns: sum.client_cpu_ns + slot.client_cpu_ns,
            server_cpu_ns: sum.server_cpu_ns + slot.server_cpu_ns,
        })
    }

    /// Processor time of client and server per operation, ns; infinite or unknown without operations.
    pub fn cpu_per_op(&self) -> f64 {
        (self.client_cpu_ns + self.server_cpu_ns) as f64 / self.operations as f64
    }
}

/// A function, as far as symbols name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Function {
    /// File name of the program or library, or `[kernel]`.
    pub object: String,
    /// Name; `None` if the object has no symbol there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The object of functions of the kernel.
pub const KERNEL: &str = "[kernel]";

/// Whose time a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A client thread.
    Client,
    /// A task that serves a client.
    Server,
    /// The process that writes the server's log for all clients.
    LogWriter,
    /// Other tasks that the server or Tithe started: background processes, a log collector, an encrypting file system.
    Helper,
    /// A thread of the kernel.
    Kernel,
}

impl Side {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Client, Self::Server, Self::LogWriter, Self::Helper, Self::Kernel];

    /// True if its time is part of the processor time per operation.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Client | Self::Server | Self::LogWriter)
    }

    /// Its name in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::LogWriter => "log writer",
            Self::Helper => "helper",
            Self::Kernel => "kernel thread",
        }
    }
}

/// Samples of one arm with the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Index of the arm.
    pub arm: u32,
    /// Whose time a sample belongs to.
    pub side: Side,
    /// Name of the thread.
    pub task: String,
    /// Samples.
    pub samples: u64,
    /// Indices into the frame's functions, the function that ran first.
    pub functions: Vec<u32>,
}

impl ProfiledFrame {
    /// Frame `frame` of cell `cell` with this many `arms` and their `slots`, without samples.
    pub fn without_samples((cell, frame): (u32, u32), arms: usize, slots: &[Slot]) -> Self {
        Self {
            cell,
            frame,
            start: 0,
            sampled: false,
            invalid: None,
            period_ns: 0,
            lost: 0,
            elsewhere: 0,
            arms: (0..arms as u32).map(|arm| ProfiledArm::of(slots, arm)).collect(),
            functions: Vec::new(),
            stacks: Vec::new(),
        }
    }

    /// True if stacks refer to existing functions and arms: a damaged line is not used.
    pub fn is_whole(&self, arms: usize) -> bool {
        let named = |stack: &Stack| {
            (stack.arm as usize) < arms
                && !stack.functions.is_empty()
                && stack.functions.iter().all(|function| (*function as usize) < self.functions.len())
        };
        self.arms.len() == arms && self.stacks.iter().all(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of two arms, in powers of ten so that all sums differ.
    fn slots() -> Vec<Slot> {
        let slot = |arm, operations, client_cpu_ns, server_cpu_ns| Slot {
            arm,
            operations,
            client_cpu_ns,
            server_cpu_ns,
            ..Slot::default()
        };
        vec![slot(0, 1, 10, 100), slot(1, 1000, 2000, 3000), slot(0, 3, 20, 300)]
    }

    #[test]
    fn an_arm_has_the_sums_of_its_own_slots() {
        let arm = ProfiledArm::of(&slots(), 0);
        assert_eq!((arm.operations, arm.client_cpu_ns, arm.server_cpu_ns), (4, 30, 400));
        assert_eq!(arm.cpu_per_op(), 107.5);
        let frame = ProfiledFrame::without_samples((7, 9), 3, &slots());
        assert_eq!((frame.cell, frame.frame, frame.arms.len()), (7, 9, 3));
        assert_eq!((frame.arms[0], frame.arms[1].cpu_per_op(), frame.arms[2]), (arm, 5.0, ProfiledArm::default()));
    }

    #[test]
    fn only_lines_whose_names_are_there_are_used() {
        let stack = |arm, functions: &[u32]| Stack {
            arm,
            side: Side::Client,
            task: String::new(),
            samples: 1,
            functions: functions.to_vec(),
        };
        let with = |stacks: &[Stack]| ProfiledFrame {
            functions: vec![Function::default(); 2],
            stacks: stacks.to_vec(),
            ..ProfiledFrame::without_samples((0, 0), 2, &slots())
        };
        assert!(with(&[stack(0, &[0]), stack(1, &[1, 0])]).is_whole(2));
        for damaged in [stack(2, &[0]), stack(0, &[]), stack(0, &[0, 2])] {
            assert!(!with(&[stack(0, &[0]), damaged.clone()]).is_whole(2), "{damaged:?}");
        }
        assert!(!with(&[]).is_whole(1) && !with(&[]).is_whole(3));
    }

    #[test]
    fn what_is_counted_is_what_operations_cost() {
        let counted: Vec<&str> = Side::ALL.into_iter().filter(|side| side.is_counted()).map(Side::words).collect();
        assert_eq!(counted, ["client", "server", "log writer"]);
        let others: Vec<&str> = Side::ALL.into_iter().filter(|side| !side.is_counted()).map(Side::words).collect();
        assert_eq!(others, ["helper", "kernel thread"]);
    }
}
