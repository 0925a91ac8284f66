//! Text output about the whole store: statistics, compaction, backup, scrub.

use std::fmt::Write as _;

use server::management::{
    BackedUpView, CompactedView, DamageView, PlaceView, RefusedSegmentView, RetainedView,
    ScrubbedView, SegmentKindView, SegmentView, SegmentsView, SelectionView, StatsView,
};

use super::table::Show::{Minute, Whole};
use super::table::{Column, table};
use super::{bytes_text, plain};

/// Formats lines of name and value.
fn lines_of(rows: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<20}{}", plain(value));
    }
    text
}

pub(super) fn stats_text(stats: &StatsView, wide: bool) -> String {
    let segments = |segments: &SegmentsView| {
        let (live, dead) = (bytes_text(segments.live_bytes), bytes_text(segments.dead_bytes));
        format!("{}, live {live}, dead {dead}", segments.segments)
    };
    let verified = match &stats.verified_since {
        Some(since) => format!("all since {since}"),
        None => "incomplete: run `trug scrub`".to_owned(),
    };
    let mut text = lines_of(&[
        ("accounts", stats.accounts.to_string()),
        ("buckets", stats.buckets.to_string()),
        ("API keys", stats.api_keys.to_string()),
        ("files", format!("{}, {}", stats.objects, bytes_text(stats.object_bytes))),
        ("derived", format!("{}, {}", stats.derived_objects, bytes_text(stats.derived_bytes))),
        ("log segments", segments(&stats.log)),
        ("compacted segments", segments(&stats.compacted)),
        ("big segments", segments(&stats.big)),
        ("recoverable", retained_text(&stats.retained)),
        ("verified", verified),
        ("damaged", format!("{} places", stats.damage.count)),
        ("writes", writes_text(stats)),
    ]);
    damage_lines(&mut text, &stats.damage);
    if let Some(segments) = &stats.segments {
        let rows: Vec<_> = segments.iter().map(segment_row).collect();
        let _ = write!(text, "\n{}", table(SEGMENT, &rows, wide));
    }
    text
}

/// Formats the large files that are retained for undelete.
fn retained_text(retained: &RetainedView) -> String {
    let until = retained.next_release_at.as_ref();
    let until = until.map(|at| format!(", the first one until {at}")).unwrap_or_default();
    format!("{} large files, {}{until}", retained.files, bytes_text(retained.bytes))
}

const SEGMENT: &[Column] = &[
    ("SEGMENT", Whole),
    ("CLASS", Whole),
    ("LIVE", Whole),
    ("DEAD", Whole),
    ("DEAD %", Whole),
    ("VERIFIED", Minute),
    ("DAMAGED", Whole),
];

fn segment_row(segment: &SegmentView) -> Vec<String> {
    let record_bytes = segment.live_bytes.saturating_add(segment.dead_bytes);
    vec![
        format!("{:010}", segment.id),
        class_word(segment.class).to_owned(),
        bytes_text(segment.live_bytes),
        bytes_text(segment.dead_bytes),
        percent(segment.dead_bytes, record_bytes).to_string(),
        segment.verified_at.clone().unwrap_or_else(|| "never".to_owned()),
        segment.damage_count.to_string(),
    ]
}

fn class_word(class: SegmentKindView) -> &'static str {
    match class {
        SegmentKindView::Log => "log",
        SegmentKindView::Compacted => "compacted",
        SegmentKindView::Big => "big",
    }
}

