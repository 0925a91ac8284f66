//! Loop count of an animation.

use gif::Repeat;

/// Number of times that an animation plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopCount {
    Forever,
    /// Finite count, at least one.
    Times(u32),
}

impl LoopCount {
    /// Converts the repetitions of the Netscape extension, as in browsers: 3 plays four times, 0 forever.
    pub(super) fn of_gif_repetitions(repetitions: Option<u16>) -> Self {
        match repetitions {
            Some(0) => Self::Forever,
            Some(repetitions) => Self::Times(u32::from(repetitions) + 1),
            None => Self::Times(1),
        }
    }

    /// Converts to GIF repetitions, at most 65,536 plays.
    pub(super) fn to_gif(self) -> Repeat {
        match self {
            Self::Forever => Repeat::Infinite,
            Self::Times(times) => {
                Repeat::Finite(u16::try_from(times.saturating_sub(1)).unwrap_or(u16::MAX))
            }
        }
    }

    /// Converts a WebP loop count, where 0 is infinite.
    pub(super) fn from_webp(count: u16) -> Self {
        if count == 0 { Self::Forever } else { Self::Times(count.into()) }
    }

    /// Converts to a WebP loop count, at most 65,535.
    pub(super) fn to_webp(self) -> u16 {
        match self {
            Self::Forever => 0,
            Self::Times(times) => u16::try_from(times).unwrap_or(u16::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gif_and_webp_loop_counts_are_equivalent() {
        assert_eq!(LoopCount::of_gif_repetitions(None), LoopCount::Times(1));
        assert_eq!(LoopCount::of_gif_repetitions(Some(3)).to_webp(), 4);
        assert_eq!(LoopCount::from_webp(4).to_gif(), Repeat::Finite(3));
        assert_eq!(LoopCount::from_webp(1).to_gif(), Repeat::Finite(0));
        assert_eq!(LoopCount::of_gif_repetitions(Some(0)).to_webp(), 0);
        assert_eq!(LoopCount::from_webp(0).to_gif(), Repeat::Infinite);
    }

    #[test]
    fn largest_loop_counts_do_not_overflow() {
        assert_eq!(
            LoopCount::of_gif_repetitions(Some(u16::MAX)).to_gif(),
            Repeat::Finite(u16::MAX)
        );
        assert_eq!(LoopCount::of_gif_repetitions(Some(u16::MAX)).to_webp(), u16::MAX);
        assert_eq!(LoopCount::from_webp(u16::MAX).to_webp(), u16::MAX);
    }
}
