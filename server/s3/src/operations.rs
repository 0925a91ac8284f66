//! Table of the S3 operations and the function that implements each.
//!
//! `s3s` rejects operations that are not in it as `NotImplemented`; `parameters` lists the parameters of each.
//! Non-goals: the operations themselves.

use async_trait::async_trait;
use s3s::{S3, S3Request, S3Response, S3Result, dto};
use service::state::AppState;

use super::access::caller_of;
use super::configuration::{self, check_bucket, not_configured};
use super::{
    acl, buckets, copying, cors, deletions, lifecycle, listing, multipart, object_lock, objects,
    policies, public_access_block, reads, tagging, versioning,
};

/// Operations on a running service.
pub(super) struct Operations {
    app: AppState,
}

impl Operations {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

/// Generates the methods of `S3`. Each line of a group is a method, its input, its output, and what is particular to
/// it.
macro_rules! operations {
    (
        $(done $done:ident $done_in:ident $done_out:ident $by:path;)*
        $(answered $answered:ident $answered_in:ident $answered_out:ident $answered_by:path;)*
        $(missing $missing:ident $missing_in:ident $missing_out:ident $code:literal;)*
        $(empty $empty:ident $empty_in:ident $empty_out:ident;)*
    ) => {
        #[async_trait]
        impl S3 for Operations {
            // Implemented by a function.
            $(async fn $done(
                &self,
                request: S3Request<dto::$done_in>,
            ) -> S3Result<S3Response<dto::$done_out>> {
                Ok(S3Response::new($by(&self.app, request).await?))
            })*

            // Implemented by a function that also returns status and headers.
            $(async fn $answered(
                &self,
                request: S3Request<dto::$answered_in>,
            ) -> S3Result<S3Response<dto::$answered_out>> {
                $answered_by(&self.app, request).await
            })*

            // Configuration that no bucket has.
            $(async fn $missing(
                &self,
                request: S3Request<dto::$missing_in>,
            ) -> S3Result<S3Response<dto::$missing_out>> {
                let caller = caller_of(&request.extensions)?;
                Err(not_configured(&self.app, &caller, &request.input.bucket, $code))
            })*

            // Empty response: a configuration at its default, or the removal of one that does not exist.
            $(async fn $empty(
                &self,
                request: S3Request<dto::$empty_in>,
            ) -> S3Result<S3Response<dto::$empty_out>> {
                let caller = caller_of(&request.extensions)?;
                check_bucket(&self.app, &caller, &request.input.bucket)?;
                Ok(S3Response::new(dto::$empty_out::default()))
            })*
        }
    };
}

operations! {
    done list_buckets ListBucketsInput ListBucketsOutput buckets::list;
    done head_bucket HeadBucketInput HeadBucketOutput buckets::head;
    done get_bucket_location GetBucketLocationInput GetBucketLocationOutput buckets::location;
    done create_bucket CreateBucketInput CreateBucketOutput buckets::create;
    done delete_bucket DeleteBucketInput DeleteBucketOutput buckets::delete;
    done list_objects_v2 ListObjectsV2Input ListObjectsV2Output listing::list_objects_v2;
    done list_objects ListObjectsInput ListObjectsOutput listing::list_objects_v1;
    done list_object_versions ListObjectVersionsInput ListObjectVersionsOutput listing::list_versions;
    done put_object PutObjectInput PutObjectOutput objects::put_object;
    done copy_object CopyObjectInput CopyObjectOutput copying::copy_object;
    done delete_object DeleteObjectInput DeleteObjectOutput deletions::delete;
    done delete_objects DeleteObjectsInput DeleteObjectsOutput deletions::delete_objects;
    done create_multipart_upload CreateMultipartUploadInput CreateMultipartUploadOutput
        multipart::create_multipart_upload;
    done upload_part UploadPartInput UploadPartOutput multipart::upload_part;
    done upload_part_copy UploadPartCopyInput UploadPartCopyOutput multipart::upload_part_copy;
    done complete_multipart_upload CompleteMultipartUploadInput CompleteMultipartUploadOutput
        multipart::complete_multipart_upload;
    done abort_multipart_upload AbortMultipartUploadInput AbortMultipartUploadOutput multipart::abort_multipart_upload;
    done list_parts ListPartsInput ListPartsOutput multipart::list_parts;
    done list_multipart_uploads ListMultipartUploadsInput ListMultipartUploadsOutput multipart::list_multipart_uploads;
    done get_bucket_acl GetBucketAclInput GetBucketAclOutput acl::bucket_acl;
    done get_object_acl GetObjectAclInput GetObjectAclOutput acl::object_acl;
    done get_object_tagging GetObjectTaggingInput GetObjectTaggingOutput tagging::get;
    done put_object_tagging PutObjectTaggingInput PutObjectTaggingOutput tagging::put;
    done delete_object_tagging DeleteObjectTaggingInput DeleteObjectTaggingOutput tagging::delete;
    done get_bucket_ownership_controls
        GetBucketOwnershipControlsInput GetBucketOwnershipControlsOutput configuration::ownership;
    done get_bucket_policy_status
        GetBucketPolicyStatusInput GetBucketPolicyStatusOutput policies::status;
    done get_bucket_request_payment
        GetBucketRequestPaymentInput GetBucketRequestPaymentOutput configuration::request_payment;
    done get_bucket_tagging GetBucketTaggingInput GetBucketTaggingOutput configuration::tagging;
    done put_bucket_tagging PutBucketTaggingInput PutBucketTaggingOutput configuration::put_tagging;
    done delete_bucket_tagging DeleteBucketTaggingInput DeleteBucketTaggingOutput configuration::delete_tagging;
    done put_object_lock_configuration
        PutObjectLockConfigurationInput PutObjectLockConfigurationOutput object_lock::put_configuration;
    done get_object_lock_configuration
        GetObjectLockConfigurationInput GetObjectLockConfigurationOutput object_lock::get_configuration;
    done get_object_retention GetObjectRetentionInput GetObjectRetentionOutput object_lock::get_retention;
    done put_object_retention PutObjectRetentionInput PutObjectRetentionOutput object_lock::put_retention;
    done get_object_legal_hold GetObjectLegalHoldInput GetObjectLegalHoldOutput object_lock::get_legal_hold;
    done put_object_legal_hold PutObjectLegalHoldInput PutObjectLegalHoldOutput object_lock::put_legal_hold;
    done get_bucket_lifecycle_configuration GetBucketLifecycleConfigurationInput
        GetBucketLifecycleConfigurationOutput lifecycle::get;
    done put_bucket_lifecycle_configuration PutBucketLifecycleConfigurationInput
        PutBucketLifecycleConfigurationOutput lifecycle::put;
    done delete_bucket_lifecycle DeleteBucketLifecycleInput DeleteBucketLifecycleOutput lifecycle::delete;
    done get_bucket_cors GetBucketCorsInput GetBucketCorsOutput cors::get;
    done put_bucket_cors PutBucketCorsInput PutBucketCorsOutput cors::put;
    done delete_bucket_cors DeleteBucketCorsInput DeleteBucketCorsOutput cors::delete;
    done put_bucket_ownership_controls
        PutBucketOwnershipControlsInput PutBucketOwnershipControlsOutput configuration::put_ownership;
    done put_bucket_request_payment
        PutBucketRequestPaymentInput PutBucketRequestPaymentOutput configuration::put_request_payment;
    done get_bucket_versioning GetBucketVersioningInput GetBucketVersioningOutput versioning::get;
    done put_bucket_versioning PutBucketVersioningInput PutBucketVersioningOutput versioning::put;
    done get_bucket_policy GetBucketPolicyInput GetBucketPolicyOutput policies::get;
    done put_bucket_policy PutBucketPolicyInput PutBucketPolicyOutput policies::put;
    done delete_bucket_policy DeleteBucketPolicyInput DeleteBucketPolicyOutput policies::delete;
    done get_public_access_block
        GetPublicAccessBlockInput GetPublicAccessBlockOutput public_access_block::get;
    done put_public_access_block
        PutPublicAccessBlockInput PutPublicAccessBlockOutput public_access_block::put;
    done delete_public_access_block
        DeletePublicAccessBlockInput DeletePublicAccessBlockOutput public_access_block::delete;
    done put_bucket_acl PutBucketAclInput PutBucketAclOutput acl::put_bucket_acl;
    done put_object_acl PutObjectAclInput PutObjectAclOutput acl::put_object_acl;

    answered get_object_attributes GetObjectAttributesInput GetObjectAttributesOutput reads::attributes;
    answered get_object GetObjectInput GetObjectOutput reads::get;
    answered head_object HeadObjectInput HeadObjectOutput reads::head;

    missing get_bucket_encryption GetBucketEncryptionInput GetBucketEncryptionOutput "ServerSideEncryptionConfigurationNotFoundError";
    missing get_bucket_replication GetBucketReplicationInput GetBucketReplicationOutput "ReplicationConfigurationNotFoundError";
    missing get_bucket_website GetBucketWebsiteInput GetBucketWebsiteOutput "NoSuchWebsiteConfiguration";

    empty get_bucket_accelerate_configuration
        GetBucketAccelerateConfigurationInput GetBucketAccelerateConfigurationOutput;
    empty get_bucket_logging GetBucketLoggingInput GetBucketLoggingOutput;
    empty get_bucket_notification_configuration
        GetBucketNotificationConfigurationInput GetBucketNotificationConfigurationOutput;
    empty delete_bucket_encryption DeleteBucketEncryptionInput DeleteBucketEncryptionOutput;
    empty delete_bucket_ownership_controls DeleteBucketOwnershipControlsInput DeleteBucketOwnershipControlsOutput;
    empty delete_bucket_replication DeleteBucketReplicationInput DeleteBucketReplicationOutput;
    empty delete_bucket_website DeleteBucketWebsiteInput DeleteBucketWebsiteOutput;
}
