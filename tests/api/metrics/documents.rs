//! The manual documents every series and no other; the Grafana dashboard and the alerts query existing series, and
//! every alert links to its section of the manual.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tests::OpenMetrics;

use super::{replicated, scrape};

const MANUAL: &str = include_str!("../../../tools/OPERATING.md");
const DASHBOARD: &str = include_str!("../../../tools/deploy/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../tools/deploy/prometheus-alerts.yml");

/// Labels added by the collector.
const SCRAPER_LABELS: &[&str] = &["instance", "job", "le"];

/// Returns the expected table of the manual.
fn table(metrics: &OpenMetrics) -> String {
    let mut table = "| series | kind | labels | what |\n|---|---|---|---|\n".to_owned();
    for family in &metrics.families {
        let end = match &*family.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels: Vec<_> =
            family.label_names().into_iter().map(|name| format!("`{name}`")).collect();
        let (name, kind, help) = (&family.name, &family.kind, &family.help);
        table += &format!("| `{name}{end}` | {kind} | {} | {help} |\n", labels.join(", "));
    }
    table
}

#[tokio::test]
async fn metrics_are_all_documented_in_the_manual() {
    let (_world, _remote, server) = replicated().await;
    let (metrics, _) = scrape(&server).await;
    let expected = table(&metrics);
    let start = MANUAL.find("| series | kind |").expect("the manual has the table");
    let found = &MANUAL[start..];
    let found = &found[..found.find("\n\n").map_or(found.len(), |end| end + 1)];
    assert!(found == expected, "tools/OPERATING.md has to have:\n{expected}");
}

/// A selector: a name, and the required labels.
#[derive(Debug)]
struct Selector {
    name: String,
    /// Label, sign and value.
    matchers: Vec<(String, String, String)>,
}

/// Returns the selectors of an expression: words with the prefix of trug's names, with the matchers in braces after
/// them.
fn selectors(expression: &str) -> Vec<Selector> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| is_word(c) || c == '"') {
        rest = &rest[start..];
        // A quoted text is a value.
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted.split_once('"').expect("a quote ends").1;
            continue;
        }
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        rest = behind;
        if !name.starts_with("trug_") && !name.starts_with("process_") {
            continue;
        }
        let mut matchers = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            let (inside, behind) = inside.split_once('}').expect("a brace ends");
            rest = behind;
            for matcher in inside.split(',') {
                let (label, value) = matcher.split_once('=').expect("a label has a value");
                let (sign, value) = match value.strip_prefix('~') {
                    Some(value) => ("=~", value),
                    None => ("=", value),
                };
                let value = value.trim_matches('"').to_owned();
                matchers.push((label.to_owned(), sign.to_owned(), value));
            }
        }
        found.push(Selector { name: name.to_owned(), matchers });
    }
    found
}

/// Checks that the series queried by an expression exist; returns their families.
fn check_expression(metrics: &OpenMetrics, expression: &str) -> BTreeSet<String> {
    let mut families = BTreeSet::new();
    let selectors = selectors(expression);
    assert!(!selectors.is_empty() || expression.starts_with("up{"), "{expression}");
    for Selector { name, matchers } in selectors {
        assert!(metrics.names().contains(&name), "{expression}: there is no {name}");
        let family = metrics.families.iter().filter(|family| name.starts_with(&family.name));
        let family = family.max_by_key(|family| family.name.len()).expect("it has a family");
        families.insert(family.name.clone());
        for (label, sign, value) in matchers {
            if SCRAPER_LABELS.contains(&&*label) {
                continue;
            }
            let values: BTreeSet<&str> =
                family.samples.iter().filter_map(|sample| sample.label(&label)).collect();
            let asked: Vec<&str> =
                if sign == "=~" { value.split('|').collect() } else { vec![&value] };
            for value in asked {
                assert!(values.contains(value), "{expression}: {label} is never {value}");
            }
        }
    }
    families
}

