//! A limit of durable puts over HTTP as a contestant: hyper over tokio puts the body of each request into an engine of
//! its own, under the next name, and responds when it is durable.
//!
//! It parses no form, and has no routes, keys, quotas or time-outs: what trug costs more is its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use engine::{Batch, PutOptions, Store};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::arguments::Arguments;
use super::server::ServerKind;
use super::{baseline_process, data, hyper_baseline, stores};

/// Option that runs the program as this server.
const OPTION: &str = "--bare-hyper-put";
/// Folder of the store, in the working directory.
const STORE: &str = "bare-hyper";
const SEED: u64 = 9;

/// The server.
pub struct BareHyperPut;

impl ServerKind for BareHyperPut {
    fn label(&self) -> &'static str {
        "bare hyper"
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let mut command = baseline_process::command(OPTION, address, &[])?;
        command.current_dir(folder);
        Ok(command)
    }

    fn path(&self, _name: &str) -> String {
        "/".to_owned()
    }
}

/// Runs the server until the process is ended, when the arguments request it. Returns false when they do not.
pub fn serve(arguments: &Arguments) -> Result<bool, String> {
    let Some((address, [])) = baseline_process::requested(arguments, OPTION)? else {
        return Ok(false);
    };
    let store = stores::open(Path::new(STORE)).0;
    let next = Arc::new(AtomicU64::new(0));
    let service = service_fn(move |request: Request<Incoming>| {
        let (store, number) = (store.clone(), next.fetch_add(1, Ordering::Relaxed));
        async move {
            let status = match request.into_body().collect().await {
                Ok(body) => put(&store, number, &body.to_bytes()).await,
                Err(_) => StatusCode::BAD_REQUEST,
            };
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        }
    });
    hyper_baseline::run(address, service)?;
    Ok(true)
}

/// Puts an object, and returns the status once it is durable.
async fn put(store: &Store, number: u64, body: &[u8]) -> StatusCode {
    let options = PutOptions { content_type: "image/jpeg".into(), ..PutOptions::default() };
    let batch = Batch::new().put(data::name(SEED, number), stores::stage(store, body), options);
    let (result, committed) = oneshot::channel();
    store.submit(batch, move |outcome| {
        let _ = result.send(outcome.is_ok());
    });
    match committed.await {
        Ok(true) => StatusCode::OK,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
