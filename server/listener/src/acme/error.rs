//! Errors of certificate orders, with advice for the operator.
//!
//! Non-goals: reactions to errors.

use std::fmt;

use instant_acme::{Error, Problem};

/// Failed order.
#[derive(Debug)]
pub(super) struct AcmeError {
    why: String,
    /// Advice, if there is any.
    advice: Option<&'static str>,
    /// Whether the certification authority does not know the account.
    pub(super) is_unknown_account: bool,
}

/// Prefix of all ACME problem types (RFC 8555 section 6.7).
const KIND: &str = "urn:ietf:params:acme:error:";

impl AcmeError {
    pub(super) fn new(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), advice: None, is_unknown_account: false }
    }

    /// Converts a problem of the certification authority, about one name or the whole order.
    pub(super) fn from_acme(problem: &Problem, name: Option<&str>) -> Self {
        let kind = problem.r#type.as_deref().unwrap_or_default();
        let kind = kind.strip_prefix(KIND).unwrap_or(kind);
        let detail = problem.detail.as_deref().unwrap_or("no details given");
        let mut why = name.map(|name| format!("{name}: ")).unwrap_or_default();
        why.push_str(&format!("{detail} ({kind})"));
        for part in &problem.subproblems {
            why.push_str(&format!("; {part}"));
        }
        Self { why, advice: advice(kind), is_unknown_account: kind == "accountDoesNotExist" }
    }
}

/// Returns the advice for a problem type.
fn advice(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "connection" | "tls" | "unauthorized" | "incorrectResponse" => {
            "port 443 of the domain must reach this server without TLS termination in between"
        }
        "dns" => "the ACME server cannot resolve the domain: check its DNS records",
        "rateLimited" => {
            "the ACME server's rate limit is exceeded: wait, and use its staging directory for \
            tests"
        }
        "rejectedIdentifier" | "caa" => {
            "the ACME server does not issue certificates for this domain: check acme_domains and \
            the CAA records in DNS"
        }
        "externalAccountRequired" => {
            "the ACME server requires external account binding, which is not supported: set \
            another acme_directory"
        }
        "invalidContact" | "unsupportedContact" => "check acme_contact",
        _ => return None,
    })
}

impl From<Error> for AcmeError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::from_acme(&problem, None),
            Error::Timeout(_) => Self::new("the ACME server did not finish in time"),
            error => Self::new(error),
        }
    }
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acme_errors_name_the_domain_and_a_remedy() {
        let problem = |kind: &str| {
            let text = format!(r#"{{"type":"{KIND}{kind}","detail":"it is so","status":400}}"#);
            serde_json::from_str::<Problem>(&text).unwrap()
        };
        let message = AcmeError::from_acme(&problem("dns"), Some("a.example")).to_string();
        assert!(
            message.starts_with("a.example: it is so (dns); the ACME server cannot resolve"),
            "{message}"
        );
        assert_eq!(
            AcmeError::from_acme(&problem("malformed"), None).to_string(),
            "it is so (malformed)"
        );
        assert!(AcmeError::from_acme(&problem("accountDoesNotExist"), None).is_unknown_account);
        let empty: Problem = serde_json::from_str("{}").unwrap();
        assert_eq!(AcmeError::from_acme(&empty, None).to_string(), "no details given ()");
    }
}
