//! A forwarding element whose behaviour is a graph of logical functional blocks (LFBs).
//!
//! Modules are listed in the order in which a program passes through them: parse, check, then run. No module opens a
//! file or reads a clock, and forwarding never fails.

/// Problems of a document: code, place, text and hint. All problems are collected, not only the first.
pub mod problem;
/// XML parser with size limits that records the place of each element.
pub mod xml;
/// Frame formats as data: a few lines of XML describe a protocol.
pub mod frames;
/// The condition language of `when`, which selects the frames that a rule matches.
pub mod condition;
/// Programs: block instances, their component values, and links.
pub mod program;
/// All checks that a program must pass before it runs.
pub mod check;
/// Lookup of links from the outputs of blocks.
pub mod graph;
/// LFB classes at run time: how each block processes a frame.
pub mod lfb;
/// A loaded program, ready to run.
pub mod loaded;
/// Trace of a frame, block by block.
pub mod trace;
/// The reference interpreter: sends each frame through the graph individually.
pub mod interpret;
/// The compiled data path: processes batches of frames with a decision tree.
pub mod compile;
/// Interface between element management and the engine that runs the program.
pub mod enforce;
/// Service agents, which process diverted frames.
pub mod agent;
/// Tracing of frames in a running element, and cost measurement of its blocks.
pub mod observe;
/// A running element: forwards frames by a program that can change at run time.
pub mod element;
/// The element from the view of ForCES control elements.
pub mod control;
/// Roles of a program (bridge, router, tagger), and the blocks that a role configures.
pub mod role;
/// Differences between two programs, before one replaces the other.
pub mod plan;
/// Drawing of a program's graph.
pub mod show;
