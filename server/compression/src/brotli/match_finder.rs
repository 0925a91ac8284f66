//! Search for earlier occurrences of the next bytes: hash chains, with lazy evaluation.

use super::command::{Command, RECENT_DISTANCES};

/// Shortest match that is searched for.
const MATCH_BYTES_MIN: usize = 4;
/// Length from which a match is taken without a further search.
const MATCH_BYTES_GOOD: usize = 256;
/// Candidates that are compared for each position.
const CANDIDATES_MAX: usize = 24;
/// Positions by which a match is deferred at most, as long as each next one has a better match.
const DEFERRALS_MAX: usize = 4;
/// Score of each matched byte, of each bit of a distance, and for the last distance: tenths of a bit, roughly.
const BYTE_SCORE: usize = 135;
const DISTANCE_BIT_SCORE: usize = 30;
const LAST_DISTANCE_SCORE: usize = 15;
/// Score that a match has at least, and by which a deferred one must be better.
const SCORE_MIN: usize = 100;
const DEFERRED_SCORE: usize = 175;
/// Offset that keeps scores positive.
const SCORE_BASE: usize = DISTANCE_BIT_SCORE * usize::BITS as usize;

/// Positions of a file by the hash of their next bytes.
pub(super) struct MatchFinder<'a> {
    bytes: &'a [u8],
    /// Last position of each hash, plus 1.
    heads: Vec<u32>,
    /// For each position, the one before it with the same hash, plus 1.
    chain: Vec<u32>,
    hash_bits: u32,
    distance_max: usize,
    recent: [usize; 4],
}

#[derive(Clone, Copy, Default)]
struct Match {
    length: usize,
    distance: usize,
    score: usize,
}

impl<'a> MatchFinder<'a> {
    pub(super) fn new(bytes: &'a [u8], distance_max: usize) -> Self {
        let hash_bits = bytes.len().max(256).ilog2().clamp(8, 17);
        Self {
            bytes,
            heads: vec![0; 1 << hash_bits],
            chain: vec![0; bytes.len()],
            hash_bits,
            distance_max,
            recent: RECENT_DISTANCES,
        }
    }

    /// Returns the commands for the bytes of the range, which follows the one before.
    pub(super) fn commands(&mut self, start: usize, end: usize) -> Vec<Command> {
        let mut commands = Vec::new();
        let (mut position, mut literals) = (start, start);
        while position + MATCH_BYTES_MIN <= end {
            let Some(mut found) = self.search(position, end) else {
                self.insert(position);
                position += 1;
                continue;
            };
            self.insert(position);
            for _ in 0..DEFERRALS_MAX {
                if found.length >= MATCH_BYTES_GOOD {
                    break;
                }
                match self.search(position + 1, end) {
                    Some(next) if next.score >= found.score + DEFERRED_SCORE => found = next,
                    _ => break,
                }
                position += 1;
                self.insert(position);
            }
            let Match { length, distance, .. } = found;
            commands.push(Command::new(position - literals, length, distance, &mut self.recent));
            for inside in position + 1..position + length {
                self.insert(inside);
            }
            position += length;
            literals = position;
        }
        if literals < end {
            for rest in position..end {
                self.insert(rest);
            }
            commands.push(Command::literals(end - literals));
        }
        commands
    }

    /// Returns the last distances, the latest first.
    pub(super) fn recent(&self) -> [usize; 4] {
        self.recent
    }

    /// Sets the last distances to those before commands that are not written.
    pub(super) fn set_recent(&mut self, recent: [usize; 4]) {
        self.recent = recent;
    }

    /// Returns the best match at a position that ends before `end`.
    fn search(&self, position: usize, end: usize) -> Option<Match> {
        let mut best = Match { score: SCORE_BASE + SCORE_MIN, ..Match::default() };
        let wanted = self.bytes.get(position..end)?;
        for (at, distance) in self.recent.into_iter().enumerate() {
            if distance > position {
                continue;
            }
            let length = self.common_length(position - distance, wanted, best.length);
            let bonus = if at == 0 { LAST_DISTANCE_SCORE } else { 0 };
            let score = SCORE_BASE + BYTE_SCORE * length + bonus - 10 * at;
            // Two bytes are worth the command only without a distance.
            if (length > 2 || (length == 2 && at == 0)) && score > best.score {
                best = Match { length, distance, score };
            }
        }
        let hash = self.hash(position)?;
        let mut next = self.heads[hash] as usize;
        for _ in 0..CANDIDATES_MAX {
            let Some(candidate) = next.checked_sub(1) else { break };
            let distance = position - candidate;
            if distance > self.distance_max || best.length >= MATCH_BYTES_GOOD {
                break;
            }
            let length = self.common_length(candidate, wanted, best.length);
            let cost = DISTANCE_BIT_SCORE * distance.ilog2() as usize;
            let score = (SCORE_BASE + BYTE_SCORE * length).saturating_sub(cost);
            if length >= MATCH_BYTES_MIN && score > best.score {
                best = Match { length, distance, score };
            }
            next = self.chain[candidate] as usize;
        }
        (best.length > 0).then_some(best)
    }

    /// Returns how many bytes at an earlier position equal the wanted ones; 0 if not more than `more_than`.
    fn common_length(&self, candidate: usize, wanted: &[u8], more_than: usize) -> usize {
        let Some(earlier) = self.bytes.get(candidate..) else { return 0 };
        if earlier.get(more_than) != wanted.get(more_than) || more_than >= wanted.len() {
            return 0;
        }
        let (mut length, words) = (0, earlier.chunks_exact(8).zip(wanted.chunks_exact(8)));
        for (one, other) in words {
            if one != other {
                break;
            }
            length += 8;
        }
        let rest = earlier.iter().zip(wanted).skip(length);
        length + rest.take_while(|(one, other)| one == other).count()
    }

    fn insert(&mut self, position: usize) {
        let Some(hash) = self.hash(position) else { return };
        self.chain[position] = self.heads[hash];
        self.heads[hash] = position as u32 + 1;
    }

    /// Returns the hash of the next four bytes, if there are as many.
    fn hash(&self, position: usize) -> Option<usize> {
        let next = self.bytes.get(position..)?.first_chunk::<MATCH_BYTES_MIN>()?;
        let hash = u32::from_le_bytes(*next).wrapping_mul(0x1E35_A7BD);
        Some((hash >> (u32::BITS - self.hash_bits)) as usize)
    }
}
