//! Records → analysis.
