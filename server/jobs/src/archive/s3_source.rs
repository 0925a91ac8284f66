//! Remote bucket of an S3 service: paged listing, and objects.
//!
//! Guarantees: credentials are sent only as a signature, in a header, to the configured host; redirects are not
//! followed; at most one page of the listing is in memory. A listing that repeats itself is aborted. Non-goals:
//! selection and processing of the objects.
//!
//! Not `object_store` (0.14): its listing fails at the first key with an empty or `..` path segment, and an import
//! rejects only that object (`import_from_s3_rejects_only_invalid_keys`).

mod answer;
mod signature;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use engine::clock::{Clock, SystemClock};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, IF_MATCH};
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use outbound::{FetchedFile, OutboundClient};
use percent_encoding::percent_decode_str;
use protocol::destination::OutboundUrl;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

pub(super) use self::answer::ListedObject;
use self::answer::{Page, Refusal, clean, page, refusal};
use self::signature::{NO_BODY, Unsigned, authorization, escaped};
use super::ImportNetworkPolicy;
use super::retry::{DownloadFailure, Tries, requested_delay};
use crate::archive::limits;

/// Remote bucket and its access parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketSource {
    /// URL `https://host/bucket/prefix`; in virtual-hosted style, `https://bucket.host/prefix`.
    pub address: String,
    pub is_virtual_hosted: bool,
    pub region: String,
    /// Credentials; requests are anonymous without them.
    pub credentials: Option<Credentials>,
    pub reach: ImportNetworkPolicy,
}

/// Signing credentials. Only the id is ever displayed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

/// Validated remote bucket.
#[derive(Clone)]
pub(super) struct Bucket(Arc<Inner>);

struct Inner {
    outbound: OutboundClient,
    host: OutboundUrl,
    /// Path prefix before a key, escaped.
    root: String,
    prefix: String,
    region: String,
    credentials: Option<Credentials>,
}

/// Listing in progress.
pub(super) struct Listing {
    bucket: Bucket,
    next: Next,
    pages: u64,
    /// An earlier page: the 1st, 2nd, 4th, 8th and so on. A listing that loops reaches it again (R. P. Brent, 1980);
    /// this assumes no key order, which some services do not guarantee.
    mark: Mark,
    /// Consecutive pages without a file.
    barren_pages: u32,
}

/// Identity of a page.
#[derive(Default)]
struct Mark {
    next: Option<String>,
    first_key: Option<Vec<u8>>,
}

enum Next {
    First,
    Token(String),
    End,
}

impl BucketSource {
    /// Validates the parameters; the error is a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.open().map(drop)
    }

    pub(super) fn open(&self) -> Result<Bucket, String> {
        let host = OutboundUrl::parse(&self.address);
        let host = host.map_err(|why| format!("the bucket URL {why}"))?;
        if self.address.contains('?') {
            return Err("the bucket URL must have no query".to_owned());
        }
        let path = percent_decode_str(host.path().path().trim_start_matches('/'));
        let path = path.decode_utf8().map_err(|_| "the bucket URL is not UTF-8")?;
        let (root, prefix) = match self.is_virtual_hosted {
            true => (String::new(), path.into_owned()),
            false => {
                let (name, prefix) = path.split_once('/').unwrap_or((&path, ""));
                let is_name = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
                if !name.bytes().all(is_name) || name.is_empty() || matches!(name, "." | "..") {
                    let why = "the URL names no bucket: use https://HOST/BUCKET, or \
                        https://BUCKET.HOST with --virtual-hosted";
                    return Err(why.to_owned());
                }
                (format!("/{name}"), prefix.to_owned())
            }
        };
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic());
        if !is_word(&self.region) || self.region.contains(['/', ',']) {
            return Err("invalid region".to_owned());
        }
        if let Some(it) = &self.credentials {
            let token = it.session_token.as_deref().unwrap_or("none");
            if !is_word(&it.access_key_id) || it.access_key_id.contains(['/', ',']) {
                return Err("invalid access key ID".to_owned());
            }
            if !is_word(&it.secret_access_key) || !is_word(token) {
                return Err(
                    "the secret access key or session token is empty or contains spaces".to_owned()
                );
            }
        }
        let outbound = self.reach.outbound()?;
        let (region, credentials) = (self.region.clone(), self.credentials.clone());
        Ok(Bucket(Arc::new(Inner { outbound, host, root, prefix, region, credentials })))
    }
}

impl Bucket {
    pub(super) fn listing(&self) -> Listing {
        let (bucket, mark) = (self.clone(), Mark::default());
        Listing { bucket, next: Next::First, pages: 0, mark, barren_pages: 0 }
    }

    /// Downloads a listed object, in its current version.
    pub(super) async fn object(
        &self,
        listed: &ListedObject,
    ) -> Result<FetchedFile, DownloadFailure> {
        let key =
            str::from_utf8(&listed.key).map_err(|_| DownloadFailure::lasting("it is not UTF-8"))?;
        let path = format!("{}/{}", self.0.root, escaped(key, true));
        match self.get(&path, "", listed.etag.as_deref()).await {
            Err((StatusCode::PRECONDITION_FAILED, _)) => self.get(&path, "", None).await,
            answered => answered,
        }
        .map_err(|(_, fault)| fault)
    }

