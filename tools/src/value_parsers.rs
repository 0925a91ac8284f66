//! Command-line words for plans, standings, kinds and scopes.
//!
//! Guarantees: the words are those of the JSON API, case-insensitive.
//! Non-goals: the meaning of the choices.

use std::str::FromStr;

use catalog::{Access, AskName, BucketKind, FairUseStanding, MemberRole, Plan, Role, Scope};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jobs::archive::ImportConflictRule;

/// Word and the value that it represents.
type Choice<T> = (&'static str, T);

pub(crate) const PLAN: &[Choice<Plan>] = &[
    ("Free", Plan::Free),
    ("Starter", Plan::Starter),
    ("Pro", Plan::Pro),
    ("Business", Plan::Business),
];
pub(crate) const STANDING: &[Choice<FairUseStanding>] = &[
    ("good", FairUseStanding::Good),
    ("notified", FairUseStanding::Notified),
    ("upgrade_requested", FairUseStanding::UpgradeRequested),
    ("throttled", FairUseStanding::Throttled),
    ("suspended", FairUseStanding::Suspended),
];
pub(crate) const ROLE: &[Choice<Role>] = &[("user", Role::User), ("operator", Role::Operator)];
pub(crate) const MEMBER_ROLE: &[Choice<MemberRole>] = &[
    ("viewer", MemberRole::Viewer),
    ("member", MemberRole::Member),
    ("admin", MemberRole::Admin),
    ("owner", MemberRole::Owner),
];
pub(crate) const ACCESS: &[Choice<Access>] =
    &[("public", Access::Public), ("private", Access::Private)];
pub(crate) const KIND: &[Choice<BucketKind>] =
    &[("standard", BucketKind::Standard), ("phone", BucketKind::Phone)];
pub(crate) const SCOPE: &[Choice<Scope>] = &[
    ("upload", Scope::Upload),
    ("delete", Scope::Delete),
    ("read", Scope::Read),
    ("list", Scope::List),
    ("presign", Scope::Presign),
    ("manage", Scope::Manage),
];
pub(crate) const ASK_NAME: &[Choice<AskName>] =
    &[("no", AskName::No), ("optional", AskName::Optional), ("required", AskName::Required)];
pub(crate) const ON_CONFLICT: &[Choice<ImportConflictRule>] = &[
    ("skip", ImportConflictRule::Skip),
    ("replace", ImportConflictRule::Replace),
    ("rename", ImportConflictRule::Rename),
    ("fail", ImportConflictRule::Fail),
];

/// Returns a parser of these words; the argument that uses it must set `ignore_case`.
pub(crate) fn of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let words = PossibleValuesParser::new(choices.iter().map(|(word, _)| *word));
    words.try_map(|typed| {
        let mut same = choices.iter().filter(|(word, _)| word.eq_ignore_ascii_case(&typed));
        same.next().map(|(_, value)| *value).ok_or("is not an allowed value")
    })
}

/// Count limit, or `none`. A separate type, because clap treats a nested option as an argument without a value.
#[derive(Clone, Copy)]
pub(crate) struct Limit(Option<u64>);

impl Limit {
    pub(crate) fn get(self) -> Option<u64> {
        self.0
    }
}

impl FromStr for Limit {
    type Err = &'static str;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        if typed.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let number = typed.parse().map_err(|_| "neither a number nor \"none\"")?;
        Ok(Self(Some(number)))
    }
}

/// Returns the word of a value.
pub(crate) fn word<T: PartialEq>(choices: &[Choice<T>], choice: &T) -> &'static str {
    choices.iter().find(|(_, value)| value == choice).map_or("?", |(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;

    use super::*;

    fn check<T: Serialize + Debug>(choices: &[Choice<T>]) {
        for (word, value) in choices {
            let json = serde_json::to_value(value).unwrap();
            assert_eq!(json, *word, "{value:?}");
        }
    }

    #[test]
    fn choice_words_match_json_values() {
        check(PLAN);
        check(STANDING);
        check(ROLE);
        check(MEMBER_ROLE);
        check(ACCESS);
        check(KIND);
        check(SCOPE);
        check(ASK_NAME);
        check(ON_CONFLICT);
        assert_eq!(SCOPE.len(), Scope::ALL.len());
    }

    #[test]
    fn words_are_found_both_ways() {
        assert_eq!(word(STANDING, &FairUseStanding::UpgradeRequested), "upgrade_requested");
        assert_eq!(word(PLAN, &Plan::Pro), "Pro");
    }
}
