//! Load from many machines: how a coordinator and its agents talk.

pub mod link;
