//! Signed-in browser: a client with a session cookie, as a browser sends it from a same-origin page.
//!
//! Non-goals: what a browser displays.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};

use crate::{Client, Reply, World};

/// Host of every world's public address.
pub const HOST: &str = "cdn.example.com";
/// Name of the session cookie under https.
pub const COOKIE: &str = "__Host-trug-session";

/// A browser client.
#[derive(Clone)]
pub struct Browser {
    client: Client,
    /// Secret of its session.
    pub secret: Option<String>,
}

impl Browser {
    /// Creates a browser without a session.
    pub fn of(world: &World) -> Self {
        Self::with(world.anonymous())
    }

    /// Creates a browser that sends requests as this client does, with its key.
    pub fn with(client: Client) -> Self {
        Self { client, secret: None }
    }

    /// Returns a copy with the secret of another session, or of none.
    pub fn holding(&self, secret: Option<String>) -> Self {
        Self { secret, client: self.client.clone() }
    }

    /// Creates a browser signed in to the account, and sets the account's password first.
    pub async fn signed_in(world: &World, account: &str) -> Self {
        world.set_password(account, PASSWORD);
        let mut browser = Self::of(world);
        assert_eq!(browser.sign_in(account, PASSWORD).await.status, 200);
        browser
    }

    pub async fn sign_in(&mut self, name: &str, password: &str) -> Reply {
        let body = json!({"name": name, "password": password});
        self.request(Method::POST, "/-/session", Some(body)).await
    }

    pub async fn get(&mut self, path: &str) -> Reply {
        self.request(Method::GET, path, None).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Reply {
        self.request(Method::POST, path, Some(body)).await
    }

    pub async fn put(&mut self, path: &str, body: Value) -> Reply {
        self.request(Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Reply {
        self.request(Method::DELETE, path, None).await
    }

    /// Whether the server reports it as signed in.
    pub async fn is_signed_in(&mut self) -> bool {
        let reply = self.get("/-/session").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["signedIn"] == true
    }

    /// Sends a request like a same-origin page. A cookie in the response is stored.
    pub async fn request(&mut self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let own = [("sec-fetch-site", "same-origin")];
        self.request_with(method, path, &own, body).await
    }

    /// Sends a request with headers other than those of a same-origin page.
    pub async fn request_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Reply {
        let cookie = self.secret.as_ref().map(|secret| format!("a=b; {COOKIE}={secret}"));
        let mut headers = headers.to_vec();
        if !headers.iter().any(|(name, _)| *name == "host") {
            headers.push(("host", HOST));
        }
        headers.push(("user-agent", "Mozilla/5.0 (a browser)"));
        headers.extend(cookie.as_deref().map(|cookie| ("cookie", cookie)));
        let body = match body {
            Some(body) => {
                headers.push(("content-type", "application/json"));
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        let reply = self.client.send(method, path, &headers, body).await;
        if let Some(rest) = reply.header("set-cookie").strip_prefix(&format!("{COOKIE}=")) {
            let secret = rest.split(';').next().unwrap_or_default();
            self.secret = (!secret.is_empty()).then(|| secret.to_owned());
        }
        reply
    }
}

/// A valid password.
pub const PASSWORD: &str = "correct horse battery";
