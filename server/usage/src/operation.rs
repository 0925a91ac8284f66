//! Operations, by which requests are counted.
//!
//! Guarantees: a fixed set of operations; a rejected request counts for its intended operation. Non-goals: the
//! operations of routes, which the route table names.

use http::Method;

use crate::registry::names;

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
const TRANSFORM_PARAMS: &[&str] = &[
    "format", "fm", "f", "output", "width", "w", "height", "h", "quality", "q", "fit", "resize",
    "dpr",
];

impl Operation {
    /// Returns the operation of a GET or HEAD of a file.
    pub fn for_delivery(query: Option<&str>) -> Self {
        let Some(query) = query else { return Self::Deliver };
        let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(""));
        if names.any(|name| TRANSFORM_PARAMS.contains(&name)) {
            Self::Picture
        } else {
            Self::Deliver
        }
    }

    /// Returns the operation of a signed S3 request.
    pub fn for_s3(method: &Method, path: &str) -> Self {
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

    /// Returns whether a request of this operation uploads a file, or a part of one.
    pub fn is_upload(self, method: &Method) -> bool {
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
    fn s3_requests_map_to_operations() {
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
            let operation = Operation::for_s3(&method, address);
            assert_eq!(operation.name(), name, "{method} {address}");
        }
    }

    #[test]
    fn delivery_with_transform_is_an_image_operation() {
        for query in [None, Some(""), Some("v=3"), Some("download"), Some("xwidth=3&token=w")] {
            assert_eq!(Operation::for_delivery(query), Operation::Deliver, "{query:?}");
        }
        for query in ["w=3", "v=3&format=webp", "dpr"] {
            assert_eq!(Operation::for_delivery(Some(query)), Operation::Picture, "{query}");
        }
    }

    #[test]
    fn upload_operations_are_classified() {
        assert!(Operation::Upload.is_upload(&Method::PUT));
        assert!(Operation::Tus.is_upload(&Method::PATCH));
        assert!(!Operation::Tus.is_upload(&Method::HEAD));
        assert!(!Operation::Manage.is_upload(&Method::POST));
    }
}
