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

impl Operation {
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
    fn upload_operations_are_classified() {
        assert!(Operation::Upload.is_upload(&Method::PUT));
        assert!(Operation::Tus.is_upload(&Method::PATCH));
        assert!(!Operation::Tus.is_upload(&Method::HEAD));
        assert!(!Operation::Manage.is_upload(&Method::POST));
    }
}
