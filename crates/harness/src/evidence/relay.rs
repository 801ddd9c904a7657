//! A TCP relay between client and server that keeps what passes. For evidence only: never in a measured path.
