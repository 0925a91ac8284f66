//! Management of shared links.
//!
//! Guarantees: a link that is created here has the rights of the bucket's owner. Non-goals: the pages.

use catalog::{
    AskName, Catalog, CatalogError, Issuer, LinkKind, LinkLayout, LinkState, NewSharedLink,
    PasswordHash, SharedLink, SharedLinkChange, SharedLinkId, StoredAmount,
};
use engine::{BucketName, ObjectName, Store};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::reserved_paths::LINK_PATH;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::{Caller, Credential};
use service::link_access::{check_link_rights, link_state};
use utoipa::ToSchema;

use super::existing_bucket;
use super::link_settings::{
    LinkLifetime, LinkSettings, default_upload_rules, link_change, parse_link_paths,
};
use super::reply::AdminResponse;

/// Link request. Passwords are hashed by the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LinkRequest {
    Create {
        kind: LinkKind,
        bucket: String,
        paths: Vec<String>,
        settings: LinkSettings,
        password: Option<PasswordHash>,
        /// Base URL of the link; a running server fills in its own if absent.
        public_url: Option<String>,
        /// Rule of a running server, which fills it in.
        #[serde(default)]
        lifetime: LinkLifetime,
    },
    /// Lists the links of a bucket, or all.
    List {
        bucket: Option<String>,
        public_url: Option<String>,
    },
    Show {
        id: String,
        public_url: Option<String>,
    },
    Edit {
        id: String,
        settings: LinkSettings,
        password: Option<PasswordHash>,
        public_url: Option<String>,
        #[serde(default)]
        lifetime: LinkLifetime,
    },
    End {
        id: String,
        public_url: Option<String>,
    },
}

/// Shared link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    pub id: String,
    /// URL of the page, which is secret.
    pub url: String,
    pub kind: LinkKind,
    pub bucket_name: String,
    pub paths: Vec<String>,
    pub title: String,
    pub message: String,
    pub layout: LinkLayout,
    pub zip: bool,
    pub expires_at: Option<String>,
    pub has_password: bool,
    pub downloads_max: Option<u64>,
    /// Number of downloads of a file or archive.
    pub download_count: u64,
    /// Number of times that the page was viewed.
    pub view_count: u64,
    /// Time of the last view, download or upload; `null` if never used.
    #[schema(required)]
    pub last_used_at: Option<String>,
    /// Maximum number of uploaded files; `null` for a download link, like the other limits of uploads.
    pub files_max: Option<u64>,
    /// Maximum bytes of an uploaded file, if it is less than that of the bucket.
    pub file_bytes_max: Option<u64>,
    /// Maximum bytes of all uploaded files together.
    pub bytes_max: Option<u64>,
    /// Media types that may be uploaded; empty for the types of the bucket.
    pub allowed_types: Option<Vec<String>>,
    /// Whether the page asks for the name of the person who uploads.
    pub ask_name: Option<AskName>,
    /// Number of uploaded files.
    pub uploaded_files: u64,
    /// Bytes of the uploaded files.
    pub uploaded_bytes: u64,
    pub state: LinkState,
    /// Name of the account that created the link.
    pub created_by: String,
    pub created_at: String,
    pub updated_at: String,
}

impl LinkRequest {
    /// Fills in the base URL, unless the request has one, and the rule about lifetimes of a running server.
    pub(crate) fn fill_in(&mut self, public_url: &str, rule: LinkLifetime) {
        self.public_url().get_or_insert_with(|| public_url.to_owned());
        if let Self::Create { lifetime, .. } | Self::Edit { lifetime, .. } = self {
            *lifetime = rule;
        }
    }

    fn public_url(&mut self) -> &mut Option<String> {
        match self {
            Self::Create { public_url, .. }
            | Self::List { public_url, .. }
            | Self::Show { public_url, .. }
            | Self::Edit { public_url, .. }
            | Self::End { public_url, .. } => public_url,
        }
    }
}

pub(super) fn execute(
    store: &Store,
    catalog: &Catalog,
    mut request: LinkRequest,
) -> Result<AdminResponse, CatalogError> {
    let url = request.public_url().take().unwrap_or_default();
    let view = |link: &SharedLink| link_view(catalog, &url, link);
    match request {
        LinkRequest::Create { kind, bucket, paths, settings, password, lifetime, .. } => {
            let target = (kind, &*bucket, &paths[..]);
            let new = new_owned_link(store, catalog, target, lifetime, settings)?;
            let link = catalog.shared_links().create(NewSharedLink { password, ..new })?;
            Ok(AdminResponse::LinkCreated(Box::new(view(&link))))
        }
        LinkRequest::List { bucket, .. } => {
            let bucket = bucket.map(|name| existing_bucket(catalog, &name)).transpose()?;
            let is_asked =
                |link: &SharedLink| bucket.as_ref().is_none_or(|it| it.name == link.bucket);
            let links = catalog.shared_links().select(is_asked);
            Ok(AdminResponse::Links(links.iter().map(|link| view(link)).collect()))
        }
        LinkRequest::Show { id, .. } => {
            let link = catalog.shared_links().get(&link_id(&id)?).ok_or_else(|| missing(&id))?;
            Ok(AdminResponse::Link(Box::new(view(&link))))
        }
        LinkRequest::Edit { id, settings, password, lifetime, .. } => {
            let link = catalog.shared_links().get(&link_id(&id)?).ok_or_else(|| missing(&id))?;
            let bucket = existing_bucket(catalog, link.bucket.as_str())?;
            let changed = link_change(catalog.now_ms(), lifetime, link.kind(), &bucket, settings);
            let (change, removed) = changed.map_err(|error| refused(&error))?;
            let password = password.map(Some).or(removed.map(|_| None));
            let change = SharedLinkChange { password, ..change };
            let link = catalog.shared_links().edit(&link.id, change)?;
            Ok(AdminResponse::Link(Box::new(view(&link))))
        }
        LinkRequest::End { id, .. } => {
            let link = catalog.shared_links().end(&link_id(&id)?)?;
            Ok(AdminResponse::Link(Box::new(view(&link))))
        }
    }
}

