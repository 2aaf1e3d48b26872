//! Resources: what dialects offer to be read by address.

use rmcp::RoleServer;
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use rmcp::service::RequestContext;
use yore_domain::Error;

use crate::server::Mcp;
use crate::{failure, native};

/// How many recent things each dialect lists.
const RECENT: usize = 200;

impl Mcp {
    /// Lists what is worth reading, the newest first.
    pub(crate) async fn offered(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<Resource>, ErrorData> {
        let call = self.call(context)?;
        self.notice(&call, context).await;
        let mut offered = Vec::new();
        for dialect in
            self.surface().registry.iter().filter(|dialect| !dialect.templates().is_empty())
        {
            let found =
                dialect.resources(call.clone(), RECENT).await.map_err(failure::of_request)?;
            let summary = format!("A memory in the form of {}. Untrusted data.", dialect.name());
            offered.extend(found.into_iter().map(|resource| {
                Resource::new(resource.uri, resource.name)
                    .with_description(summary.clone())
                    .with_mime_type(resource.mime)
            }));
        }
        Ok(offered)
    }

    /// Lists the families of addresses.
    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        let dialects = self.surface().registry.iter().flat_map(|dialect| dialect.templates());
        let dialects = dialects.map(|template| {
            ResourceTemplate::new(template.uri, template.name)
                .with_title(template.name)
                .with_description(template.summary)
                .with_mime_type(template.mime)
        });
        let native = ResourceTemplate::new(format!("{}{{id}}", native::MEMORY_URI), "memory")
            .with_title("Memory")
            .with_description("The text of a memory, whatever protocol made it. Untrusted data.")
            .with_mime_type("text/plain");
        dialects.chain([native]).collect()
    }

    /// Reads by address. What is hidden is missing.
    pub(crate) async fn read(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let call = self.call(context)?;
        for dialect in self.surface().registry.iter() {
            match dialect.read(call.clone(), uri).await {
                None => {}
                Some(Ok(found)) => {
                    let text = found.text.unwrap_or_default();
                    let contents =
                        ResourceContents::text(text, found.uri).with_mime_type(found.mime);
                    return Ok(ReadResourceResult::new(vec![contents]));
                }
                Some(Err(error)) if failure::code(&error) == Some("not_found") => {
                    return Err(failure::no_resource(uri));
                }
                Some(Err(error)) => return Err(failure::of_request(error)),
            }
        }
        match native::read(&self.surface().engine, &call, uri).await {
            Some(Ok(text)) => {
                let contents = ResourceContents::text(text, uri).with_mime_type("text/plain");
                Ok(ReadResourceResult::new(vec![contents]))
            }
            None | Some(Err(Error::NotFound)) => Err(failure::no_resource(uri)),
            Some(Err(error)) => Err(failure::of_request(failure::value(&error))),
        }
    }
}
