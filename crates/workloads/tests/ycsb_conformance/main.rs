//! Tithe's YCSB compared with the real one, in a module whose name `./check --quick` excludes: it needs Java and Maven.

#![allow(clippy::disallowed_methods, reason = "YCSB is a program")]

mod installed;
