//! What comes in besides options: text and ids from arguments, standard input and files.

use std::io::{BufRead, IsTerminal, Read};

use yore_domain::limits;

use crate::failure::{Failure, Result};

/// Returns the text of a command: the words given, or standard input for `-` or for no words.
pub(crate) fn text(words: &[String], what: &str) -> Result<String> {
    match words {
        [] if std::io::stdin().is_terminal() => Err(Failure::usage(format!("no {what} was given"))
            .hint(format!("write the {what} after the command, or - to read standard input"))),
        [] => piped(what),
        [dash] if dash == "-" => piped(what),
        words => Ok(words.join(" ")),
    }
    .and_then(|text| if text.trim().is_empty() { Err(empty(what)) } else { Ok(text) })
}

fn empty(what: &str) -> Failure {
    Failure::usage(format!("the {what} is empty")).hint("nothing was stored; give it some words")
}

fn piped(what: &str) -> Result<String> {
    // One byte more than the limit is enough to know that it is passed.
    let most = limits::TEXT_BYTES;
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(Failure::file("standard input"))?;
    if bytes.len() > most {
        return Err(Failure::usage(format!("the {what} is larger than 1 MiB")).hint(
            "nothing was stored; split it, or use yore import --lines for one memory a line",
        ));
    }
    let mut text = utf8(bytes, what)?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Reads bytes as UTF-8, saying where they stop being that.
pub(crate) fn utf8(bytes: Vec<u8>, what: &str) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("the {what} is not UTF-8 text: byte {at} does not belong to it"))
            .hint("nothing was stored; convert it first, for example with iconv -t UTF-8")
    })
}

/// Returns the ids of a command: those given, and one a line from standard input for `-`.
pub(crate) fn ids(given: &[String], also: Option<&str>) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for id in given.iter().map(String::as_str).chain(also.into_iter().flat_map(|l| l.split(','))) {
        if id != "-" {
            ids.push(id.trim().to_owned());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| {
                if error.kind() == std::io::ErrorKind::InvalidData {
                    return Failure::usage("the ids are not UTF-8 text");
                }
                Failure::file("standard input")(error)
            })?;
            ids.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    ids.retain(|id| !id.is_empty());
    if ids.is_empty() {
        return Err(Failure::usage("no id was given")
            .hint("name the memories, or pipe one id a line into --ids -"));
    }
    Ok(ids)
}

/// Asks a person at the terminal; without one, only `--yes` agrees.
pub(crate) fn agreed(yes: bool, question: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{question} nobody is there to answer"))
            .hint("add --yes to go ahead"));
    }
    anstream::eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::file("standard input"))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_and_nothing_is_refused() {
        assert_eq!(text(&["tea,".into(), "no sugar".into()], "text").unwrap(), "tea, no sugar");
        assert!(text(&[" ".into()], "text").unwrap_err().message.contains("empty"));
    }

    #[test]
    fn bytes_that_are_no_text_are_located() {
        let failure = utf8(b"ab\xff".to_vec(), "text").unwrap_err();
        assert!(failure.message.contains("byte 2"), "{failure}");
    }

    #[test]
    fn ids_come_from_words_and_lists() {
        assert_eq!(ids(&["a".into()], Some("b,c")).unwrap(), ["a", "b", "c"]);
        assert!(ids(&[], None).is_err());
    }
}
