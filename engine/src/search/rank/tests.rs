//! Unit tests of scores and match ranges.

use proptest::prelude::*;

use super::*;

fn rate_below(folder: &str, query: &str, key: &str) -> Option<u16> {
    let mut room = String::new();
    Ranker::new(query, folder).unwrap().rate(&Candidate::new(key, &mut room), 0)
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
fn a_name_gets_the_points_of_the_table() {
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
        ("huose", "my house.png", NEAR - 1),
        ("hause", "house/", NEAR - 1),
        ("vcaatoin", "vacation.mp4", NEAR - 2),
        ("mœurs", "meurs é.pdf", NEAR - 1),
        ("mœurs", "meurs.pdf", NEAR - 1),
        ("école", "ecole.png", EXACT),
        ("ecole", "ÉCOLE 2.png", PREFIX),
        ("ёлка", "Елка.png", EXACT),
    ] {
        assert_eq!(rate(query, key), Some(points), "{query:?} in {key:?}");
    }
}

#[test]
fn letters_in_order_are_found_and_better_where_words_begin() {
    let points = |key: &str| rate("mct", key).filter(|points| *points <= SCATTERED_MAX);
    assert!(points("my_cat_tree").unwrap() > points("aamaacaatx").unwrap());
    for (query, key) in [("abc", "acb"), ("tac", "cat"), ("car bus", "car.png"), ("я", "r.png")] {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
}

#[test]
fn a_folder_is_no_hit_for_what_its_parents_are_called() {
    for (query, key) in
        [("cat", "cats/old/"), ("img", "invoice/market/green/"), ("cats my", "my/cats/x/")]
    {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
    assert_eq!(
        rate("img", "invoice/market/green.png").map(|points| points <= SCATTERED_MAX),
        Some(true)
    );
    assert_eq!(rate("cat", "cat/c_a_t/").map(|points| points <= SCATTERED_MAX), Some(true));
    assert_eq!(matched("my cats", "my/cats/"), ["my", "cats"]);
    assert_eq!(matched("cts", "cts/c_a_t_s/"), ["cts", "c", "t", "s"]);
}

#[test]
fn numbers_and_short_words_have_no_typing_errors() {
    for (query, key) in [("2024", "2025.png"), ("img_1", "img_2"), ("cat", "cut.png")] {
        assert_eq!(rate(query, key), None, "{query:?} in {key:?}");
    }
}

#[test]
fn what_lies_above_the_folder_of_the_search_does_not_count() {
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
fn the_parts_that_match_are_told() {
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
    fn a_name_is_found_if_it_holds_the_letters_and_only_then(
        query in "[abcé1 _]{1,6}",
        key in "([a-cÉ1_ ]{1,5}/){0,2}[abcÁé1_. ]{1,8}",
    ) {
        prop_assume!(!query.trim().is_empty());
        let found = rate(&query, &key);
        if holds(&query, &key) {
            prop_assert!(found.is_some());
        } else {
            prop_assert!(found.is_none_or(|points| points == NEAR - 1 || points == NEAR - 2));
        }
    }

    #[test]
    fn a_folder_is_found_by_its_own_name(
        query in "[abcé1_]{1,3}",
        above in "([a-cÉ1_ ]{1,5}/){0,2}",
        name in "[abcÁé1_. ]{1,8}",
    ) {
        let found = rate(&query, &format!("{above}{name}/"));
        prop_assert_eq!(found.is_some(), holds(&query, &name));
    }

    #[test]
    fn one_more_letter_brings_nothing_to_the_top_that_was_not_near_it(
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
    fn one_more_letter_finds_nothing_new_where_no_typing_error_is_forgiven(
        query in "([abcA1]{1,3} )?[abcA1é]{1,2}",
        letter in "[abcA1é]",
        key in "([a-cA1_ ]{1,5}/){0,2}[abcABCé1_. ]{1,12}/?",
    ) {
        if rate(&format!("{query}{letter}"), &key).is_some() {
            prop_assert!(rate(&query, &key).is_some());
        }
    }

    #[test]
    fn points_below_those_that_matter_may_be_fewer_and_no_others(
        query in "([abcA1]{1,4} )?[abcA1é]{1,5}",
        key in "([a-cA1_ ]{1,5}/){0,2}[abcABCé1_. ]{1,12}/?",
        points_min in 0..=EXACT,
    ) {
        let mut room = String::new();
        let mut ranker = Ranker::new(&query, "").unwrap();
        let candidate = Candidate::new(&key, &mut room);
        match (ranker.rate(&candidate, 0), ranker.rate(&candidate, points_min)) {
            (Some(all), Some(some)) if all < points_min => prop_assert!(some <= all || some < points_min),
            (all, some) => prop_assert_eq!(all, some),
        }
    }

    #[test]
    fn anything_can_be_looked_for_in_anything(query in "\\PC{1,40}", key in "\\PC{1,60}") {
        prop_assume!(!query.trim().is_empty());
        let mut room = String::new();
        let candidate = Candidate::new(&key, &mut room);
        let mut ranker = Ranker::new(&query, "").unwrap();
        let found = ranker.rate(&candidate, 0);
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
    fn a_part_of_a_name_finds_it(
        key in "[a-zA-Zé_0-9 ]{1,20}",
        from in 0_usize..20,
        length in 1_usize..20,
    ) {
        let part: String = key.chars().skip(from).take(length).collect();
        prop_assume!(!part.trim().is_empty());
        prop_assert!(rate(&part, &key).is_some_and(|points| points >= SUBSTRING));
    }
}
