//! Brotli encoder (RFC 7932): hash chains, lazy matching, and prefix codes by context.
//!
//! The crate `brotli` adds 1,170,000 bytes to the binary, half of them tables, for output that is some percent smaller.
//! Guarantees: what is written decompresses to the input; no input panics. Non-goals: the static dictionary, block
//! types, and streams.
//!
//! ```text
//! match_finder      bytes to commands: literals, then a copy of earlier bytes
//! command           symbols of lengths and distances
//! literal_contexts  groups of contexts that share a prefix code
//! prefix_code       Huffman codes, and their stored form
//! bit_writer        output
//! ```

mod bit_writer;
mod command;
mod literal_contexts;
mod match_finder;
mod prefix_code;

use self::bit_writer::BitWriter;
use self::command::{COMMAND_SYMBOLS, Command, DISTANCE_SYMBOLS};
use self::literal_contexts::{CONTEXTS, ContextGroups, MODE_UTF8, context};
use self::match_finder::MatchFinder;
use self::prefix_code::PrefixCode;

/// Binary logarithm of the largest window: it holds the largest input.
const WINDOW_BITS_MAX: u32 = 24;
/// Bytes of a meta-block, which has its own prefix codes.
const BLOCK_BYTES_MAX: usize = 256 * 1_024;

/// Compresses bytes to a stream.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut writer = BitWriter::new();
    let window_bits = bytes.len().max(1).next_power_of_two().ilog2().clamp(18, WINDOW_BITS_MAX);
    writer.write((window_bits - 17) << 1 | 1, 4);
    let mut finder = MatchFinder::new(bytes, (1 << window_bits) - 16);
    for start in (0..bytes.len()).step_by(BLOCK_BYTES_MAX) {
        let end = bytes.len().min(start + BLOCK_BYTES_MAX);
        let (before, recent) = (writer.position(), finder.recent());
        let bits = writer.bit_count();
        let commands = finder.commands(start, end);
        write_block(bytes, start, end, &commands, &mut writer);
        if writer.bit_count() - bits > 8 * (end - start) {
            writer.rewind(before);
            finder.set_recent(recent);
            write_uncompressed(bytes.get(start..end).unwrap_or_default(), &mut writer);
        }
    }
    // An empty last meta-block.
    writer.write(0b11, 2);
    writer.finish()
}

/// Writes the start of a meta-block that is not the last one.
fn write_header(bytes: usize, is_uncompressed: bool, writer: &mut BitWriter) {
    let less_one = bytes as u32 - 1;
    let nibbles = if less_one < 1 << 16 { 4 } else { 5 };
    writer.write(0, 1);
    writer.write(nibbles - 4, 2);
    writer.write(less_one, 4 * nibbles);
    writer.write(u32::from(is_uncompressed), 1);
}

fn write_uncompressed(bytes: &[u8], writer: &mut BitWriter) {
    write_header(bytes.len(), true, writer);
    writer.write_bytes(bytes);
}

fn write_block(
    bytes: &[u8],
    start: usize,
    end: usize,
    commands: &[Command],
    writer: &mut BitWriter,
) {
    let mut literals = vec![[0; 256]; CONTEXTS];
    let (mut symbols, mut distances) = ([0; COMMAND_SYMBOLS], [0; DISTANCE_SYMBOLS]);
    let mut position = start;
    for command in commands {
        symbols[usize::from(command.symbol)] += 1;
        for at in position..position + command.insert as usize {
            literals[context(bytes, at)][usize::from(bytes[at])] += 1;
        }
        position += (command.insert + command.copy) as usize;
        if let Some((symbol, _, _)) = command.distance {
            distances[usize::from(symbol)] += 1;
        }
    }
    let literals = ContextGroups::new(&literals);
    let (symbols, distances) = (PrefixCode::of_counts(&symbols), PrefixCode::of_counts(&distances));
    write_header(end - start, false, writer);
    // One block type of literals, of commands and of distances; no direct distances; the context mode.
    writer.write(MODE_UTF8 << 9, 11);
    write_count(literals.codes().len(), writer);
    literals.store_map(writer);
    write_count(1, writer);
    for code in literals.codes().iter().chain([&symbols, &distances]) {
        code.store(writer);
    }
    let mut position = start;
    for command in commands {
        symbols.write(usize::from(command.symbol), writer);
        command.write_lengths(writer);
        for at in position..position + command.insert as usize {
            literals.code(context(bytes, at)).write(usize::from(bytes[at]), writer);
        }
        position += (command.insert + command.copy) as usize;
        if let Some((symbol, extra, bits)) = command.distance {
            distances.write(usize::from(symbol), writer);
            writer.write(extra, bits);
        }
    }
}

/// Writes the number of prefix codes, from 1 to 256.
fn write_count(count: usize, writer: &mut BitWriter) {
    let Some(bits) = (count as u32 - 1).checked_ilog2() else {
        writer.write(0, 1);
        return;
    };
    writer.write(bits << 1 | 1, 4);
    writer.write(count as u32 - 1 - (1 << bits), bits);
}
