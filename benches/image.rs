//! Cost of rendering a picture in CPU time, memory and bytes, and its visual quality, compared with sharp.
//!
//! Expected, from the study of the parts, as a fraction of sharp's CPU time: 0.7 for a photograph of 12 megapixels
//! scaled down, since only an eighth of it is decoded; 0.15 when it is progressive, where libvips decodes all of it;
//! about the same for a large JPEG, which trug's encoder writes more slowly; 0.7 for PNG and screenshots; a twentieth
//! for animated GIF, whose palette is chosen faster; for AVIF about a seventh by the encoder in Rust without
//! assembler, and a twentieth by libaom with the feature `fast-codecs`, at the speed that is set for it there.
//!
//! Photographs and screenshots are those that `tests/images/fetch` downloads, converted to their size and format by
//! libvips. Each picture is rendered in a process of its own, by trug and by sharp in turn, several times over in one
//! thread; the first time does not count. Similarity is SSIMULACRA2 against the file decoded in full and scaled down by
//! Lanczos; both are read by libvips for it. `--task WORD` selects the tasks with the word in their name, `--rounds N`
//! sets the number of rounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use benches::arguments::Arguments;
use benches::process;
use benches::rounds::{self, Sample};
use benches::table::{self, Table};
use benches::{folder, sharp};
use image::imageops::{self, FilterType};
use image::{DynamicImage, GenericImage, RgbImage};
use images::{Format, OutputFormat, PlanOutcome, TransformOptions, plan, read_source, render};
use serde_json::{Value, json};
use tests::pictures::{PHOTOGRAPHS, SCREENSHOTS, fetched, likeness, seen_by_vips, vips};

/// A row of the targets.
struct Task {
    name: &'static str,
    sources: &'static [&'static str],
    format: Format,
    width: u32,
    quality: Option<u8>,
    /// Maximum and target CPU time, as a fraction of sharp's.
    targets: (f64, f64),
}

/// Figures reported by one process.
struct Measurement {
    /// CPU time of each run in microseconds.
    cpu: Vec<f64>,
    before_bytes: u64,
    peak_bytes: u64,
}

const PHOTOS: &[&str] = &["dragonfly.jpg", "sunset.jpg", "seeding.jpg"];
/// The duration of AVIF depends more on the content of the picture than on its size.
const MORE_PHOTOS: &[&str] =
    &["dragonfly.jpg", "sunset.jpg", "seeding.jpg", "ridge.jpg", "peaks.jpg", "brook.jpg"];

const TASKS: [Task; 9] = [
    Task {
        name: "JPEG 12 MP to WebP 400",
        sources: PHOTOS,
        format: Format::WebP,
        width: 400,
        quality: Some(80),
        targets: (0.75, 0.55),
    },
    Task {
        name: "progressive JPEG 12 MP to WebP 400",
        sources: &[
            "dragonfly-progressive.jpg",
            "sunset-progressive.jpg",
            "seeding-progressive.jpg",
        ],
        format: Format::WebP,
        width: 400,
        quality: Some(80),
        targets: (0.25, 0.14),
    },
    Task {
        name: "JPEG 12 MP to JPEG 1200",
        sources: PHOTOS,
        format: Format::Jpeg,
        width: 1_200,
        quality: Some(80),
        targets: (1.05, 0.7),
    },
    Task {
        name: "PNG 2 MP to WebP 400",
        sources: &["dragonfly.png", "seeding.png"],
        format: Format::WebP,
        width: 400,
        quality: Some(80),
        targets: (0.8, 0.65),
    },
    Task {
        name: "screenshot PNG to WebP 256",
        sources: &["dlgedit2.png", "iims3.png"],
        format: Format::WebP,
        width: 256,
        quality: Some(80),
        targets: (0.75, 0.5),
    },
    Task {
        name: "PNG 2 MP to PNG 400",
        sources: &["dragonfly.png", "seeding.png"],
        format: Format::Png,
        width: 400,
        quality: None,
        targets: (0.75, 0.5),
    },
    Task {
        name: "animated GIF to GIF 200",
        sources: &["pan.gif", "screen.gif"],
        format: Format::Gif,
        width: 200,
        quality: None,
        targets: (0.15, 0.03),
    },
    Task {
        name: "animated GIF to WebP 200",
        sources: &["pan.gif", "screen.gif"],
        format: Format::WebP,
        width: 200,
        quality: Some(80),
        targets: (0.9, 0.6),
    },
    Task {
        name: "JPEG 12 MP to AVIF 800",
        sources: MORE_PHOTOS,
        format: Format::Avif,
        width: 800,
        quality: Some(60),
        targets: if cfg!(feature = "fast-codecs") { (0.1, 0.025) } else { (0.15, 0.08) },
    },
];

