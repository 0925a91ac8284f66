//! Fuzzer input as a sequence of choices: how a property derives structured values from arbitrary bytes.
//!
//! Guarantees: the same input gives the same choices; exhausted input continues with zeros, so that truncating an input
//! makes its values smaller. Non-goals: what is chosen.

/// The remaining input.
#[derive(Clone, Debug)]
pub struct ChoiceSequence<'a> {
    remaining: &'a [u8],
}

impl<'a> ChoiceSequence<'a> {
    /// Starts at the first byte.
    pub fn new(input: &'a [u8]) -> Self {
        Self { remaining: input }
    }

    /// Takes the next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Takes the next two bytes.
    pub fn pair(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Takes the next eight bytes.
    pub fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Takes a number below `bound`, which is at most 65,536; one byte is used where that is enough.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = if bound <= 256 { u16::from(self.byte()) } else { self.pair() };
        usize::from(drawn) % bound.max(1)
    }

    /// Chooses one of the items.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Takes the next bytes: a length byte, then at most as many bytes as remain.
    pub fn short_bytes(&mut self) -> &'a [u8] {
        let wanted = usize::from(self.byte());
        let (bytes, rest) = self.remaining.split_at(wanted.min(self.remaining.len()));
        self.remaining = rest;
        bytes
    }

    /// Takes the next bytes as text.
    pub fn short_text(&mut self) -> String {
        String::from_utf8_lossy(self.short_bytes()).into_owned()
    }

    /// Whether the input is exhausted.
    pub fn is_exhausted(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Returns the remaining input.
    pub fn remaining(self) -> &'a [u8] {
        self.remaining
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.remaining.split_at(N.min(self.remaining.len()));
        self.remaining = rest;
        std::array::from_fn(|at| taken.get(at).copied().unwrap_or(0))
    }
}
