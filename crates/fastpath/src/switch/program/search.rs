//! Searching the entry of highest order.
//!
//! The search is one flat loop: a step begins the next tuple, or examines the next entry of a
//! chain. Frames escape after [`SEARCH_STEPS_MAX`] steps. The verifier would examine each of them
//! separately, so the loop also has a jump that the kernel counts.

use super::*;
use crate::switch::layout::{SEARCH_STEPS_MAX, entry, hash, list};

impl Writer<'_> {
    /// Finds the entry for the key: its order, action and slot are on the stack.
    pub(super) fn search(&mut self) {
        let Labels { escape, start, search, .. } = self.labels;
        let [step, chain] = ["step", "chain"].map(|name| self.program.label(name));
        let program = &mut *self.program;
        program.place(start);
        program.store_number(Width::Double, R9, cpu::TABLE, 0);
        program.store_number(Width::Double, R9, cpu::TRAIL_COUNT, 0);
        program.store_number(Width::Double, R9, cpu::STEPS, 0);
        program.place(search);
        program.load(Width::Double, R2, R9, cpu::TABLE);
        program.and_word(R2, TABLES as u32 - 1);
        program.shift_left(R2, 3);
        program.load_map_value(R1, self.maps.root, 0);
        program.add_register(R1, R2);
        program.load(Width::Double, R1, R1, root::LISTS);
        program.store(Width::Word, R10, INDEX, R1);
        self.look_up(self.maps.lists, INDEX, escape);
        let program = &mut *self.program;
        // R8 is the list.
        program.copy(R8, R0);
        program.load(Width::Double, R1, R8, list::COUNT);
        program.store(Width::Double, R9, cpu::TUPLES, R1);
        program.store_number(Width::Double, R9, cpu::BEST, 0);
        program.store_number(Width::Double, R9, cpu::TUPLE, 0);
        program.store_number(Width::Double, R9, cpu::NEXT, 0);

        program.place(step);
        program.may_jump(escape);
        program.load(Width::Double, R1, R9, cpu::STEPS);
        program.jump_if(R1, Condition::NotLess, SEARCH_STEPS_MAX, escape);
        program.add(R1, 1);
        program.store(Width::Double, R9, cpu::STEPS, R1);
        program.load(Width::Double, R1, R9, cpu::NEXT);
        program.jump_if(R1, Condition::NotEqual, 0, chain);
        self.begin_tuple(step);
        self.program.place(chain);
        self.examine(step);
    }

    /// Begins the next tuple, if it may have a better entry: stores the masked key and its number,
    /// and continues in its chain with the entry in R1. Ends the search otherwise.
    fn begin_tuple(&mut self, step: Label) {
        let found = self.labels.found;
        let program = &mut *self.program;
        program.load(Width::Double, R0, R9, cpu::TUPLE);
        program.load(Width::Double, R1, R9, cpu::TUPLES);
        program.jump_if_both(R0, Condition::NotLess, R1, found);
        program.copy(R1, R0);
        program.add(R0, 1);
        program.store(Width::Double, R9, cpu::TUPLE, R0);
        program.and_word(R1, crate::switch::layout::TUPLES_MAX as u32 - 1);
        program.shift_left(R1, list::TUPLE_SHIFT);
        program.add_register(R1, R8);
        program.load(Width::Double, R2, R1, list::TUPLES + list::BOUND);
        program.load(Width::Double, R3, R9, cpu::BEST);
        program.jump_if_both(R3, Condition::NotLess, R2, found);
        program.load(Width::Double, R2, R1, list::TUPLES + list::NUMBER);
        program.store(Width::Double, R9, cpu::NUMBER, R2);
        program.set_wide(R0, self.seed);
        program.set_wide(R5, hash::FACTOR);
        for word in 0..4 {
            program.load(Width::Double, R2, R1, list::TUPLES + list::MASK + 8 * word);
            program.load(Width::Double, R3, R9, key(word));
            program.compute_both(R2, Operation::And, R3);
            program.store(Width::Double, R9, cpu::MASKED + 8 * word, R2);
            program.compute_both(R0, Operation::Xor, R2);
            program.compute_both(R0, Operation::Multiply, R5);
            program.copy(R2, R0);
            program.compute(R2, Operation::ShiftRight, hash::SHIFT);
            program.compute_both(R0, Operation::Xor, R2);
        }
        program.store(Width::Double, R9, cpu::CHAIN, R0);
        program.load(Width::Double, R0, R9, cpu::CHAIN);
        program.and_word(R0, self.chains as u32 - 1);
        program.shift_left(R0, 2);
        program.load_map_value(R2, self.maps.heads, 0);
        program.add_register(R2, R0);
        program.load(Width::Word, R1, R2, 0);
        program.jump_if(R1, Condition::Equal, 0, step);
    }

    /// Examines the entry in R1, and continues with the next one or the next tuple.
    fn examine(&mut self, step: Label) {
        let escape = self.labels.escape;
        self.program.store(Width::Word, R10, INDEX, R1);
        self.look_up(self.maps.entries, INDEX, escape);
        let program = &mut *self.program;
        program.load(Width::Word, R1, R0, entry::NEXT);
        program.store(Width::Double, R9, cpu::NEXT, R1);
        program.load(Width::Double, R1, R0, entry::ORDER);
        program.copy(R2, R1);
        program.and_word(R2, order::TUPLE_MASK as u32);
        program.load(Width::Double, R3, R9, cpu::NUMBER);
        program.jump_if_both(R2, Condition::NotEqual, R3, step);
        for word in 0..4 {
            program.load(Width::Double, R2, R0, entry::KEY + 8 * word);
            program.load(Width::Double, R3, R9, cpu::MASKED + 8 * word);
            program.jump_if_both(R2, Condition::NotEqual, R3, step);
        }
        program.load(Width::Double, R3, R9, cpu::GENERATION);
        program.load(Width::Double, R2, R0, entry::BORN);
        program.jump_if_both(R2, Condition::Greater, R3, step);
        program.load(Width::Double, R2, R0, entry::DIED);
        program.jump_if_both(R2, Condition::NotGreater, R3, step);
        // Later entries of the chain have the same key and a lower order, or another key.
        program.store_number(Width::Double, R9, cpu::NEXT, 0);
        program.load(Width::Double, R2, R9, cpu::BEST);
        program.jump_if_both(R1, Condition::NotGreater, R2, step);
        program.store(Width::Double, R9, cpu::BEST, R1);
        program.load(Width::Word, R2, R0, entry::ACTION);
        program.store(Width::Double, R9, cpu::ACTION, R2);
        program.load(Width::Word, R2, R10, INDEX);
        program.store(Width::Double, R9, cpu::SLOT, R2);
        program.jump(step);
    }
}
