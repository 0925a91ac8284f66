//! Location of a remote store: URL, endpoint, region and credentials.
//!
//! Guarantees: errors name the rejected value, except for credentials, and say what is allowed.

use std::fmt;
use std::path::{Path, PathBuf};

use protocol::destination::OutboundUrl;

/// Location of a remote store, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteLocation {
    kind: Kind,
    /// Bucket or container; empty for a folder.
    container: String,
    /// Empty, or path segments that each end with `/`.
    prefix: String,
    /// Folder of the kind [`Kind::Folder`].
    folder: PathBuf,
    endpoint: Option<String>,
    region: Option<String>,
    credentials: Option<Credentials>,
}

/// Kind of a remote store, by the scheme of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    S3,
    GoogleCloud,
    Azure,
    Folder,
}

/// Credentials of a remote store. `Debug` shows none of them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Access key and secret key of S3, or account and key of Azure.
    Pair { id: String, secret: String },
    /// Service account of Google Cloud, in JSON.
    ServiceAccount(String),
}

/// Rejected URL, endpoint, region or credentials of a remote store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidLocation(String);

/// Allowed URLs, for errors.
const FORMS: &str =
    "use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///ABSOLUTE/FOLDER";

impl RemoteLocation {
    /// Parses a URL: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///absolute/folder`.
    ///
    /// Prefixes are optional and consist of path segments of letters, digits and `-._`; a final `/` has no meaning.
    pub fn parse(url: &str) -> Result<Self, InvalidLocation> {
        let unknown = || InvalidLocation(format!("{url:?} is no URL of a remote store: {FORMS}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
        let kind = match scheme {
            "s3" => Kind::S3,
            "gs" => Kind::GoogleCloud,
            "az" => Kind::Azure,
            "file" => return Self::parse_folder(url, rest),
            _ => return Err(unknown()),
        };
        let (container, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if container.is_empty() || !container.bytes().all(is_name) {
            let why = "the name of the bucket consists of letters, digits and -._";
            return Err(InvalidLocation(format!("{url:?} names no bucket: {why}")));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_segment =
            |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_name);
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            let why =
                "path segments consist of letters, digits and -._, and none is empty, . or ..";
            return Err(InvalidLocation(format!("{url:?} has an invalid prefix: {why}")));
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self::new(kind, container, prefix, PathBuf::new()))
    }

    fn parse_folder(url: &str, path: &str) -> Result<Self, InvalidLocation> {
        let folder = Path::new(path);
        let is_plain = !folder.components().any(|part| part.as_os_str() == "..");
        if !path.starts_with('/') || !is_plain || path.contains(['?', '#', '%']) {
            let why = "the folder of file:// is an absolute path without .. or ?, # and %";
            return Err(InvalidLocation(format!("{url:?} is no folder: {why}")));
        }
        Ok(Self::new(Kind::Folder, "", String::new(), folder.to_owned()))
    }

    fn new(kind: Kind, container: &str, prefix: String, folder: PathBuf) -> Self {
        let container = container.to_owned();
        Self { kind, container, prefix, folder, endpoint: None, region: None, credentials: None }
    }

    /// Sets the URL of the service, `http` or `https`: for a store other than that of the provider itself. For Azure it
    /// includes the account where the service requires it in the path.
    pub fn with_endpoint(self, url: &str) -> Result<Self, InvalidLocation> {
        if self.kind == Kind::Folder {
            return Err(InvalidLocation(format!("endpoint {url:?}: a folder has no endpoint")));
        }
        let refuse = |why: &dyn fmt::Display| InvalidLocation(format!("endpoint {url:?}: {why}"));
        OutboundUrl::parse(url).map_err(|why| refuse(&why))?;
        if url.contains('?') {
            return Err(refuse(&"it must have no query"));
        }
        Ok(Self { endpoint: Some(url.trim_end_matches('/').to_owned()), ..self })
    }

    /// Sets the region of an S3 store; `us-east-1` by default.
    pub fn with_region(self, region: &str) -> Result<Self, InvalidLocation> {
        if self.kind != Kind::S3 {
            return Err(InvalidLocation(format!("region {region:?}: only s3:// has regions")));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if region.is_empty() || !region.bytes().all(is_name) {
            let why = "a region consists of letters, digits and -_, such as eu-central-1";
            return Err(InvalidLocation(format!("region {region:?}: {why}")));
        }
        Ok(Self { region: Some(region.to_owned()), ..self })
    }

    /// Sets the credentials from the text of a file: two lines, access key and secret key for S3, account and key for
    /// Azure; the JSON of a service account for Google Cloud. Without credentials, those of the machine are used:
    /// environment variables of the provider's own tools, or its role.
    pub fn with_credentials(self, text: &str) -> Result<Self, InvalidLocation> {
        let [id, secret] = match self.kind {
            Kind::S3 => ["access key", "secret key"],
            Kind::Azure => ["account", "account key"],
            Kind::Folder => return Err(InvalidLocation("a folder takes no credentials".into())),
            Kind::GoogleCloud => {
                if !text.trim_start().starts_with('{') {
                    let why = "the credentials of gs:// are the JSON of a service account";
                    return Err(InvalidLocation(why.into()));
                }
                let credentials = Some(Credentials::ServiceAccount(text.to_owned()));
                return Ok(Self { credentials, ..self });
            }
        };
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let [first, second] = lines[..] else {
            let count = lines.len();
            let why = format!("the credentials have {count} lines, not two: {id} and {secret}");
            return Err(InvalidLocation(why));
        };
        let pair = Credentials::Pair { id: first.to_owned(), secret: second.to_owned() };
        Ok(Self { credentials: Some(pair), ..self })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn container(&self) -> &str {
        &self.container
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

/// Writes the URL, in its canonical form.
impl fmt::Display for RemoteLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            Kind::S3 => "s3",
            Kind::GoogleCloud => "gs",
            Kind::Azure => "az",
            Kind::Folder => return write!(f, "file://{}", self.folder.display()),
        };
        write!(f, "{scheme}://{}/{}", self.container, self.prefix)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl fmt::Display for InvalidLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidLocation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_url_is_parsed_to_its_canonical_form() {
        for (url, canonical, prefix) in [
            ("s3://pics", "s3://pics/", ""),
            ("s3://pics/", "s3://pics/", ""),
            ("s3://pics/trug/eu", "s3://pics/trug/eu/", "trug/eu/"),
            ("gs://pics.example/a_b/", "gs://pics.example/a_b/", "a_b/"),
            ("az://$web", "", ""),
            ("az://container/x", "az://container/x/", "x/"),
            ("file:///srv/remote", "file:///srv/remote", ""),
        ] {
            match RemoteLocation::parse(url) {
                Ok(location) => {
                    assert_eq!(
                        (location.to_string().as_str(), location.prefix()),
                        (canonical, prefix)
                    );
                }
                Err(error) => assert_eq!(canonical, "", "{error}"),
            }
        }
    }

    #[test]
    fn invalid_remote_urls_name_the_value_and_the_allowed_forms() {
        for (bad, part) in [
            ("", "s3://BUCKET/PREFIX"),
            ("pics", "s3://BUCKET/PREFIX"),
            ("https://s3.example.com/pics", "file:///ABSOLUTE/FOLDER"),
            ("s3://", "letters, digits"),
            ("s3:///x", "letters, digits"),
            ("s3://key:secret@pics/x", "letters, digits"),
            ("s3://pics//x", "none is empty"),
            ("s3://pics/../x", "none is empty"),
            ("s3://pics/a b", "path segments"),
            ("file://relative/x", "absolute path"),
            ("file:///srv/../etc", "absolute path"),
            ("file:///srv/a%20b", "absolute path"),
        ] {
            let error = RemoteLocation::parse(bad).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn endpoint_and_region_are_checked_against_the_kind() {
        let s3 = RemoteLocation::parse("s3://pics").unwrap();
        let at = s3.clone().with_endpoint("http://10.0.0.1:7480/").unwrap();
        assert_eq!(at.endpoint(), Some("http://10.0.0.1:7480"));
        for bad in ["", "rgw.example.com", "ftp://x", "https://a:b@x", "https://x/?y"] {
            assert!(s3.clone().with_endpoint(bad).is_err(), "{bad}");
        }
        assert_eq!(s3.clone().with_region("eu-central-1").unwrap().region(), Some("eu-central-1"));
        assert!(s3.clone().with_region("").is_err() && s3.with_region("a b").is_err());
        let folder = RemoteLocation::parse("file:///srv").unwrap();
        assert!(folder.clone().with_endpoint("http://x").is_err());
        assert!(
            folder.clone().with_region("x").is_err() && folder.with_credentials("a\nb").is_err()
        );
    }

    #[test]
    fn credentials_never_appear_in_debug_output_or_errors() {
        let s3 = RemoteLocation::parse("s3://pics").unwrap();
        let location = s3.clone().with_credentials("key-id-1\r\nsecret-1\n\n").unwrap();
        let pair = Credentials::Pair { id: "key-id-1".into(), secret: "secret-1".into() };
        assert_eq!(location.credentials(), Some(&pair));
        assert!(!format!("{location:?} {location}").contains("-1"));
        for bad in ["", "secret-1", "secret-1\nsecret-1\nsecret-1"] {
            let error = s3.clone().with_credentials(bad).unwrap_err().to_string();
            assert!(error.contains("access key and secret key") && !error.contains("secret-1"));
        }
        let gs = RemoteLocation::parse("gs://pics").unwrap();
        assert!(gs.clone().with_credentials("secret-1\nx").is_err());
        assert!(gs.with_credentials("{\"private_key\": \"secret-1\"}").is_ok());
    }
}
