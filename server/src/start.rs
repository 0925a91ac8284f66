//! Startup and shutdown, in the order that the head of `lib.rs` gives.
//!
//! Non-goals: signals; the caller decides when to stop.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use catalog::CatalogError;
use engine::Store;
use engine::clock::Clock;
use engine::rng::Rng;
use http::{Request, Response};
use hyper::service::service_fn;
use listener::accept::{DrainReport, Shutdown, accept};
use listener::acme::AcmeRenewer;
use listener::incoming_body::IncomingBody;
use listener::ip_network::{any_contains, is_local_or_trusted};
use listener::options::ConnectionOptions;
use listener::tls::{TlsConfigCell, TlsIdentity};
use protocol::destination::Scheme;
use protocol::public_url::PublicUrl;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use usage::registry::ListenerKind;
use usage::spans::OtlpSpanExporter;
use usage::task::blocking;

use crate::admin::AdminService;
use crate::config::Config;
use crate::control::ControlSocket;
use crate::dispatch::HttpService;
use crate::state::AppState;
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

/// Inherited listening sockets, used instead of opening new ones.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub listen: Option<std::net::TcpListener>,
    pub upload_listen: Option<std::net::TcpListener>,
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

/// Receiver of the report of a started server.
pub type StartupHook = Box<dyn FnOnce(&StartupReport) + Send>;

/// Error of startup or of a running server.
#[derive(Debug)]
pub enum ServeError {
    Listen(SocketAddr, io::Error),
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
    service: ServeOptions,
    stop: watch::Receiver<Shutdown>,
    started: StartupHook,
) -> Result<(), ServeError> {
    let ServeOptions { store, data, config, clock, rng, changes, inherited } = service;
    let (listener, listen) = match inherited.listen {
        Some(socket) => taken(socket, config.listen)?,
        None => bind(config.listen).await?,
    };
    let upload_listener = match (inherited.upload_listen, config.upload_listen) {
        (Some(socket), address) => Some(taken(socket, address.unwrap_or(config.listen))?),
        (None, Some(address)) => Some(bind(address).await?),
        (None, None) => None,
    };
    let upload_listen = upload_listener.as_ref().map(|(_, listen)| *listen);
    let admin_listener = bind_if(config.admin_listen).await?;
    let admin_listen = admin_listener.as_ref().map(|(_, listen)| *listen);
    let scheme = config.scheme();
    let public_url = config.public_url.clone();
    let public_url = public_url.unwrap_or_else(|| PublicUrl::from_listener(scheme, listen));
    let tls = config.tls.as_ref().map(|identity| Arc::new(TlsConfigCell::new(identity)));
    let (tls, acme) = match config.acme.clone() {
        Some(settings) => {
            let begun = AcmeRenewer::open(&data, settings, clock.clone());
            let (tls, acme) = begun.map_err(|error| ServeError::Acme(data.clone(), error))?;
            (Some(tls), Some(acme))
        }
        None => (tls, None),
    };
    let options = ConnectionOptions {
        connections_max: config.connections_max,
        per_address_max: config.connections_per_address_max,
        drain: config.drain.into(),
        tls,
        ..ConnectionOptions::new()
    };
    let otlp_tls = config.otlp.as_ref().map(|_| config.webhook_roots.client()).transpose();
    let otlp_tls = otlp_tls.map_err(|why| {
        ServeError::Catalog(CatalogError::InvalidRequest(format!("TLS cannot be set up: {why}")))
    })?;
    let url = public_url.clone();
    let end_ms = config.tls.as_ref().and_then(TlsIdentity::not_after_ms);
    let open = move || AppState::new(store, config, url, clock, rng);
    let state = blocking(open).await.map_err(ServeError::Catalog)?;
    state.metrics.certificate.set_expiry(end_ms);
    // Absolute path, for displayed command lines; falls back to the given path.
    let folder = std::path::absolute(&data).unwrap_or_else(|_| data.clone());
    state.data_folder.get_or_init(|| folder);
    let options = ConnectionOptions { exempt: exempt(&state), ..options };
    let control = ControlSocket::bind(&data).map_err(|error| ServeError::Control(data, error))?;
    let set_up_link = state.issue_set_up_link().map(|path| public_url.as_str().to_owned() + &path);
    let has_accounts = !state.catalog.accounts().is_empty();
    started(&StartupReport {
        listen,
        upload_listen,
        admin_listen,
        scheme,
        public_url,
        set_up_link,
        has_accounts,
    });

    let certificate = state.metrics.certificate.clone();
    let _getting = tokio::task::JoinSet::from_iter(acme.map(|acme| acme.run(certificate)));
    let span_exporter = (state.config().otlp.as_ref().zip(otlp_tls))
        .map(|(otlp, tls)| OtlpSpanExporter::start(otlp, tls));
    let changing = change(changes, state.clone(), options.clone());
    let options_of = |entrance| {
        let counts = state.metrics.connections(entrance).clone();
        ConnectionOptions { counts, ..options.clone() }
    };
    let bounds = options_of(ListenerKind::Public);
    let answer = |app: HttpService| {
        move |request| {
            let app = app.clone();
            async move { Ok(app.call(request).await) }
        }
    };
    let public = serve_at(listener, answer(HttpService::new(state.clone())), bounds, stop.clone());
    let premium = async {
        let Some((listener, _)) = upload_listener else { return DrainReport { cut_off: 0 } };
        let bounds = options_of(ListenerKind::Premium);
        serve_at(listener, answer(HttpService::new(state.premium())), bounds, stop.clone()).await
    };
    let admin = async {
        let Some((listener, _)) = admin_listener else { return DrainReport { cut_off: 0 } };
        // Plain HTTP: the listener is for this machine or the operator's own network.
        let bounds = ConnectionOptions { tls: None, ..options_of(ListenerKind::Admin) };
        let app = AdminService::new(state.clone());
        let answer = move |request| {
            let app = app.clone();
            async move { Ok(app.call(request).await) }
        };
        serve_at(listener, answer, bounds, stop.clone()).await
    };
    let mut stopping = stop.clone();
    let announce = async {
        tokio::select! {
            _ = stopping.wait_for(|it| *it != Shutdown::Running) => {}
            () = changing => {}
        }
        state.start_draining();
    };
    let upkeep = BackgroundTasks::start(&state);
    let control = control.serve(state.clone(), stop.clone());
    let (public, premium, admin, (), ()) = tokio::join!(public, premium, admin, control, announce);
    upkeep.stop().await;
    if let Some(exporter) = span_exporter {
        exporter.stop().await;
    }
    let cut_off = public.cut_off + premium.cut_off + admin.cut_off;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "drain timeout: connections closed");
    }
    Ok(())
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

