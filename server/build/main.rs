//! Prepares the files that `src/embedded.rs` embeds: compresses them to a quarter of their length, almost a megabyte
//! less of the binary, and renders the documentation pages from their guides and the OpenAPI document.
//!
//! Non-goals: which of them are embedded.

#![allow(clippy::disallowed_methods, reason = "a build script has no store")]

mod guides;
mod markup;
mod page_layout;
mod reference;
mod search_index;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::page_layout::{Page, PageGroup};

type BuildResult<T> = Result<T, Box<dyn Error>>;

/// Files, and folders without subfolders.
const SOURCES: [&str; 3] = ["assets/dashboard", "client/dist", "openapi.json"];
/// Guides, template, style and script of the documentation pages.
const DOCUMENTATION: &str = "assets/docs";
/// First rule of the dashboard's style sheet that is not for every page.
const OWN_STYLE_OF_DASHBOARD: &str = "/* Home. */";

fn main() -> BuildResult<()> {
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("no OUT_DIR")?;
    println!("cargo::rerun-if-changed=build");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        if Path::new(source).is_file() {
            compress_file(Path::new(source), &folder)?;
            continue;
        }
        for entry in fs::read_dir(source)? {
            compress_file(&entry?.path(), &folder)?;
        }
    }
    println!("cargo::rerun-if-changed={DOCUMENTATION}");
    write_documentation(&folder)
}

/// Writes `docs/pages.json` (pages by path, without style and script), `docs/search.json`, and the style and script.
fn write_documentation(folder: &Path) -> BuildResult<()> {
    let read = |name: &str| fs::read_to_string(Path::new(DOCUMENTATION).join(name));
    let document = serde_json::from_str(&fs::read_to_string("openapi.json")?)?;
    let mut pages = guides::read(&Path::new(DOCUMENTATION).join("guides"))?;
    pages.extend(reference::pages(&document));
    let index = search_index::write(&pages)?;
    pages.push(Page {
        html: page_layout::missing_page(),
        ..Page::new("404", "Page not found", PageGroup::Hidden)
    });
    let template = read("page.html")?;
    let pages: BTreeMap<&str, String> = pages
        .iter()
        .map(|page| (&*page.path, page_layout::lay_out(&template, page, &pages)))
        .collect();
    let dashboard = fs::read_to_string("assets/dashboard/style.css")?;
    let (shared, _) =
        dashboard.split_once(OWN_STYLE_OF_DASHBOARD).ok_or("the style of all pages has no end")?;
    let style = format!("{shared}{}", read("style.css")?);
    for (name, text) in [
        ("pages.json", serde_json::to_string(&pages)?),
        ("search.json", index),
        ("style.css", style),
        ("script.mjs", read("script.mjs")?),
        ("theme.js", read("theme.js")?),
    ] {
        compress(text.as_bytes(), &folder.join(format!("docs/{name}.gz")))?;
    }
    Ok(())
}

fn compress_file(path: &Path, folder: &Path) -> io::Result<()> {
    compress(&fs::read(path)?, &folder.join(format!("{}.gz", path.display())))
}

fn compress(content: &[u8], target: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    fs::write(target, encoder.finish()?)
}
