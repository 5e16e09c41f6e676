//! Structs: the names of their members, and structs of the members of several.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;

use crate::words::sql_name;

use super::{Any, Arguments, Joined, Own, Texts, raised};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("struct_concat", &[Any, Any], Joined, joined).repeating_last(),
    Own::new("struct_keys", &[Any], Texts, |args| {
        let names = fields(args.columns[0].data_type())?.iter().map(|field| field.name().clone());
        let names: Vec<String> = names.collect();
        args.lists(|_| Ok(Some(names.clone())))
    }),
];

fn fields(data_type: &DataType) -> Result<&Fields> {
    match data_type {
        DataType::Struct(fields) => Ok(fields),
        other => Err(raised(format!("{} is no struct", sql_name(other)))),
    }
}

/// The struct with the members of several; one with the name of a member before it takes its place.
///
/// # Errors
/// A type that is no struct.
pub(super) fn joined_type(structs: &[DataType]) -> Result<DataType> {
    Ok(DataType::Struct(places(structs)?.into_iter().map(|(_, field)| field).collect()))
}

/// A member, with the number of the struct that it comes from and its place there.
type Member = ((usize, usize), Arc<Field>);

fn places(structs: &[DataType]) -> Result<Vec<Member>> {
    let mut places: Vec<Member> = Vec::new();
    for (from, data_type) in structs.iter().enumerate() {
        for (at, field) in fields(data_type)?.iter().enumerate() {
            let field = Arc::new(field.as_ref().clone().with_nullable(true));
            match places.iter_mut().find(|(_, known)| known.name() == field.name()) {
                Some(known) => *known = ((from, at), field),
                None => places.push(((from, at), field)),
            }
        }
    }
    Ok(places)
}

fn joined(args: &Arguments) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.columns.iter().map(|column| column.data_type().clone()).collect();
    let places = places(&types)?;
    let members = places.iter().map(|((from, at), _)| args.columns[*from].as_struct().column(*at).clone()).collect();
    let fields = places.into_iter().map(|(_, field)| field).collect();
    // A row without one of the structs has none.
    let nulls = args.columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.nulls()));
    Ok(Arc::new(StructArray::try_new(fields, members, nulls)?))
}
