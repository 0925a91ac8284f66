//! What tests start from: uploaded files, accounts with a key, private buckets, limited keys, servers with settings.
//!
//! Methods on the clients and environments of this crate, one for each step that several suites repeat.
//! Non-goals: checks of what a test is about; see `Reply`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use catalog::{Access, Actor, FairUseStanding, Password, PasswordHash, Plan, Role, Scope};
use engine::backup::BackupReport;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::history::{RestoreError, VersionEvent, VersionFilter, VersionScope, VersionState};
use engine::{Batch, PutOptions, Store};
use fuzz::model::{bucket, commit, name, stage};
use http::{Method, StatusCode};
use listener::options::ConnectionOptions;
use memchr::memmem;
use serde_json::Value;
use server::management::{
    AccountSettings, AdminRequest, AdminResponse, ApiKeyIssuedView, ApiKeySettings, BucketSettings,
    execute,
};
use service::state::AppState;

use crate::wire::Listening;
use crate::world::PUBLIC_URL;
use crate::{Client, Connection, DataFolder, Form, Ran, Reply, Response, ServerProcess, World};

/// Sends a management request as the operator of the machine.
pub fn manage(state: &AppState, request: AdminRequest) -> AdminResponse {
    let catalog = state.catalog.acting_as(Actor::operator());
    execute(&state.store, &catalog, request, &mut always_continue)
        .expect("the operator's request is done")
}

/// Creates an account; returns its id.
pub fn create_account(state: &AppState, name: &str, role: Role, plan: Plan) -> String {
    let (role, plan) = (Some(role), Some(plan));
    let settings = AccountSettings { role, plan, ..AccountSettings::default() };
    match manage(state, AdminRequest::CreateAccount { name: name.into(), settings }) {
        AdminResponse::Account(account) => account.id,
        other => panic!("an account was to be created, not {other:?}"),
    }
}

/// Creates an API key of an account.
pub fn create_key(state: &AppState, account: &str, settings: ApiKeySettings) -> ApiKeyIssuedView {
    match manage(state, AdminRequest::CreateApiKey { account: account.into(), settings }) {
        AdminResponse::ApiKeyIssued(issued) => issued,
        other => panic!("a key was to be issued, not {other:?}"),
    }
}

/// Sets the password of an account.
pub fn set_password(state: &AppState, account: &str, password: &str) {
    let password = Password::new_checked(password).expect("the password may be chosen");
    let password = PasswordHash::from_password(&password, &*state.rng).expect("it is hashed");
    manage(state, AdminRequest::SetPassword { account: account.into(), password });
}

/// Returns the settings of a key with these scopes.
pub fn key_with_scopes(scopes: &[Scope]) -> ApiKeySettings {
    ApiKeySettings { scopes: scopes.to_vec(), ..ApiKeySettings::default() }
}

/// Returns the settings of a key for one bucket.
pub fn key_of_bucket(bucket: &str) -> ApiKeySettings {
    ApiKeySettings { bucket: Some(bucket.to_owned()), ..ApiKeySettings::default() }
}

/// Returns the settings of a key for one folder of every bucket.
pub fn key_of_folder(folder: &str) -> ApiKeySettings {
    ApiKeySettings { prefix: Some(folder.to_owned()), ..ApiKeySettings::default() }
}

/// Returns the settings of a bucket whose files are not public.
pub fn private_bucket() -> BucketSettings {
    BucketSettings { access: Some(Access::Private), ..BucketSettings::default() }
}

/// Returns the path of a URL that the service generated.
pub fn path_of(url: &Value) -> String {
    let path = url.as_str().and_then(|url| url.strip_prefix(PUBLIC_URL));
    path.unwrap_or_else(|| panic!("not a URL of the service: {url}")).to_owned()
}

/// Returns a form with one file, without a declared type.
pub fn file_form(file_name: &str, bytes: &[u8]) -> Form {
    Form::new().file("file", file_name, None, bytes)
}

impl World {
    /// Creates an account; returns a client with a key of full access.
    pub fn account_with_key(&self, name: &str) -> Client {
        self.account(name);
        self.client_of(name, ApiKeySettings::default())
    }

    /// Ends public access to the files of a bucket.
    pub fn make_private(&self, bucket: &str) {
        self.edit_bucket(bucket, private_bucket());
    }

    /// Gives an account the role `operator`.
    pub fn make_operator(&self, account: &str) {
        let role = Some(Role::Operator);
        self.edit_account(account, AccountSettings { role, ..AccountSettings::default() });
    }

