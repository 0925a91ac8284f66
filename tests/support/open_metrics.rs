//! Strict parser of OpenMetrics text, which accepts only what every collector accepts.
//!
//! Guarantees: it panics, with the line number, where the text violates a rule of the format. Non-goals: the meaning of
//! the series.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed exposition.
#[derive(Debug)]
pub struct OpenMetrics {
    pub families: Vec<Family>,
}

/// A metric family.
#[derive(Debug)]
pub struct Family {
    pub name: String,
    pub kind: String,
    pub help: String,
    pub unit: Option<String>,
    pub samples: Vec<Sample>,
}

/// A sample line.
#[derive(Clone, Debug)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl OpenMetrics {
    /// Parses the whole text.
    pub fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF and a line feed");
        let mut families: Vec<Family> = Vec::new();
        for (at, line) in body.lines().enumerate() {
            let place = format!("line {}: {line}", at + 1);
            match line.strip_prefix("# ") {
                Some(metadata) => read_metadata(&mut families, metadata, &place),
                None => {
                    let family = families.last_mut().unwrap_or_else(|| panic!("{place}"));
                    family.samples.push(Sample::read(line, &place));
                }
            }
        }
        let read = Self { families };
        read.check();
        read
    }

    /// Returns every series, by its name with its labels in order of appearance.
    pub fn series(&self) -> BTreeMap<String, f64> {
        let samples = self.families.iter().flat_map(|family| &family.samples);
        samples.map(|sample| (sample.series(), sample.value)).collect()
    }

    /// Returns the value of a series, named as by [`OpenMetrics::series`].
    pub fn value(&self, series: &str) -> f64 {
        let found = self.series().get(series).copied();
        found.unwrap_or_else(|| panic!("there is no {series}"))
    }

    /// Returns the names that can be queried, as in the samples.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for family in &self.families {
            let ends: &[&str] = match &*family.kind {
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_count", "_sum"],
                _ => &[""],
            };
            names.extend(ends.iter().map(|end| format!("{}{end}", family.name)));
        }
        names
    }

    fn check(&self) {
        let mut names = BTreeSet::new();
        let mut series = BTreeSet::new();
        for family in &self.families {
            assert!(names.insert(&family.name), "{} appears twice", family.name);
            assert!(is_name(&family.name), "{} is no name", family.name);
            assert!(!family.help.is_empty(), "{} means nothing", family.name);
            if let Some(unit) = &family.unit {
                assert!(family.name.ends_with(&format!("_{unit}")), "{} of {unit}", family.name);
            }
            for sample in &family.samples {
                let name = sample.series();
                assert!(series.insert(name.clone()), "{name} is there twice");
            }
            family.check();
        }
    }
}

fn read_metadata(families: &mut Vec<Family>, metadata: &str, place: &str) {
    let (what, rest) = metadata.split_once(' ').unwrap_or_else(|| panic!("{place}"));
    let (name, text) = rest.split_once(' ').unwrap_or_else(|| panic!("{place}"));
    let last = families.last_mut().filter(|family| family.name == name);
    match (what, last) {
        ("HELP", None) => families.push(Family {
            name: name.to_owned(),
            kind: String::new(),
            help: text.to_owned(),
            unit: None,
            samples: Vec::new(),
        }),
        ("TYPE", Some(family)) if family.kind.is_empty() && family.samples.is_empty() => {
            let kinds = ["counter", "gauge", "histogram", "info"];
            assert!(kinds.contains(&text), "{place}");
            family.kind = text.to_owned();
        }
        ("UNIT", Some(family)) if family.unit.is_none() && family.samples.is_empty() => {
            family.unit = Some(text.to_owned());
        }
        _ => panic!("{place}"),
    }
}

impl Family {
    /// Returns the names of its labels, except those that the format itself requires.
    pub fn label_names(&self) -> BTreeSet<&str> {
        let labels = self.samples.iter().flat_map(|sample| &sample.labels);
        labels.map(|(name, _)| name.as_str()).filter(|name| *name != "le").collect()
    }

