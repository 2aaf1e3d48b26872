//! Completions for the arguments of prompts and the blanks of addresses.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use rmcp::RoleServer;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};
use rmcp::service::RequestContext;
use yore_domain::kind::Kind;
use yore_domain::query::{Filter, PageRequest};
use yore_engine::Call;

use crate::server::Mcp;
use crate::{failure, prompts};

/// How many recent memories are looked through.
const RECENT: usize = 200;

impl Mcp {
    /// Proposes values for an argument.
    pub(crate) async fn completions(
        &self,
        request: CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let argument = request.argument.name.as_str();
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => prompts::takes(&prompt.name, argument),
            Reference::Resource(template) => blanks(&template.uri).any(|blank| blank == argument),
            _ => false,
        };
        let values = if known { self.values(&request, context).await? } else { BTreeSet::new() };
        let begin = request.argument.value.to_lowercase();
        let fitting: Vec<String> =
            values.into_iter().filter(|value| value.to_lowercase().starts_with(&begin)).collect();
        let total = u32::try_from(fitting.len()).ok();
        let more = fitting.len() > CompletionInfo::MAX_VALUES;
        let shown = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
        let info = CompletionInfo::with_pagination(shown, total, more);
        let info = info.map_err(|reason| ErrorData::internal_error(reason, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn values(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<BTreeSet<String>, ErrorData> {
        let argument = request.argument.name.as_str();
        if argument == "kind" {
            return Ok(Kind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect());
        }
        let call = self.call(context)?;
        match (&request.r#ref, argument) {
            (_, "project" | "agent") => self.scopes(&call, argument).await,
            (Reference::Resource(template), _) => {
                let chosen = |blank: &str| {
                    let context = request.context.as_ref()?;
                    context.get_argument(blank).cloned()
                };
                self.addresses(&call, &template.uri, argument, chosen).await
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    /// Projects or agents of recent memories.
    async fn scopes(&self, call: &Call, what: &str) -> Result<BTreeSet<String>, ErrorData> {
        let page = PageRequest { limit: RECENT, ..PageRequest::default() };
        let listed = self.surface().engine.list(call, Filter::default(), page).await;
        let listed = listed.map_err(|error| failure::of_request(failure::value(&error)))?;
        let scopes = listed.items.into_iter().map(|memory| memory.head.content.scope);
        Ok(scopes
            .filter_map(|scope| if what == "project" { scope.project } else { scope.agent })
            .collect())
    }

    /// What stands in a blank of the addresses that are listed, where the others are as chosen.
    async fn addresses(
        &self,
        call: &Call,
        template: &str,
        blank: &str,
        chosen: impl Fn(&str) -> Option<String>,
    ) -> Result<BTreeSet<String>, ErrorData> {
        let mut values = BTreeSet::new();
        for dialect in self.surface().registry.iter() {
            if !dialect.templates().iter().any(|known| known.uri == template) {
                continue;
            }
            let listed = dialect.resources(call.clone(), RECENT).await;
            for resource in listed.map_err(failure::of_request)? {
                let Some(filled) = fill(template, &resource.uri) else { continue };
                let fits = |(name, value): &(&str, String)| {
                    *name == blank || chosen(name).is_none_or(|wanted| wanted == *value)
                };
                if filled.iter().all(fits) {
                    values.extend(
                        filled
                            .into_iter()
                            .filter(|(name, _)| *name == blank)
                            .map(|(_, value)| value),
                    );
                }
            }
        }
        Ok(values)
    }
}

/// The names of a template's blanks.
fn blanks(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// Reads an address against a template: what stands in each blank.
fn fill<'t>(template: &'t str, uri: &str) -> Option<Vec<(&'t str, String)>> {
    let mut pieces = template.split('{');
    let mut rest = uri.strip_prefix(pieces.next()?)?;
    let mut filled = Vec::new();
    for piece in pieces {
        let (name, after) = piece.split_once('}')?;
        let end = if after.is_empty() { rest.len() } else { rest.find(after)? };
        let value = percent_decode_str(&rest[..end]).decode_utf8().ok()?;
        filled.push((name, value.into_owned()));
        rest = &rest[end + after.len()..];
    }
    rest.is_empty().then_some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_against_templates() {
        let template = "ump://{project}/{id}";
        assert_eq!(blanks(template).collect::<Vec<_>>(), ["project", "id"]);
        let filled = fill(template, "ump://a%2Fb/urn:ump:x").unwrap();
        assert_eq!(filled, [("project", "a/b".to_owned()), ("id", "urn:ump:x".to_owned())]);
        for other in ["ump://a", "omp://a/b", ""] {
            assert!(fill(template, other).is_none(), "{other}");
        }
        assert_eq!(fill("x://fixed", "x://fixed").unwrap(), []);
    }
}
