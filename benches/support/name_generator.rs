//! Realistic file names: dates, cameras, UUIDs, nested folders, several scripts.

use crate::data::SeededRng;

const WORDS: [&str; 48] = [
    "beach",
    "birthday",
    "invoice",
    "garden",
    "report",
    "winter",
    "kitchen",
    "concert",
    "draft",
    "family",
    "summer",
    "portrait",
    "logo",
    "banner",
    "product",
    "thumbnail",
    "header",
    "market",
    "bridge",
    "sunset",
    "mountain",
    "river",
    "contract",
    "receipt",
    "profile",
    "avatar",
    "texture",
    "server",
    "backup",
    "holiday",
    "wedding",
    "school",
    "office",
    "meeting",
    "cat",
    "dog",
    "car",
    "house",
    "tree",
    "map",
    "poster",
    "cover",
    "scan",
    "letter",
    "red",
    "blue",
    "green",
    "old",
];
const FIRST_NAMES: [&str; 12] = [
    "anna", "ben", "chloé", "dmitri", "emre", "fatima", "giulia", "hiro", "ines", "jörg", "kim",
    "zoë",
];
const SCRIPTS: [&str; 9] =
    ["отпуск", "семья", "写真", "旅行", "사진", "été", "über uns", "φωτογραφίες", "تصاوير"];
const ENDINGS: [&str; 6] = ["jpg", "png", "webp", "mp4", "pdf", "gif"];

/// Unique names; the same for the same seed and number.
pub struct Names(SeededRng);

impl Names {
    /// Creates the names of this seed.
    pub fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    /// Returns the next name, which has this number.
    pub fn next(&mut self, number: u64) -> String {
        let ending = self.one_of(&ENDINGS);
        let (word, other) = (self.one_of(&WORDS), self.one_of(&WORDS));
        let (year, month, day) = (2_012 + self.below(14), 1 + self.below(12), 1 + self.below(28));
        let (hour, minute, second) = (self.below(24), self.below(60), self.below(60));
        let date = format!("{year}{month:02}{day:02}");
        match self.below(8) {
            0 => format!(
                "camera/{year}/{month:02}/IMG_{date}_{hour:02}{minute:02}{second:02}_{number}.jpg"
            ),
            1 => format!("camera/{year}/{month:02}/DSC{number:08}.jpg"),
            2 => {
                let (high, low) = (self.0.next_u64(), self.0.next_u64());
                format!("uploads/{high:016x}{low:08x}{number:08x}.{ending}")
            }
            3 => format!(
                "screenshots/{year}/Screenshot {year}-{month:02}-{day:02} at {hour:02}.{minute:02}.{second:02} {number}.png"
            ),
            4 => format!(
                "shop/{word}/{other}-{number}/{}.{ending}",
                self.one_of(&["front", "side", "back"])
            ),
            5 => format!("users/{}/{word} {other} ({number}).{ending}", self.one_of(&FIRST_NAMES)),
            6 => format!(
                "{}/{}/{word}_{number}.{ending}",
                self.one_of(&SCRIPTS),
                self.one_of(&SCRIPTS)
            ),
            _ => format!(
                "projects/{word}/{other}/{}/{date}-{word}-{number}.{ending}",
                self.one_of(&WORDS)
            ),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}
