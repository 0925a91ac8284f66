//! Classification of requests by operation, from the method and the first path segments.
//!
//! Guarantees: a fixed set of operations; the classification precedes all lookups, so that a rejected request counts
//! for its intended operation. Non-goals: authorization.

use http::Method;

use super::names;
use crate::reserved;

names! {
    /// Operation of a request.
    Operation {
        Deliver = "deliver",
        Picture = "picture",
        Upload = "upload",
        Tus = "tus",
        Delete = "delete",
        List = "list",
        Search = "search",
        Presign = "presign",
        Manage = "manage",
        Session = "session",
        Dashboard = "dashboard",
        Docs = "docs",
        Health = "health",
        Metrics = "metrics",
        Preflight = "preflight",
        Other = "other",
    }
}

/// Query parameters of image transformations.
const PICTURE: &[&str] = &[
    "format", "fm", "f", "output", "width", "w", "height", "h", "quality", "q", "fit", "resize",
    "dpr",
];

impl Operation {
    /// Returns the operation of a GET or HEAD of a file.
    pub fn of_delivery(query: Option<&str>) -> Self {
        let Some(query) = query else { return Self::Deliver };
        let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
        if names.any(|name| PICTURE.contains(&name)) { Self::Picture } else { Self::Deliver }
    }

    /// Returns the operation of any other request.
    pub fn of(method: &Method, path: &str) -> Self {
        if method == Method::OPTIONS {
            return Self::Preflight;
        }
        let mut components = path.trim_start_matches('/').split('/');
        let first = components.next().unwrap_or("");
        let second = components.next().unwrap_or("");
        let third = components.next().unwrap_or("");
        match first {
            "" => Self::Dashboard,
            reserved::API => Self::of_api(method, second, third, components.next()),
            reserved::OWN => Self::of_own(second),
            _ if method == Method::POST || method == Method::PUT => Self::Upload,
            _ if method == Method::DELETE => Self::Delete,
            _ => Self::Other,
        }
    }

    /// Returns the operation of a signed S3 request.
    pub fn of_signed(method: &Method, path: &str) -> Self {
        let names_a_file =
            path.trim_start_matches('/').split_once('/').is_some_and(|it| !it.1.is_empty());
        match *method {
            Method::GET | Method::HEAD if names_a_file => Self::Deliver,
            Method::GET | Method::HEAD => Self::List,
            Method::POST if !names_a_file => Self::Delete,
            Method::DELETE => Self::Delete,
            Method::PUT if !names_a_file => Self::Manage,
            Method::POST | Method::PUT => Self::Upload,
            _ => Self::Other,
        }
    }

    fn of_api(method: &Method, second: &str, third: &str, fourth: Option<&str>) -> Self {
        match (second, third, fourth) {
            ("presigned-url", "", _) => Self::Presign,
            ("presigned-url", _, _) if method == Method::POST => Self::Upload,
            ("buckets", _, Some("download-links")) => Self::Presign,
            ("list-objects", ..) => Self::List,
            ("search", ..) => Self::Search,
            ("tus", ..) => Self::Tus,
            ("", ..) => Self::Other,
            _ => Self::Manage,
        }
    }

    fn of_own(second: &str) -> Self {
        match second {
            "session" | "sessions" | "password" | "set-up" | "invitation" => Self::Session,
            "openapi.json" | "docs" | "integrations" => Self::Docs,
            "health" | "ready" => Self::Health,
            "metrics" => Self::Metrics,
            _ => Self::Dashboard,
        }
    }

    /// Returns whether a request of this operation uploads a file, or a part of one.
    pub fn brings_a_file(self, method: &Method) -> bool {
        match self {
            Self::Upload => true,
            Self::Tus => method == Method::POST || method == Method::PATCH,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_its_operation() {
        for (method, path, name) in [
            ("POST", "/photos/a.png", "upload"),
            ("POST", "/photos", "upload"),
            ("PUT", "/photos/a.png", "upload"),
            ("POST", "/api/presigned-url/abc", "upload"),
            ("GET", "/api/presigned-url", "presign"),
            ("POST", "/api/buckets/photos/download-links", "presign"),
            ("GET", "/api/buckets/photos/folders", "manage"),
            ("DELETE", "/photos/a/", "delete"),
            ("GET", "/api/list-objects", "list"),
            ("GET", "/api/search/photos", "search"),
            ("PATCH", "/api/tus/abc", "tus"),
            ("GET", "/api/keys", "manage"),
            ("GET", "/api", "other"),
            ("GET", "/-/session", "session"),
            ("PUT", "/-/password", "session"),
            ("GET", "/", "dashboard"),
            ("GET", "/-/files/photos/", "dashboard"),
            ("GET", "/-/docs", "docs"),
            ("GET", "/-/ready", "health"),
            ("GET", "/-/metrics", "metrics"),
            ("OPTIONS", "/photos/a.png", "preflight"),
            ("BREW", "/photos/a.png", "other"),
            ("PATCH", "/photos/a.png", "other"),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(Operation::of(&method, path).name(), name, "{method} {path}");
        }
    }

    #[test]
    fn signed_requests_have_the_operations_of_what_they_do() {
        for (method, address, name) in [
            ("GET", "/photos/a.png", "deliver"),
            ("GET", "/", "list"),
            ("GET", "/photos/", "list"),
            ("PUT", "/photos", "manage"),
            ("PUT", "/photos/a.png", "upload"),
            ("POST", "/photos/a.png", "upload"),
            ("POST", "/photos/", "delete"),
            ("DELETE", "/photos/a.png", "delete"),
            ("BREW", "/photos/a.png", "other"),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let operation = Operation::of_signed(&method, address);
            assert_eq!(operation.name(), name, "{method} {address}");
        }
    }

    #[test]
    fn a_delivery_is_one_of_a_picture_by_what_is_asked_of_it() {
        for query in [None, Some(""), Some("v=3"), Some("download"), Some("xwidth=3&token=w")] {
            assert_eq!(Operation::of_delivery(query), Operation::Deliver, "{query:?}");
        }
        for query in ["w=3", "v=3&format=webp", "dpr"] {
            assert_eq!(Operation::of_delivery(Some(query)), Operation::Picture, "{query}");
        }
    }

    #[test]
    fn what_brings_bytes_is_an_upload() {
        assert!(Operation::Upload.brings_a_file(&Method::PUT));
        assert!(Operation::Tus.brings_a_file(&Method::PATCH));
        assert!(!Operation::Tus.brings_a_file(&Method::HEAD));
        assert!(!Operation::Manage.brings_a_file(&Method::POST));
    }
}