#[test]
fn promql_selectors_are_parsed() {
    let text = "sum by (le) (rate(trug_a_bucket{op=\"x\",k=~\"a|b\"}[5m])) > 2 * on (x) process_b unless trug_c";
    let found = selectors(text);
    let names: Vec<_> = found.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["trug_a_bucket", "process_b", "trug_c"]);
    assert_eq!(found[0].matchers[1], ("k".into(), "=~".into(), "a|b".into()));
}

#[tokio::test]
async fn grafana_dashboard_covers_all_metrics() {
    let (_world, _remote, server) = replicated().await;
    let (metrics, _) = scrape(&server).await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let mut shown = BTreeSet::new();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeMap::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a panel has a title");
        assert!(ids.insert(panel["id"].as_u64()), "{title} has the id of another");
        let side = |name: &str| panel["gridPos"][name].as_u64().expect("a panel has its place");
        let (x, y, wide, high) = (side("x"), side("y"), side("w"), side("h"));
        assert!(wide > 0 && high > 0 && x + wide <= 24, "{title}");
        for place in (x..x + wide).flat_map(|x| (y..y + high).map(move |y| (x, y))) {
            let other = taken.insert(place, title);
            assert!(other.is_none(), "{title} overlaps {other:?}");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|it| it.ends_with('.')), "{title}");
        let targets = panel["targets"].as_array().expect("a panel asks for something");
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let expression = target["expr"].as_str().expect("an expression");
            shown.extend(check_expression(&metrics, expression));
        }
    }
    let current = metrics.families.iter().filter(|it| !it.help.starts_with("Deprecated name of "));
    let all: BTreeSet<String> = current.map(|family| family.name.clone()).collect();
    let missing: Vec<_> = all.difference(&shown).collect();
    assert!(missing.is_empty(), "no panel shows {missing:?}");
}

/// Returns the alerts with their fields, which have lines of their own.
fn alerts() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut alerts: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut name = String::new();
    for line in ALERTS.lines().filter(|line| line.starts_with("      ")) {
        let (field, value) = line.trim().trim_start_matches("- ").split_once(':').expect("a field");
        let value = value.trim().trim_matches('\'').replace("''", "'");
        if field == "alert" {
            name.clone_from(&value);
            assert!(alerts.insert(value, BTreeMap::new()).is_none(), "{name} is there twice");
        } else if let Some(fields) = alerts.get_mut(&name) {
            assert!(fields.insert(field.to_owned(), value).is_none(), "{name}: {field} twice");
        }
    }
    alerts
}

#[tokio::test]
async fn alerts_use_existing_metrics_and_link_to_the_manual() {
    let (_world, _remote, server) = replicated().await;
    let (metrics, _) = scrape(&server).await;
    let alerts = alerts();
    assert_eq!(alerts.len(), ALERTS.matches("- alert:").count());
    let runbook = MANUAL.split("\n## Runbook\n").nth(1).expect("the manual has a runbook");
    let runbook = runbook.split("\n## ").next().unwrap_or_default();
    let sections: BTreeMap<&str, &str> =
        runbook.split("\n### ").skip(1).filter_map(|section| section.split_once('\n')).collect();
    for (name, fields) in &alerts {
        let field = |field: &str| {
            fields.get(field).unwrap_or_else(|| panic!("{name} has no {field}")).as_str()
        };
        check_expression(&metrics, field("expr"));
        assert!(["critical", "warning"].contains(&field("severity")), "{name}");
        assert!(!field("for").is_empty() && !field("summary").is_empty(), "{name}");
        assert!(field("description").ends_with('.'), "{name}");
        let anchor = format!("tools/OPERATING.md#{}", name.to_lowercase());
        assert_eq!(field("runbook_url"), anchor);
        let section = sections.get(&**name).unwrap_or_else(|| panic!("no section on {name}"));
        for part in ["**Means:**", "**Look at:**", "**Do:**"] {
            assert!(section.contains(part), "{name}: {part}");
        }
    }
    let names: BTreeSet<&str> = alerts.keys().map(String::as_str).collect();
    let documented: BTreeSet<&str> = sections.keys().copied().collect();
    assert_eq!(documented, names, "sections of the runbook and alerts");
}
