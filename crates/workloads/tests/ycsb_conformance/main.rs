//! Tithe's YCSB beside the real one, in a module whose name `./check --quick` leaves out: it needs Java and Maven.

#![allow(clippy::disallowed_methods, reason = "YCSB is a program")]

mod installed;
