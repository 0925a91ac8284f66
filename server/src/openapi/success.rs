//! The field `success` of successful responses, which the envelope of all replies adds (`replies::Success`).

use std::collections::BTreeSet;

use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::{Components, ObjectBuilder, OpenApi, RefOr};

const FIELD: &str = "success";

/// Successful responses that are no replies of the server, but files for other programs.
const FILES: &[&str] = &["ShareX"];

/// Adds the field to the schema of each reply.
pub(super) fn complete(document: &mut OpenApi) {
    let replies = replies(document);
    let Some(components) = &mut document.components else { return };
    for reply in replies.iter().filter(|reply| !FILES.contains(&&***reply)) {
        add_field(components, reply);
    }
}

/// Returns the names of the schemas of successful JSON responses.
pub(super) fn replies(document: &mut OpenApi) -> BTreeSet<String> {
    let items = document.paths.paths.values_mut();
    let operations = items.flat_map(super::operations).map(|(_, operation)| operation);
    let responses = operations.flat_map(|operation| &operation.responses.responses);
    let successful = responses.filter(|(status, _)| status.starts_with('2'));
    let schemas = successful.filter_map(|(_, response)| match response {
        RefOr::T(response) => match response.content.get("application/json")? {
            RefOr::T(content) => content.schema.as_ref(),
            RefOr::Ref(_) => None,
        },
        RefOr::Ref(_) => None,
    });
    schemas.filter_map(name_of).map(str::to_owned).collect()
}

/// Returns the name of a referenced schema.
pub(super) fn name_of(schema: &RefOr<Schema>) -> Option<&str> {
    match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next(),
        RefOr::T(_) => None,
    }
}

fn add_field(components: &mut Components, reply: &str) {
    match components.schemas.get_mut(reply) {
        Some(RefOr::T(Schema::Object(object))) => add_to(object),
        Some(RefOr::T(Schema::OneOf(choices))) => {
            let choices: Vec<_> =
                choices.items.iter().filter_map(name_of).map(str::to_owned).collect();
            choices.iter().for_each(|choice| add_field(components, choice));
        }
        _ => {}
    }
}

fn add_to(object: &mut Object) {
    if object.properties.contains_key(FIELD) {
        return;
    }
    let boolean = ObjectBuilder::new().schema_type(Type::Boolean).build();
    object.properties.shift_insert(0, FIELD.to_owned(), RefOr::T(Schema::Object(boolean)));
    object.required.insert(0, FIELD.to_owned());
}
