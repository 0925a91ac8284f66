//! Remote store of a folder whose segments are not all on this machine, for commands that open it themselves.
//!
//! Non-goals: the running server, which has the remote store of its configuration open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::remote::RemoteStore;
use engine::replication;
use tokio::runtime::Runtime;

use crate::exit::Failure;
use crate::output;

/// Configuration of the remote store.
#[derive(Clone, clap::Args)]
pub(crate) struct RemoteConfigArgs {
    /// Configuration file (TOML) of the server. If files are only in a remote store, it names that store.
    #[arg(long, value_name = "FILE", env = "TRUG_CONFIG")]
    config: Option<PathBuf>,
}

/// Connection to the remote store of a folder.
#[derive(Default)]
pub(crate) struct RemoteSegments {
    /// `None`: all segments are on this machine, or no remote store is configured.
    pub(crate) store: Option<Arc<dyn RemoteStore>>,
    /// Runs the requests.
    _runtime: Option<Runtime>,
}

impl RemoteSegments {
    /// Connects to the remote store of the configuration if the folder needs it. Sends nothing yet.
    pub(crate) fn of_folder(data: &Path, args: &RemoteConfigArgs) -> Result<Self, Failure> {
        if !replication::folder_needs_remote(data)? {
            return Ok(Self::default());
        }
        let found = connect(args.config.as_deref())?;
        if found.store.is_none() {
            output::print_note(
                "some files are only in a remote store: name it with --config or TRUG_REMOTE_URL",
            );
        }
        Ok(found)
    }
}

#[cfg(feature = "remote")]
fn connect(config: Option<&Path>) -> Result<RemoteSegments, Failure> {
    let config = crate::settings::config(&crate::settings::sources_of(config)?)?;
    let Some(settings) = &config.remote else { return Ok(RemoteSegments::default()) };
    let runtime = crate::remote::runtime()?;
    let options = crate::remote::replication(settings, runtime.handle().clone())?;
    Ok(RemoteSegments { store: Some(options.remote), _runtime: Some(runtime) })
}

#[cfg(not(feature = "remote"))]
fn connect(_: Option<&Path>) -> Result<RemoteSegments, Failure> {
    Ok(RemoteSegments::default())
}
