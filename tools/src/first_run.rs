//! What `serve` prints while there is no account: the link that makes one, the commands that do, and the first upload.
//!
//! Promises: every indented line can be pasted into a shell as it is, and the link into a browser.
//! Never here: printing.

use std::path::Path;

use server::limits::SET_UP_LINK_LIFE;

/// The lines for a server at `url` on the store in `data`; `program` is how this binary was called, `link` makes the
/// first account.
pub(crate) fn lines(program: &str, data: &Path, url: &str, link: &str) -> String {
    let program = quoted(program);
    let data = quoted(&data.display().to_string());
    let minutes = SET_UP_LINK_LIFE.as_secs() / 60;
    format!(
        r#"
There is no account yet, so nobody can upload. Open this link, which is good for {minutes} minutes and works once;
a restart makes another:

{link}

Or, without a browser, in a second terminal, in this folder:

  {program} account create --data {data} --name me
  {program} bucket create --data {data} --account me --name pics
  KEY=$({program} apikey create --data {data} --account me)

Then upload a file, fetch it, and fetch its first six bytes:

  echo "hello, trug" > hello.txt
  curl -H "Authorization: Bearer $KEY" -F file=@hello.txt {url}/pics/
  curl {url}/pics/hello.txt
  curl -H "Range: bytes=0-5" {url}/pics/hello.txt
"#
    )
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_filled_in() {
        let link = "http://127.0.0.1:8080/-/set-up#abc";
        let text =
            lines("target/release/trug", Path::new("my data"), "http://127.0.0.1:8080", link);
        assert!(text.contains("\nhttp://127.0.0.1:8080/-/set-up#abc\n"), "{text}");
        assert!(text.contains(" 30 minutes"), "{text}");
        assert!(text.contains("  target/release/trug account create --data 'my data' --name me\n"));
        assert!(text.contains(" http://127.0.0.1:8080/pics/hello.txt\n"), "{text}");
    }

    #[test]
    fn a_shell_takes_the_words_as_they_are() {
        for (word, want) in
            [("data", "data"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), want);
        }
    }
}