/// Returns a link on behalf of the owner of its bucket.
fn new_owned_link(
    store: &Store,
    catalog: &Catalog,
    (kind, bucket, paths): (LinkKind, &str, &[String]),
    lifetime: LinkLifetime,
    settings: LinkSettings,
) -> Result<NewSharedLink, CatalogError> {
    let bucket = existing_bucket(catalog, bucket)?;
    let owner = Caller::from_issuer(catalog, &Issuer::Account(bucket.owner.clone()));
    let owner = owner.ok_or(CatalogError::Suspended)?;
    let places = parse_link_paths(kind, paths).map_err(|error| refused(&error))?;
    check_link_rights(catalog, &owner, kind, &bucket.name, &places)
        .map_err(|error| refused(&error))?;
    if let Some(place) = missing_link_file(store, kind, &bucket.name, &places)? {
        let object = format!("{}/{}", bucket.name, place.as_str());
        return Err(CatalogError::NotFound(format!("the object {object:?}")));
    }
    let change = link_change(catalog.now_ms(), lifetime, kind, &bucket, settings);
    let (change, _) = change.map_err(|error| refused(&error))?;
    Ok(new_link(catalog, &owner, lifetime, (kind, bucket.name.clone(), places), change))
}

/// Returns a new link with the defaults of its kind, and the rights of a caller.
pub fn new_link(
    catalog: &Catalog,
    caller: &Caller,
    lifetime: LinkLifetime,
    (kind, bucket, places): (LinkKind, BucketName, Vec<PathInBucket>),
    change: SharedLinkChange,
) -> NewSharedLink {
    let upload = (kind == LinkKind::Upload).then(|| {
        let mut rules = default_upload_rules();
        rules.apply(change.upload);
        rules
    });
    let default_ms = lifetime.default_expiry_ms(catalog.now_ms());
    NewSharedLink {
        bucket,
        paths: places.iter().map(|place| place.as_str().to_owned()).collect(),
        title: change.title.unwrap_or_default(),
        message: change.message.unwrap_or_default(),
        layout: change.layout.unwrap_or_default(),
        zip: change.zip.unwrap_or(kind == LinkKind::Download),
        expires_ms: change.expires_ms.unwrap_or(Some(default_ms)),
        password: change.password.flatten(),
        downloads_max: change.downloads_max.flatten(),
        upload,
        account: caller.account().id.clone(),
        api_key: match caller.credential() {
            Credential::Key(api_key) => Some(api_key.id.clone()),
            Credential::Session(_) | Credential::Detached => None,
        },
    }
}

/// Returns a path of a download link at which there is no file, and no folder with files. Blocks on the index.
pub fn missing_link_file(
    store: &Store,
    kind: LinkKind,
    bucket: &BucketName,
    places: &[PathInBucket],
) -> engine::Result<Option<PathInBucket>> {
    for place in places.iter().filter(|_| kind == LinkKind::Download) {
        let exists = match place {
            PathInBucket::File(key) => {
                store.get(&ObjectName::new(bucket.clone(), key.clone()))?.is_some()
            }
            PathInBucket::Folder(folder) => {
                !store.list_keys(bucket, folder.as_str(), None, 1)?.objects.is_empty()
            }
        };
        if !exists {
            return Ok(Some(place.clone()));
        }
    }
    Ok(None)
}

/// Converts a link. The URL begins with the base URL of the server.
pub fn link_view(catalog: &Catalog, public_url: &str, link: &SharedLink) -> LinkView {
    let rules = link.upload.as_ref();
    let StoredAmount { objects: uploaded_files, bytes: uploaded_bytes } = link.uploads.stored();
    let creator = catalog.accounts().get(&link.account);
    LinkView {
        id: link.id.to_string(),
        url: format!("{}{LINK_PATH}{}", public_url, link.secret.text()),
        kind: link.kind(),
        bucket_name: link.bucket.to_string(),
        paths: link.paths.clone(),
        title: link.title.clone(),
        message: link.message.clone(),
        layout: link.layout,
        zip: link.zip,
        expires_at: link.expires_ms.map(iso_time),
        has_password: link.password.is_some(),
        downloads_max: link.downloads_max,
        download_count: link.uses.downloads(),
        view_count: link.uses.views(),
        last_used_at: link.uses.used_ms().map(iso_time),
        files_max: rules.map(|rules| rules.files_max),
        file_bytes_max: rules.and_then(|rules| rules.file_bytes_max),
        bytes_max: rules.map(|rules| rules.bytes_max),
        allowed_types: rules.map(|rules| rules.allowed_types.to_list()),
        ask_name: rules.map(|rules| rules.ask_name),
        uploaded_files,
        uploaded_bytes,
        state: link_state(catalog, link),
        created_by: creator.map(|it| it.name.as_str().to_owned()).unwrap_or_default(),
        created_at: iso_time(link.created_ms),
        updated_at: iso_time(link.updated_ms),
    }
}

fn link_id(id: &str) -> Result<SharedLinkId, CatalogError> {
    SharedLinkId::parse(id).ok_or_else(|| missing(id))
}

fn missing(id: &str) -> CatalogError {
    CatalogError::NotFound(format!("the link {id:?}"))
}

fn refused(error: &ApiError) -> CatalogError {
    CatalogError::InvalidRequest(error.message().to_owned())
}
