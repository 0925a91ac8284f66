//! Searches: whatever the model holds is found by letters of its name, and nothing that it does not hold.

use std::collections::BTreeSet;

use engine::{FolderKey, Found, SearchQuery, Store};

use super::run::Run;

/// More than a run has names.
const LIMIT: usize = 1_000;

impl Run {
    /// Looks for some letters of a name that is there, in their order, and checks every hit; by a walk over the index
    /// or in memory, with names that were kept for long or are read for this.
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
            hidden_ending: String::new(),
            offset: 0,
            limit: LIMIT,
        };
        if self.below(2) == 0 {
            store.step_names();
        }
        let hits = match store.search(&query, || false) {
            Ok(hits) => hits,
            Err(error) => return self.excuse(store, "a search", error),
        };
        let found: Vec<&str> = hits
            .hits
            .iter()
            .map(|hit| match &hit.found {
                Found::Folder(folder) => folder.as_str(),
                Found::File(file) => file.name().key.as_str(),
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
            let is_file = !inside.ends_with('/');
            let must = holds(own_name(inside), &text) || is_file && holds(inside, &text);
            // In four letters and more typing errors are forgiven: what they find is not judged.
            let may = holds(inside, &text) || text.chars().count() > 3;
            let is_found = unique.contains(name.as_str());
            if must && !is_found || is_found && !may {
                return Err(format!("{}: {name}", what()));
            }
        }
        self.tally.count("searches");
        let kept = store.stats().map_or(0, |stats| stats.searched_names);
        self.tally.count_many("searches with names in memory", u64::from(kept > 0));
        Ok(())
    }

    /// One to six letters of a name.
    fn some_letters(&self, name: &str) -> String {
        let mut letters: Vec<char> = name.chars().collect();
        let wanted = 1 + self.below(6) as usize;
        while letters.len() > wanted {
            letters.remove(self.below(letters.len() as u64) as usize);
        }
        let is_loud = self.below(2) == 0;
        let text: String = letters.into_iter().collect();
        if is_loud { text.to_uppercase() } else { text }
    }
}

/// Files and folders below a folder.
fn names_below(keys: &[&str], folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for key in keys.iter().filter(|key| key.starts_with(folder)) {
        let folders = key.match_indices('/').map(|(slash, _)| &key[..=slash]);
        names.extend(folders.filter(|path| path.len() > folder.len()).map(str::to_owned));
        names.extend((!key.ends_with('/')).then(|| (*key).to_owned()));
    }
    names
}

fn own_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether these letters are there in order, but for case and accents as these names have them.
fn holds(name: &str, text: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('é', "e").replace('ü', "u");
    let name = plain(name);
    let mut letters = name.chars();
    plain(text).chars().all(|wanted| letters.any(|letter| letter == wanted))
}