fn damage_lines(text: &mut String, damage: &DamageView) {
    for PlaceView { file, offset, name, why, found_at } in &damage.places {
        let name = name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        let place = format!("{name}{file} at {offset}: {why}, found {found_at}");
        let _ = writeln!(text, "  {}", plain(&place));
    }
    let more = damage.count.saturating_sub(damage.places.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

pub(super) fn scrubbed_text(scrubbed: &ScrubbedView) -> String {
    let mut text = lines_of(&[
        ("checked", format!("{} segments, {}", scrubbed.segments, bytes_text(scrubbed.bytes))),
        ("damaged", format!("{} places", scrubbed.damage.count)),
    ]);
    damage_lines(&mut text, &scrubbed.damage);
    text
}

fn writes_text(stats: &StatsView) -> String {
    match (&stats.read_only, &stats.full) {
        (Some(why), _) => format!("refused: {why}"),
        (None, Some(full)) => {
            let (free, reserve) = (bytes_text(full.free_bytes), bytes_text(full.reserve_bytes));
            format!("uploads are rejected: {free} free on the disk, {reserve} reserved")
        }
        (None, None) => "taken".to_owned(),
    }
}

const CANDIDATE: &[Column] = &[
    ("STEP", Whole),
    ("SEGMENT", Whole),
    ("CLASS", Whole),
    ("FILE", Whole),
    ("LIVE", Whole),
    ("DEAD", Whole),
    ("DEAD %", Whole),
];
const STEP: &[Column] =
    &[("STEP", Whole), ("SEGMENTS", Whole), ("COPIES", Whole), ("FREES", Whole)];

pub(super) fn selection_text(selection: &SelectionView, wide: bool) -> String {
    let mut candidates = Vec::new();
    let mut steps = Vec::new();
    for (number, step) in (1_u64..).zip(&selection.steps) {
        for segment in &step.segments {
            let record_bytes = segment.live_bytes.saturating_add(segment.dead_bytes);
            candidates.push(vec![
                number.to_string(),
                format!("{:010}", segment.id),
                class_word(segment.class).to_owned(),
                bytes_text(segment.file_bytes),
                bytes_text(segment.live_bytes),
                bytes_text(segment.dead_bytes),
                percent(segment.dead_bytes, record_bytes).to_string(),
            ]);
        }
        steps.push(vec![
            number.to_string(),
            step.segments.len().to_string(),
            bytes_text(step.copy_bytes),
            bytes_text(step.free_bytes),
        ]);
    }
    let mut text = String::new();
    if !steps.is_empty() {
        let _ = writeln!(
            text,
            "{}\n{}",
            table(CANDIDATE, &candidates, wide),
            table(STEP, &steps, wide)
        );
    }
    let rate = bytes_text(selection.bytes_per_second);
    let (records, dead) = (selection.record_bytes, selection.dead_bytes);
    text.push_str(&lines_of(&[
        ("total dead", format!("{} of {}", bytes_text(dead), bytes_text(records))),
        ("in newest segment", bytes_text(selection.newest_dead_bytes)),
        ("recoverable", format!("{} of large files", bytes_text(selection.retained_bytes))),
        ("would copy", bytes_text(selection.copy_bytes)),
        ("would free", format!("about {}", bytes_text(selection.free_bytes))),
        ("would take", format!("about {} at {rate}/s", time_text(selection.expected_seconds))),
    ]));
    text
}

pub(super) fn compacted_text(compacted: &CompactedView) -> String {
    let mut rows = vec![
        (
            "segments",
            format!("{} replaced by {}", compacted.segments_removed, compacted.segments_written),
        ),
        ("copied", bytes_text(compacted.copied_bytes)),
        ("freed", bytes_text(compacted.freed_bytes)),
    ];
    if compacted.punched_bytes > 0 {
        rows.push(("freed in place", bytes_text(compacted.punched_bytes)));
    }
    for RefusedSegmentView { id, why } in &compacted.refused {
        rows.push(("not compacted", format!("segment {id:010}: {why}")));
    }
    lines_of(&rows)
}

pub(super) fn backed_up_text(backed_up: &BackedUpView) -> String {
    let files = |files: u64, bytes: u64| format!("{files} files, {}", bytes_text(bytes));
    let mut rows = vec![
        ("backed up to", backed_up.to.clone()),
        ("copied", files(backed_up.copied_files, backed_up.copied_bytes)),
        ("there already", files(backed_up.kept_files, backed_up.kept_bytes)),
        ("removed", format!("{} files", backed_up.removed_files)),
        ("took", time_text(backed_up.duration_ms.div_ceil(1_000))),
    ];
    rows.extend(backed_up.damage.iter().map(|place| ("damaged", place.clone())));
    let more = backed_up.damage_count.saturating_sub(backed_up.damage.len() as u64);
    if more > 0 {
        rows.push(("damaged", format!("and {more} more places")));
    }
    lines_of(&rows)
}

fn percent(part: u64, whole: u64) -> u128 {
    u128::from(part) * 100 / u128::from(whole.max(1))
}

/// Formats a duration.
pub(super) fn time_text(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use server::management::{CandidateView, StepView};

    use super::*;

    #[test]
    fn times_are_readable() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (90_061, "25 h 1 min"),
        ] {
            assert_eq!(time_text(seconds), text);
        }
    }

    #[test]
    fn compaction_plan_shows_segments_steps_and_totals() {
        let candidate = |id, class| CandidateView {
            id,
            class,
            file_bytes: 4_096,
            live_bytes: 1_024,
            dead_bytes: 3_072,
        };
        let step = StepView {
            segments: vec![
                candidate(3, SegmentKindView::Compacted),
                candidate(7, SegmentKindView::Log),
            ],
            copy_bytes: 2_048,
            free_bytes: 6_144,
        };
        let selection = SelectionView {
            record_bytes: 10_240,
            dead_bytes: 6_144,
            newest_dead_bytes: 0,
            retained_bytes: 2_048,
            steps: vec![step],
            copy_bytes: 2_048,
            free_bytes: 6_144,
            bytes_per_second: 1_024,
            expected_seconds: 2,
        };
        assert_eq!(
            selection_text(&selection, false),
            "STEP  SEGMENT     CLASS      FILE    LIVE    DEAD    DEAD %\n\
             1     0000000003  compacted  4.0 kB  1.0 kB  3.0 kB  75\n\
             1     0000000007  log        4.0 kB  1.0 kB  3.0 kB  75\n\
             \n\
             STEP  SEGMENTS  COPIES  FREES\n\
             1     2         2.0 kB  6.1 kB\n\
             \n\
             total dead          6.1 kB of 10.2 kB\n\
             in newest segment   0 bytes\n\
             recoverable         2.0 kB of large files\n\
             would copy          2.0 kB\n\
             would free          about 6.1 kB\n\
             would take          about 2 s at 1.0 kB/s\n"
        );
    }
}
