//! Unit tests of scores and match ranges.

use proptest::prelude::*;

use super::*;

fn rate_below(folder: &str, query: &str, key: &str) -> Option<u16> {
    let mut room = String::new();
    Ranker::new(query, folder).unwrap().score(&Candidate::new(key, &mut room), 0)
}

fn rate(query: &str, key: &str) -> Option<u16> {
    rate_below("", query, key)
}

fn matched(query: &str, key: &str) -> Vec<String> {
    let mut room = String::new();
    let ranges = Ranker::new(query, "").unwrap().matches(&Candidate::new(key, &mut room));
    ranges.into_iter().map(|range| key[range].to_owned()).collect()
}

#[test]
fn scores_match_the_documented_table() {
    for (query, key, points) in [
        ("cat.png", "pets/Cat.png", EXACT),
        ("cat", "pets/cat.png", EXACT),
        ("cat", "pets/cat/", EXACT),
        ("red car", "Red Car.jpg", EXACT),
        (".env", "x/.env", EXACT),
        ("cat", "category.png", PREFIX),
        ("red c", "red car.jpg", PREFIX),
        ("cat", "my cat.png", WORD_START),
        ("cat", "my-cat.png", WORD_START),
        ("cat", "myCat.png", WORD_START),
        ("cat", "concat cat.png", WORD_START),
        ("2024", "IMG2024.png", WORD_START),
        ("car red", "red_car.jpg", WORD_START),
        ("cat", "concat.png", SUBSTRING),
        ("red oncat", "red_concat.jpg", SUBSTRING),
        ("cat", "cats/tom.png", PATH),
        ("cats/tom", "cats/tom.png", PATH),
        ("cats tom", "cats/tom.png", PATH),
        ("cats tom", "cats/tom/", PATH),
        ("cats/tom", "cats/tom/", PATH),
        ("huose", "my house.png", FUZZY - 1),
        ("hause", "house/", FUZZY - 1),
        ("vcaatoin", "vacation.mp4", FUZZY - 2),
        ("mœurs", "meurs é.pdf", FUZZY - 1),
        ("mœurs", "meurs.pdf", FUZZY - 1),
        ("école", "ecole.png", EXACT),
        ("ecole", "ÉCOLE 2.png", PREFIX),
        ("ёлка", "Елка.png", EXACT),
    ] {
        assert_eq!(rate(query, key), Some(points), "{query:?} in {key:?}");
    }
}

