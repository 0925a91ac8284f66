//! Clients of Zipline and Chibisafe: clients 4.5. Options travel as headers, which are ignored here.

use super::{PNG, Service};

fn upload(credential: &str, field: &str) -> String {
    format!(
        "POST /photos/ HTTP/1.1\n\
         Host: cdn.example.com\n\
         User-Agent: curl/8.5.0\n\
         Accept: */*\n\
         {credential}\n\
         x-zipline-format: random\n\
         x-zipline-max-views: 5\n\
         content-type: multipart/form-data; boundary=------------------------ee62057a703afafc\n\
         Content-Length: <length>\n\
         \n\
         --------------------------ee62057a703afafc\n\
         Content-Disposition: form-data; name=\"{field}\"; filename=\"shot.png\"\n\
         Content-Type: image/png\n\
         \n\
         <content>\n\
         --------------------------ee62057a703afafc--\n"
    )
}

#[tokio::test]
async fn zipline_first_file_has_the_link() {
    let service = Service::start().await;
    let request = upload("authorization: <key>", "file");
    assert_eq!(service.upload(&request, PNG, "files[0].url", "image/png").await, "shot.png");
}

#[tokio::test]
async fn chibisafe_sends_x_api_key_and_a_list_of_files() {
    let service = Service::start().await;
    let request = upload("x-api-key: <key>", "file[]");
    service.upload(&request, PNG, "url", "image/png").await;
}
