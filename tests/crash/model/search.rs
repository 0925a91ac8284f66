//! Searches: every object of the model is found by letters of its name, and nothing else. The matching rules are
//! implemented here a second time, by `server/API.md` and in the plainest way.

use std::collections::BTreeSet;
use tests::fixtures::names_below;

use engine::{FolderKey, Store};
use search::{HitItem, NameSearch, SearchQuery};

use super::run::Run;

/// Result limit: more than the number of names of a run.
const LIMIT: usize = 1_000;

impl Run {
    /// Searches for some letters of an existing name, in their order, and checks every hit; by a scan of the index or
    /// in memory, with names that were cached before or are read for this search.
    pub(super) fn search(&mut self, store: &Store) -> Result<(), String> {
        let bucket = self.bucket();
        let folder = ["", "", "", "a/", "d/", "many/", "é/"][self.below(7) as usize];
        let keys = self.model.objects.keys().filter(|name| name.bucket == bucket);
        let keys: Vec<&str> = keys.map(|name| name.key.as_str()).collect();
        let names = names_below(&keys, folder);
        let Some(meant) = (names.len() as u64)
            .checked_sub(1)
            .and_then(|last| names.iter().nth(self.below(last + 1) as usize))
        else {
            return Ok(());
        };
        let text = self.some_letters(own_name(&meant[folder.len()..]));
        let query = SearchQuery {
            bucket,
            folder: FolderKey::parse(folder).map_err(|why| why.to_string())?,
            text: text.clone(),
            excluded_suffix: String::new(),
            offset: 0,
            limit: LIMIT,
        };
        let loads = self.below(2) == 0;
        let options = self.search_options;
        let search =
            self.search.get_or_insert_with(|| NameSearch::without_thread(store.clone(), options));
        if loads {
            search.load_requested();
        }
        let hits = match search.search(&query, || false) {
            Ok(hits) => hits,
            Err(error) => return self.excuse(store, "a search", error),
        };
        let found: Vec<&str> = hits
            .hits
            .iter()
            .map(|hit| match &hit.item {
                HitItem::Folder(folder) => folder.as_str(),
                HitItem::File(file) => file.name().key.as_str(),
            })
            .collect();
        let what = || format!("{text:?} below {folder:?} finds {found:?} of {names:?}");
        if !hits.total_is_exact || hits.total != found.len() {
            return Err(format!("{}: {} in all", what(), hits.total));
        }
        let unique: BTreeSet<&str> = found.iter().copied().collect();
        if unique.len() != found.len() || found.iter().any(|name| !names.contains(*name)) {
            return Err(what());
        }
        for name in &names {
            let inside = &name[folder.len()..];
            if unique.contains(name.as_str()) != is_hit(inside, &text) {
                return Err(format!("{}: {name}", what()));
            }
            let is_forgiven = is_hit(inside, &text) && !holds(inside, &text);
            self.tally.count_many("typing errors forgiven", u64::from(is_forgiven));
        }
        self.tally.count("searches");
        self.tally.count_many("searches with names in memory", u64::from(hits.from_memory));
        Ok(())
    }

    /// Returns one to ten letters of a name: some in their order, or its first ones, perhaps with typing errors.
    fn some_letters(&self, name: &str) -> String {
        let mut letters: Vec<char> = name.chars().collect();
        let wanted = 1 + self.below(10) as usize;
        if self.below(2) == 0 {
            while letters.len() > wanted {
                letters.remove(self.below(letters.len() as u64) as usize);
            }
        } else {
            letters.truncate(wanted);
            (0..self.below(4)).for_each(|_| self.mistype(&mut letters));
        }
        let is_loud = self.below(2) == 0;
        let text: String = letters.into_iter().collect();
        if is_loud { text.to_uppercase() } else { text }
    }

    fn mistype(&self, letters: &mut Vec<char>) {
        let at = self.below(letters.len() as u64) as usize;
        match self.below(4) {
            0 => letters.insert(at, 'x'),
            1 if letters.len() > 1 => drop(letters.remove(at)),
            2 => letters[at] = 'x',
            _ => letters.swap(at.saturating_sub(1), at),
        }
    }
}

fn own_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether a word finds a name below the folder of a search: a file by its path, a folder by its own name.
fn is_hit(inside: &str, word: &str) -> bool {
    let searched = if inside.ends_with('/') { own_name(inside) } else { inside };
    holds(searched, word) || begins_nearly(own_name(inside), word)
}

/// Whether these letters occur in order, ignoring case and accents.
fn holds(name: &str, word: &str) -> bool {
    let mut letters = plain(name).into_iter();
    plain(word).into_iter().all(|wanted| letters.any(|letter| letter == wanted))
}

/// Whether a word of the name starts like this one except for typing errors.
fn begins_nearly(name: &str, word: &str) -> bool {
    let errors_max = match word.chars().count() {
        _ if !word.chars().all(char::is_alphabetic) => return false,
        4..8 => 1,
        8..=32 => 2,
        _ => return false,
    };
    let (written, name): (Vec<char>, Vec<char>) = (name.chars().collect(), plain(name));
    let word = plain(word);
    let mut places = (0..name.len()).filter(|at| starts_word(&written, *at));
    places.any(|at| is_near(&word, &name[at..], errors_max))
}

fn starts_word(name: &[char], at: usize) -> bool {
    let (here, before) = (name[at], at.checked_sub(1).map_or('/', |before| name[before]));
    let is_capital = before.is_lowercase() && here.is_uppercase();
    let differs = before.is_alphabetic() != here.is_alphabetic();
    here.is_alphanumeric() && (!before.is_alphanumeric() || differs || is_capital)
}

/// Whether the text starts with the word except for so many letters missing, added, wrong, or swapped with the next
/// one.
fn is_near(word: &[char], text: &[char], errors_max: u32) -> bool {
    let Some((wanted, word_rest)) = word.split_first() else { return true };
    if let [letter, text_rest @ ..] = text
        && letter == wanted
        && is_near(word_rest, text_rest, errors_max)
    {
        return true;
    }
    let Some(errors_left) = errors_max.checked_sub(1) else { return false };
    if is_near(word_rest, text, errors_left) {
        return true;
    }
    let Some((_, text_rest)) = text.split_first() else { return false };
    let is_swapped = matches!((word, text), ([a, b, ..], [c, d, ..]) if a == d && b == c);
    is_near(word_rest, text_rest, errors_left)
        || is_near(word, text_rest, errors_left)
        || is_swapped && is_near(&word[2..], &text[2..], errors_left)
}

/// Removes case and accents, as these names have them.
fn plain(text: &str) -> Vec<char> {
    text.to_lowercase().replace('é', "e").replace('ü', "u").chars().collect()
}
