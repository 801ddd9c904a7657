//! Checks that only PostgreSQL has.
