//! The checks that several databases share.

pub mod canary;
pub mod columns;
pub mod disk_canary;
pub mod key_apart;
pub mod logs_free;
pub mod needles;
pub mod own_columns;
pub mod program_wire;
pub mod recorders;
pub mod relay;
pub mod scan;
pub mod sql_columns;
pub mod statements;
pub mod wire_canary;
