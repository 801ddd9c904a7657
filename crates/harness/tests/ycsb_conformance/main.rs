//! Tithe's YCSB beside the real one, in a module whose name `./check --quick` leaves out: it needs Java and Maven.

mod installed;
