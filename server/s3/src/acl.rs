//! Access control lists of buckets and objects: private, or public to read.
//!
//! The owner has full control; everyone may read the objects of a public bucket, and those of a private bucket that
//! have a list that says so. Lists of objects of a public bucket are not stored, so once it is private only those
//! objects are public that were made public while it was private. Guarantees: a list is accepted only if it takes
//! effect as sent; any other is rejected and changes nothing. Non-goals: grants to accounts.

use catalog::object_attributes::StoredAttributes;
use catalog::{Access, AccountId, Bucket, BucketChange, Scope};
use engine::ObjectName;
use http::HeaderMap;
use s3s::dto::{
    AccessControlPolicy, GetBucketAclInput, GetBucketAclOutput, GetObjectAclInput,
    GetObjectAclOutput, Grant, Grantee, Owner, Permission, PutBucketAclInput, PutBucketAclOutput,
    PutObjectAclInput, PutObjectAclOutput, Type,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::errors::{code, s3_error, to_s3_error};
use super::listing::owner_of;
use super::objects::authorized_object;
use super::parameters::RequestBucket;
use super::rewriting::{Stored, rewrite};
use super::versioning::{find_version, version_id};

const EVERYONE: &str = "http://acs.amazonaws.com/groups/global/AllUsers";

const BUCKET_ACLS: &str = "A bucket is \"private\" (its owner has FULL_CONTROL) or \"public-read\" (everyone has READ \
    too): other grants are not supported; give other accounts access as members of an organisation";

const OBJECT_ACLS: &str = "An object is \"private\" (its owner has FULL_CONTROL) or \"public-read\" (everyone has READ \
    too), and every object of a public bucket is public: other grants are not supported";

/// Canned access control list, by its effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Canned {
    Is(Access),
    /// S3 ignores these for buckets, and for objects they grant only what the bucket owner has anyway.
    OfOwner,
    /// Defined by S3, but not expressible by a bucket here.
    Other,
}

/// Canned lists of S3.
const CANNED: &[(&str, Canned)] = &[
    ("private", Canned::Is(Access::Private)),
    ("public-read", Canned::Is(Access::Public)),
    ("bucket-owner-read", Canned::OfOwner),
    ("bucket-owner-full-control", Canned::OfOwner),
    ("public-read-write", Canned::Other),
    ("authenticated-read", Canned::Other),
    ("aws-exec-read", Canned::Other),
    ("log-delivery-write", Canned::Other),
];

/// Canned lists that grant more than the owner access, to everyone or to every account.
const PUBLIC: [&str; 3] = ["public-read", "public-read-write", "authenticated-read"];

/// Rejects a canned list that grants public access if the bucket blocks such lists.
fn check_block(value: &str, is_blocking: bool) -> S3Result<()> {
    let is_public = PUBLIC.iter().any(|name| name.eq_ignore_ascii_case(value));
    let message = "The public access block of the bucket rejects lists that grant public access";
    match is_blocking && is_public {
        true => Err(s3_error(S3ErrorCode::AccessDenied, message)),
        false => Ok(()),
    }
}

/// Returns whether a bucket blocks lists that grant public access.
pub(super) fn blocks_public_acls(bucket: &Bucket) -> bool {
    bucket.public_access_block.is_some_and(|block| block.block_public_acls)
}

fn canned(value: &str) -> S3Result<Canned> {
    let found = CANNED.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    let message = "Unknown canned access control list";
    let found = found.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message));
    found.map(|(_, canned)| *canned)
}

/// Returns the access that a canned list requests for a bucket; `None` if S3 ignores the list.
pub(super) fn bucket_access(value: &str) -> S3Result<Option<Access>> {
    match canned(value)? {
        Canned::Is(access) => Ok(Some(access)),
        Canned::OfOwner => Ok(None),
        Canned::Other => Err(s3_error(S3ErrorCode::NotImplemented, BUCKET_ACLS)),
    }
}

/// Returns the access that a canned list requests for an object.
fn object_access(value: &str) -> S3Result<Access> {
    match canned(value)? {
        Canned::Is(access) => Ok(access),
        Canned::OfOwner => Ok(Access::Private),
        Canned::Other => Err(s3_error(S3ErrorCode::NotImplemented, OBJECT_ACLS)),
    }
}

