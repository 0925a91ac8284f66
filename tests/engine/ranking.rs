//! Ranking of search hits on realistic trees: the contract of `server/API.md`, example by example.

use engine::FolderKey;
use search::{Hit, HitItem, SearchOptions, SearchQuery};
use tests::searched_store::SearchedStore;
use tests::store::{World, bucket, name, put};

const PHONE: &[&str] = &[
    "camera/2024/08/IMG_20240812_101112.jpg",
    "camera/2024/08/IMG_20240812_101113.jpg",
    "camera/2024/08/IMG_2024.jpg",
    "camera/2024/09/VID_20240901_200000.mp4",
    "camera/2023/12/IMG_20231224_180000.jpg",
    "screenshots/Screenshot 2024-08-12 at 10.11.12.png",
    "screenshots/Screenshot 2023-01-02 at 09.00.00.png",
    "music/ringtones/imagine.mp3",
    "documents/timing plan.pdf",
    "documents/invoices/2024/invoice 12.pdf",
    "documents/invoices/2024/invoice 2.pdf",
    "documents/invoices/2023/Rechnung Müller.pdf",
    "documents/invoice template.docx",
    "documents/my invoice.pdf",
    "documents/reinvoiced.pdf",
];

const TEAM: &[&str] = &[
    "brand/logo.svg",
    "brand/logo-dark.svg",
    "brand/Logo Final (2).svg",
    "brand/old/catalogo.pdf",
    "brand/logos/acme.svg",
    "brand/logos/old/acme-2019.svg",
    "brand/guidelines.pdf",
    "clients/Zoë & Söhne/logo.png",
    "clients/Zoë & Söhne/Angebot März.pdf",
    "clients/acme/contract final.pdf",
    "clients/acme/contract.pdf",
    "clients/acme/final-contract-signed.pdf",
    "site/src/componentLogo.tsx",
    "site/src/login.tsx",
    "site/src/long-form/go.tsx",
    "Фото/Отпуск 2024/пляж.jpg",
    "写真/旅行/京都.jpg",
];

fn store(world: &World, keys: &[&str], is_cached: bool) -> SearchedStore {
    let objects_min = if is_cached { 0 } else { u64::MAX };
    let options = SearchOptions { objects_min, ..SearchOptions::default() };
    let store = SearchedStore::new(world.open(), options);
    for key in keys {
        put(&store, &name(key), b"x").unwrap();
    }
    if is_cached {
        search(&store, "", "x");
        store.names.load_requested();
        assert_eq!(store.names.stats().names, keys.len() as u64);
    }
    store
}

fn search(store: &SearchedStore, folder: &str, text: &str) -> Vec<String> {
    let folder = FolderKey::parse(folder).unwrap();
    let (bucket, text) = (bucket(), text.to_owned());
    let query =
        SearchQuery { bucket, folder, text, excluded_suffix: String::new(), offset: 0, limit: 100 };
    let key = |hit: &Hit| match &hit.item {
        HitItem::Folder(folder) => folder.to_string(),
        HitItem::File(file) => file.name().key.to_string(),
    };
    store.search(&query).hits.iter().map(key).collect()
}

/// Checks that the hits start with these, in memory and by a scan of the index.
fn begin_with(tree: &[&str], examples: &[(&str, &[&str])]) {
    for is_cached in [false, true] {
        let store = store(&World::new(1), tree, is_cached);
        for (query, expected) in examples {
            let found = search(&store, "", query);
            let first: Vec<&str> = found.iter().map(String::as_str).take(expected.len()).collect();
            assert_eq!(first, *expected, "{query:?}, cached: {is_cached}");
        }
    }
}

