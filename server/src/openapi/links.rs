//! Links from a response to the parameters of another operation.

use utoipa::openapi::link::LinkBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{RefOr, Response};

/// Parameters, each with the location of its value in the response.
type Values = &'static [(&'static str, &'static str)];

/// Source operation, target operation, and the parameters of the target.
const LINKS: &[(&str, &str, Values)] = &[
    ("createBucket", "showBucket", BUCKET_NAME),
    ("createBucket", "editBucket", BUCKET_NAME),
    ("createBucket", "deleteBucket", BUCKET_NAME),
    ("createBucket", "listObjects", BUCKET_NAME),
    ("createBucket", "search", BUCKET),
    ("createBucket", "upload", BUCKET),
    ("createBucket", "uploadToRoot", BUCKET),
    ("createBucket", "presignAddress", BUCKET),
    ("createBucket", "presignToken", BUCKET_NAME),
    ("createBucket", "tusCreate", BUCKET_NAME),
    ("upload", "read", FILE),
    ("upload", "readHead", FILE),
    ("upload", "delete", FILE),
    ("uploadToRoot", "read", FILE),
    ("uploadToRoot", "delete", FILE),
    ("presignToken", "uploadWithToken", &[("token", "$response.body#/token")]),
    ("tusCreate", "tusState", RESUMABLE),
    ("tusCreate", "tusAppend", RESUMABLE),
    ("tusCreate", "tusTerminate", RESUMABLE),
    ("tusCreate", "tusOverridden", RESUMABLE),
    ("createKey", "revokeKey", &[("id", "$response.body#/apiKey/id")]),
    ("createOrganisation", "showOrganisation", ORGANISATION),
    ("createOrganisation", "renameOrganisation", ORGANISATION),
    ("createOrganisation", "deleteOrganisation", ORGANISATION),
    ("createOrganisation", "listMembers", ORGANISATION),
    ("createOrganisation", "setMember", ORGANISATION),
    ("createOrganisation", "removeMember", ORGANISATION),
    ("createAccount", "showAccount", ACCOUNT),
    ("createAccount", "editAccount", ACCOUNT),
];

const BUCKET: Values = &[("bucket", "$response.body#/bucket/bucketName")];
const BUCKET_NAME: Values = &[("bucketName", "$response.body#/bucket/bucketName")];
const ACCOUNT: Values = &[("id", "$response.body#/account/id")];
/// Relative to a path that ends in a slash, this is the id alone.
const RESUMABLE: Values = &[("id", "$response.header.Location")];
const FILE: Values = &[("bucket", "$response.body#/bucketName"), ("path", "$response.body#/key")];
const ORGANISATION: Values = &[("id", "$response.body#/organisation/id")];

/// Adds the links to the success response of an operation.
pub(super) fn complete(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let well = responses.iter_mut().find(|(status, _)| matches!(status.as_str(), "200" | "201"));
    let Some((_, RefOr::T(response))) = well else { return };
    let own = operation.operation_id.as_deref().unwrap_or_default();
    LINKS.iter().filter(|(from, ..)| *from == own).for_each(|(_, to, values)| {
        link(response, to, values);
    });
}

fn link(response: &mut Response, to: &str, values: Values) {
    let link = LinkBuilder::new().operation_id(to);
    let link = values.iter().fold(link, |link, (name, value)| link.parameter(*name, *value));
    response.links.insert(to.to_owned(), RefOr::T(link.build()));
}

/// Returns the operations that links name.
#[cfg(test)]
pub(super) fn linked_operations() -> impl Iterator<Item = &'static str> {
    LINKS.iter().flat_map(|(from, to, _)| [*from, *to])
}
