//! Classification of rejected requests.
//!
//! Guarantees: every code and rate limit maps to one of a fixed set of reasons. Non-goals: which requests are rejected.

use crate::registry::names;

names! {
    /// Reason of a 429 response.
    Limited {
        Uploads = "uploads",
        Management = "management",
        Address = "address",
        FailedAuth = "failed_auth",
        SignIn = "sign_in",
        Pictures = "pictures",
        OpenUploads = "open_uploads",
        OpenJobs = "open_jobs",
        Other = "other",
    }
}

names! {
    /// Reason of a rejection by authentication or authorization.
    AuthFailure {
        NoKey = "no_key",
        Key = "key",
        Session = "session",
        Password = "password",
        Token = "token",
        MetricsToken = "metrics_token",
        CrossSite = "cross_site",
        Suspended = "suspended",
        Plan = "plan",
        Forbidden = "forbidden",
    }
}

impl Limited {
    /// Classifies an error code, by the name of the rate limit if there is one.
    pub fn from_error_code(code: &str, policy: Option<&str>) -> Self {
        match (policy.unwrap_or_default(), code) {
            ("management" | "management-throttled", _) => Self::Management,
            ("address", _) => Self::Address,
            ("failed-auth", _) => Self::FailedAuth,
            ("sign-in-address" | "sign-in-name" | "sign-in-device", _) => Self::SignIn,
            ("pictures-address" | "pictures-bucket", _) => Self::Pictures,
            (policy, _) if policy.starts_with("upload-") => Self::Uploads,
            (_, "too_many_uploads") => Self::OpenUploads,
            (_, "too_many_jobs") => Self::OpenJobs,
            _ => Self::Other,
        }
    }
}

impl AuthFailure {
    /// Classifies an error code; `None` if it concerns neither authentication nor authorization.
    pub fn of(code: &str) -> Option<Self> {
        Some(match code {
            "missing_api_key" => Self::NoKey,
            "invalid_api_key" => Self::Key,
            "session_ended" => Self::Session,
            "wrong_password" => Self::Password,
            "token_not_found" | "token_expired" | "token_used" | "token_revoked" => Self::Token,
            "wrong_metrics_token" => Self::MetricsToken,
            "cross_site" => Self::CrossSite,
            "account_suspended" => Self::Suspended,
            "plan_required" => Self::Plan,
            "forbidden" => Self::Forbidden,
            _ => return None,
        })
    }
}
