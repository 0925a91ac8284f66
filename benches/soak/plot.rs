//! Plot of the measurements over time.

use std::path::Path;

use plotters::prelude::*;

use super::time_series::Point;

type Failure = Box<dyn std::error::Error>;

/// Name with its unit, and the value.
type Chart = (&'static str, fn(&Point) -> f64);

/// Charts, from top to bottom.
const CHARTS: [Chart; 5] = [
    ("requests a second", |point| point.requests_per_second),
    ("p99 of everything but pictures, ms", |point| point.p99_ms),
    ("p99 of pictures, ms", |point| point.pictures_p99_ms),
    ("anonymous memory, MiB", |point| point.memory_mib),
    ("disk, MiB", |point| point.disk_mib),
];

/// Writes an SVG.
pub(crate) fn draw(file: &Path, points: &[Point]) -> Result<(), Failure> {
    let end = points.last().map_or(1.0, |point| point.seconds / 60.0);
    let area = SVGBackend::new(file, (900, 1_000)).into_drawing_area();
    area.fill(&WHITE)?;
    for (part, (name, value)) in area.split_evenly((CHARTS.len(), 1)).iter().zip(CHARTS) {
        let top = points.iter().map(value).fold(1.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(part)
            .caption(name, ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(22)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart.configure_mesh().x_labels(16).y_labels(5).max_light_lines(0).draw()?;
        let line = points.iter().map(|point| (point.seconds / 60.0, value(point)));
        chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    }
    area.present()?;
    Ok(())
}
