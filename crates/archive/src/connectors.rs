//! One module per platform.

mod anthropic;
mod chatgpt;
mod claude;
mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod grok;
mod letta;
mod lm_studio;
mod mem0;
mod memories;
mod notes;
mod ollama;
mod omp;
mod open_webui;
mod perplexity;
mod server_memory;

use crate::Connector;

/// Returns every connector. Of two that are equally sure the first reads.
#[must_use]
pub fn all() -> Vec<Box<dyn Connector>> {
    vec![
        Box::new(omp::Omp),
        Box::new(chatgpt::ChatGpt),
        Box::new(claude::Claude),
        Box::new(claude_code::ClaudeCode),
        Box::new(codex::Codex),
        Box::new(gemini::Gemini),
        Box::new(grok::Grok),
        Box::new(perplexity::Perplexity),
        Box::new(open_webui::OpenWebUi),
        Box::new(copilot::Copilot),
        Box::new(lm_studio::LmStudio),
        Box::new(ollama::Ollama),
        Box::new(cursor::Cursor),
        Box::new(mem0::Mem0),
        Box::new(letta::Letta),
        Box::new(server_memory::ServerMemory),
        Box::new(notes::Notes),
    ]
}
