//! A forwarding element that is programmed by a graph of logical functional blocks.
//!
//! Modules are listed in the order in which a program meets them: it is read, its frames and
//! conditions are understood, it is checked whole, and only then does it run. Nothing in here opens a
//! file, asks a clock or fails while frames are forwarded.

/// What is wrong with a document: code, place, what and how to mend it; all of it, not the first.
pub mod problem;
/// XML documents, bounded before they are read, whose places are known.
pub mod xml;
/// Frame formats as data: any protocol is a few lines of XML.
pub mod frames;
/// The language of `when`: which frames a rule is for.
pub mod condition;
/// What an element is programmed with: blocks, what they are set to, and links.
pub mod program;
/// Everything that is looked at before a program runs.
pub mod check;
/// Links as frames follow them.
pub mod graph;
/// Classes at run time: what each block does with a frame.
pub mod lfb;
/// A program made ready to run.
pub mod loaded;
/// What happened to a frame, block by block.
pub mod trace;
/// The oracle: one frame at a time through the graph.
pub mod interpret;
/// The same for rows of frames, node by node.
pub mod compile;
/// One interface between what manages an element and what runs its program.
pub mod enforce;
/// Service agents: who diverted frames are told to.
pub mod agent;
/// Frames of a running element looked at, and what its blocks cost.
pub mod observe;
/// A running element: a program that frames go through, and that can be changed under them.
pub mod element;
/// The element as control elements see it over ForCES.
pub mod control;
/// What a program can be asked to be, and which of its blocks hold what that is told.
pub mod role;
/// What would change if one program took the place of another.
pub mod plan;
/// A program's graph as a picture.
pub mod show;
