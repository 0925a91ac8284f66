//! What utoipa derives, and is not so.
//!
//! Never here: what a single endpoint or type has to say of itself.

use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Required, Schema, SchemaFormat};

/// Stands for `allowEmptyValue`, which is a field of the standard, and which utoipa has no name for.
const EXTENSION_FOR_EMPTY: &str = "x-allowEmptyValue";

/// What is optional in an address or among the headers is absent, never null; in a query it may be empty, too. A number
/// in a query has no end that its type sets: one that no type holds is read as the largest.
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

/// What the derived descriptions of types have wrong: a setting that is absent is left as it is, and has no default. A
/// whole number with a least value, one without sign, is none of 63 or 31 bits, and ends where its type does.
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
        RefOr::T(Schema::AllOf(parts)) => parts.items.iter_mut().for_each(self::schema),
        RefOr::T(_) => {}
    }
}

/// Puts the names of the standard in place of those that stood for them.
pub(super) fn with_names_of_the_standard(document: &str) -> String {
    document.replace(&format!("\"{EXTENSION_FOR_EMPTY}\""), "\"allowEmptyValue\"")
}
