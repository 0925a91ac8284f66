//! Why requests were refused, as far as that is counted apart.
//!
//! Promises: one of a few for every code and policy that there is. Never here: which requests are refused.

use super::names;

names! {
    /// Why a request was one too many: 429.
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
    /// Why a request was refused for who sent it.
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
    /// Why a refusal of this code is one, by the name of the policy where there is one.
    pub fn of(code: &str, policy: Option<&str>) -> Self {
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
    /// What a refusal of this code is; `None` where it is not about who sent the request.
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