/// Checks the canned list of a new object. `private` is what clients send by default: in a public bucket it requests no
/// access other than that of the bucket.
pub(super) fn check_new_object(value: &str, bucket: Option<RequestBucket<'_>>) -> S3Result<()> {
    check_block(value, bucket.is_some_and(|bucket| bucket.blocks_public_acls))?;
    object_access(value).map(drop)
}

/// Returns whether the canned list of a new object makes it public in a private bucket, which requires the scope
/// `read`.
pub(super) fn is_made_public(
    app: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    bucket: &Bucket,
) -> S3Result<bool> {
    let sent = headers.get("x-amz-acl").and_then(|value| value.to_str().ok());
    let access = sent.map_or(Ok(Access::Private), object_access)?;
    let is_made_public = access == Access::Public && bucket.access == Access::Private;
    if is_made_public {
        require_publishing(app, caller, bucket)?;
    }
    Ok(is_made_public)
}

/// Checks that a caller may make objects public: everyone gets its access to read them.
fn require_publishing(app: &AppState, caller: &Caller, bucket: &Bucket) -> S3Result<()> {
    let may = caller.authorize(&app.catalog, bucket, Scope::Read);
    may.map_err(|error| to_s3_error(&error))
}

/// Implements GetBucketAcl.
pub(super) async fn bucket_acl(
    app: &AppState,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<GetBucketAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket =
        head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    let (owner, grants) = grants(app, &bucket, bucket.access == Access::Public);
    Ok(GetBucketAclOutput { owner: Some(owner), grants: Some(grants) })
}

/// Implements GetObjectAcl.
pub(super) async fn object_acl(
    app: &AppState,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<GetObjectAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let GetObjectAclInput { bucket, key: sent_key, version_id: sent_id, .. } = &request.input;
    let id = version_id(sent_id.as_deref())?;
    let found = authorized_object(app, &caller, bucket, sent_key, Scope::Read);
    let (bucket, key) = found.map_err(|error| to_s3_error(&error))?;
    let name = ObjectName::new(bucket.name.clone(), key);
    let version = find_version(app, &bucket, &name, sent_key, id).await?;
    let (owner, grants) = grants(app, &bucket, bucket.is_public_object(&version.object));
    let (owner, grants) = (Some(owner), Some(grants));
    Ok(GetObjectAclOutput { owner, grants, ..GetObjectAclOutput::default() })
}

/// Returns an access control list: full control for the owner, and read for everyone if it is public.
fn grants(app: &AppState, bucket: &Bucket, is_public: bool) -> (Owner, Vec<Grant>) {
    let owner = owner_of(app, bucket);
    let full = Grantee {
        display_name: owner.display_name.clone(),
        id: owner.id.clone(),
        email_address: None,
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    let everyone = Grantee {
        display_name: None,
        id: None,
        email_address: None,
        type_: Type::from_static(Type::GROUP),
        uri: Some(EVERYONE.to_owned()),
    };
    let mut grants = Vec::new();
    if is_public {
        grants.push(grant(everyone, Permission::READ));
    }
    grants.push(grant(full, Permission::FULL_CONTROL));
    (owner, grants)
}

fn grant(grantee: Grantee, permission: &'static str) -> Grant {
    Grant { grantee: Some(grantee), permission: Some(Permission::from_static(permission)) }
}

/// Implements PutBucketAcl: makes a bucket private or public.
pub(super) async fn put_bucket_acl(
    app: &AppState,
    request: S3Request<PutBucketAclInput>,
) -> S3Result<PutBucketAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let bucket = head_bucket(app, &caller, &input.bucket).map_err(|error| to_s3_error(&error))?;
    let acl = input.acl.as_ref().map(|acl| acl.as_str());
    let wanted = match sent_list(acl, input.access_control_policy.as_ref(), &bucket)? {
        Canned::Is(access) => access,
        Canned::OfOwner => bucket.granted_access,
        Canned::Other => return Err(s3_error(S3ErrorCode::NotImplemented, BUCKET_ACLS)),
    };
    if wanted == Access::Public {
        check_block("public-read", blocks_public_acls(&bucket))?;
    }
    let change =
        BucketChange { access: Some(wanted), may_be_hidden: true, ..BucketChange::default() };
    let changed = change_settings(app, &caller, &input.bucket, change).await;
    changed.map_err(|error| to_s3_error(&error))?;
    Ok(PutBucketAclOutput {})
}

