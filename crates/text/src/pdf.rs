//! PDF: the strings that its pages show, in the order in which they are shown.
//!
//! Tables of offsets are often wrong and never needed: objects are found by looking for them, the
//! last one of a number counts. Words are put together by where they stand on the page.

mod content;
mod file;
mod filter;
mod font;
mod object;

use std::collections::HashSet;

use crate::sink::{Sink, Step};
use content::Painter;
use file::File;
use object::Object;

/// Levels of the tree of pages.
const LEVELS: usize = 32;

pub(crate) fn read(bytes: &[u8], sink: &mut Sink) -> Step {
    if memchr::memmem::find(bytes, b"/Encrypt").is_some() {
        return Ok(());
    }
    let file = File::scanned(bytes, sink)?;
    let mut painter = Painter::new(&file);
    let mut pages = Pages { file: &file, painter: &mut painter, seen: HashSet::new() };
    if let Some(root) = file.catalog() {
        pages.visit(root.get("Pages"), &Object::Null, LEVELS, sink)?;
    }
    if pages.seen.is_empty() {
        for number in file.numbers() {
            sink.in_time()?;
            let object = Object::Reference(number);
            if file.resolved(&object).get("Type").is_name("Page") {
                pages.visit(&object, &Object::Null, 1, sink)?;
            }
        }
    }
    Ok(())
}

struct Pages<'a, 'f> {
    file: &'a File<'f>,
    painter: &'a mut Painter<'f>,
    seen: HashSet<u32>,
}

impl Pages<'_, '_> {
    /// Reads a page or the pages of a node, each once.
    fn visit(&mut self, node: &Object, inherited: &Object, levels: usize, sink: &mut Sink) -> Step {
        if let Object::Reference(number) = node
            && !self.seen.insert(*number)
        {
            return Ok(());
        }
        sink.in_time()?;
        let node = self.file.resolved(node);
        let own = self.file.resolved(node.get("Resources"));
        let resources = if own == Object::Null { inherited } else { &own };
        let kids = self.file.resolved(node.get("Kids"));
        if let (Object::Array(kids), Some(levels)) = (kids, levels.checked_sub(1)) {
            for kid in &kids {
                self.visit(kid, resources, levels, sink)?;
            }
            return Ok(());
        }
        sink.line();
        let mut content = Vec::new();
        match self.file.resolved(node.get("Contents")) {
            Object::Array(parts) => {
                for part in &parts {
                    content.extend(self.file.stream(part, sink)?);
                    content.push(b'\n');
                    if content.len() > sink.room() {
                        break;
                    }
                }
            }
            Object::Null
            | Object::Number(_)
            | Object::Text(_)
            | Object::Name(_)
            | Object::Dictionary(_)
            | Object::Reference(_)
            | Object::Word(_) => content = self.file.stream(node.get("Contents"), sink)?,
        }
        self.painter.paint(&content, resources, sink)
    }
}
