//! Parameters that several endpoints share, for the OpenAPI document.
//!
//! Non-goals: parsing, which `protocol` does, and meaning.

use std::borrow::Cow;

use catalog::limits::{EXPIRY_SECONDS_MAX, EXPIRY_SECONDS_MIN};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AnyOfBuilder, Object, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, Required, Schema, SchemaFormat};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// Boolean query parameter: true as `true`, `1`, `yes`, `on` or without a value, false as `false`, `0`, `no`, `off`.
pub struct Flag;

/// Chunk of a file, as binary data.
pub struct Chunk;

/// Path of a file.
pub struct FilePathSchema;

/// Path of a folder, with a trailing slash; empty for the root.
pub struct FolderPathSchema;

/// Path of a file or folder.
pub struct EntryPathSchema;

/// Paging of a list: `limit` and `cursor`.
pub struct PageParameters;

/// Name filter of a list: `q`.
pub struct NameFilterParameter;

/// Upload options: `overwrite`, `randomizeName`, `thumbnail`.
pub struct UploadParameters;

/// Options that describe the object of an upload: `contentType`, `cacheControl`, `contentDisposition`, `metadata`,
/// `expiresIn`, `expiresAt`.
pub struct ObjectOptionParameters;

/// Bucket in the URL.
pub struct BucketParameter;

/// Bucket and path of a file or folder in the URL.
pub struct ObjectPathParameters;

/// Transform options: `format`, `width`, `height`, `quality`, `fit`, `dpr`.
pub struct TransformParameters;

/// Bucket in the URL of a management endpoint.
pub struct BucketNameParameter;

/// Bucket to list.
pub struct ListedBucketParameter;

/// Bucket to fill into the settings of an integration.
pub struct NamedBucketParameter;

/// Id at the end of the URL, of an account, an organisation, an API key.
pub struct IdParameter;

/// Version of the tus protocol.
pub struct TusVersionParameter;

/// Id of a resumable upload, and version of the tus protocol.
pub struct TusUploadParameters;

/// Pattern of valid bucket names: [`engine::BucketName`] without the reserved ones.
const BUCKET: &str = "^(?!(api|presigned|health|metrics|favicon\\.ico|robots\\.txt|sitemap\\.xml|index\\.html)$)\
                      [a-z0-9][a-z0-9._-]{2,62}$";

/// Pattern of bucket names including the reserved ones, for which no bucket exists.
const ANY_BUCKET: &str = "^[a-z0-9][a-z0-9._-]{2,62}$";

/// Pattern of a path segment: not empty, not `.` or `..`, no control characters, no backslash.
const SEGMENT: &str = "(?!\\.{1,2}(/|$))[^/\\\\\\u0000-\\u001f\\u007f-\\u009f]+";

impl PartialSchema for Flag {
    fn schema() -> RefOr<Schema> {
        let words = ["1", "yes", "on", "0", "no", "off"];
        AnyOfBuilder::new()
            .description(Some("Boolean flag; an empty value is true."))
            .item(Object::with_type(Type::Boolean))
            .item(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)))
            .into()
    }
}

impl ToSchema for Flag {}

impl PartialSchema for Chunk {
    fn schema() -> RefOr<Schema> {
        let bytes = ObjectBuilder::new().schema_type(Type::String);
        bytes.content_media_type("application/octet-stream").into()
    }
}

impl ToSchema for Chunk {}

/// Implements the schema of a path under this name, with a pattern of path segments.
macro_rules! path_schema {
    ($of:ty, $name:literal, $pattern:literal, $description:literal) => {
        impl PartialSchema for $of {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String);
                text.pattern(Some(format!($pattern, SEGMENT)))
                    .description(Some($description))
                    .into()
            }
        }

        impl ToSchema for $of {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    };
}

path_schema!(FilePathSchema, "FilePath", "^{0}(/{0})*$", "Path of a file, at most 1,024 bytes.");
path_schema!(
    FolderPathSchema,
    "FolderPath",
    "^({0}/)*$",
    "Path of a folder, with a trailing slash; empty for the root."
);
path_schema!(EntryPathSchema, "EntryPath", "^{0}(/{0})*/?$", "Path of a file or folder.");

impl IntoParams for PageParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(protocol::limits::MANAGEMENT_PAGE_MAX))
            .default(Some(protocol::limits::MANAGEMENT_PAGE_DEFAULT.into()));
        vec![
            query("limit", limit.into(), "Entries per page."),
            query("cursor", text(), "`nextCursor` of the previous page."),
        ]
    }
}

impl IntoParams for NameFilterParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let words = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(protocol::limits::SEARCH_TEXT_CHARS_MAX));
        let about = "Up to 16 words. Selects entries whose names contain all words, or whose ids begin with them.";
        vec![query("q", words.into(), about)]
    }
}

