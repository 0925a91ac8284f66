//! Startup and shutdown, in the order that the head of `lib.rs` gives.
//!
//! Non-goals: signals; the caller decides when to stop.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use catalog::CatalogError;
use engine::Store;
use engine::clock::Clock;
use engine::rng::Rng;
use futures_util::FutureExt;
use http::{Request, Response};
use hyper::service::service_fn;
use listener::accept::{Shutdown, accept};
use listener::acme::AcmeRenewer;
use listener::incoming_body::IncomingBody;
use listener::ip_network::{any_contains, is_local_or_trusted};
use listener::options::ConnectionOptions;
use listener::peer::Peer;
use listener::tls::{TlsConfigCell, TlsIdentity};
use protocol::destination::Scheme;
use protocol::public_url::PublicUrl;
use service::config::Config;
use service::state::AppState;
use tokio::sync::{mpsc, oneshot, watch};
use usage::registry::ListenerKind;
use usage::task::blocking;

use crate::admin::AdminService;
use crate::control::ControlSocket;
use crate::dispatch::HttpService;
use crate::sockets::{InheritedSockets, ListenError, Socket, Sockets};
use crate::upkeep::BackgroundTasks;

/// Inputs of a server.
pub struct ServeOptions {
    /// Open store, closed when serving ends.
    pub store: Store,
    /// Data folder, for the control socket.
    pub data: PathBuf,
    pub config: Config,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    /// Configuration changes while serving.
    pub changes: Option<mpsc::Receiver<ConfigChange>>,
    /// Sockets that already listen.
    pub inherited: InheritedSockets,
}

/// Configuration change of a running server.
#[derive(Debug)]
pub struct ConfigChange {
    pub config: Config,
    /// Notified when the change is applied.
    pub done: oneshot::Sender<()>,
}

/// State of a server that is ready for requests.
pub struct StartupReport {
    /// Listen address.
    pub listen: SocketAddr,
    /// Listen address of the premium endpoint.
    pub upload_listen: Option<SocketAddr>,
    /// URL scheme of the listeners.
    pub scheme: Scheme,
    /// Listen address for health checks and metrics.
    pub admin_listen: Option<SocketAddr>,
    /// Base URL of generated links.
    pub public_url: PublicUrl,
    /// Set-up link, as long as no operator has a password. A secret, not for logs.
    pub set_up_link: Option<String>,
    pub has_accounts: bool,
}

impl StartupReport {
    fn new(state: &AppState, sockets: &Sockets, scheme: Scheme) -> Self {
        let public_url = state.public_url.clone();
        let set_up_link = state.issue_set_up_link();
        Self {
            listen: sockets.public.address,
            upload_listen: sockets.premium.as_ref().map(|socket| socket.address),
            admin_listen: sockets.admin.as_ref().map(|socket| socket.address),
            scheme,
            set_up_link: set_up_link.map(|path| public_url.as_str().to_owned() + &path),
            public_url,
            has_accounts: !state.catalog.accounts().all().is_empty(),
        }
    }
}

/// Receiver of the report of a started server.
pub type StartupHook = Box<dyn FnOnce(&StartupReport) + Send>;

/// Error of startup or of a running server.
#[derive(Debug)]
pub enum ServeError {
    Listen(ListenError),
    Control(PathBuf, io::Error),
    /// ACME storage in the data folder.
    Acme(PathBuf, io::Error),
    Catalog(CatalogError),
    Close(engine::Error),
}

/// Serves until it is stopped, then closes the store. `started` is called when the sockets listen and the catalog is
/// read.
///
/// The future is boxed because an `async fn` is compiled into each crate that awaits it: here the whole server.
pub fn serve(
    service: ServeOptions,
    stop: watch::Receiver<Shutdown>,
    started: StartupHook,
) -> Pin<Box<dyn Future<Output = Result<(), ServeError>> + Send>> {
    Box::pin(async move {
        let store = service.store.clone();
        let served = serve_open(service, stop, started).await;
        let closed = blocking(move || store.close()).await.map_err(ServeError::Close);
        served.and(closed)
    })
}

