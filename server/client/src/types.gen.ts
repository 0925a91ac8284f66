// Types of the HTTP API, generated from the OpenAPI document by `npm run build`: do not edit.
//
// Guarantees: a test compares this file with the document. Non-goals: what the client adds to these types.

/** Schemas of the HTTP API, by their names in the OpenAPI document. */
export interface Schemas {
  /** Read access to files without an API key. */
  Access: "public" | "private";
  /** Account. */
  AccountReply: {
    success: boolean;
    account: Schemas["AccountView"];
  };
  /** Account settings. */
  AccountSettings: {
    name?: string;
    plan?: Schemas["Plan"];
    standing?: Schemas["FairUseStanding"];
    role?: Schemas["Role"];
    /** Maximum total bytes of all buckets of the account; `null` removes the limit. */
    storageBytesMax?: number | null;
    /** Maximum total number of files in all buckets of the account; `null` removes the limit. */
    objectCountMax?: number | null;
  };
  AccountView: {
    id: string;
    name: string;
    role: Schemas["Role"];
    plan: Schemas["Plan"];
    standing: Schemas["FairUseStanding"];
    /** Standing changes, oldest first; empty if the standing never changed. */
    standingChanges: Array<Schemas["StandingChangeView"]>;
    /** Whether the account has a password. */
    hasPassword: boolean;
    storageBytesMax: number | null;
    objectCountMax: number | null;
    createdAt: string;
  };
  /** Page of accounts. */
  AccountsReply: {
    success: boolean;
    accounts: Array<Schemas["AccountView"]>;
    nextCursor: string | null;
  };
  /** Type of an actor. */
  ActorKind: "key" | "session" | "operator" | "server";
  /** API key, session, operator or server that made a change. */
  ActorView: {
    kind: Schemas["ActorKind"];
    /** Id of the API key or session. */
    id: string | null;
    /** Name of the API key, or of the signed-in account. */
    name: string | null;
    /** Account id. */
    account: string | null;
  };
  /** Error response. */
  ApiError: {
    success: false;
    /** Human-readable message. */
    error: string;
    /** Human-readable message. */
    message: string;
    /** Machine-readable error code. */
    code: "account_not_found" | "account_suspended" | "already_exists" | "api_key_not_found" | "bad_form" | "bad_header" | "bad_json" | "bad_parameter" | "bad_path" | "bad_request" | "bucket_not_empty" | "bucket_not_found" | "cancelled" | "checksum_mismatch" | "conflict" | "cross_site" | "damaged" | "file_not_found" | "file_too_large" | "forbidden" | "head_too_large" | "incomplete_body" | "internal" | "invalid_api_key" | "job_ended" | "job_not_found" | "last_owner" | "link_ended" | "link_expired" | "link_full" | "link_locked" | "link_not_found" | "log_too_large" | "method_not_allowed" | "missing_api_key" | "no_file" | "no_space" | "not_found" | "not_ready" | "organisation_not_empty" | "organisation_not_found" | "overloaded" | "plan_required" | "precondition_failed" | "quota_exceeded" | "range_not_satisfiable" | "rate_limited" | "read_only" | "remote_unavailable" | "request_timeout" | "session_ended" | "session_not_found" | "set_up_done" | "shutting_down" | "tls_required" | "token_expired" | "token_in_use" | "token_not_found" | "token_revoked" | "token_used" | "too_large" | "too_many_files" | "too_many_jobs" | "too_many_uploads" | "tus_version" | "type_not_allowed" | "undecodable" | "unsupported_media_type" | "upload_expired" | "upload_locked" | "upload_not_found" | "uri_too_long" | "version_not_found" | "webhook_not_found" | "wrong_host" | "wrong_metrics_token" | "wrong_offset" | "wrong_password" | "zip_too_large";
    /** HTTP status code. */
    status: number;
    /** Request id, as in `X-Request-Id` and in the server log. */
    requestId?: string;
    /** Name of the invalid parameter or field. */
    parameter?: string;
    /** Name of the invalid header. */
    header?: string;
    /** Seconds to wait before retrying. */
    retryAfter?: number;
    /** Exceeded limit, in bytes or files. */
    limit?: number;
    /** Current usage of the quota, in bytes or files. */
    used?: number;
    /** Scope of the exceeded quota: `account` or `bucket`. */
    quota?: string;
    /** Unit of the exceeded quota: `bytes` or `files`. */
    measure?: string;
    /** File size in bytes. */
    size?: number;
    /** Offset in bytes at which the upload continues. */
    offset?: number;
    /** Rejected content type. */
    contentType?: string;
    /** Bucket of the corrupt file. */
    bucketName?: string;
    /** Path of the corrupt file. */
    key?: string;
    /** Problem type URI; only in `application/problem+json`. */
    type?: string;
    /** Problem title; only in `application/problem+json`. */
    title?: string;
    /** Problem detail; only in `application/problem+json`. */
    detail?: string;
    "violated-policies"?: Array<string>;
  };
  /** New API key. No other response contains the key. */
  ApiKeyIssuedReply: {
    success: boolean;
    key: string;
    apiKey: Schemas["ApiKeyView"];
    s3?: Schemas["S3CredentialsView"] | null;
  };
  /** API key without its secret. */
  ApiKeyReply: {
    success: boolean;
    apiKey: Schemas["ApiKeyView"];
  };
  /** Settings of a new API key. */
  ApiKeySettings: {
    name?: string;
    scopes: Array<Schemas["Scope"]>;
    bucketName?: string | null;
    prefix?: string | null;
    /** Expiry time in RFC 3339 format. */
    expiresAt?: string | null;
  };
  ApiKeyView: {
    id: string;
    account: string;
    name: string;
    scopes: Array<Schemas["Scope"]>;
    bucketName: string | null;
    prefix: string;
    createdAt: string;
    expiresAt: string | null;
    /** Time of the last use, to the hour. */
    lastUsedAt: string | null;
    revokedAt: string | null;
  };
  /** Page of API keys. */
  ApiKeysReply: {
    success: boolean;
    apiKeys: Array<Schemas["ApiKeyView"]>;
    nextCursor: string | null;
  };
  /** Whether the page asks for the name of the person who uploads. */
  AskName: "no" | "optional" | "required";
  /** Audit log entry. */
  AuditEntryView: {
    id: string;
    time: string;
    /** Action, such as `bucket.create`. */
    action: string;
    actor: Schemas["ActorView"];
    bucketName: string | null;
    /** Id of the changed resource, if not a bucket; path of a changed file. */
    target: string | null;
    /** Current name of the changed account, API key or organisation. */
    targetName: string | null;
    /** Changed settings; size of an uploaded file. */
    detail: string | null;
    /** Client IP address. */
    address: string | null;
    /** Request id, as in `X-Request-Id` of the response. */
    requestId: string | null;
  };
  /** Page of audit log entries, newest first. */
  AuditView: {
    success: boolean;
    entries: Array<Schemas["AuditEntryView"]>;
    /** `before` of the next page; `null` on the last page. */
    nextCursor: string | null;
  };
  /** Deleted bucket. */
  BucketDeletedReply: {
    success: boolean;
    message: string;
    bucketName: string;
    deletedCount: number;
  };
  /** Bucket type. */
  BucketKind: "standard" | "phone";
  /** Bucket and the caller's scopes. */
  BucketReply: {
    success: boolean;
    bucket: Schemas["BucketView"];
    /** Scopes of the caller in the bucket, by role and API key. */
    scopes: Array<Schemas["Scope"]>;
  };
  /** Bucket settings. */
  BucketSettings: {
    access?: Schemas["Access"];
    /** Content for missing files: a key of the bucket, or `/bucket/key`. */
    placeholder?: string | null;
    cacheControl?: string | null;
    corsOrigins?: null | Array<"*"> | Array<string>;
    allowedTypes?: null | Array<string>;
    fileBytesMax?: number | null;
    quotaBytes?: number | null;
    quotaObjects?: number | null;
    serveHtml?: boolean;
    thumbnails?: boolean;
    /** Whether search engines may index the objects of a public bucket; true by default. */
    index?: boolean;
    /** Whether text-like files are delivered compressed to clients that accept it; true by default. */
    compression?: boolean;
    /** All lifecycle rules, at most 100; `null` for none. */
    lifecycle?: Array<Schemas["LifecycleRuleView"]> | null;
  };
  BucketUsageView: {
    bucketName: string;
    objectCount: number;
    totalBytes: number;
    /** Received bytes of unfinished uploads. Quotas count the declared lengths instead. */
    unfinishedBytes: number;
    quotaObjects: number | null;
    quotaBytes: number | null;
  };
  BucketView: {
    bucketName: string;
    account: string;
    organisation: string | null;
    type: Schemas["BucketKind"];
    access: Schemas["Access"];
    placeholder: string | null;
    cacheControl: string | null;
    corsOrigins: Array<string>;
    allowedTypes: Array<string>;
    fileBytesMax: number | null;
    quotaBytes: number | null;
    quotaObjects: number | null;
    serveHtml: boolean;
    thumbnails: boolean;
    /** Whether search engines may index the objects of a public bucket. */
    index: boolean;
    /** Whether text-like files are delivered compressed to clients that accept it. */
    compression: boolean;
    lifecycle: Array<Schemas["LifecycleRuleView"]>;
    createdAt: string;
    updatedAt: string;
    objectCount: number;
    totalBytes: number;
  };
  /** Page of buckets. */
  BucketsReply: {
    success: boolean;
    buckets: Array<Schemas["BucketView"]>;
    nextCursor: string | null;
  };
  /** Camera data of a photograph, from its Exif block. */
  CameraView: {
    make: string | null;
    model: string | null;
    lens: string | null;
    /** Local time of the camera, as `2026-01-31T12:00:00`. */
    takenAt: string | null;
    /** Exposure time and aperture, as `1/250 s, f/2.8`. */
    exposure: string | null;
    iso: number | null;
    /** Focal length, as `35 mm`. */
    focalLength: string | null;
    /** Whether the file contains the location at which it was taken. */
    hasLocation: boolean;
  };
  /** Originator of a standing change. */
  ChangedBy: "sweep" | "operator";
  CommonPrefix: {
    Prefix: string;
  };
  Content: {
    Key: string;
    LastModified: string;
    ETag: string;
    Size: number;
    StorageClass: string;
  };
  DamagedView: {
    /** Bucket of the corrupt file; `null` if unknown, or if no file is affected. */
    bucketName: string | null;
    path: string | null;
    /** Segment file. */
    file: string;
    offset: number;
    what: string;
    whatToDo: string;
    foundAt: string;
  };
  /** Failed event (dead letter). */
  DeadLetterView: {
    eventId: string;
    type: string;
    key: string;
    /** Time of the event. */
    timestamp: string;
    attemptCount: number;
    givenUpAt: string;
    /** HTTP status of the last delivery attempt; `null` without a response. */
    status?: number | null;
    deliveryError: string;
    /** Beginning of the response body. */
    answer: string;
  };
  /** Number of deleted dead letters. */
  DeadLettersForgottenView: {
    success: boolean;
    deletedCount: number;
  };
  /** Page of dead letters. */
  DeadLettersReply: {
    success: boolean;
    deadLetters: Array<Schemas["DeadLetterView"]>;
    nextCursor?: string | null;
  };
  /** Number of events queued again. */
  DeadLettersRetriedView: {
    success: boolean;
    retriedCount: number;
  };
  /** Result of a deletion. */
  DeleteReply: {
    success: boolean;
    message: string;
    key: string;
    deletedCount: number;
    isTruncated?: boolean | null;
    /** Compatibility aliases of `deletedCount`. Not part of the API contract. */
    deleted: number;
    /** Compatibility aliases of `deletedCount`. Not part of the API contract. */
    count: number;
  };
  DiskView: {
    totalBytes: number;
    freeBytes: number;
    /** Reserved free space in bytes; with less free space, uploads are rejected. */
    reserveBytes: number;
  };
  /** Temporary download link. */
  DownloadLinkReply: {
    success: boolean;
    url: string;
    expiresAt: string;
  };
  /** Request for a download link. */
  DownloadLinkRequest: {
    path: Schemas["FilePath"];
    /** Lifetime in seconds, 1 to 604800; default 3600. */
    expiresIn?: number | null;
  };
  /** Path of a file or folder. */
  EntryPath: string;
  EstimateView: {
    /** Reclaimable bytes, including retained files. */
    wouldFree: number;
    wouldCopy: number;
    /** Number of segments to be replaced. */
    segments: number;
  };
  /** Fair-use standing of an account. */
  FairUseStanding: "good" | "notified" | "upgrade_requested" | "throttled" | "suspended";
  /** Path of a file, at most 1,024 bytes. */
  FilePath: string;
  /** Boolean flag; an empty value is true. */
  Flag: boolean | "1" | "yes" | "on" | "0" | "no" | "off";
  /** Path of a folder, with a trailing slash; empty for the root. */
  FolderPath: string;
  /** Folder with the totals of its files at any depth. */
  FolderView: {
    folder: string;
    objectCount: number;
    totalBytes: number;
    /** Time of the latest change; `null` if unknown. */
    modifiedAt: string | null;
    /** Whether `objectCount` and `totalBytes` are exact; otherwise, they are lower bounds. */
    isExact?: boolean;
  };
  /** Page of folders of a bucket, by name. */
  FoldersView: {
    success: boolean;
    folders: Array<Schemas["FolderView"]>;
    /** Last folder of the page; `null` on the last page. */
    nextCursor: string | null;
  };
  /** Store health: which writes are accepted. */
  HealthView: "writable" | "full" | "read_only";
  /** Usage over time. */
  HistoryReply: {
    success: boolean;
    step: Schemas["Step"];
    /** Start of the first interval. */
    from: string;
    /** End of the last interval, or the current time if earlier. */
    to: string;
    /** Start of the server, before which no minutes are recorded; only with `step=minute`. */
    since?: string | null;
    points: Array<Schemas["UsagePointView"]>;
  };
  IndexView: {
    bytes: number;
    /** Changes in memory and in the log that are not yet in the index file. */
    waitingChanges: number;
    /** Whether the index is corrupt; the next start rebuilds it. */
    condemned: boolean;
  };
  /** New invitation. No other response contains its link. */
  InvitationReply: {
    success: boolean;
    account: Schemas["AccountView"];
    url: string;
    expiresAt: string;
  };
  InvitedMemberView: {
    account: string;
    role: Schemas["MemberRole"];
  };
  /** URL that was not imported. */
  JobFailureView: {
    url: string;
    error: string;
  };
  /** Job. */
  JobReply: {
    success: boolean;
    job: Schemas["JobView"];
  };
  /** Request to start a job. */
  JobRequest: {
    bucketName: string;
    /** Folder with a trailing slash. */
    prefix: Schemas["FolderPath"];
    kind: "deleteFolder";
  } | {
    bucketName: string;
    /** Folder with a trailing slash. */
    prefix: Schemas["FolderPath"];
    /** Destination folder with a trailing slash, outside the folder. */
    to: Schemas["FolderPath"];
    onConflict?: Schemas["OnConflict"] | null;
    kind: "moveFolder";
  } | {
    bucketName: string;
    /** Folder with a trailing slash; empty for the whole bucket. */
    prefix: Schemas["FolderPath"];
    /** Earliest time of deletion in RFC 3339 format. */
    since?: string | null;
    kind: "undeleteFolder";
  } | {
    bucketName: string;
    kind: "emptyBucket";
  } | {
    bucketName: string;
    prefix?: Schemas["FolderPath"] | null;
    /** URLs, at most 500, `http` or `https`. */
    urls: Array<string>;
    onConflict?: Schemas["OnConflict"] | null;
    kind: "importUrls";
  } | {
    /** Minimum percentage of dead bytes in a segment, 1 to 100. */
    deadPercentMin?: number | null;
    kind: "compact";
  } | {
    kind: "scrub";
  };
  /** Result of a job so far. */
  JobResultView: {
    /** Bytes of deleted, moved or restored files; reclaimed bytes of a compaction; verified bytes of a scrub. */
    bytes: number;
    /** Skipped items: files (name in use, changed concurrently, or content reclaimed), corrupt segments, or URLs. */
    skipped: number;
    /** Number of known corrupt locations, after a scrub. */
    damageCount: number;
  };
  /** Job state. */
  JobState: "waiting" | "running" | "done" | "cancelled" | "failed";
  JobView: {
    id: string;
    kind: string;
    bucketName: string | null;
    prefix: string | null;
    to: string | null;
    /** Id of the account that started the job. */
    account: string;
    state: Schemas["JobState"];
    done: number;
    /** Total work in `unit`, as far as known. */
    total: number;
    /** Unit of `done` and `total`: `files`, `addresses` or `bytes`. */
    unit: string;
    createdAt: string;
    startedAt: string | null;
    endedAt: string | null;
    /** Error message of a failed job. */
    error: string | null;
    errorCode: string | null;
    /** First 50 URLs that were not imported; only for `importUrls`. */
    failures: Array<Schemas["JobFailureView"]>;
    result: Schemas["JobResultView"];
  };
  /** Page of jobs. */
  JobsReply: {
    success: boolean;
    jobs: Array<Schemas["JobView"]>;
    nextCursor: string | null;
  };
  LastBackupView: {
    at: string;
    to: string;
    damageCount: number;
  };
  /** Files that expire when rules are saved. */
  LifecyclePreview: {
    success: boolean;
    /** Number of files that have expired by the rules, and have not by the current ones. */
    files: number;
    /** Bytes of these files. */
    bytes: number;
    /** Whether all files were read; otherwise there may be more. */
    isComplete: boolean;
  };
  /** Lifecycle rules to preview. */
  LifecyclePreviewRequest: {
    /** All rules, as in an update of the bucket. */
    lifecycle: Array<Schemas["LifecycleRuleView"]>;
  };
  /** Lifecycle rule: objects whose keys begin with a prefix expire at an age or at a time. */
  LifecycleRuleView: {
    /** Id, unique in the bucket, of 1 to 255 characters. */
    id: string;
    /** Start of the keys to which the rule applies, such as `tmp/`; empty for the whole bucket. */
    prefix?: string;
    /** Age in seconds since the last modification, 60 to 315,360,000. Either this or `expireAt`. */
    expireAfterSeconds?: number | null;
    /** Expiry time of all these objects. */
    expireAt?: string | null;
    enabled?: boolean;
  };
  /** Change of a shared link. */
  LinkEditRequest: {
    /** `false`, and nothing else, reopens a link that the same account ended less than 60 seconds ago. */
    ended?: boolean;
    /** Title of the page; the name of its only file or folder if empty. */
    title?: string;
    message?: string;
    layout?: Schemas["LinkLayout"];
    /** Whether everything may be downloaded as a zip archive; default `true`. Only of a download link, like `layout` and `downloadsMax`. */
    zip?: boolean;
    /** Lifetime in seconds from now, 60 to 315,360,000; default 604,800 (7 days). `null` for no expiry. The setting `link_days_max` of the server may allow less. */
    expiresIn?: number | null;
    /** Expiry instead of `expiresIn`. `null` for no expiry. */
    expiresAt?: string | null;
    /** Password of 4 to 128 characters; `null` for none. */
    password?: string | null;
    /** Maximum number of downloads, 1 to 1,000,000; `null` for no maximum. */
    downloadsMax?: number | null;
    /** Maximum number of uploaded files, 1 to 10,000; default 100. */
    filesMax?: number;
    /** Maximum bytes of an uploaded file, at most the limit of the bucket; `null` for that limit. */
    fileBytesMax?: number | null;
    /** Maximum bytes of all uploaded files together; default 10,000,000,000. */
    bytesMax?: number;
    /** Media types that may be uploaded, such as `image/png` or `image/*`, all of them accepted by the bucket; empty for the types of the bucket. */
    allowedTypes?: Array<string>;
    /** Whether the page asks for the name of the person who uploads. */
    askName?: Schemas["AskName"];
  };
  /** Kind of a link. */
  LinkKind: "download" | "upload";
  /** Presentation of the files. */
  LinkLayout: "auto" | "gallery" | "list";
  /** One shared link. */
  LinkReply: {
    success: boolean;
    link: Schemas["LinkView"];
  };
  /** State of a link, apart from the rights of its creator. */
  LinkState: "active" | "expired" | "used_up" | "ended" | "blocked";
  /** Shared link. */
  LinkView: {
    id: string;
    /** URL of the page, which is secret. */
    url: string;
    kind: Schemas["LinkKind"];
    bucketName: string;
    paths: Array<string>;
    title: string;
    message: string;
    layout: Schemas["LinkLayout"];
    zip: boolean;
    expiresAt?: string | null;
    hasPassword: boolean;
    downloadsMax?: number | null;
    /** Number of downloads of a file or archive. */
    downloadCount: number;
    /** Number of times that the page was viewed. */
    viewCount: number;
    /** Time of the last view, download or upload; `null` if never used. */
    lastUsedAt: string | null;
    /** Maximum number of uploaded files; `null` for a download link, like the other limits of uploads. */
    filesMax?: number | null;
    /** Maximum bytes of an uploaded file, if it is less than that of the bucket. */
    fileBytesMax?: number | null;
    /** Maximum bytes of all uploaded files together. */
    bytesMax?: number | null;
    /** Media types that may be uploaded; empty for the types of the bucket. */
    allowedTypes?: Array<string> | null;
    askName?: Schemas["AskName"] | null;
    /** Number of uploaded files. */
    uploadedFiles: number;
    /** Bytes of the uploaded files. */
    uploadedBytes: number;
    state: Schemas["LinkState"];
    /** Name of the account that created the link. */
    createdBy: string;
    createdAt: string;
    updatedAt: string;
  };
  /** Shared links. */
  LinksReply: {
    success: boolean;
    /** Links, newest first. */
    links: Array<Schemas["LinkView"]>;
    /** Maximum lifetime of new and changed links in days; `null` for no maximum. */
    daysMax: number | null;
    nextCursor?: string | null;
  };
  /** Page of objects. `Contents` and `CommonPrefixes` are always present, even if empty. */
  ListReply: {
    success: boolean;
    Name: string;
    Prefix: string;
    Delimiter?: string;
    StartAfter?: string | null;
    MaxKeys: number;
    KeyCount: number;
    IsTruncated: boolean;
    ContinuationToken?: string | null;
    NextContinuationToken?: string | null;
    Contents: Array<Schemas["Content"]>;
    CommonPrefixes: Array<Schemas["CommonPrefix"]>;
  };
  /** Role of a member; each role includes the permissions of the preceding ones. */
  MemberRole: "viewer" | "member" | "admin" | "owner";
  /** Request to invite an account, or to change the role of a member. */
  MemberSettings: {
    account: string;
    role: Schemas["MemberRole"];
  };
  MemberView: {
    account: string;
    name: string;
    role: Schemas["MemberRole"];
  };
  /** Members and invited accounts of an organisation. */
  MembersReply: {
    success: boolean;
    members: Array<Schemas["MemberView"]>;
    invited: Array<Schemas["InvitedMemberView"]>;
  };
  /** Invitation of the account to an organisation. */
  MembershipInvitationView: {
    /** Organisation id. */
    id: string;
    /** Organisation name. */
    name: string;
    role: Schemas["MemberRole"];
  };
  /** Request to move or copy a file. */
  MoveRequest: {
    from: Schemas["FilePath"];
    to: Schemas["FilePath"];
    onConflict?: Schemas["OnConflict"] | null;
  };
  /** New location of a moved or copied file. */
  MovedReply: {
    success: boolean;
    path: string;
    url: string;
    /** Whether the file got a different name because the requested one was in use. */
    renamed: boolean;
  };
  /** Account settings. */
  NewAccountSettings: {
    name: string;
    plan?: Schemas["Plan"];
    standing?: Schemas["FairUseStanding"];
    role?: Schemas["Role"];
    /** Maximum total bytes of all buckets of the account; `null` removes the limit. */
    storageBytesMax?: number | null;
    /** Maximum total number of files in all buckets of the account; `null` removes the limit. */
    objectCountMax?: number | null;
  };
  /** Bucket settings. */
  NewBucketSettings: {
    access?: Schemas["Access"];
    /** Content for missing files: a key of the bucket, or `/bucket/key`. */
    placeholder?: string | null;
    cacheControl?: string | null;
    corsOrigins?: null | Array<"*"> | Array<string>;
    allowedTypes?: null | Array<string>;
    fileBytesMax?: number | null;
    quotaBytes?: number | null;
    quotaObjects?: number | null;
    serveHtml?: boolean;
    thumbnails?: boolean;
    /** Whether search engines may index the objects of a public bucket; true by default. */
    index?: boolean;
    /** Whether text-like files are delivered compressed to clients that accept it; true by default. */
    compression?: boolean;
    /** All lifecycle rules, at most 100; `null` for none. */
    lifecycle?: Array<Schemas["LifecycleRuleView"]> | null;
    bucketName: string;
    type?: null | "standard" | "phone";
    organisation?: null | string;
  };
  /** Shared link to create. */
  NewLinkRequest: {
    /** Kind of the link; fixed after creation. */
    kind?: Schemas["LinkKind"];
    /** Files, and folders, which end in `/`; an empty path is the whole bucket. Exactly one folder for an upload link. Fixed after creation. */
    paths: Array<string>;
    /** Title of the page; the name of its only file or folder if empty. */
    title?: string;
    message?: string;
    layout?: Schemas["LinkLayout"];
    /** Whether everything may be downloaded as a zip archive; default `true`. Only of a download link, like `layout` and `downloadsMax`. */
    zip?: boolean;
    /** Lifetime in seconds from now, 60 to 315,360,000; default 604,800 (7 days). `null` for no expiry. The setting `link_days_max` of the server may allow less. */
    expiresIn?: number | null;
    /** Expiry instead of `expiresIn`. `null` for no expiry. */
    expiresAt?: string | null;
    /** Password of 4 to 128 characters; `null` for none. */
    password?: string | null;
    /** Maximum number of downloads, 1 to 1,000,000; `null` for no maximum. */
    downloadsMax?: number | null;
    /** Maximum number of uploaded files, 1 to 10,000; default 100. */
    filesMax?: number;
    /** Maximum bytes of an uploaded file, at most the limit of the bucket; `null` for that limit. */
    fileBytesMax?: number | null;
    /** Maximum bytes of all uploaded files together; default 10,000,000,000. */
    bytesMax?: number;
    /** Media types that may be uploaded, such as `image/png` or `image/*`, all of them accepted by the bucket; empty for the types of the bucket. */
    allowedTypes?: Array<string>;
    /** Whether the page asks for the name of the person who uploads. */
    askName?: Schemas["AskName"];
  };
  /** Deleted or replaced version of a file. */
  NoncurrentVersionView: {
    path: string;
    /** Version id; greater for versions stored later. */
    lsn: number;
    state: Schemas["VersionEnd"];
    /** Time of the deletion or replacement; `null` if no longer known. */
    deletedAt: string | null;
    bytes: number;
    type: string;
    etag: string;
    createdAt: string;
    modifiedAt: string;
    /** End of the guaranteed retention, unless disk space runs low; `null` without a guarantee. */
    recoverableUntil: string | null;
  };
  /** Page of restorable versions. */
  NoncurrentVersionsReply: {
    success: boolean;
    /** Restorable versions, possibly few or none before the last page; a `nextCursor` of `null` ends the list. */
    versions: Array<Schemas["NoncurrentVersionView"]>;
    nextCursor: string | null;
  };
  /** Description of a file. */
  ObjectInfo: {
    bucketName: string;
    path: string;
    url: string;
    size: number;
    contentType: string;
    etag: string;
    createdAt: string;
    lastModified: string;
    cacheControl: string | null;
    contentDisposition: string | null;
    /** Stored content coding, which is delivered as it is. */
    contentEncoding: string | null;
    metadata: Record<string, unknown>;
    /** Earliest expiry: of the file itself, or by a lifecycle rule. */
    expiresAt: string | null;
    /** Id of the lifecycle rule by which the file expires first. */
    expiresByRule: string | null;
    /** Displayed width of an image in pixels. */
    width: number | null;
    height: number | null;
    camera: Schemas["CameraView"] | null;
  };
  /** Described file. */
  ObjectReply: {
    success: boolean;
    object: Schemas["ObjectInfo"];
  };
  /** Change of a file; absent fields are unchanged. */
  ObjectSettings: {
    /** Media type, which the content must not contradict. */
    contentType?: string;
    /** `Cache-Control`; `null` for the default. */
    cacheControl?: string | null;
    /** `Content-Disposition`; `null` for the default. */
    contentDisposition?: string | null;
    /** All user metadata, at most 64 entries and 2,048 bytes. */
    metadata?: Record<string, unknown>;
    /** Lifetime in seconds from now, 60 to 315,360,000; `null` for no expiry. */
    expiresIn?: number | null;
    /** Expiry instead of `expiresIn`; `null` for no expiry. */
    expiresAt?: string | null;
  };
  /** Handling of a name that is already in use. */
  OnConflict: "refuse" | "rename" | "overwrite";
  /** Response to a declined invitation. */
  OrganisationDeclinedReply: {
    success: boolean;
  };
  /** Deleted organisation. */
  OrganisationDeletedReply: {
    success: boolean;
    message: string;
    id: string;
  };
  /** Organisation. */
  OrganisationReply: {
    success: boolean;
    organisation: Schemas["OrganisationView"];
  };
  /** Organisation settings. */
  OrganisationSettings: {
    name: string;
  };
  OrganisationView: {
    id: string;
    name: string;
    /** Id of the owning account. */
    account: string;
    members: Array<Schemas["MemberView"]>;
    /** Invited accounts that have not accepted yet, without their names. */
    invited: Array<Schemas["InvitedMemberView"]>;
    createdAt: string;
  };
  /** Page of organisations. */
  OrganisationsReply: {
    success: boolean;
    organisations: Array<Schemas["OrganisationView"]>;
    /** All pending invitations of the account. */
    invitations: Array<Schemas["MembershipInvitationView"]>;
    nextCursor: string | null;
  };
  /** Settings of the caller's account. */
  OwnAccountSettings: {
    name?: string | null;
  };
  /** Plan of an account, which determines its rate limits and fair use; default `Business`. */
  Plan: "Free" | "Starter" | "Pro" | "Business";
  /** Presigned PUT URL. */
  PresignedUrlReply: {
    success: boolean;
    presignedUrl: string;
    bucketName: string;
    key: string;
    expiresIn: number;
    expiresAt: string;
    /** Compatibility aliases: bucket, key and HTTP method. Not part of the API contract. */
    bucket: string;
    /** Compatibility aliases: bucket, key and HTTP method. Not part of the API contract. */
    fileKey: string;
    /** Compatibility aliases: bucket, key and HTTP method. Not part of the API contract. */
    filePath: string;
    /** Compatibility aliases: bucket, key and HTTP method. Not part of the API contract. */
    method: string;
  };
  RecentUploadView: {
    bucketName: string;
    key: string;
    size: number;
    contentType: string;
    modifiedAt: string;
  };
  /** Latest uploads, newest first. */
  RecentUploadsReply: {
    success: boolean;
    uploads: Array<Schemas["RecentUploadView"]>;
  };
  /** When a write is acknowledged. */
  RemoteAckView: "local" | "remote";
  /** Requests to the remote store. */
  RemoteRequestsView: {
    /** `create`, `upload`, `read`, `list` or `remove`. */
    call: string;
    succeeded: number;
    failed: number;
  };
  /** State of replication. */
  ReplicationStateView: "connecting" | "primary" | "fenced";
  /** Replication to the remote store. */
  ReplicationView: {
    /** URL of the remote store, as configured; `null` if unknown. */
    url: string | null;
    state: Schemas["ReplicationStateView"];
    /** Reason for the state `fenced`, otherwise error of the last request; `null` if it succeeded. */
    error: string | null;
    ack: Schemas["RemoteAckView"];
    /** Epoch of this process; 0 if it is not the primary. */
    epoch: number;
    /** Number of the last chunk. */
    chunk: number;
    /** Log bytes that are not in the remote store; a lower bound. */
    unshippedBytes: number;
    /** Age in seconds of the oldest write that is not in the remote store. */
    lagSeconds: number;
    /** Whether the data from before replication began is in the remote store. Until then nothing can be restored. */
    complete: boolean;
    /** Number of segments that wait for their upload. */
    waitingSegments: number;
    /** Time of the last manifest; `null` if there is none. */
    lastManifestAt: string | null;
    /** Whether the remote store creates objects atomically, so that two primaries are detected; `null` until observed. */
    createsAtomically: boolean | null;
    /** Requests since the server was started, by call. */
    requests: Array<Schemas["RemoteRequestsView"]>;
    tier: Schemas["TierView"] | null;
  };
  /** Deleted large files in the undelete window. */
  RetainedView: {
    files: number;
    /** Disk space of retained files in bytes; reclaimed early when space runs low. */
    bytes: number;
    /** Expiry time of the first retained file; `null` if there is none. */
    nextReleaseAt: string | null;
  };
  /** Role of an account; operators manage accounts and the server. */
  Role: "user" | "operator";
  /** S3 credentials. */
  S3CredentialsView: {
    accessKeyId: string;
    secretAccessKey: string;
  };
  /** Permission of an API key. */
  Scope: "upload" | "delete" | "read" | "list" | "presign" | "manage";
  /** Search hit. */
  SearchHit: {
    type: string;
    name: string;
    key: string;
    path: string;
    parent: string;
    score: number;
    matches: Array<Array<number>>;
    size: number | null;
    lastModified: string | null;
    etag: string | null;
    contentType: string | null;
    url: string | null;
    thumbnailUrl: string | null;
  };
  /** Search result. */
  SearchReply: {
    success: boolean;
    query: string;
    bucketName: string;
    parent: string;
    estimatedTotalHits: number;
    total: number;
    totalIsExact: boolean;
    processingTimeMs: number;
    hits: Array<Schemas["SearchHit"]>;
    /** Maximum number of hits. */
    limit: number;
    /** Number of skipped hits. */
    offset: number;
  };
  SegmentKindUsageView: {
    kind: Schemas["SegmentKindView"];
    segments: number;
    liveBytes: number;
    deadBytes: number;
  };
  /** Segment kind. */
  SegmentKindView: "log" | "compacted" | "big";
  SettingView: {
    name: string;
    /** Value as in the configuration file; `null` if not set, `"***"` for a secret. */
    value: string | null;
    /** Effect of the setting without a value. */
    withoutValue: string | null;
    /** Source of the value: `default`, `environment`, the configuration file, or the command-line option. */
    source: string;
    /** Description in Markdown. */
    about: string;
    /** Required action after a change: `reload` or `restart`. */
    change: string;
  };
  /** Server version, data folder and settings. */
  SettingsReply: {
    success: boolean;
    version: string;
    dataFolder: string | null;
    settings: Array<Schemas["SettingView"]>;
  };
  /** Standing change. */
  StandingChangeView: {
    at: string;
    from: Schemas["FairUseStanding"];
    to: Schemas["FairUseStanding"];
    reason: string;
    by: Schemas["ChangedBy"];
  };
  /** Standing change made by a fair-use sweep. */
  StandingStepView: {
    account: string;
    name: string;
    from: Schemas["FairUseStanding"];
    to: Schemas["FairUseStanding"];
    reason: string;
  };
  /** Interval of the points. */
  Step: "minute" | "hour" | "day";
  /** Disk usage, segments, corruption, and estimated effect of a compaction. */
  StorageReply: {
    success: boolean;
    /** Server version. */
    version: string;
    dataFolder: string | null;
    remote: Schemas["ReplicationView"] | null;
    health: Schemas["HealthView"];
    disk: Schemas["DiskView"] | null;
    index: Schemas["IndexView"] | null;
    /** Totals of each segment kind. */
    kinds: Array<Schemas["SegmentKindUsageView"]>;
    /** Segments of small files, those with the most dead bytes first; at most 500. */
    segments: Array<Schemas["StorageSegmentView"]>;
    /** Whether there are more segments than listed. */
    segmentsTruncated: boolean;
    /** Deleted large files in the undelete window, not included in `kinds`. */
    retained: Schemas["RetainedView"];
    /** Time since which all data has been verified; `null` if some data was never verified. */
    verifiedSince: string | null;
    lastBackup: Schemas["LastBackupView"] | null;
    damageCount: number;
    /** First corrupt locations. */
    damage: Array<Schemas["DamagedView"]>;
    /** Estimated effect of a compaction. */
    compaction: Schemas["EstimateView"];
  };
  StorageSegmentView: {
    id: number;
    kind: Schemas["SegmentKindView"];
    bytes: number;
    liveBytes: number;
    deadBytes: number;
    /** Number of live records. */
    objects: number;
    /** Whether the segment is sealed, so that nothing is appended to it. */
    sealed: boolean;
    verifiedAt: string | null;
    damageCount: number;
  };
  /** Result of a fair-use sweep. */
  SweepReportView: {
    success: boolean;
    /** Number of accounts on the plan Free. */
    accountCount: number;
    /** Number of accounts that exceed fair use, whether or not a step was due. */
    violationCount: number;
    steps: Array<Schemas["StandingStepView"]>;
  };
  /** Reason why no thumbnail was created. */
  ThumbnailSkip: "not_a_picture" | "is_thumbnail" | "undecodable" | "too_large" | "busy" | "name_taken" | "name_too_long" | "failed";
  /** Segments by where they are. */
  TierView: {
    /** `local_cache_bytes`; 0 if it is not set: then segments are fetched back. */
    localBytesMax: number;
    /** Bytes of segments on this machine. */
    localBytes: number;
    /** Bytes of cache files on this machine. */
    cachedBytes: number;
    /** Number of segments that are only in the remote store. */
    remoteSegments: number;
    /** Bytes of these segments. */
    remoteBytes: number;
    /** Number of requests of reads to the remote store since the server was started. */
    fetches: number;
    /** Bytes fetched by them. */
    fetchedBytes: number;
  };
  TokenAliasData: {
    presignedUrl: string;
  };
  /** One-time upload token and its URL. */
  TokenReply: {
    success: boolean;
    url: string;
    expiresIn: number;
    expiresAt: string;
    token: string;
    /** Compatibility aliases for Fivemanage and Qbox templates. Not part of the API contract. */
    presignedUrl: string;
    /** Compatibility aliases for Fivemanage and Qbox templates. Not part of the API contract. */
    data: Schemas["TokenAliasData"];
    /** Compatibility aliases for Fivemanage and Qbox templates. Not part of the API contract. */
    status: string;
  };
  /** Request to restore a file. */
  UndeleteRequest: {
    path: Schemas["FilePath"];
    /** Id of the version to restore; default: the newest intact version. */
    lsn?: number | null;
    onConflict?: Schemas["OnConflict"] | null;
  };
  /** Location of a restored file. */
  UndeletedReply: {
    success: boolean;
    path: string;
    url: string;
    /** Id of the restored version; the restored file has a new one. */
    lsn: number;
    /** Whether the file got a different name because its own was in use. */
    renamed: boolean;
  };
  UploadAliasData: {
    id: string;
    url: string;
    path: string;
    key: string;
    thumbnailUrl: string | null;
  };
  /** Result of an upload. */
  UploadReply: {
    success: boolean;
    message: string;
    url: string;
    urls: Array<string>;
    thumbnailUrl: string | null;
    thumbnailUrls: Array<string | null>;
    key: string;
    path: string;
    bucketName: string;
    renamed: boolean;
    files: Array<Schemas["UploadedFile"]>;
    /** Compatibility aliases for Fivemanage, Qbox and lb-upload templates. Not part of the API contract. */
    status: string;
    /** Compatibility aliases for Fivemanage, Qbox and lb-upload templates. Not part of the API contract. */
    link: string;
    /** Compatibility aliases for Fivemanage, Qbox and lb-upload templates. Not part of the API contract. */
    data: Schemas["UploadAliasData"];
  };
  /** Stored file. */
  UploadedFile: {
    /** Final file name. */
    name: string;
    /** File name sent by the client, if any. */
    originalName: string | null;
    /** Key, without the bucket. */
    key: string;
    /** Public URL. */
    url: string;
    /** Public URL of the thumbnail; `null` if there is none. */
    thumbnailUrl: string | null;
    thumbnailSkipped?: Schemas["ThumbnailSkip"] | null;
    /** File size in bytes. */
    size: number;
    /** Stored media type. */
    contentType: string;
    /** Entity tag, including its quotes. */
    etag: string;
    /** Time when the file was stored, in RFC 3339 format. */
    lastModified: string;
    /** Whether ` (n)` was added to the name because it was in use. */
    renamed: boolean;
  };
  /** Usage in one interval. */
  UsagePointView: {
    /** Start of the interval. */
    time: string;
    /** Number of answered requests. */
    requests: number;
    /** Number of requests with a 5xx response. */
    errors: number;
    /** Number of requests with a 4xx response. */
    refusals: number;
    /** Response body bytes. */
    bytesOut: number;
    /** Request body bytes, including bytes of imported files. */
    bytesIn: number;
    /** Number of rendered images. */
    images: number;
    /** Image render time in milliseconds. */
    imageMs: number;
    /** Number of files at the end of the interval; `null` if not counted. */
    objectCount: number | null;
    /** Total bytes of files at the end of the interval; `null` if not counted. */
    storedBytes: number | null;
  };
  /** Stored bytes and objects, per bucket and in total. */
  UsageReply: {
    success: boolean;
    /** Page of the account's buckets, by name. */
    buckets: Array<Schemas["BucketUsageView"]>;
    nextCursor: string | null;
    total?: Schemas["UsageTotalView"] | null;
  };
  UsageTotalView: {
    objectCount: number;
    totalBytes: number;
    objectCountMax: number | null;
    storageBytesMax: number | null;
  };
  /** Reason why a version is not current. */
  VersionEnd: "deleted" | "replaced";
  /** New webhook, with its secret, which is returned only once. */
  WebhookCreatedView: {
    success: boolean;
    secret: string;
    webhook: Schemas["WebhookView"];
  };
  /** Deleted webhook. */
  WebhookDeletedReply: {
    success: boolean;
    message: string;
    id: string;
  };
  /** Webhook. */
  WebhookReply: {
    success: boolean;
    webhook: Schemas["WebhookView"];
  };
  /** Webhook settings. */
  WebhookSettings: {
    url?: string;
    events?: Array<"s3:ObjectCreated:*" | "s3:ObjectRemoved:*" | "s3:LifecycleExpiration:*" | "s3:ObjectCreated:Put" | "s3:ObjectCreated:Post" | "s3:ObjectCreated:CompleteMultipartUpload" | "s3:ObjectCreated:Copy" | "s3:ObjectRemoved:Delete" | "s3:LifecycleExpiration:Delete">;
    prefix?: string | null;
    enabled?: boolean;
  };
  /** Result of a webhook test. */
  WebhookTestedView: {
    success: boolean;
    delivered: boolean;
    /** HTTP status of the response; `null` without a response. */
    status?: number | null;
    /** Reason why the test message does not count as delivered. */
    deliveryError?: string | null;
    /** Beginning of the response body. */
    answer: string;
    durationMs: number;
  };
  /** Webhook with its delivery statistics, without its secret. */
  WebhookView: {
    id: string;
    bucketName: string;
    url: string;
    events: Array<string>;
    prefix: string;
    enabled: boolean;
    /** Reason why the server disabled the webhook. */
    disabledReason?: string | null;
    /** Number of events waiting for delivery. */
    pendingCount: number;
    /** Number of waiting events that failed at least once. */
    retryingCount: number;
    /** Number of failed events (dead letters). */
    deadLetterCount: number;
    /** Number of events dropped because the queue was full. */
    droppedCount: number;
    lastAttemptAt?: string | null;
    /** HTTP status of the last delivery attempt; `null` without a response. */
    lastStatus?: number | null;
    /** Error of the last delivery attempt; `null` if successful. */
    lastError?: string | null;
    lastDeliveryAt?: string | null;
    createdAt: string;
    updatedAt: string;
  };
  /** Webhooks of a bucket. */
  WebhooksReply: {
    success: boolean;
    webhooks: Array<Schemas["WebhookView"]>;
  };
  /** Prepared zip archive. */
  ZipReply: {
    success: boolean;
    /** URL of the archive, which needs no credential. */
    url: string;
    /** Number of files. */
    files: number;
    /** Bytes of the files. */
    bytes: number;
    expiresAt: string;
  };
  /** Selection of files for a zip archive. */
  ZipRequest: {
    /** Files, and folders, which end in `/`. */
    paths: Array<Schemas["EntryPath"]>;
    /** File name of the archive. */
    name?: string | null;
  };
}

