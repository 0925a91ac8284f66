//! `trug organisation`.

use tests::{Connection, DataFolder};

use crate::with_and_without_server;

#[test]
fn organisation_commands_create_list_rename_and_delete() {
    with_and_without_server(|folder| {
        let made = folder.json(&["organisation", "create", "--account", "ann", "--name", "Crew"]);
        let id = made["id"].as_str().expect("an organisation has an id");
        assert_eq!((&made["name"], &made["members"][0]["role"]), (&"Crew".into(), &"owner".into()));

        folder.done(&["account", "create", "--name", "bob"]);
        let add = ["organisation", "add", "--organisation", "Crew", "--account", "bob", "--role"];
        folder.done(&[&add[..], &["viewer"]].concat());
        let edited = folder.json(&[&add[..], &["ADMIN"]].concat());
        assert_eq!(edited["members"].as_array().map(Vec::len), Some(2));
        let list = folder.done(&["organisation", "list", "--account", "bob"]).stdout;
        assert!(
            list.starts_with("ID ") && list.contains("bob") && list.contains("admin"),
            "{list}"
        );

        folder.json(&["bucket", "create", "--organisation", "Crew", "--name", "shared"]);
        let buckets = folder.json(&["bucket", "list", "--account", "ann"]);
        let shared = buckets.as_array().expect("a list").iter();
        let mut shared = shared.filter(|bucket| bucket["organisation"] == id);
        assert_eq!(shared.next().expect("it is listed")["bucketName"], "shared");

        let rename = ["organisation", "rename", "--organisation", id, "--name", "Team"];
        assert_eq!(folder.json(&rename)["name"], "Team");
        let delete = ["organisation", "delete", "--organisation", "Team"];
        folder.run(&delete).check_failure(1, "is not empty: 1 buckets");
        folder.done(&["bucket", "delete", "--name", "shared"]);
        let remove = ["organisation", "remove", "--organisation", "Team", "--account"];
        folder
            .run(&[&remove[..], &["ann"]].concat())
            .check_failure(1, "owner of an organisation cannot leave it");
        folder.done(&[&remove[..], &["bob"]].concat());
        let deleted = folder.done(&delete).stdout;
        assert_eq!(deleted, format!("deleted the organisation {id}\n"));
        assert_eq!(folder.json(&["organisation", "list"]).as_array().map(Vec::len), Some(0));
    });
}

#[test]
fn organisation_invalid_commands_are_rejected() {
    with_and_without_server(|folder| {
        let refused = |words: &[&str], says: &str| folder.run(words).check_failure(1, says);
        let create = ["organisation", "create", "--account"];
        refused(&[&create[..], &["bob", "--name", "Crew"]].concat(), "\"bob\" does not exist");
        refused(&[&create[..], &["ann", "--name", " "]].concat(), "1 to 200 bytes");
        refused(&["organisation", "delete", "--organisation", "Crew"], "\"Crew\" does not exist");
        let ids = [(); 2].map(|()| {
            let made = folder.json(&[&create[..], &["ann", "--name", "Crew"]].concat());
            made["id"].as_str().expect("an organisation has an id").to_owned()
        });
        let ambiguous = ["organisation", "delete", "--organisation", "Crew"];
        refused(&ambiguous, "the name \"Crew\" is ambiguous");
        folder.done(&["organisation", "delete", "--organisation", &ids[0]]);
        folder.done(&ambiguous);
    });
}

#[test]
fn organisation_removed_member_cannot_upload() {
    let (folder, _) = DataFolder::with_bucket();
    folder.done(&["account", "create", "--name", "bob"]);
    folder.done(&["organisation", "create", "--account", "ann", "--name", "Crew"]);
    folder.done(&["bucket", "create", "--organisation", "Crew", "--name", "shared"]);
    let key = folder.done(&["apikey", "create", "--account", "bob"]).stdout;
    let server = folder.serve();
    let connect = || server.connect().with_key(key.trim_end());
    let upload = |bob: &mut Connection| {
        bob.upload_file("/shared/", "a.txt", b"hello").expect("it answers").status
    };
    // A connection ends with an upload that is rejected before its body has arrived.
    assert_eq!(upload(&mut connect()), 404);
    let member = ["--organisation", "Crew", "--account", "bob"];
    folder.done(&[&["organisation", "add"], &member[..], &["--role", "member"]].concat());
    let mut bob = connect();
    assert_eq!(upload(&mut bob), 200);
    folder.done(&[&["organisation", "remove"], &member[..]].concat());
    assert_eq!(upload(&mut bob), 404);
}
