//! Changing a frame at the end of a path.
//!
//! The offsets are those of [`progfe::compile::change::Change`].

use super::*;

/// Bytes of the header that remains in every frame.
const REST: u32 = HEADER_BYTES as u32;

/// Number of bytes by which a frame may become longer than the limit of the ports, for one tag.
const TAG_BYTES: i32 = 4;

impl Writer<'_> {
    /// Lets a frame escape that is too short for a change, or would become too long for the ports.
    /// Uses R0 and R1.
    pub(super) fn check(&mut self, change: &Change) {
        let shrinks = (-change.grown).max(0) as u32;
        let before =
            change.reach() as u32 - (change.grown.max(0) as u32).min(change.reach() as u32);
        self.need(if shrinks > 0 { before.max(shrinks + REST) } else { before });
        if change.grown > TAG_BYTES {
            let program = &mut *self.program;
            program.load(Width::Double, R0, R9, LENGTH_AT);
            program.add(R0, change.grown - TAG_BYTES);
            self.ports.emit_limit(program, R1);
            program.jump_if_both(R0, Condition::Greater, R1, self.escape);
        }
    }

    /// Changes the frame, which is long enough. Uses R0 to R5.
    pub(super) fn change(&mut self, change: &Change) {
        if change.is_none() {
            return;
        }
        if change.grown > 0 {
            self.move_start(-change.grown, self.escape);
            let fine = self.program.label("fine");
            let program = &mut *self.program;
            program.copy(R1, R8);
            program.add(R1, change.reach() as i32);
            program.jump_if_both(R1, Condition::NotGreater, R3, fine);
            program.store_number(Width::Double, R9, RUNS_AT, 0);
            program.set(R0, BROKEN);
            program.exit();
            program.place(fine);
        }
        let is_forward = change.grown > 0;
        for (from, to, count) in change.moves() {
            self.move_bytes(*from, *to, *count, is_forward);
        }
        let start = (-change.grown).max(0) as i16;
        let program = &mut *self.program;
        for (at, keep, put) in change.words() {
            let at = start + *at as i16;
            program.set_wide(R1, *put);
            if *keep != 0 {
                program.load(Width::Double, R0, R8, at);
                program.set_wide(R2, *keep);
                program.compute_both(R0, Operation::And, R2);
                program.compute_both(R1, Operation::Or, R0);
            }
            program.store(Width::Double, R8, at, R1);
        }
        for (at, keep, put) in change.bytes() {
            let at = start + *at as i16;
            if *keep == 0 {
                program.store_number(Width::Byte, R8, at, i32::from(*put));
                continue;
            }
            program.load(Width::Byte, R0, R8, at);
            program.and_word(R0, u32::from(*keep));
            program.compute_word(R0, Operation::Or, u32::from(*put));
            program.store(Width::Byte, R8, at, R0);
        }
        for at in change.decremented() {
            checksum::emit_decrement(start + *at as i16, program);
        }
        if change.grown < 0 {
            let fine = self.program.label("fine");
            let program = &mut *self.program;
            program.copy(R1, R6);
            program.set(R2, -change.grown);
            program.call(Helper::AdjustHead);
            program.jump_if(R0, Condition::Equal, 0, fine);
            program.store_number(Width::Double, R9, RUNS_AT, 0);
            program.set(R0, BROKEN);
            program.exit();
            program.place(fine);
        }
    }

    /// Moves the start of the frame, and reads it again. Uses R0 to R5.
    fn move_start(&mut self, by: i32, failed: Label) {
        let program = &mut *self.program;
        program.copy(R1, R6);
        program.set(R2, by);
        program.call(Helper::AdjustHead);
        program.jump_if(R0, Condition::NotEqual, 0, failed);
        program.load(Width::Word, R8, R6, DATA);
        program.load(Width::Word, R3, R6, DATA_END);
    }

    /// Copies bytes in pieces: from the first one on if they move to the front, otherwise from the
    /// last one on. So each byte is read before it is overwritten. Uses R0.
    fn move_bytes(&mut self, from: u16, to: u16, count: u16, is_forward: bool) {
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < count {
            let piece = match count - done {
                8.. => (Width::Double, 8),
                4.. => (Width::Word, 4),
                2.. => (Width::Half, 2),
                _ => (Width::Byte, 1),
            };
            pieces.push((done, piece.0));
            done += piece.1;
        }
        if !is_forward {
            pieces.reverse();
        }
        for (at, width) in pieces {
            self.program.load(width, R0, R8, (from + at) as i16);
            self.program.store(width, R8, (to + at) as i16, R0);
        }
    }
}