fn main() -> ExitCode {
    Arguments::run("image", |arguments| match arguments.value("--picture") {
        Some(spec) => make_one(spec),
        None => measure(arguments),
    })
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    println!("{}", sharp::ready()?);
    let (round_count, times) = if arguments.quick { (1, 2) } else { (5, 4) };
    let round_count = arguments.number("--rounds").map_or(round_count, |rounds| rounds as usize);
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let folder = folder.path();
    let wanted = arguments.value("--task").unwrap_or("");
    let tasks: Vec<&Task> = TASKS.iter().filter(|task| task.name.contains(wanted)).collect();
    let mut pictures = Table::new(&[
        "task", "source", "CPU ms", "of sharp", "ratio", "bytes", "of sharp", "likeness",
        "of sharp",
    ]);
    let mut targets = Table::new(&["task", "ratio", "floor", "aim"]);
    for task in tasks {
        let mut ratios = Vec::new();
        for name in task.sources {
            let source = source(folder, name);
            let made = [folder.join("ours"), folder.join("theirs")]
                .map(|path| path.with_extension(task.format.extension()));
            let mut failed = None;
            let samples = rounds::interleaved(round_count, 2, |contestant| {
                match make_apart(contestant, task, &source, &made[contestant], times) {
                    Ok(measurement) => sample(&measurement),
                    Err(why) => {
                        failed = Some(why);
                        Sample::default()
                    }
                }
            });
            if let Some(why) = failed {
                return Err(format!("{} of {name}: {why}", task.name));
            }
            let (ours, theirs) = (&samples[0], &samples[1]);
            let ratio = rounds::ratio(theirs, ours);
            let (low, high) = rounds::spread(theirs, ours);
            ratios.push(ratio);
            let bytes = made.each_ref().map(|path| fs::metadata(path).map_or(0, |it| it.len()));
            let like = made.map(|path| likeness_to(&source, &path, folder));
            pictures.row(vec![
                task.name.to_owned(),
                (*name).to_owned(),
                table::figure(rounds::cpu_us(ours) / 1e3),
                table::figure(rounds::cpu_us(theirs) / 1e3),
                format!("{ratio:.2} ({low:.2}-{high:.2})"),
                table::count(bytes[0] as f64),
                table::count(bytes[1] as f64),
                format!("{:.1}", like[0]),
                format!("{:.1}", like[1]),
            ]);
        }
        targets.row(vec![
            task.name.to_owned(),
            format!("{:.3}", rounds::median(ratios)),
            task.targets.0.to_string(),
            task.targets.1.to_string(),
        ]);
    }
    pictures.print();
    println!();
    targets.print();
    println!();
    measure_memory(folder)
}

/// Measures the peak memory of a process for one picture of 12 megapixels.
fn measure_memory(folder: &Path) -> Result<(), String> {
    let mut memory = Table::new(&["source", "who", "before", "at most", "more"]);
    for task in &TASKS[..2] {
        let name = task.sources[0];
        let source = source(folder, name);
        for (contestant, who) in ["ours", "sharp"].into_iter().enumerate() {
            let measurement = make_apart(contestant, task, &source, &folder.join("made"), 1)?;
            let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
            let more = measurement.peak_bytes.saturating_sub(measurement.before_bytes);
            let figures = [measurement.before_bytes, measurement.peak_bytes, more].map(mib);
            memory.row([name.to_owned(), who.to_owned()].into_iter().chain(figures).collect());
        }
    }
    memory.print();
    Ok(())
}

