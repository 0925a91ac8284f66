//! The input as a row of choices: how a property makes structured things out of any bytes.
//!
//! Promises: the same input gives the same choices; an input that is over goes on with zeros, so that cutting it off
//! makes things smaller. Never here: what is chosen.

/// What is left of the input.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Begins at the first byte.
    pub fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next two bytes.
    pub fn pair(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next eight bytes.
    pub fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `bound`, which is at most 65,536, by one byte where that is enough.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = if bound <= 256 { u16::from(self.byte()) } else { self.pair() };
        usize::from(drawn) % bound.max(1)
    }

    /// One of the items.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// The next bytes, as many as one byte says and as there are.
    pub fn short_bytes(&mut self) -> &'a [u8] {
        let wanted = usize::from(self.byte());
        let (bytes, rest) = self.rest.split_at(wanted.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// The next bytes as text.
    pub fn short_text(&mut self) -> String {
        String::from_utf8_lossy(self.short_bytes()).into_owned()
    }

    /// Whether nothing is left.
    pub fn are_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_at(N.min(self.rest.len()));
        self.rest = rest;
        std::array::from_fn(|at| taken.get(at).copied().unwrap_or(0))
    }
}
