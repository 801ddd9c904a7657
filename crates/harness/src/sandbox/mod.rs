//! Everything that acts on the machine to give one arm its server.

pub mod certificates;