    /// Sets the plan and the fair-use standing of the account `ann`; `None` leaves a value as it is.
    pub fn edit_plan(&self, plan: Option<Plan>, standing: Option<FairUseStanding>) {
        self.edit_account("ann", AccountSettings { plan, standing, ..AccountSettings::default() });
    }

    /// Returns the number of thumbnails and cached image variants.
    pub fn derived_count(&self) -> u64 {
        self.store.stats().expect("stats can be read").derived_objects
    }

    /// Flips a bit of these bytes in the first segment that contains them.
    pub fn damage(&self, bytes: &[u8]) {
        damage(&self.disk, bytes);
    }

    /// Starts the service on a local socket.
    pub async fn listen(&self, options: ConnectionOptions) -> Listening {
        Listening::start(self.app(), options).await
    }

    /// Creates a service with the file `/photos/a.txt`, and starts it on a local socket.
    pub async fn listening(options: ConnectionOptions) -> (Self, Client, Listening) {
        let (world, client) = Self::with_bucket(1);
        client.put("/photos/", "a.txt", b"hello").await;
        let listening = world.listen(options).await;
        (world, client, listening)
    }
}

impl Client {
    /// Uploads one file, without a declared type.
    pub async fn upload_file(&self, path: &str, file_name: &str, bytes: &[u8]) -> Reply {
        self.upload(path, file_form(file_name, bytes)).await
    }

    /// Uploads one file, which must be stored.
    pub async fn put(&self, path: &str, file_name: &str, bytes: &[u8]) -> Value {
        let reply = self.upload_file(path, file_name, bytes).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        reply.json()
    }

