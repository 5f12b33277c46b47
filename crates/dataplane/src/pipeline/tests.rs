//! Frames through the whole pipeline.