impl IntoParams for UploadParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let flag = || reference("Flag");
        vec![
            query(
                "overwrite",
                flag(),
                "Whether to replace an existing file; otherwise the new file gets an unused name.",
            ),
            query(
                "randomizeName",
                flag(),
                "Whether to name the file by a random UUID, with its extension.",
            ),
            query(
                "thumbnail",
                flag(),
                "Whether to create thumbnails of images; default: the setting of the bucket.",
            ),
        ]
    }
}

impl IntoParams for ObjectOptionParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(EXPIRY_SECONDS_MIN))
            .maximum(Some(EXPIRY_SECONDS_MAX));
        let time = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
        vec![
            query("contentType", text(), "Media type, which the content must not contradict."),
            query("cacheControl", text(), "`Cache-Control` of the file."),
            query("contentDisposition", text(), "`Content-Disposition` of the file."),
            query(
                "metadata",
                text(),
                "User metadata: a JSON object with text values, at most 2,048 bytes.",
            ),
            query("expiresIn", seconds.into(), "Lifetime of the file in seconds."),
            query("expiresAt", time.into(), "Expiry of the file, instead of `expiresIn`."),
        ]
    }
}

impl IntoParams for BucketParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path("bucket", pattern(BUCKET), "Bucket name.")]
    }
}

impl IntoParams for BucketNameParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path("bucketName", pattern(ANY_BUCKET), "Bucket name.")]
    }
}

impl IntoParams for ListedBucketParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut name = query("bucketName", pattern(ANY_BUCKET), "Bucket name. Alias: `bucket`.");
        name.required = Required::True;
        vec![name]
    }
}

impl IntoParams for NamedBucketParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let what = "Bucket name to insert. Alias: `bucketName`.";
        vec![query("bucket", pattern(BUCKET), what)]
    }
}

impl IntoParams for ObjectPathParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let key = "Key of a file, or of a folder with a trailing slash. Slashes need not be \
            encoded.";
        vec![
            path("bucket", pattern(BUCKET), "Bucket name."),
            path("path", reference("EntryPath"), key),
        ]
    }
}

impl IntoParams for TransformParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let side = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).into();
        let quality =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
        let word = |words: &[&str]| {
            let words = words.iter().map(ToString::to_string);
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
        };
        let density = ObjectBuilder::new()
            .schema_type(Type::Number)
            .exclusive_minimum(Some(0))
            .maximum(Some(10));
        let formats = ["webp", "jpg", "jpeg", "png", "avif", "gif", "auto"];
        vec![
            query("format", word(&formats), "Output format. Aliases: `fm`, `f`, `output`."),
            query("width", side(), "Maximum width in pixels. Alias: `w`."),
            query("height", side(), "Maximum height in pixels. Alias: `h`."),
            query("quality", quality.into(), "Output quality, 1 to 100. Alias: `q`."),
            query(
                "fit",
                word(&["contain", "cover", "fill", "scale-down"]),
                "Fit mode for images of another aspect ratio than `width` and `height`. Alias: `resize`.",
            ),
            query(
                "dpr",
                density.into(),
                "Device pixel ratio by which `width` and `height` are multiplied, at most 10.",
            ),
        ]
    }
}

impl IntoParams for IdParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path("id", text(), "Id of the resource.")]
    }
}

impl IntoParams for TusVersionParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let version = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["1.0.0"]));
        let header = ParameterIn::Header;
        let version =
            parameter("Tus-Resumable", header, version.into(), "Version of the tus protocol.");
        vec![version.required(Required::True).build()]
    }
}

impl IntoParams for TusUploadParameters {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let id = SchemaFormat::Custom("uuid".to_owned());
        let id = ObjectBuilder::new().schema_type(Type::String).format(Some(id));
        let mut all =
            vec![path("id", id.into(), "Upload id, the last path segment of `Location`.")];
        all.append(&mut TusVersionParameter::into_params(place));
        all
    }
}

/// Returns the schema of a new bucket's name.
pub fn bucket_name_schema() -> RefOr<Schema> {
    pattern(BUCKET)
}

fn query(name: &str, schema: RefOr<Schema>, description: &str) -> Parameter {
    parameter(name, ParameterIn::Query, schema, description).required(Required::False).build()
}

fn path(name: &str, schema: RefOr<Schema>, description: &str) -> Parameter {
    parameter(name, ParameterIn::Path, schema, description).required(Required::True).build()
}

fn parameter(
    name: &str,
    place: ParameterIn,
    schema: RefOr<Schema>,
    description: &str,
) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .schema(Some(schema))
        .description(Some(description))
}

fn text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).into()
}

fn reference(name: &str) -> RefOr<Schema> {
    RefOr::Ref(utoipa::openapi::Ref::from_schema_name(name))
}

fn pattern(pattern: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
}
