//! A database with a known cost per protection, on invented time.
