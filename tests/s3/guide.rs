//! Examples of the guide to S3 clients: aws-cli, boto3 and rclone, with the credentials that its first example creates.

use std::fs;

use tests::DataFolder;
use tests::guides::{self, Reader};
use tests::moto::moto_server;

use crate::place::{aws, bytes};

#[test]
#[ignore = "needs aws-cli and boto3 from PyPI, and rclone"]
fn s3_guide_has_working_examples() {
    let data = DataFolder::new();
    data.done(&["account", "create", "me"]);
    data.done(&["bucket", "create", "pics", "--account", "me"]);
    let key = data.done(&["apikey", "create", "--account", "me"]).stdout;
    let server = data.serve();
    let folder = data.parent();
    fs::create_dir_all(folder.join("photos")).unwrap();
    for name in ["cat.jpg", "photos/a.jpg"] {
        fs::write(folder.join(name), bytes(50_000, 1)).unwrap();
    }
    // moto comes with boto3.
    let python = moto_server().with_file_name("python3");
    let path = std::env::var("PATH").unwrap();
    let reader = Reader {
        folder,
        server: format!("http://{}", server.address()),
        key: key.trim_end(),
        variables: vec![
            ("PATH", format!("{}:{path}", aws().parent().unwrap().display())),
            ("HOME", folder.display().to_string()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ],
        python,
        expects_errors: false,
    };
    let printed = reader.run(&guides::examples("s3"));
    for (language, text) in [
        ("sh", "cat.jpg"),
        ("sh", "X-Amz-Signature="),
        ("sh", "a.jpg"),
        ("python", "'2026/boto.jpg'"),
        ("python", "X-Amz-Signature="),
    ] {
        assert!(printed[language].contains(text), "{language} prints no {text}: {printed:?}");
    }
    for path in ["/pics/2026/cat.jpg", "/pics/2026/boto.jpg", "/pics/photos/a.jpg"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    server.stop();
}