#[test]
fn subsequence_matches_score_higher_at_word_starts() {
    let points = |key: &str| rate("mct", key).filter(|points| *points <= SUBSEQUENCE_MAX);
    assert!(points("my_cat_tree").unwrap() > points("aamaacaatx").unwrap());
    for (query, key) in [("abc", "acb"), ("tac", "cat"), ("car bus", "car.png"), ("я", "r.png")] {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
}

#[test]
fn folder_does_not_match_by_its_parents() {
    for (query, key) in
        [("cat", "cats/old/"), ("img", "invoice/market/green/"), ("cats my", "my/cats/x/")]
    {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
    assert_eq!(
        rate("img", "invoice/market/green.png").map(|points| points <= SUBSEQUENCE_MAX),
        Some(true)
    );
    assert_eq!(rate("cat", "cat/c_a_t/").map(|points| points <= SUBSEQUENCE_MAX), Some(true));
    assert_eq!(matched("my cats", "my/cats/"), ["my", "cats"]);
    assert_eq!(matched("cts", "cts/c_a_t_s/"), ["cts", "c", "t", "s"]);
}

#[test]
fn fuzzy_matching_skips_numbers_and_short_words() {
    for (query, key) in [("2024", "2025.png"), ("img_1", "img_2"), ("cat", "cut.png")] {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
}

#[test]
fn path_above_the_search_folder_is_ignored() {
    assert_eq!(rate_below("", "cat", "cats/tom.png"), Some(PATH));
    assert_eq!(rate_below("cats/", "cat", "cats/tom.png"), None);
    assert_eq!(rate_below("Été/", "tom", "Été/tom.png"), Some(EXACT));
    let mut room = String::new();
    let key = "Été/x/tom.png";
    let ranges = Ranker::new("tom", "Été/").unwrap().matches(&Candidate::new(key, &mut room));
    assert_eq!(ranges.len(), 1);
    assert_eq!(&key[ranges[0].clone()], "tom");
}

#[test]
fn match_ranges_are_returned() {
    for (query, key, parts) in [
        ("cat", "cat/cat.png", vec!["cat"]),
        ("red car", "Red Car.jpg", vec!["Red Car"]),
        ("car red", "red_car.jpg", vec!["red", "car"]),
        ("ecole", "a/Écoles.png", vec!["École"]),
        ("huose", "my house.png", vec!["house"]),
        ("cats tom", "cats/tom.png", vec!["cats", "tom"]),
        ("mct", "m_c_t", vec!["m", "c", "t"]),
        ("ялт", "дя_л_т", vec!["я", "л", "т"]),
    ] {
        assert_eq!(matched(query, key), parts, "{query:?} in {key:?}");
    }
}

/// Returns whether each word is a subsequence: the reference implementation.
fn holds(query: &str, key: &str) -> bool {
    let key = folded(key);
    query.split_whitespace().all(|word| {
        let mut letters = key.chars();
        folded(word).chars().all(|wanted| letters.any(|letter| letter == wanted))
    })
}

proptest! {
    #[test]
    fn name_matches_iff_it_contains_the_letters(
        query in "[abcé1 _]{1,6}",
        key in "([a-cÉ1_ ]{1,5}/){0,2}[abcÁé1_. ]{1,8}",
    ) {
        prop_assume!(!query.trim().is_empty());
        let found = rate(&query, &key);
        if holds(&query, &key) {
            prop_assert!(found.is_some());
        } else {
            prop_assert!(found.is_none_or(|points| points == FUZZY - 1 || points == FUZZY - 2));
        }
    }

    #[test]
    fn folder_matches_its_own_name(
        query in "[abcé1_]{1,3}",
        above in "([a-cÉ1_ ]{1,5}/){0,2}",
        name in "[abcÁé1_. ]{1,8}",
    ) {
        let found = rate(&query, &format!("{above}{name}/"));
        prop_assert_eq!(found.is_some(), holds(&query, &name));
    }

    #[test]
    fn longer_query_does_not_promote_distant_names(
        query in "([abcA1]{1,4} )?[abcA1é]{1,5}",
        letter in "[abcA1é]",
        key in "([a-cA1_ ]{1,5}/){0,2}[abcABCé1_. ]{1,12}/?",
    ) {
        let longer = format!("{query}{letter}");
        if let Some(points) = rate(&longer, &key).filter(|points| *points >= PATH) {
            // Only a name that is now matched completely may rise.
            let before = rate(&query, &key);
            prop_assert!(before.is_some_and(|before| before >= points.min(PREFIX)), "{before:?} {points}");
        }
    }

    #[test]
    fn longer_query_without_typos_only_narrows_hits(
        query in "([abcA1]{1,3} )?[abcA1é]{1,2}",
        letter in "[abcA1é]",
        key in "([a-cA1_ ]{1,5}/){0,2}[abcABCé1_. ]{1,12}/?",
    ) {
        if rate(&format!("{query}{letter}"), &key).is_some() {
            prop_assert!(rate(&query, &key).is_some());
        }
    }

    #[test]
    fn scores_below_the_cutoff_are_lower_bounds(
        query in "([abcA1]{1,4} )?[abcA1é]{1,5}",
        key in "([a-cA1_ ]{1,5}/){0,2}[abcABCé1_. ]{1,12}/?",
        points_min in 0..=EXACT,
    ) {
        let mut room = String::new();
        let mut ranker = Ranker::new(&query, "").unwrap();
        let candidate = Candidate::new(&key, &mut room);
        match (ranker.score(&candidate, 0), ranker.score(&candidate, points_min)) {
            (Some(all), Some(some)) if all < points_min => prop_assert!(some <= all || some < points_min),
            (all, some) => prop_assert_eq!(all, some),
        }
    }

    #[test]
    fn ranking_accepts_arbitrary_input(query in "\\PC{1,40}", key in "\\PC{1,60}") {
        prop_assume!(!query.trim().is_empty());
        let mut room = String::new();
        let candidate = Candidate::new(&key, &mut room);
        let mut ranker = Ranker::new(&query, "").unwrap();
        let found = ranker.score(&candidate, 0);
        let matches = ranker.matches(&candidate);
        if found.is_some() {
            prop_assert!(!matches.is_empty());
        }
        let mut end = 0;
        for range in matches {
            prop_assert!(range.start >= end && range.start < range.end);
            prop_assert!(key.get(range.clone()).is_some());
            end = range.end;
        }
    }

    #[test]
    fn substring_of_a_name_matches(
        key in "[a-zA-Zé_0-9 ]{1,20}",
        from in 0_usize..20,
        length in 1_usize..20,
    ) {
        let part: String = key.chars().skip(from).take(length).collect();
        prop_assume!(!part.trim().is_empty());
        prop_assert!(rate(&part, &key).is_some_and(|points| points >= SUBSTRING));
    }
}
