//! A memory protocol as named operations over JSON, whatever carries them.
//!
//! Carriers (MCP, UAMP, the command line) know no protocol; they ask the [`Registry`]. A
//! dialect also reads the credentials of its own form, so that a token of one protocol opens
//! every door it covers, whichever protocol knocks.

use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::call::{Call, Claims};

/// One operation: what it is called, takes and answers.
#[derive(Clone, Debug)]
pub struct OperationSchema {
    /// Its name without the dialect's, as `recall`.
    pub name: &'static str,
    /// A short name for people.
    pub title: &'static str,
    /// What it does, for people and models.
    pub summary: &'static str,
    /// JSON Schema of the input.
    pub input: Value,
    /// JSON Schema of the output.
    pub output: Value,
    /// What a caller may expect of it.
    pub effect: EffectHint,
}

/// What calling an operation may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectHint {
    /// It only looks.
    Reads,
    /// It adds or changes; nothing is lost.
    Writes,
    /// It adds or changes, and a repeated call changes nothing more.
    WritesOnce,
    /// It may take something away; a repeated call takes nothing more.
    Removes,
    /// It takes something away for good, whatever it is given.
    Erases,
}

/// A family of things that can be read by address.
#[derive(Clone, Debug)]
pub struct ResourceTemplate {
    /// The address with its blanks, as `ump://{project}/{id}`.
    pub uri: &'static str,
    /// A short name.
    pub name: &'static str,
    /// What lies there.
    pub summary: &'static str,
    /// The media type of what lies there.
    pub mime: &'static str,
}

/// One thing that was read by address, or is offered for reading.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// A short name.
    pub name: String,
    /// Its media type.
    pub mime: &'static str,
    /// What it says; absent in a list.
    pub text: Option<String>,
}

/// A protocol's own credential, read but not judged.
#[derive(Debug)]
pub enum Presented {
    /// Claims that the engine will verify.
    Claims(Box<Claims>),
    /// It has this dialect's form, but cannot be read.
    Unreadable(&'static str),
}

/// A memory protocol.
///
/// Errors are values in the dialect's own form, with the dialect's own code at the place
/// where its clients look for it.
pub trait Dialect: Send + Sync {
    /// The protocol's name, as `ump`.
    fn name(&self) -> &'static str;

    /// Its operations, in the order in which they are listed.
    fn operations(&self) -> &[OperationSchema];

    /// Carries out an operation.
    fn call<'a>(
        &'a self,
        call: Call,
        operation: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, Value>>;

    /// Follows changes.
    fn subscribe<'a>(
        &'a self,
        call: Call,
        input: Value,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Value>>;

    /// Reads a bearer token of the dialect's own form; nothing when it has another form.
    fn credential(&self, token: &str) -> Option<Presented> {
        let _ = token;
        None
    }

    /// The header of a request in which a credential of this form may stand, besides the one
    /// for every bearer token.
    fn header(&self) -> Option<&'static str> {
        None
    }

    /// The families of things that can be read by address.
    fn templates(&self) -> &[ResourceTemplate] {
        &[]
    }

    /// Lists what is worth reading by address, the newest first.
    fn resources<'a>(
        &'a self,
        call: Call,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Resource>, Value>> {
        let _ = (call, limit);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Reads by address; nothing when the address is not of this dialect.
    fn read<'a>(
        &'a self,
        call: Call,
        uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Resource, Value>>> {
        let _ = (call, uri);
        Box::pin(async { None })
    }
}

/// All dialects a server speaks, in the order in which they were named.
#[derive(Default)]
pub struct Registry {
    dialects: Vec<Box<dyn Dialect>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Dialect::name)).finish()
    }
}

impl Registry {
    /// Collects dialects.
    #[must_use]
    pub fn new(dialects: Vec<Box<dyn Dialect>>) -> Self {
        Self { dialects }
    }

    /// Goes through all dialects.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.dialects.iter().map(|dialect| &**dialect)
    }

    /// Returns a dialect by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn Dialect> {
        self.iter().find(|dialect| dialect.name() == name)
    }

    /// The headers that carry credentials of a dialect's own form, each with its dialect.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &dyn Dialect)> {
        self.iter().filter_map(|dialect| Some((dialect.header()?, dialect)))
    }

    /// Reads a bearer token of any dialect's own form; nothing when it has none of them.
    #[must_use]
    pub fn credential(&self, token: &str) -> Option<Presented> {
        self.iter().find_map(|dialect| dialect.credential(token))
    }
}
