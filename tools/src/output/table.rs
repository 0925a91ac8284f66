//! Tables of at most 80 columns, and wider ones with `--wide`.
//!
//! Guarantees: cells cannot control the terminal. At 80 columns only one column is cut, which is no ID; a column
//! without any value is left out. Non-goals: what the cells hold.

use std::fmt::Write as _;

use super::plain;

/// Columns of a narrow table.
const WIDTH: usize = 80;
/// Narrowest cut column, in characters.
const CUT_MIN: usize = 12;

/// How a column appears in a narrow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Whole,
    /// Cut in the middle if the table is too wide; at most one column.
    Cut,
    /// The date of a time.
    Date,
    /// A time to the minute, in UTC.
    Minute,
    /// Only in wide tables.
    Wide,
}

/// A column: its head, and how it appears in a narrow table.
pub(super) type Column = (&'static str, Show);

/// Formats a table.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>], wide: bool) -> String {
    let shown: Vec<usize> =
        (0..columns.len()).filter(|at| wide || is_shown(columns, rows, *at)).collect();
    let mut lines: Vec<Vec<String>> =
        vec![shown.iter().map(|at| columns[*at].0.to_owned()).collect()];
    for row in rows {
        let cell = |at: &usize| {
            let text = row.get(*at).map(String::as_str).unwrap_or_default();
            cell(text, if wide { Show::Whole } else { columns[*at].1 })
        };
        lines.push(shown.iter().map(cell).collect());
    }
    let cut = shown.iter().position(|at| columns[*at].1 == Show::Cut);
    if let Some(at) = cut.filter(|_| !wide) {
        cut_column(&mut lines, at);
    }
    let widths = widths(&lines);
    let mut text = String::new();
    for line in lines {
        let mut padded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(padded, "{cell:<width$}  ");
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    }
    text
}

fn is_shown(columns: &[Column], rows: &[Vec<String>], at: usize) -> bool {
    let has_value = |row: &Vec<String>| row.get(at).is_some_and(|cell| !cell.is_empty());
    columns[at].1 != Show::Wide && (rows.is_empty() || rows.iter().any(has_value))
}

fn cell(text: &str, show: Show) -> String {
    let short = match show {
        Show::Date => text.get(..10),
        Show::Minute => text.get(..16),
        Show::Whole | Show::Cut | Show::Wide => None,
    };
    match (text, short) {
        ("", _) => "-".to_owned(),
        (_, Some(short)) => plain(&short.replace('T', " ")),
        (text, None) => plain(text),
    }
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.first().map(Vec::len).unwrap_or_default();
    let width = |at: usize| {
        lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max()
    };
    (0..columns).map(|at| width(at).unwrap_or_default()).collect()
}

/// Cuts the cells of a column in the middle, so that the others fit.
fn cut_column(lines: &mut [Vec<String>], column: usize) {
    let widths = widths(lines);
    let total: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
    let own = widths.get(column).copied().unwrap_or_default();
    let most = (own + WIDTH).saturating_sub(total).max(CUT_MIN);
    for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
        *cell = cut(cell, most);
    }
}

/// Cuts a text in the middle to at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = ((most - 1) / 2, most / 2);
    let start = text.chars().take(head);
    start.chain(['…']).chain(text.chars().skip(count - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::Show::{Cut, Date, Minute, Whole, Wide};
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn narrow_tables_leave_out_empty_and_wide_columns() {
        let columns = [("N", Whole), ("EMPTY", Whole), ("MORE", Wide), ("VALUE", Whole)];
        let rows = [row(&["a", "", "x", ""]), row(&["long", "", "y", "v"])];
        assert_eq!(table(&columns, &rows, false), "N     VALUE\na     -\nlong  v\n");
        assert_eq!(
            table(&columns, &rows, true),
            "N     EMPTY  MORE  VALUE\na     -      x     -\nlong  -      y     v\n"
        );
        assert_eq!(table(&columns, &[], false), "N  EMPTY  VALUE\n");
    }

    #[test]
    fn narrow_tables_fit_80_columns() {
        let columns = [("NAME", Cut), ("TIME", Minute), ("DAY", Date)];
        let time = "2026-01-31T12:34:56.789Z";
        let name = format!("{}.{}", "a".repeat(100), "end");
        let text = table(&columns, &[row(&[&name, time, time])], false);
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line.chars().count(), 80);
        assert!(
            line.contains('…') && line.contains(".end  2026-01-31 12:34  2026-01-31"),
            "{line}"
        );
        assert!(table(&columns, &[row(&[&name, time, time])], true).contains(&name));
    }
}