/** Operations of the HTTP API, by path and method. */
export interface Paths {
  "/{bucket}/{path}": {
    /** Uploads the files of a multipart form to a path, or into a folder if the path ends with `/`. */
    POST: {
      path: {
        /** Bucket name. */
        bucket: string;
        /** Key of a file, or of a folder with a trailing slash. Slashes need not be encoded. */
        path: Schemas["EntryPath"];
      };
      query?: {
        /** Whether to replace an existing file; otherwise the new file gets an unused name. */
        overwrite?: Schemas["Flag"];
        /** Whether to name the file by a random UUID, with its extension. */
        randomizeName?: Schemas["Flag"];
        /** Whether to create thumbnails of images; default: the setting of the bucket. */
        thumbnail?: Schemas["Flag"];
        /** Media type, which the content must not contradict. */
        contentType?: string;
        /** `Cache-Control` of the file. */
        cacheControl?: string;
        /** `Content-Disposition` of the file. */
        contentDisposition?: string;
        /** User metadata: a JSON object with text values, at most 2,048 bytes. */
        metadata?: string;
        /** Lifetime of the file in seconds. */
        expiresIn?: number;
        /** Expiry of the file, instead of `expiresIn`. */
        expiresAt?: string;
      };
      body: FormData;
      output: Schemas["UploadReply"];
    };
    /** Uploads one file to a presigned URL. */
    PUT: {
      path: {
        /** Bucket name. */
        bucket: string;
        /** Key of a file, or of a folder with a trailing slash. Slashes need not be encoded. */
        path: Schemas["EntryPath"];
      };
      query: {
        /** Token of the presigned URL. */
        token: string;
      };
      body: Blob | ArrayBuffer | Uint8Array | string;
      output: Schemas["UploadReply"];
    };
    /** Deletes a file, or up to 100 files of a folder. */
    DELETE: {
      path: {
        /** Bucket name. */
        bucket: string;
        /** Key of a file, or of a folder with a trailing slash. Slashes need not be encoded. */
        path: Schemas["EntryPath"];
      };
      output: Schemas["DeleteReply"];
    };
  };
  "/{bucket}/presigned/{path}": {
    /** Issues a presigned PUT URL for one file (legacy form). */
    GET: {
      path: {
        /** Bucket name. */
        bucket: string;
        /** Key of a file, or of a folder with a trailing slash. Slashes need not be encoded. */
        path: Schemas["EntryPath"];
      };
      query?: {
        /** Lifetime in seconds, or expiry as Unix time in seconds or milliseconds; clamped to 1 to 3600 seconds. Aliases: `expiresAt`, `ttl`. */
        expiresIn?: number;
        /** Whether to create thumbnails of images; default: the setting of the bucket. */
        thumbnail?: Schemas["Flag"];
      };
      output: Schemas["PresignedUrlReply"];
    };
  };
  "/api/presigned-url": {
    /** Issues a one-time upload token for clients without an API key. */
    GET: {
      query?: {
        /** `BUCKET/FOLDER/` or `BUCKET/FILE`. The bucket is optional if `bucketName` or the API key determines it. */
        path?: string;
        /** Bucket to which `path` is relative. Alias: `bucket`. */
        bucketName?: string;
        /** Lifetime in seconds, or expiry as Unix time in seconds or milliseconds; clamped to 1 to 3600 seconds. Aliases: `expiresIn`, `ttl`. */
        expiresAt?: number;
        /** Whether to replace an existing file; otherwise the new file gets an unused name. */
        overwrite?: Schemas["Flag"];
        /** Whether to name the file by a random UUID, with its extension. */
        randomizeName?: Schemas["Flag"];
        /** Whether to create thumbnails of images; default: the setting of the bucket. */
        thumbnail?: Schemas["Flag"];
      };
      output: Schemas["TokenReply"];
    };
  };
  "/api/presigned-url/{token}": {
    /** Uploads the files of a multipart form with a one-time upload token. */
    POST: {
      path: {
        /** Upload token. */
        token: string;
      };
      query?: {
        /** `1` for a page as the response. */
        page?: string;
        /** Media type, which the content must not contradict. */
        contentType?: string;
        /** `Cache-Control` of the file. */
        cacheControl?: string;
        /** `Content-Disposition` of the file. */
        contentDisposition?: string;
        /** User metadata: a JSON object with text values, at most 2,048 bytes. */
        metadata?: string;
        /** Lifetime of the file in seconds. */
        expiresIn?: number;
        /** Expiry of the file, instead of `expiresIn`. */
        expiresAt?: string;
      };
      body: FormData;
      output: Schemas["UploadReply"];
    };
  };
  "/api/list-objects": {
    /** Lists objects of a bucket in the JSON form of S3 ListObjectsV2. */
    GET: {
      query: {
        /** Bucket name. Alias: `bucket`. */
        bucketName: string;
        /** Only keys with this prefix. */
        prefix?: string;
        /** Delimiter; keys with the same text before it are grouped into one common prefix. */
        delimiter?: string;
        /** Only keys after this one. */
        startAfter?: string;
        /** Entries per page, at most 1000. */
        maxKeys?: number;
        /** `NextContinuationToken` of the previous page. */
        continuationToken?: string;
        /** Sort order. `folders` requires `delimiter=/` and a folder as `prefix`. */
        order?: "keys" | "folders";
      };
      output: Schemas["ListReply"];
    };
  };
  "/api/search/{bucket}": {
    /** Searches files and folders by name; without `q`, lists a folder. */
    GET: {
      path: {
        /** Bucket name. */
        bucket: string;
      };
      query?: {
        /** Search text, at most 16 words and 256 characters. */
        q?: string;
        /** Folder to search, with or without a trailing slash. */
        parent?: string;
        /** Hits per page, 1 to 1000; default 20. */
        limit?: number;
        /** Hits to skip; `offset` plus `limit` is at most 10,000. */
        offset?: number;
      };
      output: Schemas["SearchReply"];
    };
  };
  "/api/buckets": {
    /** Lists the buckets the account can access, by name. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["BucketsReply"];
    };
    /** Creates a bucket owned by the account or an organisation. */
    POST: {
      body: Schemas["NewBucketSettings"];
      output: Schemas["BucketReply"];
    };
  };
  "/api/buckets/{bucketName}": {
    /** Returns a bucket with its object count and size. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      output: Schemas["BucketReply"];
    };
    /** Updates the given settings of a bucket. */
    PATCH: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["BucketSettings"];
      output: Schemas["BucketReply"];
    };
    /** Deletes a bucket; with `force`, including its objects. */
    DELETE: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query?: {
        /** Delete the bucket even if it contains files. */
        force?: Schemas["Flag"];
      };
      output: Schemas["BucketDeletedReply"];
    };
  };
  "/api/buckets/{bucketName}/folders": {
    /** Lists folders of a bucket by name, with the number and total bytes of their files at any depth. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
        /** Folder whose subfolders are listed, with modification times; empty for the root. If absent, top-level folders are listed without modification times. */
        prefix?: Schemas["FolderPath"];
      };
      output: Schemas["FoldersView"];
    };
  };
  "/api/buckets/{bucketName}/lifecycle/preview": {
    /** Counts the files that would be deleted within a minute if lifecycle rules were saved. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["LifecyclePreviewRequest"];
      output: Schemas["LifecyclePreview"];
    };
  };
  "/api/buckets/{bucketName}/move": {
    /** Moves or renames one file within its bucket, including its thumbnail. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["MoveRequest"];
      output: Schemas["MovedReply"];
    };
  };
  "/api/buckets/{bucketName}/copy": {
    /** Copies one file within its bucket. The copy is subject to the limits of an upload. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["MoveRequest"];
      output: Schemas["MovedReply"];
    };
  };
  "/api/buckets/{bucketName}/download-links": {
    /** Creates a temporary download link for one file of a private bucket. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["DownloadLinkRequest"];
      output: Schemas["DownloadLinkReply"];
    };
  };
  "/api/buckets/{bucketName}/object": {
    /** Describes a file. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query: {
        /** Path of the file. */
        path: Schemas["FilePath"];
      };
      output: Schemas["ObjectReply"];
    };
    /** Changes media type, response headers, user metadata or expiry of a file. */
    PATCH: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query: {
        /** Path of the file. */
        path: Schemas["FilePath"];
      };
      body: Schemas["ObjectSettings"];
      output: Schemas["ObjectReply"];
    };
  };
  "/api/buckets/{bucketName}/zips": {
    /** Prepares a zip archive of selected files and folders. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["ZipRequest"];
      output: Schemas["ZipReply"];
    };
  };
  "/api/buckets/{bucketName}/deleted": {
    /** Lists deleted and replaced versions that can be restored: recent deletions first, then older ones by path. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
        /** Only paths with this prefix. */
        prefix?: string;
      };
      output: Schemas["NoncurrentVersionsReply"];
    };
  };
  "/api/buckets/{bucketName}/undelete": {
    /** Restores a file: the newest intact version, or the given one. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["UndeleteRequest"];
      output: Schemas["UndeletedReply"];
    };
  };
  "/api/buckets/{bucketName}/webhooks": {
    /** Lists the webhooks of a bucket by id. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      output: Schemas["WebhooksReply"];
    };
    /** Creates a webhook. The secret is returned only once. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["WebhookSettings"];
      output: Schemas["WebhookCreatedView"];
    };
  };
  "/api/buckets/{bucketName}/webhooks/{id}": {
    /** Returns a webhook with its delivery statistics. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["WebhookReply"];
    };
    /** Updates the given settings of a webhook. */
    PATCH: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      body: Schemas["WebhookSettings"];
      output: Schemas["WebhookReply"];
    };
    /** Deletes a webhook and its queued events. */
    DELETE: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["WebhookDeletedReply"];
    };
  };
  "/api/buckets/{bucketName}/webhooks/{id}/test": {
    /** Sends a test event and returns the receiver's response. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["WebhookTestedView"];
    };
  };
  "/api/buckets/{bucketName}/webhooks/{id}/dead-letters": {
    /** Lists dead letters, oldest first. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["DeadLettersReply"];
    };
    /** Deletes all dead letters, or one. */
    DELETE: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      query?: {
        /** Id of the only affected event; default: all events. */
        eventId?: string;
      };
      output: Schemas["DeadLettersForgottenView"];
    };
  };
  "/api/buckets/{bucketName}/webhooks/{id}/dead-letters/retry": {
    /** Redelivers all dead letters, or one. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
        /** Id of the resource. */
        id: string;
      };
      query?: {
        /** Id of the only affected event; default: all events. */
        eventId?: string;
      };
      output: Schemas["DeadLettersRetriedView"];
    };
  };
  "/api/buckets/{bucketName}/links": {
    /** Lists the shared links of a bucket, newest first. */
    GET: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      query?: {
        /** Only links of this kind. */
        kind?: Schemas["LinkKind"];
        /** Only links in this state. */
        state?: Schemas["LinkState"];
        /** Only links that include this file or folder. */
        path?: string;
        /** With `path`: only links of just this file or folder. */
        exact?: boolean;
        /** Only links created by this key, or by this account in the dashboard. */
        own?: boolean;
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["LinksReply"];
    };
    /** Creates a link to a page with files and folders, or to one that requests files. */
    POST: {
      path: {
        /** Bucket name. */
        bucketName: string;
      };
      body: Schemas["NewLinkRequest"];
      output: Schemas["LinkReply"];
    };
  };
  "/api/links": {
    /** Lists the caller's shared links of all buckets, newest first. */
    GET: {
      query?: {
        /** Only links of this kind. */
        kind?: Schemas["LinkKind"];
        /** Only links in this state. */
        state?: Schemas["LinkState"];
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["LinksReply"];
    };
  };
  "/api/links/{id}": {
    /** Returns a shared link. */
    GET: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["LinkReply"];
    };
    /** Updates the given settings of a shared link. */
    PATCH: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      body: Schemas["LinkEditRequest"];
      output: Schemas["LinkReply"];
    };
    /** Ends a shared link: everyone who has it loses access at once. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["LinkReply"];
    };
  };
  "/api/jobs": {
    /** Lists active jobs and those finished in the last 7 days, newest first. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["JobsReply"];
    };
    /** Starts a background job and returns immediately. */
    POST: {
      body: Schemas["JobRequest"];
      output: Schemas["JobReply"];
    };
  };
  "/api/jobs/{id}": {
    /** Returns the state and progress of a job. */
    GET: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["JobReply"];
    };
    /** Cancels a job; completed work is kept. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["JobReply"];
    };
  };
  "/api/audit": {
    /** Lists audit log entries, newest first. */
    GET: {
      query?: {
        /** Only entries about this bucket. */
        bucketName?: string;
        /** Only actions with this prefix, such as `bucket.`. */
        action?: string;
        /** Only actions of this key, session or account, given by id, or by name of the key or account. */
        actor?: string;
        /** `nextCursor` of the previous page. */
        before?: string;
        /** Entries per page, 1 to 500; default 100. */
        limit?: number;
      };
      output: Schemas["AuditView"];
    };
  };
  "/api/audit/files": {
    /** Lists uploads, copies and deletions of files, newest first. */
    GET: {
      query?: {
        /** Only files of this bucket. */
        bucketName?: string;
        /** Only this file, or the files below this folder if it ends with `/`. */
        path?: string;
        /** Only files whose path contains this text, regardless of case. */
        name?: string;
        /** Only actions with this prefix: `file.upload`, `file.copy`, `file.delete` or `file.expire`. */
        action?: string;
        /** Only actions of this key, session or account, given by id, or by name of the key or account. */
        actor?: string;
        /** `nextCursor` of the previous page. */
        before?: string;
        /** Entries per page, 1 to 500; default 100. */
        limit?: number;
      };
      output: Schemas["AuditView"];
    };
  };
  "/api/storage": {
    /** Returns disk usage and health of the store. Operators only. */
    GET: {
      output: Schemas["StorageReply"];
    };
  };
  "/api/settings": {
    /** Lists the effective server settings. Operators only. */
    GET: {
      output: Schemas["SettingsReply"];
    };
  };
  "/api/recent-uploads": {
    /** Lists the latest uploads to the buckets that the caller can list, newest first. */
    GET: {
      query?: {
        /** Maximum number of uploads, 1 to 12; default 8. */
        limit?: number;
      };
      output: Schemas["RecentUploadsReply"];
    };
  };
  "/api/keys": {
    /** Lists the account's API keys, including revoked ones; `q` filters by name or id. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
        /** Up to 16 words. Selects entries whose names contain all words, or whose ids begin with them. */
        q?: string;
      };
      output: Schemas["ApiKeysReply"];
    };
    /** Creates an API key. The key is returned only once. */
    POST: {
      body: Schemas["ApiKeySettings"];
      output: Schemas["ApiKeyIssuedReply"];
    };
  };
  "/api/keys/{id}": {
    /** Revokes an API key with immediate effect. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["ApiKeyReply"];
    };
  };
  "/api/organisations": {
    /** Lists the account's organisations; `q` filters by name or id. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
        /** Up to 16 words. Selects entries whose names contain all words, or whose ids begin with them. */
        q?: string;
      };
      output: Schemas["OrganisationsReply"];
    };
    /** Creates an organisation owned by the account. */
    POST: {
      body: Schemas["OrganisationSettings"];
      output: Schemas["OrganisationReply"];
    };
  };
  "/api/organisations/{id}": {
    /** Returns an organisation. */
    GET: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["OrganisationReply"];
    };
    /** Renames an organisation. */
    PATCH: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      body: Schemas["OrganisationSettings"];
      output: Schemas["OrganisationReply"];
    };
    /** Deletes an organisation that owns no buckets. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["OrganisationDeletedReply"];
    };
  };
  "/api/organisations/{id}/members": {
    /** Lists the members of an organisation. */
    GET: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["MembersReply"];
    };
    /** Invites an account to an organisation, or changes the role of a member. */
    POST: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      body: Schemas["MemberSettings"];
      output: Schemas["MembersReply"];
    };
    /** Removes a member, leaves the organisation, or withdraws an invitation. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      query: {
        /** Account id of the member. */
        account: string;
      };
      output: Schemas["MembersReply"];
    };
  };
  "/api/organisations/{id}/membership": {
    /** Accepts an invitation to an organisation. */
    POST: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["OrganisationReply"];
    };
    /** Declines an invitation to an organisation. */
    DELETE: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["OrganisationDeclinedReply"];
    };
  };
  "/api/account": {
    /** Returns the caller's account. */
    GET: {
      output: Schemas["AccountReply"];
    };
    /** Renames the caller's account. */
    PATCH: {
      body: Schemas["OwnAccountSettings"];
      output: Schemas["AccountReply"];
    };
  };
  "/api/usage": {
    /** Returns stored bytes and objects, per bucket and in total. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
      };
      output: Schemas["UsageReply"];
    };
  };
  "/api/usage/history": {
    /** Returns usage over time for one bucket, all accessible buckets, or (operators) the whole server. */
    GET: {
      query?: {
        /** Interval of the points; default `hour`. */
        step?: Schemas["Step"];
        /** Bucket name; default: all accessible buckets or, for operators, the whole server. */
        bucketName?: string;
        /** RFC 3339 time in the first interval. Default: one hour, one day or 30 days ago. */
        from?: string;
        /** RFC 3339 time after the start of the last interval. Default: now. */
        to?: string;
      };
      output: Schemas["HistoryReply"];
    };
  };
  "/api/accounts": {
    /** Lists accounts; `q` filters by name or id. Operators only. */
    GET: {
      query?: {
        /** Entries per page. */
        limit?: number;
        /** `nextCursor` of the previous page. */
        cursor?: string;
        /** Up to 16 words. Selects entries whose names contain all words, or whose ids begin with them. */
        q?: string;
      };
      output: Schemas["AccountsReply"];
    };
    /** Creates an account. Operators only. */
    POST: {
      body: Schemas["NewAccountSettings"];
      output: Schemas["AccountReply"];
    };
  };
  "/api/accounts/sweep": {
    /** Runs the fair-use sweep. Operators only. */
    POST: {
      output: Schemas["SweepReportView"];
    };
  };
  "/api/accounts/{id}": {
    /** Returns an account. Operators only. */
    GET: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["AccountReply"];
    };
    /** Updates the given settings of an account. Operators only. */
    PATCH: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      body: Schemas["AccountSettings"];
      output: Schemas["AccountReply"];
    };
  };
  "/api/accounts/{id}/invitations": {
    /** Creates an invitation link for setting the account's password. Operators only. */
    POST: {
      path: {
        /** Id of the resource. */
        id: string;
      };
      output: Schemas["InvitationReply"];
    };
  };
  "/{bucket}/": {
    /** Uploads the files of a multipart form to a path, or into a folder if the path ends with `/`. */
    POST: {
      path: {
        /** Bucket name. */
        bucket: string;
      };
      query?: {
        /** Whether to replace an existing file; otherwise the new file gets an unused name. */
        overwrite?: Schemas["Flag"];
        /** Whether to name the file by a random UUID, with its extension. */
        randomizeName?: Schemas["Flag"];
        /** Whether to create thumbnails of images; default: the setting of the bucket. */
        thumbnail?: Schemas["Flag"];
        /** Media type, which the content must not contradict. */
        contentType?: string;
        /** `Cache-Control` of the file. */
        cacheControl?: string;
        /** `Content-Disposition` of the file. */
        contentDisposition?: string;
        /** User metadata: a JSON object with text values, at most 2,048 bytes. */
        metadata?: string;
        /** Lifetime of the file in seconds. */
        expiresIn?: number;
        /** Expiry of the file, instead of `expiresIn`. */
        expiresAt?: string;
      };
      body: FormData;
      output: Schemas["UploadReply"];
    };
  };
  "/{bucket}": {
    /** Uploads the files of a multipart form to a path, or into a folder if the path ends with `/`. */
    POST: {
      path: {
        /** Bucket name. */
        bucket: string;
      };
      query?: {
        /** Whether to replace an existing file; otherwise the new file gets an unused name. */
        overwrite?: Schemas["Flag"];
        /** Whether to name the file by a random UUID, with its extension. */
        randomizeName?: Schemas["Flag"];
        /** Whether to create thumbnails of images; default: the setting of the bucket. */
        thumbnail?: Schemas["Flag"];
        /** Media type, which the content must not contradict. */
        contentType?: string;
        /** `Cache-Control` of the file. */
        cacheControl?: string;
        /** `Content-Disposition` of the file. */
        contentDisposition?: string;
        /** User metadata: a JSON object with text values, at most 2,048 bytes. */
        metadata?: string;
        /** Lifetime of the file in seconds. */
        expiresIn?: number;
        /** Expiry of the file, instead of `expiresIn`. */
        expiresAt?: string;
      };
      body: FormData;
      output: Schemas["UploadReply"];
    };
  };
}