    fn check(&self) {
        let allowed: &[&str] = match &*self.kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "gauge" => &[""],
            "histogram" => &["_sum", "_count", "_bucket"],
            other => panic!("{} is a {other:?}", self.name),
        };
        for sample in &self.samples {
            let end = sample.name.strip_prefix(&*self.name);
            let is_allowed = end.is_some_and(|end| allowed.contains(&end));
            assert!(is_allowed, "{} does not belong to {}", sample.name, self.name);
            let grows = self.kind != "gauge";
            let is_fine = sample.value.is_finite() && (!grows || sample.value >= 0.0);
            assert!(is_fine, "{} is {}", sample.series(), sample.value);
        }
        if self.kind == "histogram" {
            self.check_histograms();
        }
        if self.kind == "info" {
            assert!(self.samples.iter().all(|sample| sample.value == 1.0), "{}", self.name);
        }
    }

    fn check_histograms(&self) {
        let of = |end: &str| {
            let name = format!("{}{end}", self.name);
            self.samples.iter().filter(move |sample| sample.name == name)
        };
        for count in of("_count") {
            let (mut bound, mut so_far) = (f64::NEG_INFINITY, 0.0);
            for bucket in of("_bucket").filter(|bucket| bucket.without_le() == count.labels) {
                let le = bucket.label("le").expect("a bucket has a bound");
                let le = if le == "+Inf" { f64::INFINITY } else { le.parse().expect("a number") };
                assert!(le > bound && bucket.value >= so_far, "{}", bucket.series());
                (bound, so_far) = (le, bucket.value);
            }
            assert!(bound == f64::INFINITY && so_far == count.value, "{}", count.series());
            let sums = of("_sum").filter(|sum| sum.labels == count.labels).count();
            assert_eq!(sums, 1, "{}", count.series());
        }
    }
}

impl Sample {
    fn read(line: &str, place: &str) -> Self {
        let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{place}"));
        let (name, mut rest) = line.split_at(end);
        assert!(is_name(name), "{place}");
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = read_labels(inside, &mut labels).unwrap_or_else(|| panic!("{place}"));
        }
        let value = rest.strip_prefix(' ').and_then(|value| value.parse().ok());
        let value = value.unwrap_or_else(|| panic!("{place}"));
        Self { name: name.to_owned(), labels, value }
    }

    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    fn without_le(&self) -> Vec<(String, String)> {
        self.labels.iter().filter(|(name, _)| name != "le").cloned().collect()
    }

    fn series(&self) -> String {
        if self.labels.is_empty() {
            return self.name.clone();
        }
        let labels = self.labels.iter().map(|(name, value)| format!("{name}={value:?}"));
        format!("{}{{{}}}", self.name, labels.collect::<Vec<_>>().join(","))
    }
}

/// Parses labels up to the closing brace; returns the remaining text.
fn read_labels<'a>(mut text: &'a str, labels: &mut Vec<(String, String)>) -> Option<&'a str> {
    loop {
        let (name, rest) = text.split_once("=\"")?;
        let is_new = labels.iter().all(|(known, _)| known != name);
        if !is_name(name) || name.contains(':') || !is_new {
            return None;
        }
        let (value, rest) = read_quoted(rest)?;
        labels.push((name.to_owned(), value));
        match rest.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return rest.strip_prefix('}'),
        }
    }
}

/// Parses a value up to its closing quote; returns the remaining text.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# HELP a_seconds Waits.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
                        a_seconds_sum 1.5\na_seconds_count 2\na_seconds_bucket{le=\"1.0\"} 1\n\
                        a_seconds_bucket{le=\"+Inf\"} 2\n# HELP b Things.\n# TYPE b counter\n\
                        b_total{x=\"a\\\"b\"} 3\n# EOF\n";

    #[test]
    fn valid_open_metrics_text_is_parsed() {
        let read = OpenMetrics::read(GOOD);
        assert_eq!(read.value("b_total{x=\"a\\\"b\"}"), 3.0);
        assert!(read.names().contains("a_seconds_bucket") && read.names().contains("b_total"));
        assert_eq!(read.families[1].label_names(), BTreeSet::from(["x"]));
        assert!(read.families[0].label_names().is_empty());
    }

    #[test]
    fn invalid_open_metrics_text_is_rejected() {
        for (good, bad) in [
            ("# EOF\n", ""),
            ("# TYPE b counter", "# TYPE b gauge"),
            ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"),
            ("# HELP b Things.", "# HELP a_seconds Things."),
            ("a_seconds_count 2", "a_seconds_count 3"),
            ("{le=\"1.0\"} 1", "{le=\"1.0\"} 3"),
            ("b_total{x=\"a\\\"b\"} 3", "b_total{x=\"a\\\"b\"} 3\nb_total{x=\"a\\\"b\"} 4"),
            ("b_total{x=\"a\\\"b\"} 3", "b_total{x=\"a} 3"),
            ("b_total{x=\"a\\\"b\"} 3", "b_total{x=\"a\"} -3"),
            ("b_total{x=\"a\\\"b\"} 3", "b_total{} 3"),
            ("b_total{x=\"a\\\"b\"} 3", "b_total{x=\"a\",x=\"b\"} 3"),
        ] {
            let text = GOOD.replace(good, bad);
            assert!(text != GOOD, "{good}");
            let read = std::panic::catch_unwind(|| OpenMetrics::read(&text));
            assert!(read.is_err(), "{bad} was taken");
        }
    }
}
