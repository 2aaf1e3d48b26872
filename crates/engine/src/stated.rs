//! What only a protocol may state: the bytes a record came in, the members it keeps beside the
//! model, and the ids it works out. The owner's word is taken as it is; from anyone else only
//! the dialect that read the request may hand them over, and only under its own name.

use std::borrow::Cow;

use yore_domain::memory::{Content, Draft, Foreign, Version};
use yore_domain::mutation::Mutation;

use crate::run::Session;

/// The mutation without what the caller may not state.
pub(crate) fn stated<'a>(
    session: &Session,
    dialect: Option<&str>,
    mutation: &'a Mutation,
) -> Cow<'a, Mutation> {
    if session.is_owner() {
        return Cow::Borrowed(mutation);
    }
    match mutation {
        Mutation::Remember { draft, id } => {
            let draft = Box::new(stated_draft(dialect, draft));
            Cow::Owned(Mutation::Remember { draft, id: *id })
        }
        Mutation::Revise { memory, patch, expected } => {
            let mut patch = patch.clone();
            own(&mut patch.foreign, dialect);
            patch.version = patch.version.filter(|_| dialect.is_some());
            Cow::Owned(Mutation::Revise { memory: *memory, patch, expected: *expected })
        }
        Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => Cow::Borrowed(mutation),
    }
}

/// The versions of an import without what the caller may not state.
pub(crate) fn stated_versions<'a>(
    session: &Session,
    versions: &'a [Version],
) -> Cow<'a, [Version]> {
    if session.is_owner() {
        return Cow::Borrowed(versions);
    }
    let mut versions = versions.to_vec();
    versions.iter_mut().for_each(|version| strip(&mut version.content, None));
    Cow::Owned(versions)
}

fn stated_draft(dialect: Option<&str>, draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    strip(&mut draft.content, dialect);
    draft.version = draft.version.filter(|_| dialect.is_some());
    draft
}

fn strip(content: &mut Content, dialect: Option<&str>) {
    own(&mut content.foreign, dialect);
    let sealed = content.seal.take();
    content.seal =
        sealed.filter(|seal| dialect.is_some() && seal.format.split('/').next() == dialect);
}

fn own(foreign: &mut Foreign, dialect: Option<&str>) {
    foreign.retain(|name, _| dialect == Some(name.as_str()));
}