#[test]
fn ranking_puts_better_match_first_per_kind() {
    begin_with(
        TEAM,
        &[
            (
                "logo",
                &[
                    // A folder with this prefix, one whose own name has the letters, and none that only contains a hit.
                    "brand/logos/",
                    "site/src/long-form/",
                    // The name without its extension, then names with this prefix, the shorter first.
                    "clients/Zoë & Söhne/logo.png",
                    "brand/logo.svg",
                    "brand/logo-dark.svg",
                    "brand/Logo Final (2).svg",
                    // At the start of a word of the name, then in its middle, then in the path.
                    "site/src/componentLogo.tsx",
                    "brand/old/catalogo.pdf",
                    "brand/logos/acme.svg",
                    "brand/logos/old/acme-2019.svg",
                ],
            ),
            ("contract", &["clients/acme/contract.pdf", "clients/acme/contract final.pdf"]),
            // In any order of words, and with characters between them that the query lacks.
            (
                "final contract",
                &["clients/acme/contract final.pdf", "clients/acme/final-contract-signed.pdf"],
            ),
            ("acme final", &["clients/acme/contract final.pdf"]),
        ],
    );
}

#[test]
fn ranking_ignores_case_accents_scripts_and_typos() {
    begin_with(
        TEAM,
        &[
            ("ZOE", &["clients/Zoë & Söhne/"]),
            ("sohne", &["clients/Zoë & Söhne/"]),
            ("marz", &["clients/Zoë & Söhne/Angebot März.pdf"]),
            ("фото", &["Фото/"]),
            ("ОТПУСК", &["Фото/Отпуск 2024/", "Фото/Отпуск 2024/пляж.jpg"]),
            ("京都", &["写真/旅行/京都.jpg"]),
            ("guidlines", &["brand/guidelines.pdf"]),
            ("contarct", &["clients/acme/contract.pdf"]),
        ],
    );
}

#[test]
fn ranking_finds_years_numbers_and_camera_names() {
    begin_with(
        PHONE,
        &[
            (
                "2024",
                &[
                    "camera/2024/",
                    "documents/invoices/2024/",
                    "camera/2024/08/IMG_2024.jpg",
                    "camera/2024/08/IMG_20240812_101112.jpg",
                    "camera/2024/08/IMG_20240812_101113.jpg",
                    "camera/2024/09/VID_20240901_200000.mp4",
                    "screenshots/Screenshot 2024-08-12 at 10.11.12.png",
                ],
            ),
            (
                "img_2024",
                &["camera/2024/08/IMG_2024.jpg", "camera/2024/08/IMG_20240812_101112.jpg"],
            ),
            ("screenshot 2024", &["screenshots/Screenshot 2024-08-12 at 10.11.12.png"]),
            (
                "invoice",
                &[
                    "documents/invoices/",
                    "documents/invoices/2024/invoice 2.pdf",
                    "documents/invoices/2024/invoice 12.pdf",
                    "documents/invoice template.docx",
                    "documents/my invoice.pdf",
                    "documents/reinvoiced.pdf",
                    "documents/invoices/2023/Rechnung Müller.pdf",
                ],
            ),
            ("invoice 12", &["documents/invoices/2024/invoice 12.pdf"]),
        ],
    );
}

#[test]
fn ranking_puts_subsequence_matches_last() {
    begin_with(
        PHONE,
        &[(
            "img",
            &[
                "camera/2024/08/IMG_2024.jpg",
                "camera/2023/12/IMG_20231224_180000.jpg",
                "camera/2024/08/IMG_20240812_101112.jpg",
                "camera/2024/08/IMG_20240812_101113.jpg",
            ],
        )],
    );
    let store = store(&World::new(1), PHONE, true);
    let found = search(&store, "", "img");
    assert!(found.contains(&"documents/timing plan.pdf".to_owned()), "{found:?}");
}

#[test]
fn ranking_is_stable_while_typing() {
    let store = store(&World::new(1), TEAM, true);
    let wanted = "clients/acme/contract.pdf".to_owned();
    let ranks: Vec<usize> = (1..="contract.pdf".len())
        .map(|length| &"contract.pdf"[..length])
        .map(|typed| search(&store, "", typed).iter().position(|key| *key == wanted).unwrap())
        .collect();
    assert!(ranks.is_sorted_by(|before, after| before >= after), "{ranks:?}");
    assert_eq!(ranks.last(), Some(&0));
}
