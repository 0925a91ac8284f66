//! The number of series is bounded, whatever clients send, and no series names an account.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Method;
use tests::OpenMetrics;

use super::{config, listening, scrape};

fn names(metrics: &OpenMetrics) -> BTreeSet<String> {
    metrics.series().into_keys().collect()
}

#[tokio::test]
async fn metrics_label_cardinality_is_bounded() {
    let (world, client, server) = listening(config(&[])).await;
    let (before, _) = scrape(&server).await;
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW", "SECRET1"];
    let places = ["/photos/", "/bucket-", "/api/", "/-/", "/api/tus/", "/api/search/", "/"];
    for at in 0..1_000 {
        let method = Method::from_bytes(methods[at % methods.len()].as_bytes()).unwrap();
        let place = places[at % places.len()];
        let path = format!("{place}secret{at}.png?width={at}&secret{at}={at}&format=secret{at}");
        let key = format!("Bearer trug_secret{at}");
        let headers = [("authorization", &*key), ("user-agent", "secret\"\\n")];
        world.anonymous().send(method, &path, &headers, Body::empty()).await;
    }
    for at in 0..20 {
        client.upload_file("/photos/", &format!("secret{at}.txt"), b"1").await.check_done();
        world.account(&format!("secret{at}"));
    }
    let (after, _) = scrape(&server).await;
    assert_eq!(names(&after), names(&before));
    for series in names(&after) {
        assert!(!series.contains("secret") && !series.contains("photos"), "{series}");
    }
    let answered = after.series().into_iter().filter(|(name, _)| {
        name.starts_with("trug_http_requests_total") && !name.contains("op=\"metrics\"")
    });
    assert_eq!(answered.map(|(_, value)| value).sum::<f64>(), 1_020.0);
    // Few enough to be scraped every few seconds.
    assert!(names(&after).len() < 1_000, "{}", names(&after).len());
}
