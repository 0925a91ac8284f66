//! Positional names of commands, with the options of earlier versions as hidden aliases.

/// Defines arguments for a name: required by position, or by a hidden option.
macro_rules! positional {
    ($($(#[doc = $help:literal])+ $type:ident, $value:literal, $long:literal;)+) => {$(
        #[derive(Clone, clap::Args)]
        pub(crate) struct $type {
            $(#[doc = $help])+
            #[arg(
                id = concat!($long, "_name"),
                value_name = $value,
                required_unless_present = concat!($long, "_option")
            )]
            name: Option<String>,
            /// Alias of the positional name.
            #[arg(
                id = concat!($long, "_option"),
                long = $long,
                value_name = $value,
                hide = true,
                conflicts_with = concat!($long, "_name")
            )]
            option: Option<String>,
        }

        impl $type {
            /// Returns the name. The parser has required one.
            pub(crate) fn get(self) -> String {
                self.name.or(self.option).unwrap_or_default()
            }
        }
    )+};
}

positional! {
    /// Name of the account, unique and used to sign in.
    NewAccount, "NAME", "name";
    /// Account (name or ID).
    Account, "NAME", "account";
    /// Name of the bucket: 3 to 63 of a-z, 0-9, "-", "." and "_", beginning with a letter or digit.
    NewBucket, "NAME", "name";
    /// Bucket.
    BucketName, "NAME", "name";
    /// Bucket.
    Bucket, "BUCKET", "bucket";
    /// Name of the organisation.
    NewOrganisation, "NAME", "name";
    /// Organisation (name or ID).
    Organisation, "NAME", "organisation";
    /// New name of the organisation.
    NewName, "NEW", "name";
    /// Account (name or ID).
    Member, "ACCOUNT", "account";
    /// ID, as shown by `list`.
    Id, "ID", "id";
    /// URL that receives the events, http or https.
    Url, "URL", "url";
}

/// Objects of a bucket: a path, a folder, or the whole bucket.
#[derive(clap::Args)]
pub(crate) struct Objects {
    /// Bucket, object, or folder with "/" at its end.
    #[arg(value_name = "BUCKET[/PATH]", required_unless_present = "bucket")]
    path: Option<String>,
    /// Alias of the bucket in the path.
    #[arg(long, value_name = "NAME", hide = true)]
    bucket: Option<String>,
}

impl Objects {
    /// Returns the bucket, and the path in it, which is empty for the whole bucket.
    pub(crate) fn get(self) -> (String, String) {
        let path = self.path.unwrap_or_default();
        match self.bucket {
            Some(bucket) => (bucket, path),
            None => match path.split_once('/') {
                Some((bucket, path)) => (bucket.to_owned(), path.to_owned()),
                None => (path, String::new()),
            },
        }
    }
}