/// Returns pictures per second of CPU, and the CPU time of one: the first one does not count where there are more.
fn sample(measurement: &Measurement) -> Sample {
    let counted = if measurement.cpu.len() > 1 { &measurement.cpu[1..] } else { &measurement.cpu };
    let cpu_us = rounds::median(counted.iter().copied());
    Sample { per_second: 1e6 / cpu_us, cpu_us }
}

/// Renders a picture in a separate process: with trug, or with sharp.
fn make_apart(
    contestant: usize,
    task: &Task,
    source: &Path,
    made: &Path,
    times: usize,
) -> Result<Measurement, String> {
    let format = task.format.extension();
    let options = task.quality.map_or_else(|| json!({}), |quality| json!({ "quality": quality }));
    let spec = json!({
        "file": source, "made": made, "width": task.width, "format": format, "options": options,
        "times": times,
    })
    .to_string();
    let said = if contestant == 0 {
        let program = std::env::current_exe().map_err(text)?;
        let output = Command::new(program).args(["--picture", &spec]).output().map_err(text)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    } else {
        sharp::render(&spec)?
    };
    let numbers = |line: &str| line.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>();
    match &said.lines().map(numbers).collect::<Result<Vec<_>, _>>() {
        Ok(lines) if lines.len() == 3 => Ok(Measurement {
            cpu: lines[0].clone(),
            before_bytes: (lines[1][0] as u64) << 10,
            peak_bytes: (lines[2][0] as u64) << 10,
        }),
        _ => Err(format!("it said: {said}")),
    }
}

/// Runs trug's rendering process; it prints the same figures as `render.mjs` of sharp.
fn make_one(spec: &str) -> Result<(), String> {
    let spec: Value = serde_json::from_str(spec).map_err(|error| error.to_string())?;
    let word = |name: &str| spec[name].as_str().unwrap_or_default();
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let wish = TransformOptions {
        format: OutputFormat::Format(Format::from_name(word("format")).ok_or("no format")?),
        width: number(&spec["width"]),
        quality: spec["options"]["quality"].as_u64().and_then(|quality| u8::try_from(quality).ok()),
        ..TransformOptions::default()
    };
    let bytes = fs::read(word("file")).map_err(text)?;
    let (before, _) = process::own_memory_at_most();
    let (mut cpu, mut made) = (Vec::new(), Vec::new());
    for _ in 0..number(&spec["times"]).unwrap_or(1) {
        let start = process::own_cpu();
        let format = Format::detect(&bytes).ok_or("no picture")?;
        let source = read_source(format, &bytes).map_err(|error| error.to_string())?;
        let Ok(PlanOutcome::Transform(plan)) = plan(&source, &wish) else {
            return Err("no plan".into());
        };
        made = render(&bytes, &source, &plan, &|| false).map_err(|error| error.to_string())?;
        cpu.push((process::own_cpu() - start).as_micros().to_string());
    }
    fs::write(word("made"), made).map_err(text)?;
    let (_, peak) = process::own_memory_at_most();
    println!("{}\n{}\n{}", cpu.join(" "), before >> 10, peak >> 10);
    Ok(())
}

/// Returns the similarity of a picture to its source file; of an animation, that of its first frame.
fn likeness_to(source: &Path, made: &Path, folder: &Path) -> f64 {
    let made = DynamicImage::from(seen_by_vips(made, folder)).to_rgb8();
    let whole = image::open(source).expect("a picture").to_rgb8();
    let (width, height) = made.dimensions();
    likeness(&imageops::resize(&whole, width, height, FilterType::Lanczos3), &made)
}

