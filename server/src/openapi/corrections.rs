//! Corrections of what utoipa derives incorrectly.
//!
//! Non-goals: descriptions of single endpoints or types.

use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Required, Schema, SchemaFormat};

/// Placeholder of the standard field `allowEmptyValue`, which utoipa does not support.
const EXTENSION_FOR_EMPTY: &str = "x-allowEmptyValue";

/// Corrects a parameter. An optional one in a path or header is absent, never null; in a query it may also be empty. A
/// number in a query has no maximum: larger values are read as the largest.
pub(super) fn parameter(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    if let Some(schema) = &mut parameter.schema {
        self::schema(schema);
    }
    if let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema
        && let SchemaType::Array(types) = &mut object.schema_type
    {
        types.retain(|it| *it != Type::Null);
        if let [only] = types.as_slice() {
            object.schema_type = SchemaType::Type(only.clone());
        }
    }
    if parameter.parameter_in != ParameterIn::Query {
        return;
    }
    if let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema {
        object.maximum.take_if(|most| *most == u64::MAX.into());
    }
    if parameter.required == Required::False {
        parameter.extensions = Some(Extensions::builder().add(EXTENSION_FOR_EMPTY, true).build());
    }
}

/// Corrects a schema. An absent setting is unchanged, so it has no default. An integer with a minimum is unsigned, so
/// its format is not int64 or int32, and its maximum is that of its type.
pub(super) fn schema(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::Ref(named) => _ = named.default.take_if(|default| default.is_null()),
        RefOr::T(Schema::Object(object)) => {
            object.default.take_if(|default| default.is_null());
            let most = match object.format {
                Some(SchemaFormat::KnownFormat(KnownFormat::Int64)) => Some(u64::MAX),
                Some(SchemaFormat::KnownFormat(KnownFormat::Int32)) => Some(u32::MAX.into()),
                _ => None,
            };
            if let Some(most) = most
                && object.minimum.is_some()
            {
                object.format = None;
                object.maximum = object.maximum.take().or(Some(most.into()));
            }
            object.properties.values_mut().for_each(self::schema);
        }
        RefOr::T(Schema::Array(array)) => {
            array.default.take_if(|default| default.is_null());
        }
        RefOr::T(Schema::OneOf(choices)) => choices.items.iter_mut().for_each(self::schema),
        RefOr::T(_) => {}
    }
}

/// Replaces placeholders by the names of the standard.
pub(super) fn with_standard_key_names(document: &str) -> String {
    document.replace(&format!("\"{EXTENSION_FOR_EMPTY}\""), "\"allowEmptyValue\"")
}