async fn serve_open(
    options: ServeOptions,
    stop: watch::Receiver<Shutdown>,
    started: StartupHook,
) -> Result<(), ServeError> {
    let ServeOptions { store, data, config, clock, rng, changes, inherited } = options;
    let sockets = Sockets::open(inherited, &config).map_err(ServeError::Listen)?;
    let (tls, acme) = open_tls(&config, &data, &clock)?;
    let scheme = config.scheme();
    let url = config.public_url.clone();
    let url = url.unwrap_or_else(|| PublicUrl::from_listener(scheme, sockets.public.address));
    let connections = ConnectionOptions {
        connections_max: config.connections_max,
        per_address_max: config.connections_per_address_max,
        drain: config.drain.into(),
        tls,
        ..ConnectionOptions::new()
    };
    let certificate_end_ms = config.tls.as_ref().and_then(TlsIdentity::not_after_ms);
    let open = move || AppState::new(store, config, url, clock, rng);
    let state = blocking(open).await.map_err(ServeError::Catalog)?;
    state.metrics.certificate.set_expiry(certificate_end_ms);
    // Absolute path, for displayed command lines; falls back to the given path.
    let folder = std::path::absolute(&data).unwrap_or_else(|_| data.clone());
    state.data_folder.get_or_init(|| folder);
    let connections = ConnectionOptions { exempt: exempt(&state), ..connections };
    let control = ControlSocket::bind(&data).map_err(|error| ServeError::Control(data, error))?;
    started(&StartupReport::new(&state, &sockets, scheme));

    let certificate = state.metrics.certificate.clone();
    let _renewal = tokio::task::JoinSet::from_iter(acme.map(|acme| acme.run(certificate)));
    let background = BackgroundTasks::start(&state);
    let (cut_off, (), ()) = tokio::join!(
        serve_sockets(sockets, &state, &connections, &stop),
        control.serve(state.clone(), stop.clone()),
        apply_changes(changes, &state, &connections, stop.clone()),
    );
    background.stop().await;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "drain timeout: connections closed");
    }
    Ok(())
}

/// Returns the certificate of the listeners, and its renewal if it comes from an ACME authority.
fn open_tls(
    config: &Config,
    data: &Path,
    clock: &Arc<dyn Clock>,
) -> Result<(Option<Arc<TlsConfigCell>>, Option<AcmeRenewer>), ServeError> {
    let Some(settings) = config.acme.clone() else {
        return Ok((config.tls.as_ref().map(|it| Arc::new(TlsConfigCell::new(it))), None));
    };
    let opened = AcmeRenewer::open(data, settings, clock.clone());
    let (tls, acme) = opened.map_err(|error| ServeError::Acme(data.to_owned(), error))?;
    Ok((Some(tls), Some(acme)))
}

/// Serves requests until the server is stopped. Returns the number of connections that were cut off.
async fn serve_sockets(
    sockets: Sockets,
    state: &AppState,
    connections: &ConnectionOptions,
    stop: &watch::Receiver<Shutdown>,
) -> usize {
    let options = |listener| {
        let counts = state.metrics.connections(listener).clone();
        ConnectionOptions { counts, ..connections.clone() }
    };
    let answer = |service: HttpService| move |request, peer| service.call(request, peer).map(Ok);
    let public = {
        let (answer, options) =
            (answer(HttpService::new(state.clone())), options(ListenerKind::Public));
        serve_socket(Some(sockets.public), answer, options, stop.clone())
    };
    let premium = {
        let (answer, options) =
            (answer(HttpService::new(state.premium())), options(ListenerKind::Premium));
        serve_socket(sockets.premium, answer, options, stop.clone())
    };
    let admin = {
        let service = AdminService::new(state.clone());
        let answer = move |request, _| {
            let service = service.clone();
            async move { Ok(service.call(request).await) }
        };
        // Plain HTTP: the listener is for this machine or the operator's own network.
        let options = ConnectionOptions { tls: None, ..options(ListenerKind::Admin) };
        serve_socket(sockets.admin, answer, options, stop.clone())
    };
    let (public, premium, admin) = tokio::join!(public, premium, admin);
    public + premium + admin
}

