//! `GET /api/settings`: settings in effect, and version of the server, for operators.
//!
//! Guarantees: a secret is never in the reply, only whether it is set. Non-goals: changing a setting.

use axum::extract::State;
use protocol::error::ApiError;
use serde::Serialize;
use service::auth::Caller;
use service::config::{SettingChange, SettingDefault, settings};
use service::replies::Success;
use service::state::AppState;
use utoipa::ToSchema;

/// Version of the server.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Server version, data folder and settings.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsReply {
    version: &'static str,
    #[schema(required)]
    data_folder: Option<String>,
    settings: Vec<SettingView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SettingView {
    name: &'static str,
    /// Value as in the configuration file; `null` if not set, `"***"` for a secret.
    #[schema(required)]
    value: Option<String>,
    /// Effect of the setting without a value.
    #[schema(required)]
    without_value: Option<&'static str>,
    /// Source of the value: `default`, `environment`, the configuration file, or the command-line option.
    source: String,
    /// Description in Markdown.
    about: String,
    /// Required action after a change: `reload` or `restart`.
    change: &'static str,
}

/// Lists the effective server settings. Operators only.
#[utoipa::path(
    get,
    path = "/api/settings",
    operation_id = "showSettings",
    tag = "Server",
    responses((status = OK, body = SettingsReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Success<SettingsReply>, ApiError> {
    caller.require_operator("sees the settings")?;
    let config = app.config();
    let view = |setting: service::config::Setting| {
        let found = config.in_force.iter().find(|it| it.name == setting.name);
        let (value, source) = match found {
            Some(it) => (it.value.clone(), it.source.clone()),
            None => (setting.default, "default".to_owned()),
        };
        let (value, without_value) = match value {
            SettingDefault::Value(value) => (Some(value), None),
            SettingDefault::Description(words) => (None, Some(words)),
        };
        let change = match setting.change {
            SettingChange::Reload => "reload",
            SettingChange::Restart => "restart",
        };
        SettingView {
            name: setting.name,
            value,
            without_value,
            source,
            about: setting.description,
            change,
        }
    };
    let data_folder = app.data_folder.get().map(|folder| folder.display().to_string());
    let settings = settings().into_iter().map(view).collect();
    Ok(Success(SettingsReply { version: VERSION, data_folder, settings }))
}
