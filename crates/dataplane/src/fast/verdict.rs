//! Verdict: the precomputed result of an entry's instructions.

/// Precomputed result of instructions: the two common cases need no action list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No action: drop the frame.
    Drop,
    /// One action: output to this port, unchanged.
    Output(u16),
    /// Execute the action list; there are no other instructions.
    List,
    /// Execute the instructions.
    Program,
}

impl Verdict {
    const KIND: u32 = 30;

    /// Encodes the verdict as a number.
    #[inline]
    pub fn pack(self) -> u32 {
        match self {
            Verdict::Drop => 0,
            Verdict::Output(port) => 1 << Verdict::KIND | u32::from(port),
            Verdict::List => 2 << Verdict::KIND,
            Verdict::Program => 3 << Verdict::KIND,
        }
    }

    /// Decodes a number from [`Verdict::pack`].
    #[inline]
    pub fn unpack(number: u32) -> Verdict {
        match number >> Verdict::KIND {
            0 => Verdict::Drop,
            1 => Verdict::Output(number as u16),
            2 => Verdict::List,
            _ => Verdict::Program,
        }
    }
}
