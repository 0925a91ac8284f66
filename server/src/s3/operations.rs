//! The table of operations: which of S3 there are, and which file does each.
//!
//! What is not in it is answered as not implemented, by `s3s`. Never here: what an operation does.

use async_trait::async_trait;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, GetBucketLocationInput,
    GetBucketLocationOutput, GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput,
    HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectsInput, ListObjectsOutput,
    ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutObjectInput,
    PutObjectOutput, StreamingBlob, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result};

use super::access::caller_of;
use super::errors::refused;
use super::{buckets, copying, listing, multipart, objects};
use crate::state::AppState;

/// The operations, on a running service.
pub(super) struct Operations {
    app: AppState,
}

impl Operations {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

fn done<T>(output: T) -> S3Result<S3Response<T>> {
    Ok(S3Response::new(output))
}

#[async_trait]
impl S3 for Operations {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let caller = caller_of(&request.extensions)?;
        done(buckets::list(&self.app, &caller).map_err(|error| refused(&error))?)
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let caller = caller_of(&request.extensions)?;
        let looked = buckets::look(&self.app, &caller, &request.input.bucket);
        looked.map_err(|error| refused(&error))?;
        done(HeadBucketOutput::default())
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        let caller = caller_of(&request.extensions)?;
        let looked = buckets::look(&self.app, &caller, &request.input.bucket);
        looked.map_err(|error| refused(&error))?;
        done(GetBucketLocationOutput::default())
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let caller = caller_of(&request.extensions)?;
        buckets::create(&self.app, &caller, &request.input.bucket).await?;
        let location = Some(format!("/{}", request.input.bucket));
        done(CreateBucketOutput { location })
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let caller = caller_of(&request.extensions)?;
        done(listing::list(&self.app, &caller, request.input).await?)
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let caller = caller_of(&request.extensions)?;
        done(listing::list_older(&self.app, &caller, request.input).await?)
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let caller = caller_of(&request.extensions)?;
        let GetObjectInput { bucket, key, .. } = &request.input;
        let read = objects::read(&self.app, &caller, bucket, key, request.method, &request.headers);
        let read = read.await.map_err(|error| refused(&error))?;
        let body = read.body.map(|body| StreamingBlob::from(s3s::Body::http_body_unsync(body)));
        let output =
            GetObjectOutput { body, metadata: Some(read.metadata), ..GetObjectOutput::default() };
        let mut response = S3Response::with_headers(output, read.headers);
        response.status = Some(read.status);
        Ok(response)
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let caller = caller_of(&request.extensions)?;
        let HeadObjectInput { bucket, key, .. } = &request.input;
        let read = objects::read(&self.app, &caller, bucket, key, request.method, &request.headers);
        let read = read.await.map_err(|error| refused(&error))?;
        let output =
            HeadObjectOutput { metadata: Some(read.metadata), ..HeadObjectOutput::default() };
        let mut response = S3Response::with_headers(output, read.headers);
        response.status = Some(read.status);
        Ok(response)
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        done(objects::put(&self.app, request).await?)
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        done(copying::copy(&self.app, request).await?)
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let caller = caller_of(&request.extensions)?;
        let DeleteObjectInput { bucket, key, .. } = &request.input;
        let outcomes = objects::delete(&self.app, &caller, bucket, &[key]).await;
        match outcomes.map_err(|error| refused(&error))?.into_iter().flatten().next() {
            Some(refusal) => Err(refused(&refusal)),
            None => done(DeleteObjectOutput::default()),
        }
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        done(objects::delete_many(&self.app, request).await?)
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        done(multipart::create(&self.app, request).await?)
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        done(multipart::upload_part(&self.app, request).await?)
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        done(multipart::copy_part(&self.app, request).await?)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        done(multipart::complete(&self.app, request).await?)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        multipart::abort(&self.app, request).await?;
        done(AbortMultipartUploadOutput::default())
    }

    async fn list_parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        done(multipart::list_parts(&self.app, request).await?)
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        done(multipart::list_uploads(&self.app, request).await?)
    }
}
