//! Third-party pictures, libvips and the programs of libjpeg-turbo, as downloaded by `tests/images/fetch`.
//!
//! Guarantees: a test that misses something fails and names the script that installs it. Non-goals: what is compared.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use image::{RgbImage, RgbaImage};
use ssimulacra2::{ColorPrimaries, Rgb, TransferCharacteristic, compute_frame_ssimulacra2};
use tempfile::TempDir;

/// Script that downloads the pictures, libvips and libjpeg-turbo.
const FETCH: &str = "tests/images/fetch";

/// Photographs, CC-BY-SA-4.0, CC-BY-4.0 and CC0-1.0: package lomiri-wallpapers-16.04.
pub const PHOTOGRAPHS: &str = "usr/share/backgrounds";
/// Screenshots, LGPL-2.1: package libfox-1.6-doc.
pub const SCREENSHOTS: &str = "usr/share/doc/libfox-1.6-doc/html/screenshots";
/// PngSuite by Willem van Schaik, whole files and broken ones: package libsixel-examples.
pub const PNG_SUITE: &str = "usr/share/doc/libsixel-examples/examples/images/pngsuite";
/// Lossy and lossless WebP files of libwebp, BSD-3-Clause: package golang-golang-x-image-dev.
pub const WEBP: &str = "usr/share/gocode/src/golang.org/x/image/testdata";
/// AVIF files of libavif, an animated PNG, MIT: package golang-github-gabriel-vasile-mimetype-dev.
pub const MIXED: &str = "usr/share/gocode/src/github.com/gabriel-vasile/mimetype/testdata";

/// Returns the path of a picture, or of a folder of them.
///
/// # Panics
///
/// When it does not exist.
pub fn fetched(path: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/corpus");
    let place = corpus.join(path);
    assert!(place.exists(), "{path} is missing: run {FETCH}");
    place
}

/// Returns every file below a folder of pictures, sorted by path.
///
/// # Panics
///
/// When it does not exist.
pub fn all_fetched(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![fetched(folder)];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("a folder can be read") {
            let path = entry.expect("a folder can be read").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Runs `vips`: an operation of libvips with its arguments.
///
/// # Panics
///
/// When libvips is missing, or fails.
pub fn vips<A: AsRef<OsStr>>(arguments: &[A]) {
    run("vips", arguments);
}

/// Scales a picture with libvips to `made`: `width` pixels wide, and upright. Encoder options are in brackets after the
/// output path.
///
/// # Panics
///
/// When libvips is missing, or fails.
pub fn vips_thumbnail(file: &Path, width: u32, made: &str, more: &[&str]) {
    let size = format!("{width}x");
    let arguments: [&OsStr; 5] =
        [file.as_ref(), "--size".as_ref(), size.as_ref(), "-o".as_ref(), made.as_ref()];
    let more: Vec<&OsStr> = more.iter().map(AsRef::as_ref).collect();
    run("vipsthumbnail", &[&arguments[..], &more].concat());
}

fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|why| panic!("{program}: {why}: run {FETCH}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {}: {said}", output.status);
}

/// Runs `cjpeg` of libjpeg-turbo on pixels of red, green and blue, with a scan script where one is given.
///
/// # Errors
///
/// The message of `cjpeg` where it rejects the arguments.
///
/// # Panics
///
/// When there is no `cjpeg`.
pub fn cjpeg(
    rgb: &[u8],
    (width, height): (u16, u16),
    arguments: &[String],
    script: Option<&str>,
) -> Result<Vec<u8>, String> {
    let folder = TempDir::new().expect("a folder");
    let mut arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let script_path = folder.path().join("scans");
    if let Some(script) = script {
        std::fs::write(&script_path, script).expect("a file");
        arguments.extend(["-scans".as_ref(), script_path.as_os_str()]);
    }
    piped("cjpeg", &arguments, &[format!("P6 {width} {height} 255\n").as_bytes(), rgb].concat())
}

/// Decodes the pixels of a JPEG with `djpeg` of libjpeg-turbo.
///
/// # Errors
///
/// The message of `djpeg` where it rejects the file.
///
/// # Panics
///
/// When there is no `djpeg`, or it writes no binary PNM.
pub fn djpeg(file: &[u8]) -> Result<RgbImage, String> {
    let pnm = piped("djpeg", &["-pnm".as_ref()], file)?;
    let mut fields = pnm.splitn(4, |byte| byte.is_ascii_whitespace());
    let mut field = || fields.next().map(String::from_utf8_lossy).expect("a header of PNM");
    let (kind, width, height) = (field(), field(), field());
    let samples = fields.next().expect("a header of PNM").strip_prefix(b"255\n").expect("8 bits");
    let pixels = match &*kind {
        "P5" => samples.iter().flat_map(|sample| [*sample; 3]).collect(),
        "P6" => samples.to_vec(),
        other => panic!("djpeg wrote {other}"),
    };
    let side = |text: &str| text.parse().expect("a number");
    Ok(RgbImage::from_raw(side(&width), side(&height), pixels).expect("all the pixels"))
}

/// Runs a program of libjpeg-turbo on bytes.
fn piped(program: &str, arguments: &[&OsStr], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("{program}: {why}: run {FETCH}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // A program that rejects its arguments reads nothing.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("it ends")
    });
    match output.status.code() {
        // The programs of libjpeg exit with 2 after a warning.
        Some(0 | 2) => Ok(output.stdout),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Decodes the pixels of a picture with libvips; `folder` holds an intermediate file.
///
/// # Panics
///
/// When libvips does not read it.
pub fn seen_by_vips(picture: &Path, folder: &Path) -> RgbaImage {
    let name = picture.file_name().expect("a file has a name").to_string_lossy();
    let seen = folder.join(format!("{name}.seen.png"));
    vips(&["copy".as_ref(), picture.as_os_str(), seen.as_os_str()]);
    image::open(&seen).expect("libvips writes PNG").to_rgba8()
}

/// Returns the similarity of a picture to the expected one, by SSIMULACRA2: 100 is identical, 90 looks identical, 70 is
/// high quality, 50 medium.
///
/// # Panics
///
/// When the sizes differ, or are below 8 pixels.
pub fn likeness(original: &RgbImage, picture: &RgbImage) -> f64 {
    let linear = |picture: &RgbImage| {
        let pixels = picture.pixels().map(|pixel| pixel.0.map(|value| f32::from(value) / 255.0));
        let sides = (picture.width() as usize, picture.height() as usize);
        let (transfer, primaries) = (TransferCharacteristic::SRGB, ColorPrimaries::BT709);
        Rgb::new(pixels.collect(), sides.0, sides.1, transfer, primaries).expect("all the pixels")
    };
    compute_frame_ssimulacra2(linear(original), linear(picture)).expect("the same sides")
}
