//! Flattened parts of a schema, joined into one object: a part that permits no other properties would reject those of
//! the rest.

use std::collections::BTreeSet;

use utoipa::openapi::schema::{AllOf, Object, Schema};
use utoipa::openapi::{Components, OpenApi, RefOr};

use super::success::name_of;

/// Replaces each schema of several parts by one object with the properties of all, its own first, and removes schemas
/// that were only parts of others.
pub(super) fn join(document: &mut OpenApi) {
    let Some(components) = &mut document.components else { return };
    let mut parts = BTreeSet::new();
    let before = components.clone();
    for (name, schema) in &before.schemas {
        if let RefOr::T(Schema::AllOf(all)) = schema
            && let Some(object) = joined(all, &before)
        {
            parts.extend(all.items.iter().filter_map(name_of));
            components.schemas.insert(name.clone(), RefOr::T(Schema::Object(object)));
        }
    }
    let text = document.to_json().unwrap_or_default();
    let is_used = |name: &str| text.contains(&format!("\"#/components/schemas/{name}\""));
    if let Some(components) = &mut document.components {
        components.schemas.retain(|name, _| !parts.contains(&**name) || is_used(name));
    }
}

/// Returns the object with the properties of all parts, unless one of them is no object.
fn joined(all: &AllOf, components: &Components) -> Option<Object> {
    // The properties of the type itself come last.
    let (own, parts) = all.items.split_last()?;
    let mut whole = object(own, components)?;
    for part in parts {
        let part = with_descriptions(object(part, components)?);
        whole.properties.extend(part.properties);
        whole.required.extend(part.required);
        whole.additional_properties = whole.additional_properties.or(part.additional_properties);
    }
    whole.description.clone_from(&all.description);
    Some(whole)
}

fn object(part: &RefOr<Schema>, components: &Components) -> Option<Object> {
    match part {
        RefOr::Ref(_) => object(components.schemas.get(name_of(part)?)?, components),
        RefOr::T(Schema::Object(object)) => Some(object.clone()),
        RefOr::T(Schema::AllOf(all)) => joined(all, components),
        RefOr::T(_) => None,
    }
}

/// Gives the properties of a part its description, unless some have their own.
fn with_descriptions(mut part: Object) -> Object {
    let is_described = |property: &RefOr<Schema>| match property {
        RefOr::Ref(named) => !named.description.is_empty(),
        RefOr::T(Schema::Object(object)) => object.description.is_some(),
        RefOr::T(_) => false,
    };
    let Some(text) = part.description.take() else { return part };
    if !part.properties.values().any(is_described) {
        for property in part.properties.values_mut() {
            match property {
                RefOr::Ref(named) => named.description.clone_from(&text),
                RefOr::T(Schema::Object(object)) => object.description = Some(text.clone()),
                RefOr::T(_) => {}
            }
        }
    }
    part
}