/// Serves one socket until it is stopped. Returns the number of connections that were cut off.
async fn serve_socket<A, F, B>(
    socket: Option<Socket>,
    answer: A,
    options: ConnectionOptions,
    stop: watch::Receiver<Shutdown>,
) -> usize
where
    A: Fn(Request<Body>, Peer) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(socket) = socket else { return 0 };
    // The response future is not wrapped: hyper moves it twice for every request.
    let service = service_fn(move |request: Request<IncomingBody>| {
        let peer = request.body().peer();
        answer(request.map(into_body), peer)
    });
    accept(socket.listener, service, options, stop).await.cut_off
}

/// Converts a request body. One without content needs no allocation.
fn into_body(body: IncomingBody) -> Body {
    if http_body::Body::is_end_stream(&body) { Body::empty() } else { Body::new(body) }
}

/// Returns the predicate of addresses exempt from the connection limit.
fn exempt(state: &AppState) -> Arc<dyn Fn(IpAddr) -> bool + Send + Sync> {
    let state = state.clone();
    Arc::new(move |address| {
        let config = state.config();
        is_local_or_trusted(address, &config.trusted_networks)
            || any_contains(address, &config.trusted_proxies)
    })
}

/// Applies configuration changes until the server is stopped, then starts the drain of requests in flight.
async fn apply_changes(
    changes: Option<mpsc::Receiver<ConfigChange>>,
    state: &AppState,
    connections: &ConnectionOptions,
    mut stop: watch::Receiver<Shutdown>,
) {
    let apply = async {
        if let Some(mut changes) = changes {
            while let Some(ConfigChange { config, done }) = changes.recv().await {
                if let Some((tls, identity)) = connections.tls.as_ref().zip(config.tls.as_ref()) {
                    tls.replace(identity);
                    state.metrics.certificate.set_expiry(identity.not_after_ms());
                }
                connections.drain.set(config.drain);
                state.reload(config);
                // The sender may not wait for the result.
                let _ = done.send(());
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        _ = stop.wait_for(|it| *it != Shutdown::Running) => {}
        () = apply => {}
    }
    state.start_draining();
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::Control(data, error) => {
                write!(f, "cannot create the control socket in {}: {error}", data.display())
            }
            Self::Acme(data, error) => {
                write!(f, "cannot store certificates in {}: {error}", data.display())
            }
            Self::Catalog(error) => write!(f, "cannot read the catalog: {error}"),
            Self::Close(error) => write!(f, "the store did not close cleanly: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt;

    use catalog::{BucketKind, Plan};
    use engine::clock::SimClock;
    use engine::rng::SeededRng;
    use engine::{Create, Environment, OpenOptions};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::control::{self, ControlError, SOCKET_NAME};
    use crate::management::{
        AccountSettings, AdminRequest, AdminResponse, BucketOwner, BucketSettings,
    };

    fn service(data: PathBuf) -> ServeOptions {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::at(1_700_000_000_000));
        let rng: Arc<dyn Rng> = Arc::new(SeededRng::new(3));
        let disk = Arc::new(engine::disk::sim::SimDisk::with_seed(3));
        let surroundings =
            Environment { disk, clock: clock.clone(), rng: rng.clone(), remote: None };
        let (store, _) = Store::open(surroundings, OpenOptions::new(Create::IfMissing)).unwrap();
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = Config { listen, ..Config::default() };
        let inherited = InheritedSockets::default();
        ServeOptions { store, data, config, clock, rng, changes: None, inherited }
    }

    fn put(store: &Store, key: &str, bytes: &[u8]) {
        let name = engine::ObjectName::new(
            engine::BucketName::parse("files").unwrap(),
            engine::ObjectKey::parse(key).unwrap(),
        );
        let mut upload = store.upload();
        upload.push(bytes).unwrap();
        let options = engine::PutOptions {
            content_type: "application/octet-stream".into(),
            ..engine::PutOptions::default()
        };
        let staged = upload.finish().unwrap();
        store.commit(engine::Batch::new().put(name, staged, options)).unwrap();
    }

    async fn ask_operator(
        data: &std::path::Path,
        request: &AdminRequest,
    ) -> Result<AdminResponse, ControlError> {
        control::call(data, request, &mut |_| std::ops::ControlFlow::Continue(())).await
    }

    async fn ask(listen: SocketAddr, line: &str) -> String {
        let mut stream = TcpStream::connect(listen).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn server_serves_http_and_control_until_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_owned();
        let socket = data.join(SOCKET_NAME);
        // A stale socket of a killed server does not get in the way.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let none = ask_operator(&data, &AdminRequest::Stats { segments: false }).await;
        assert!(matches!(none, Err(ControlError::NotRunning)));

        let service = service(data.clone());
        let store = service.store.clone();
        let (stop, stopped) = watch::channel(Shutdown::Running);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let server = tokio::spawn(serve(
            service,
            stopped,
            Box::new(|started| {
                assert!(started.set_up_link.is_some());
                let listen_url = PublicUrl::from_listener(Scheme::Http, started.listen);
                assert_eq!(started.public_url, listen_url);
                sender.send(started.listen).unwrap();
            }),
        ));
        let listen = receiver.await.unwrap();

        assert!(ask(listen, "GET /-/health").await.starts_with("HTTP/1.1 200 OK"));
        assert!(ask(listen, "GET /none/a.png").await.contains("bucket_not_found"));
        let head = ask(listen, "HEAD /-/health").await;
        assert!(head.contains("content-length: ") && head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(std::fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let create = AdminRequest::CreateAccount {
            name: "Ann".into(),
            settings: AccountSettings { plan: Some(Plan::Pro), ..Default::default() },
        };
        let AdminResponse::Account(account) = ask_operator(&data, &create).await.unwrap() else {
            panic!("an account was to be made");
        };
        assert_eq!((&*account.name, account.plan), ("Ann", Plan::Pro));
        match ask_operator(&data, &create).await {
            Err(ControlError::Refused { code, message }) => {
                assert_eq!(code, "already_exists");
                assert_eq!(message, "the account \"Ann\" already exists");
            }
            other => panic!("a second Ann was to be refused, not {other:?}"),
        }

        let settings = BucketSettings::default();
        let owner = BucketOwner::Account("Ann".into());
        let (name, kind) = ("files".into(), BucketKind::Standard);
        let create = AdminRequest::CreateBucket { name, owner, kind, settings };
        ask_operator(&data, &create).await.unwrap();
        put(&store, "a.bin", &[b'x'; 600_000]);
        let whole = ask(listen, "GET /files/a.bin").await;
        assert!(whole.contains("content-length: 600000\r\n"));
        assert!(whole.ends_with(&format!("\r\n\r\n{}", "x".repeat(600_000))));
        let head = ask(listen, "HEAD /files/a.bin").await;
        assert!(head.contains("content-length: 600000\r\n") && head.ends_with("\r\n\r\n"));

        stop.send(Shutdown::Drain).unwrap();
        server.await.unwrap().unwrap();
        assert!(TcpStream::connect(listen).await.is_err());
        assert!(!socket.exists());
        assert!(matches!(store.commit(engine::Batch::new()), Err(engine::Error::Closed)));
    }

    #[tokio::test]
    async fn address_in_use_closes_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut service = service(folder.path().to_owned());
        service.config.listen = taken.local_addr().unwrap();
        let (_stop, stopped) = watch::channel(Shutdown::Running);
        let error =
            serve(service, stopped, Box::new(|_| panic!("nothing starts"))).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
    }
}
