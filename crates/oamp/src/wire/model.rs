//! The model of a person.

use serde_json::Value;
use yore_domain::{Error, Result};

use super::{
    Object, flag, joined, named, number, object, objects, only, share, spoken, text, texts, time,
};

const MEMBERS: [&str; 10] = [
    "oamp_version",
    "type",
    "user_id",
    "model_version",
    "updated_at",
    "communication",
    "expertise",
    "corrections",
    "stated_preferences",
    "metadata",
];
const LEVELS: [&str; 4] = ["novice", "intermediate", "advanced", "expert"];

/// A user model that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Whose it is.
    pub user: String,
    /// The producer's number.
    pub version: u64,
    /// The whole document, as it was sent.
    pub document: Object,
}

impl Model {
    /// Reads a user model.
    pub fn read(document: Object) -> Result<Self> {
        only(&document, "", &MEMBERS)?;
        spoken(&named(&document, "", "oamp_version")?)?;
        if named(&document, "", "type")? != "user_model" {
            return Err(Error::invalid("type", "must be user_model"));
        }
        let user = named(&document, "", "user_id")?;
        let version = document.get("model_version").filter(|value| !value.is_null());
        let version = version.ok_or_else(|| Error::invalid("model_version", "is required"))?;
        let version = whole(version)
            .ok_or_else(|| Error::invalid("model_version", "must be a whole number from 1 on"))?;
        if time(&document, "", "updated_at")?.is_none() {
            return Err(Error::invalid("updated_at", "is required"));
        }
        object(&document, "", "metadata")?;
        if let Some(communication) = object(&document, "", "communication")? {
            check_communication(&communication)?;
        }
        each(&document, "expertise", check_expertise)?;
        each(&document, "corrections", check_correction)?;
        each(&document, "stated_preferences", check_preference)?;
        Ok(Self { user, version, document })
    }
}

/// A whole number from 1 on; `7.0` is one.
fn whole(value: &Value) -> Option<u64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        (1.0..=MOST).contains(&number).then_some(number as u64)
    });
    whole.filter(|number| (1..=i64::MAX.cast_unsigned()).contains(number))
}

fn each(document: &Object, name: &str, check: fn(&Object, &str) -> Result<()>) -> Result<()> {
    let list = objects(document, "", name)?.unwrap_or_default();
    list.iter().enumerate().try_for_each(|(at, one)| check(one, &format!("{name}.{at}")))
}

fn check_communication(of: &Object) -> Result<()> {
    const PATH: &str = "communication";
    let known = ["verbosity", "formality", "prefers_examples", "prefers_explanations", "languages"];
    only(of, PATH, &known)?;
    for name in ["verbosity", "formality"] {
        number(of, PATH, name, -1.0, 1.0)?;
    }
    for name in ["prefers_examples", "prefers_explanations"] {
        flag(of, PATH, name)?;
    }
    let languages = texts(of, PATH, "languages")?.unwrap_or_default();
    if languages.iter().any(|language| !(2..=5).contains(&language.chars().count())) {
        return Err(Error::invalid(joined(PATH, "languages"), "each must have 2 to 5 letters"));
    }
    Ok(())
}

fn check_expertise(of: &Object, path: &str) -> Result<()> {
    let known = ["domain", "level", "confidence", "evidence_sessions", "last_observed"];
    only(of, path, &known)?;
    named(of, path, "domain")?;
    if !LEVELS.contains(&named(of, path, "level")?.as_str()) {
        let known = format!("must be one of {}", LEVELS.join(", "));
        return Err(Error::invalid(joined(path, "level"), known));
    }
    if share(of, path, "confidence")?.is_none() {
        return Err(Error::invalid(joined(path, "confidence"), "is required"));
    }
    texts(of, path, "evidence_sessions")?;
    time(of, path, "last_observed")?;
    Ok(())
}

fn check_correction(of: &Object, path: &str) -> Result<()> {
    let known = ["what_agent_did", "what_user_wanted", "session_id", "timestamp", "context"];
    only(of, path, &known)?;
    for name in ["what_agent_did", "what_user_wanted", "session_id"] {
        named(of, path, name)?;
    }
    text(of, path, "context")?;
    moment(of, path)
}

fn check_preference(of: &Object, path: &str) -> Result<()> {
    only(of, path, &["key", "value", "timestamp"])?;
    named(of, path, "key")?;
    if text(of, path, "value")?.is_none() {
        return Err(Error::invalid(joined(path, "value"), "is required"));
    }
    moment(of, path)
}

fn moment(of: &Object, path: &str) -> Result<()> {
    match time(of, path, "timestamp")? {
        Some(_) => Ok(()),
        None => Err(Error::invalid(joined(path, "timestamp"), "is required")),
    }
}