/// Implements PutObjectAcl.
pub(super) async fn put_object_acl(
    app: &AppState,
    request: S3Request<PutObjectAclInput>,
) -> S3Result<PutObjectAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let acl = input.acl.as_ref().map(|acl| acl.as_str());
    let stored = Stored::of(&input.bucket, &input.key, input.version_id.as_deref())?;
    let change = |bucket: &Bucket, attributes: StoredAttributes| {
        let list = sent_list(acl, input.access_control_policy.as_ref(), bucket)?;
        match (bucket.access, list) {
            (_, Canned::Other) | (Access::Public, Canned::Is(Access::Private)) => {
                Err(s3_error(S3ErrorCode::NotImplemented, OBJECT_ACLS))
            }
            (Access::Public, _) => Ok(attributes),
            (Access::Private, Canned::Is(Access::Public)) => {
                check_block("public-read", blocks_public_acls(bucket))?;
                require_publishing(app, &caller, bucket)?;
                Ok(StoredAttributes { is_public: true, ..attributes })
            }
            (Access::Private, _) => Ok(StoredAttributes { is_public: false, ..attributes }),
        }
    };
    rewrite(app, &caller, stored, Scope::Upload, change).await?;
    Ok(PutObjectAclOutput::default())
}

/// Returns the list that a request sends, by its name or as a policy.
fn sent_list(
    acl: Option<&str>,
    policy: Option<&AccessControlPolicy>,
    bucket: &Bucket,
) -> S3Result<Canned> {
    match (acl, policy) {
        (Some(_), Some(_)) => Err(both_sent()),
        (Some(acl), None) => {
            check_block(acl, blocks_public_acls(bucket))?;
            canned(acl)
        }
        (None, Some(policy)) => {
            Ok(access_of(policy, &bucket.owner)?.map_or(Canned::Other, Canned::Is))
        }
        (None, None) => Err(none_sent()),
    }
}

fn both_sent() -> S3Error {
    let message = "A request cannot have both a canned access control list and an access control \
        policy";
    s3_error(S3ErrorCode::UnexpectedContent, message)
}

fn none_sent() -> S3Error {
    let message = "The request has neither x-amz-acl nor an access control policy";
    s3_error(S3ErrorCode::MissingSecurityHeader, message)
}

/// Grants that an access control list can have here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granted {
    /// Full control of the owner.
    Owner,
    /// Read by everyone.
    Everyone,
    Other,
}

/// Returns the access that the grants of a policy express together; `None` if there is no such access.
fn access_of(policy: &AccessControlPolicy, owner: &AccountId) -> S3Result<Option<Access>> {
    let named = policy.owner.as_ref().and_then(|owner| owner.id.as_deref());
    if named.is_some_and(|named| named != owner.to_string()) {
        return Err(s3_error(S3ErrorCode::AccessDenied, "The owner of a bucket cannot be changed"));
    }
    let grants = policy.grants.as_deref().unwrap_or_default();
    let granted =
        grants.iter().map(|grant| granted_by(grant, owner)).collect::<S3Result<Vec<_>>>()?;
    let has = |wanted| granted.contains(&wanted);
    Ok(match (has(Granted::Owner), has(Granted::Everyone), has(Granted::Other)) {
        (true, false, false) => Some(Access::Private),
        (true, true, false) => Some(Access::Public),
        _ => None,
    })
}