/// Applies configuration changes while requests are served.
async fn change(
    changes: Option<mpsc::Receiver<ConfigChange>>,
    state: AppState,
    options: ConnectionOptions,
) {
    if let Some(mut changes) = changes {
        while let Some(ConfigChange { config, done }) = changes.recv().await {
            if let Some((tls, identity)) = options.tls.as_ref().zip(config.tls.as_ref()) {
                tls.replace(identity);
                state.metrics.certificate.set_expiry(identity.not_after_ms());
            }
            options.drain.set(config.drain);
            state.reload(config);
            // The sender may not wait for the result.
            let _ = done.send(());
        }
    }
    std::future::pending().await
}

async fn bind_if(
    address: Option<SocketAddr>,
) -> Result<Option<(TcpListener, SocketAddr)>, ServeError> {
    match address {
        Some(address) => bind(address).await.map(Some),
        None => Ok(None),
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let refused = |error| ServeError::Listen(address, error);
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let listen = listener.local_addr().map_err(refused)?;
    Ok((listener, listen))
}

/// Converts an inherited socket. `address` is the configured address that it replaces.
fn taken(
    socket: std::net::TcpListener,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let refused = |error| ServeError::Listen(address, error);
    socket.set_nonblocking(true).map_err(refused)?;
    let listener = TcpListener::from_std(socket).map_err(refused)?;
    let listen = listener.local_addr().map_err(refused)?;
    Ok((listener, listen))
}

/// Serves one listener until it is stopped.
async fn serve_at<A, F, B>(
    listener: TcpListener,
    answer: A,
    options: ConnectionOptions,
    stop: watch::Receiver<Shutdown>,
) -> DrainReport
where
    A: Fn(Request<Body>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // The response future is not wrapped: hyper moves it twice for every request.
    let service = service_fn(move |request: Request<IncomingBody>| answer(request.map(Body::new)));
    accept(listener, service, options, stop).await
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
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
        let surroundings = Environment { disk, clock: clock.clone(), rng: rng.clone() };
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