/// Returns the file of a source, which is created on first use.
fn source(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    if file.exists() {
        return file;
    }
    let photograph = |name: &str| fetched(&format!("{PHOTOGRAPHS}/{name}"));
    let dragonfly = || photograph("Dragonfly_by_Bolly.jpg");
    let seeding = || photograph("seeding_by_Clements_Engelhardt.jpg");
    let by_berasategi = |name: &str| photograph(&format!("{name}_by_Aitzol_Berasategi.jpg"));
    let sunset = || by_berasategi("sunset");
    // Widths that make 12 megapixels, and 2.
    match name {
        "dragonfly.jpg" => shrink(&dragonfly(), 4_000, &file, "[Q=92]"),
        "sunset.jpg" => shrink(&sunset(), 4_243, &file, "[Q=92]"),
        "seeding.jpg" => shrink(&seeding(), 4_619, &file, "[Q=92]"),
        "ridge.jpg" => shrink(&by_berasategi("aitzgorri"), 4_243, &file, "[Q=92]"),
        "peaks.jpg" => shrink(&by_berasategi("picosdeeuropa"), 4_243, &file, "[Q=92]"),
        "brook.jpg" => shrink(&by_berasategi("life"), 4_243, &file, "[Q=92]"),
        "dragonfly-progressive.jpg" => shrink(&dragonfly(), 4_000, &file, "[Q=92,interlace]"),
        "sunset-progressive.jpg" => shrink(&sunset(), 4_243, &file, "[Q=92,interlace]"),
        "seeding-progressive.jpg" => shrink(&seeding(), 4_619, &file, "[Q=92,interlace]"),
        "dragonfly.png" => shrink(&dragonfly(), 1_632, &file, ""),
        "seeding.png" => shrink(&seeding(), 1_885, &file, ""),
        "pan.gif" => film(&file, &pan(&image::open(dragonfly()).expect("a photograph"))),
        "screen.gif" => film(&file, &screen()),
        _ => {
            fs::copy(fetched(&format!("{SCREENSHOTS}/{name}")), &file).expect("a screenshot");
        }
    }
    file
}

fn shrink(photograph: &Path, width: u32, made: &Path, options: &str) {
    let (from, to) = (photograph.display().to_string(), format!("{}{options}", made.display()));
    vips(&["thumbnail", &from, &to, &width.to_string()]);
}

/// Writes frames as an animated GIF by libvips: from one image with the frames stacked.
fn film(made: &Path, frames: &[RgbImage]) {
    let (width, height) = frames[0].dimensions();
    let mut strip = RgbImage::new(width, height * frames.len() as u32);
    for (at, frame) in (0..).zip(frames) {
        strip.copy_from(frame, 0, at * height).expect("it fits");
    }
    let above = made.with_extension("strip.png");
    strip.save(&above).expect("a file");
    let to = format!("{}[page-height={height}]", made.display());
    vips(&["copy", &above.display().to_string(), &to]);
}

/// Frames of a moving camera: every pixel changes.
fn pan(photograph: &DynamicImage) -> Vec<RgbImage> {
    let seen = photograph.to_rgb8();
    let frame = |at: u32| {
        let part = imageops::crop_imm(&seen, 900 + at * 40, 700 + at * 25, 1_600, 1_200);
        imageops::resize(&part.to_image(), 480, 360, FilterType::Lanczos3)
    };
    (0..24).map(frame).collect()
}

/// Frames of a screen recording: a small object moves, everything else is static.
fn screen() -> Vec<RgbImage> {
    let open = |name: &str| {
        image::open(fetched(&format!("{SCREENSHOTS}/{name}"))).expect("a screenshot").to_rgb8()
    };
    let still = imageops::resize(&open("dlgedit2.png"), 800, 600, FilterType::Lanczos3);
    let thing = imageops::resize(&open("xfe.png"), 64, 48, FilterType::Lanczos3);
    let frame = |at: u32| {
        let mut frame = still.clone();
        frame.copy_from(&thing, 20 + at * 16, 100 + (at * 37) % 300).expect("it fits");
        frame
    };
    (0..40).map(frame).collect()
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