    async fn page(&self, token: Option<&str>) -> Result<Page, DownloadFailure> {
        let mut query = String::new();
        if let Some(token) = token {
            query = format!("continuation-token={}&", escaped(token, false));
        }
        query.push_str("encoding-type=url&list-type=2&max-keys=1000&prefix=");
        query.push_str(&escaped(&self.0.prefix, false));
        let path = if self.0.root.is_empty() { "/" } else { &self.0.root };
        let answered = self.get(path, &query, None).await.map_err(|(_, fault)| fault)?;
        let (_, body) = answered.into_parts();
        let (xml, is_whole) = beginning(body, limits::IMPORT_PAGE_BYTES_MAX).await?;
        if !is_whole {
            let max = limits::IMPORT_PAGE_BYTES_MAX;
            return Err(DownloadFailure::lasting(format!(
                "a page of the listing has more than {max} bytes"
            )));
        }
        page(&xml)
            .map_err(|why| DownloadFailure::lasting(format!("the listing cannot be read: {why}")))
    }

    /// Sends a GET request. Path and query are escaped.
    async fn get(
        &self,
        path: &str,
        query: &str,
        etag: Option<&str>,
    ) -> Result<FetchedFile, (StatusCode, DownloadFailure)> {
        let inner = &self.0;
        let never = |why: &str| (StatusCode::BAD_REQUEST, DownloadFailure::lasting(why));
        let mark = if query.is_empty() { "" } else { "?" };
        let target = PathAndQuery::try_from(format!("{path}{mark}{query}"));
        let target = target.map_err(|_| never("its name is too long for a URL"))?;
        let at = inner.host.at(target);
        let mut headers = HeaderMap::new();
        if let Some(etag) = etag.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert(IF_MATCH, etag);
        }
        if let Some(credentials) = &inner.credentials {
            let time = time_text(SystemClock::default().unix_ms());
            let mut signed = vec![
                ("host", at.authority()),
                ("x-amz-content-sha256", NO_BODY),
                ("x-amz-date", &time),
            ];
            signed.extend(
                credentials.session_token.as_deref().map(|it| ("x-amz-security-token", it)),
            );
            let (time, region) = (time.as_str(), inner.region.as_str());
            let request = Unsigned { path, query, headers: &signed, time, region };
            let signature = authorization(&request, credentials);
            let others = signed.iter().skip(1).map(|(name, value)| (*name, *value));
            for (name, value) in others.chain([(AUTHORIZATION.as_str(), &*signature)]) {
                let value = HeaderValue::from_str(value);
                let mut value = value.map_err(|_| {
                    never("the credentials contain characters that a header cannot have")
                })?;
                value.set_sensitive(true);
                let name = HeaderName::from_bytes(name.as_bytes());
                headers.insert(name.map_err(|_| never("a header has no name"))?, value);
            }
        }
        let answered = inner.outbound.fetch_once(&at, headers).await;
        let (status, retry_after, fetched) =
            answered.map_err(|error| (StatusCode::BAD_GATEWAY, error.into()))?;
        if status == StatusCode::OK {
            return Ok(fetched);
        }
        let (headers, body) = fetched.into_parts();
        let read = beginning(body, limits::IMPORT_REFUSAL_BYTES_MAX).await;
        let refusal = refusal(&read.map(|(xml, _)| xml).unwrap_or_default());
        let rest = requested_delay(retry_after);
        Err((status, DownloadFailure { rest, ..refused(status, &headers, refusal) }))
    }
}

impl Listing {
    /// Returns the next page; `None` after the last one. The error is a sentence.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<ListedObject>>, String> {
        let token = match &self.next {
            Next::First => None,
            Next::Token(token) => Some(token.clone()),
            Next::End => return Ok(None),
        };
        let mut tries = Tries::begin();
        let page = loop {
            match self.bucket.page(token.as_deref()).await {
                Ok(page) => break page,
                Err(fault) => tries.rest_after(fault).await?,
            }
        };
        let first_key = page.objects.first().map(|it| &it.key);
        let is_seen_again = page.next.is_some() && page.next == self.mark.next
            || first_key.is_some() && first_key == self.mark.first_key.as_ref();
        if is_seen_again {
            return Err("the listing repeats its continuation token".into());
        }
        self.pages += 1;
        if self.pages.is_power_of_two() {
            self.mark = Mark { next: page.next.clone(), first_key: first_key.cloned() };
        }
        let has_files = page.objects.iter().any(|it| !it.is_folder());
        self.barren_pages = if has_files { 0 } else { self.barren_pages + 1 };
        if self.barren_pages > limits::IMPORT_BARREN_PAGES_MAX {
            return Err("the listing has too many empty pages".into());
        }
        self.next = page.next.map_or(Next::End, Next::Token);
        Ok(Some(page.objects))
    }
}