fn granted_by(grant: &Grant, owner: &AccountId) -> S3Result<Granted> {
    let malformed = || {
        let message = "A grant requires a grantee (CanonicalUser with an ID, or Group with a URI) \
            and a permission";
        s3_error(S3ErrorCode::MalformedACLError, message)
    };
    let permission = grant.permission.as_ref().ok_or_else(malformed)?.as_str();
    let known = [
        Permission::FULL_CONTROL,
        Permission::READ,
        Permission::READ_ACP,
        Permission::WRITE,
        Permission::WRITE_ACP,
    ];
    if !known.contains(&permission) {
        return Err(malformed());
    }
    let grantee = grant.grantee.as_ref().ok_or_else(malformed)?;
    match grantee.type_.as_str() {
        Type::CANONICAL_USER => {
            let id = grantee.id.as_deref().ok_or_else(malformed)?;
            let message = "The ID of a grantee is not an account id";
            let id = AccountId::parse(id);
            let id = id.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))?;
            let is_owners = id == *owner && permission == Permission::FULL_CONTROL;
            Ok(if is_owners { Granted::Owner } else { Granted::Other })
        }
        Type::GROUP => {
            let uri = grantee.uri.as_deref().ok_or_else(malformed)?;
            let is_read = uri == EVERYONE && permission == Permission::READ;
            Ok(if is_read { Granted::Everyone } else { Granted::Other })
        }
        Type::AMAZON_CUSTOMER_BY_EMAIL => {
            let message = "Grantees by email address are not supported";
            Err(s3_error(code("UnresolvableGrantByEmailAddress"), message))
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(outcome: S3Result<T>) -> String {
        outcome.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
    }

    fn by(kind: &'static str, id: Option<&str>, uri: Option<&str>) -> Grantee {
        let (id, uri) = (id.map(str::to_owned), uri.map(str::to_owned));
        let type_ = Type::from_static(kind);
        Grantee { display_name: None, email_address: None, id, type_, uri }
    }

    #[test]
    fn canned_acls_are_expressed_or_rejected() {
        assert_eq!(bucket_access("private").unwrap(), Some(Access::Private));
        assert_eq!(bucket_access("Public-Read").unwrap(), Some(Access::Public));
        assert_eq!(bucket_access("bucket-owner-read").unwrap(), None);
        assert_eq!(code(bucket_access("public-read-write")), "NotImplemented");
        assert_eq!(code(bucket_access("public")), "InvalidArgument");
        let new = |acl: &str, blocks_public_acls: bool| {
            let bucket = RequestBucket { owner: "ann", blocks_public_acls };
            code(check_new_object(acl, Some(bucket)))
        };
        assert_eq!(new("private", false), "ok");
        assert_eq!(new("public-read", false), "ok");
        assert_eq!(new("public-read", true), "AccessDenied");
        assert_eq!(new("bucket-owner-full-control", true), "ok");
        assert_eq!(new("authenticated-read", false), "NotImplemented");
        assert_eq!(new("none", false), "InvalidArgument");
    }

    #[test]
    fn acl_policies_are_expressed_or_rejected() {
        let owner = AccountId::parse("aaaaaaaaaaaaaaaa").unwrap();
        let id = owner.to_string();
        let full = grant(by(Type::CANONICAL_USER, Some(&id), None), Permission::FULL_CONTROL);
        let read = grant(by(Type::GROUP, None, Some(EVERYONE)), Permission::READ);
        let write = grant(by(Type::GROUP, None, Some(EVERYONE)), Permission::WRITE);
        let other = grant(by(Type::CANONICAL_USER, Some("_foo"), None), Permission::READ);
        let mail = grant(by(Type::AMAZON_CUSTOMER_BY_EMAIL, None, None), Permission::READ);
        let none = Grant { grantee: None, permission: None };
        let access = |grants: &[&Grant]| {
            let grants = Some(grants.iter().map(|grant| (*grant).clone()).collect());
            access_of(&AccessControlPolicy { grants, owner: None }, &owner)
        };
        assert_eq!(access(&[&full]).unwrap(), Some(Access::Private));
        assert_eq!(access(&[&read, &full]).unwrap(), Some(Access::Public));
        for beyond in [&[][..], &[&read], &[&full, &write]] {
            assert_eq!(access(beyond).unwrap(), None, "{beyond:?}");
        }
        assert_eq!(code(access(&[&full, &other])), "InvalidArgument");
        assert_eq!(code(access(&[&full, &mail])), "UnresolvableGrantByEmailAddress");
        assert_eq!(code(access(&[&none])), "MalformedACLError");
    }
}