    /// Returns the JSON body of a `GET` request, which must succeed.
    pub async fn get_json(&self, path: &str) -> Value {
        let reply = self.get(path).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends a request with a body of this type.
    pub async fn send_typed(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Reply {
        let headers = [("content-type", content_type)];
        self.send(method, path, &headers, Body::from(body.to_vec())).await
    }

    /// Sends a `POST` request without a body.
    pub async fn post(&self, path: &str) -> Reply {
        self.send(Method::POST, path, &[], Body::empty()).await
    }

    /// Returns all keys of the bucket `photos` that start with a prefix, from all pages.
    pub async fn list_keys(&self, prefix: &str) -> Vec<String> {
        let (mut keys, mut token) = (Vec::new(), Some(String::new()));
        while let Some(next) = token {
            let page = self.get(&list_path(prefix, &next)).await.json();
            token = add_page(&page, &mut keys);
        }
        keys
    }
}

impl Connection {
    /// Uploads one file, without a declared type.
    pub fn upload_file(&mut self, path: &str, name: &str, bytes: &[u8]) -> io::Result<Response> {
        self.upload(path, file_form(name, bytes))
    }

    /// Sends a request with a JSON body.
    pub fn post_json(&mut self, path: &str, body: &Value) -> io::Result<Response> {
        let headers = [("content-type", "application/json")];
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Returns all keys of the bucket `photos` that start with a prefix, from all pages.
    pub fn list_keys(&mut self, prefix: &str) -> Vec<String> {
        let (mut keys, mut token) = (Vec::new(), Some(String::new()));
        while let Some(next) = token {
            let page = self.get(&list_path(prefix, &next)).expect("it answers").json();
            token = add_page(&page, &mut keys);
        }
        keys
    }
}

fn list_path(prefix: &str, token: &str) -> String {
    let token = if token.is_empty() { token } else { &format!("&continuationToken={token}") };
    format!("/api/list-objects?bucketName=photos&prefix={prefix}{token}")
}

/// Adds the keys of a page; returns the continuation token.
fn add_page(page: &Value, keys: &mut Vec<String>) -> Option<String> {
    let contents = page["Contents"].as_array().expect("keys are listed").iter();
    keys.extend(contents.map(|it| it["Key"].as_str().expect("a key is text").to_owned()));
    page["NextContinuationToken"].as_str().map(str::to_owned)
}

impl ServerProcess {
    /// Waits for a printed line that starts with this text, and returns the address after it.
    pub fn printed_address(&self, start: &str) -> SocketAddr {
        let printed = self.wait_for_output(start);
        let address = printed.lines().find_map(|line| line.strip_prefix(start));
        address.and_then(|address| address.parse().ok()).expect("an address is printed")
    }

    /// Sends a `GET` request without a key over a new connection.
    pub fn get(&self, path: &str) -> Response {
        self.connect().get(path).expect("it answers")
    }

    /// Uploads one file over a new connection, without a declared type.
    pub fn upload(&self, key: &str, path: &str, file_name: &str, bytes: &[u8]) -> Response {
        let mut connection = self.connect().with_key(key);
        connection.upload_file(path, file_name, bytes).expect("it answers")
    }

    /// Uploads one file, which must be stored.
    pub fn put(&self, key: &str, path: &str, file_name: &str, bytes: &[u8]) -> Response {
        let answer = self.upload(key, path, file_name, bytes);
        assert_eq!(answer.status, 200, "{path} {file_name}: {}", answer.text());
        answer
    }
}

impl DataFolder {
    /// Starts a server on a free port with these environment variables, under the rate limits of the plans.
    pub fn serve_with_env(&self, variables: &[(&str, &str)]) -> ServerProcess {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        ServerProcess::start(command.envs(variables.iter().copied()))
    }

    /// Writes a file next to the data folder; returns its path.
    pub fn write_file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.parent().join(name);
        fs::write(&path, content).expect("the file can be written");
        path.into_os_string().into_string().expect("the path is text")
    }

    /// Imports an archive into the bucket `photos`.
    pub fn import_archive(&self, archive: &[u8], words: &[&str]) -> Ran {
        let path = self.write_file("in.tar", archive);
        self.run(&[&["import", "--bucket", "photos", "--from", &path], words].concat())
    }

    /// Exports the bucket `photos` to a folder next to the data folder; returns its path.
    pub fn export_files(&self, name: &str) -> PathBuf {
        let folder = self.parent().join(name);
        let to = format!("{}/", folder.display());
        self.done(&["export", "--bucket", "photos", "--to", &to]);
        folder
    }
}

/// Stores one small body under each of these keys, in one batch.
pub fn put_all(store: &Store, keys: &[&str]) {
    let staged = stage(store, b"x").expect("the body can be staged");
    let batch = keys.iter().fold(Batch::new(), |batch, key| {
        batch.put(name(key), staged.clone(), PutOptions::default())
    });
    commit(store, batch).expect("the batch is committed");
}

/// Returns the first segment that contains these bytes, and their offset.
pub fn find_bytes(disk: &SimDisk, bytes: &[u8]) -> (String, u64) {
    let segments = disk.paths().into_iter().filter(|path| path.ends_with(".seg"));
    let find = |path: String| {
        let file = disk.bytes(&path);
        let at = memmem::find(&file, bytes)?;
        Some((path, at as u64))
    };
    segments.filter_map(find).next().expect("a segment contains the bytes")
}

/// Flips a bit of these bytes in the first segment that contains them.
pub fn damage(disk: &SimDisk, bytes: &[u8]) {
    let (path, offset) = find_bytes(disk, bytes);
    disk.flip(&path, offset, 1);
}

/// Copies a store to an image on another disk.
pub fn back_up(store: &Store, to: &SimDisk) -> engine::Result<BackupReport> {
    let to: Arc<dyn Disk> = Arc::new(to.clone());
    store.backup(&to, &mut always_continue)
}

/// Progress callback of work that is never stopped.
pub fn always_continue<P>(_: P) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Returns the files and folders below a folder: keys, and folders that keys imply or that are marked.
pub fn names_below<K: AsRef<str>>(
    keys: impl IntoIterator<Item = K>,
    folder: &str,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for key in keys {
        let Some(below) = key.as_ref().strip_prefix(folder) else { continue };
        let folders = below.match_indices('/').map(|(at, _)| format!("{folder}{}", &below[..=at]));
        names.extend(folders);
        names.extend((!key.as_ref().ends_with('/')).then(|| key.as_ref().to_owned()));
    }
    names
}

/// Returns the history of an object: state and recoverability of each put, `None` for a deletion.
pub fn version_states(
    store: &Store,
    key: &str,
) -> Vec<Option<(VersionState, Result<(), RestoreError>)>> {
    let scope = VersionScope::Key(name(key).key);
    let filter = VersionFilter { bucket: bucket(), scope, since_ms: 0 };
    let history = store.version_history(&filter, 100, &mut always_continue).expect("a history");
    assert!(!history.truncated && history.versions.is_sorted_by_key(|version| version.lsn));
    let events = history.versions.into_iter().map(|version| match version.event {
        VersionEvent::Put(put) => Some((put.state, put.recoverable)),
        VersionEvent::Deleted => None,
    });
    events.collect()
}