/// Converts an error response.
fn refused(status: StatusCode, headers: &HeaderMap, refusal: Refusal) -> DownloadFailure {
    let Refusal { code, message, region } = refusal;
    let said = headers.get("x-amz-bucket-region").and_then(|it| it.to_str().ok()).map(clean);
    let region = said.filter(|it| !it.is_empty()).unwrap_or(region);
    let mut why = format!("the S3 server responded with {}", status.as_u16());
    for (mark, part) in [(" ", &code), (": ", &message)] {
        if !part.is_empty() {
            why.push_str(mark);
            why.push_str(part);
        }
    }
    let is_elsewhere = status.is_redirection()
        || matches!(&*code, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException");
    if is_elsewhere && !region.is_empty() {
        why.push_str(&format!(
            "; the bucket is in region {region}: use --region {region} and its endpoint"
        ));
    } else if status.is_redirection() {
        why.push_str("; redirects are not followed");
    }
    let waits = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    let passes = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || waits.contains(&status)
        || matches!(&*code, "SlowDown" | "RequestTimeout" | "InternalError" | "ServiceUnavailable");
    if passes { DownloadFailure::passing(why) } else { DownloadFailure::lasting(why) }
}

/// Returns the start of a body, and whether it is complete.
async fn beginning(
    mut body: impl Body<Data = Bytes, Error = hyper::Error> + Unpin,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), DownloadFailure> {
    let mut beginning = Vec::new();
    let read = timeout(limits::IMPORT_PAGE_WAIT, async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| {
                DownloadFailure::passing(format!("the response was interrupted: {why}"))
            })?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            let room = bytes_max - beginning.len();
            beginning.extend(data.iter().take(room));
            if data.len() > room {
                return Ok::<_, DownloadFailure>(false);
            }
        }
        Ok(true)
    });
    let is_whole = read.await.map_err(|_| DownloadFailure::passing("the response timed out"))??;
    Ok((beginning, is_whole))
}

/// Formats a time as in `x-amz-date`.
fn time_text(unix_ms: u64) -> String {
    let time =
        i64::try_from(unix_ms).ok().and_then(|it| jiff::Timestamp::from_millisecond(it).ok());
    time.unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, ...)", self.access_key_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(address: &str, is_virtual_hosted: bool) -> BucketSource {
        let credentials = Credentials {
            access_key_id: "AKID".into(),
            secret_access_key: "hush".into(),
            session_token: Some("mum".into()),
        };
        BucketSource {
            address: address.to_owned(),
            is_virtual_hosted,
            region: "us-east-1".to_owned(),
            credentials: Some(credentials),
            reach: ImportNetworkPolicy::default(),
        }
    }

    #[test]
    fn bucket_url_names_a_bucket_and_prefix() {
        for (address, is_virtual_hosted, root, prefix) in [
            ("https://a/pics", false, "/pics", ""),
            ("https://a/pics/", false, "/pics", ""),
            ("http://a:9000/pics/2019/a%20b", false, "/pics", "2019/a b"),
            ("https://pics.a", true, "", ""),
            ("https://pics.a/2019/", true, "", "2019/"),
        ] {
            let bucket = source(address, is_virtual_hosted).open().unwrap();
            assert_eq!((&*bucket.0.root, &*bucket.0.prefix), (root, prefix), "{address}");
        }
        for bad in [
            "https://a",
            "https://a/",
            "a/b",
            "https://a/b?c",
            "https://a/%2e%2e/x",
            "https://a/a%20b",
        ] {
            assert!(source(bad, false).check().is_err(), "{bad}");
        }
        for region in ["", "a b", "a/b"] {
            let source = BucketSource { region: region.to_owned(), ..source("https://a/b", false) };
            assert!(source.check().is_err(), "{region}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!("{:?}", source("https://a/b", false));
        assert!(
            shown.contains("AKID") && !shown.contains("hush") && !shown.contains("mum"),
            "{shown}"
        );
    }

    #[test]
    fn invalid_s3_response_states_reason_and_retryability() {
        let outcome = |status: u16, xml: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let fault = refused(status, &HeaderMap::new(), refusal(xml.as_bytes()));
            (fault.passes, fault.why)
        };
        let xml = "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>";
        let why = "the S3 server responded with 503 SlowDown: Reduce your rate";
        assert_eq!(outcome(503, xml), (true, why.to_owned()));
        assert_eq!(outcome(404, ""), (false, "the S3 server responded with 404".to_owned()));
        let xml = "<Error><Code>PermanentRedirect</Code><Region>eu-central-1</Region></Error>";
        let (passes, why) = outcome(301, xml);
        assert!(!passes && why.contains("--region eu-central-1"), "{why}");
        assert!(outcome(307, "").1.contains("redirects are not followed"));
        assert_eq!(time_text(1_369_353_600_000), "20130524T000000Z");
    }
}
