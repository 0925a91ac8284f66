//! A `multipart/form-data` body, as clients write it.

/// A form under construction.
#[derive(Default)]
pub struct Form {
    body: Vec<u8>,
}

const BOUNDARY: &str = "--------------------8ab3f1c29d";

impl Form {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file; without a type, the part has none, as with python-requests.
    #[must_use]
    pub fn file(mut self, field: &str, name: &str, kind: Option<&str>, bytes: &[u8]) -> Self {
        let kind = kind.map_or(String::new(), |kind| format!("Content-Type: {kind}\r\n"));
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"; \
             filename=\"{name}\"\r\n{kind}\r\n"
        );
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(bytes);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// Adds a text field.
    #[must_use]
    pub fn text(mut self, field: &str, value: &str) -> Self {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"
        );
        self.body.extend_from_slice(part.as_bytes());
        self
    }

    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    pub fn body(mut self) -> Vec<u8> {
        self.body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.body
    }
}
