//! The commands that the documents show are commands.

use std::path::{Path, PathBuf};

use crate::world::{Story, World};

/// The stories, by name.
pub(crate) const ALL: [Story; 1] = [("documents::commands", commands)];

/// Asks each command of each block of shell for help: what it does not know, it names first.
fn commands(world: &World) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/protocols", "examples", "examples/governed", "examples/uamp"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for page in pages {
        for line in shell(&page) {
            let Some(mut words) = words(&line) else { continue };
            if words.first().is_none_or(|word| word != "yore") {
                continue;
            }
            words.push("--help".to_owned());
            let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let ended = world.home.run(&arguments);
            tried += 1;
            if ended.code != 0 {
                wrong.push(format!("{}: {line}: {}", page.display(), ended.err));
            }
        }
    }
    assert!(tried > 40, "only {tried} commands were found");
    wrong
}

/// The lines of a page's blocks of shell, with those that go on joined.
fn shell(page: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let joined = blocks.map(|block| block.replace("\\\n", " ")).collect::<String>();
    joined.lines().map(|line| line.trim().to_owned()).collect()
}

/// The words of a command as a shell would have them, up to a pipe, a redirection or a remark;
/// nothing for a line that only a shell understands.
fn words(line: &str) -> Option<Vec<String>> {
    if line.contains("$(") {
        return None;
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('|' | '>' | '<' | ';' | '&', None) => break,
            ('#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}
