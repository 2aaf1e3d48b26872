//! State machines carried by procedural memories.
//!
//! Only an allow-listed shape is accepted: a machine names states and transitions and can
//! never name code to run. Guards are names of booleans that the caller supplies.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, MemoryId, Result, Timestamp, limits};

/// A validated machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Where it starts.
    pub initial: String,
    /// Its states.
    pub states: Vec<String>,
    /// Its transitions.
    pub transitions: Vec<Transition>,
    /// Where it stands; the initial state when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

/// One way from a state to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// What sets it off.
    pub trigger: String,
    /// From where; `*` means every state.
    pub source: String,
    /// To where.
    pub dest: String,
    /// Guards that must be true.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub conditions: Names,
    /// Guards that must be false.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub unless: Names,
}

/// One name or a list of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Names {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Names {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Many(names) if names.is_empty())
    }

    /// Returns the names.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

impl Machine {
    /// Reads and validates a machine.
    pub fn parse(json: &str) -> Result<Self> {
        let machine: Self = serde_json::from_str(json).map_err(|error| {
            Error::invalid("procedure", format!("not a state machine ({})", error.classify_name()))
        })?;
        machine.validate()?;
        Ok(machine)
    }

    /// Checks that states exist, guards are plain names and no trigger is ambiguous.
    pub fn validate(&self) -> Result<()> {
        let wrong = |path: &str, reason: &str| Error::invalid(format!("procedure.{path}"), reason);
        // Every state counts once for each transition that leaves them all.
        if self.states.len() > limits::STATES {
            return Err(Error::too_large("procedure.states", limits::STATES));
        }
        if self.transitions.len() > limits::TRANSITIONS {
            return Err(Error::too_large("procedure.transitions", limits::TRANSITIONS));
        }
        if self.name.is_empty() {
            return Err(wrong("name", "must not be empty"));
        }
        if self.states.is_empty() || self.states.iter().any(String::is_empty) {
            return Err(wrong("states", "must be a list of non-empty names"));
        }
        let states: BTreeSet<&str> = self.states.iter().map(String::as_str).collect();
        if !states.contains(self.initial.as_str()) {
            return Err(wrong("initial", "is not one of the states"));
        }
        if self.current.as_ref().is_some_and(|state| !states.contains(state.as_str())) {
            return Err(wrong("current", "is not one of the states"));
        }
        let mut seen = BTreeSet::new();
        for transition in &self.transitions {
            if transition.trigger.is_empty() {
                return Err(wrong("transitions", "a trigger must not be empty"));
            }
            if !states.contains(transition.dest.as_str()) {
                return Err(wrong("transitions", "a dest is not one of the states"));
            }
            if transition.source != "*" && !states.contains(transition.source.as_str()) {
                return Err(wrong("transitions", "a source is not one of the states"));
            }
            let guards =
                transition.conditions.as_slice().iter().chain(transition.unless.as_slice());
            if guards.into_iter().any(|name| name.is_empty() || name.contains('.')) {
                return Err(wrong("transitions", "a guard must be a plain name without a dot"));
            }
            for source in transition.sources(&self.states) {
                if !seen.insert((source, transition.trigger.as_str())) {
                    return Err(wrong(
                        "transitions",
                        "two transitions leave one state by the same trigger",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns where it stands.
    #[must_use]
    pub fn state(&self) -> &str {
        self.current.as_deref().unwrap_or(&self.initial)
    }

    /// Lists the triggers that leave the state it stands in.
    #[must_use]
    pub fn available(&self) -> Vec<&str> {
        let state = self.state();
        self.transitions
            .iter()
            .filter(|t| t.source == "*" || t.source == state)
            .map(|t| t.trigger.as_str())
            .collect()
    }

    /// Moves by a trigger, with the guards the caller vouches for. Unnamed guards are false.
    pub fn trigger(&self, name: &str, guards: &BTreeMap<String, bool>) -> Result<Self> {
        let state = self.state();
        let transition = self
            .transitions
            .iter()
            .find(|t| t.trigger == name && (t.source == "*" || t.source == state))
            .ok_or_else(|| {
                Error::conflict(format!("no transition '{name}' leaves the state '{state}'"))
            })?;
        let holds = |name: &String| guards.get(name).copied().unwrap_or(false);
        if let Some(guard) = transition.conditions.as_slice().iter().find(|name| !holds(name)) {
            return Err(Error::conflict(format!("the guard '{guard}' does not hold")));
        }
        if let Some(guard) = transition.unless.as_slice().iter().find(|name| holds(name)) {
            return Err(Error::conflict(format!("the guard '{guard}' holds")));
        }
        Ok(Self { current: Some(transition.dest.clone()), ..self.clone() })
    }

    /// Starts over and applies the triggers, all guards holding.
    pub fn replay(&self, triggers: &[String]) -> Result<Self> {
        let all = self
            .transitions
            .iter()
            .flat_map(|t| t.conditions.as_slice())
            .map(|name| (name.clone(), true))
            .collect();
        let start = Self { current: None, ..self.clone() };
        triggers.iter().try_fold(start, |machine, trigger| machine.trigger(trigger, &all))
    }
}

impl Transition {
    fn sources<'a>(&'a self, states: &'a [String]) -> Vec<&'a str> {
        if self.source == "*" {
            states.iter().map(String::as_str).collect()
        } else {
            vec![&self.source]
        }
    }
}

trait ClassifyName {
    fn classify_name(&self) -> &'static str;
}

impl ClassifyName for serde_json::Error {
    fn classify_name(&self) -> &'static str {
        match self.classify() {
            serde_json::error::Category::Data => {
                "a member is missing, of the wrong type or not allowed"
            }
            serde_json::error::Category::Syntax | serde_json::error::Category::Eof => "not JSON",
            serde_json::error::Category::Io => "unreadable",
        }
    }
}

/// A machine's durable state in a vault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Procedure {
    /// The memory that carries it.
    pub memory: MemoryId,
    /// The machine, standing where it stands.
    pub machine: Machine,
    /// The moves so far.
    pub history: Vec<Step>,
}

/// One move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What set it off.
    pub trigger: String,
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// When.
    pub at: Timestamp,
    /// Who; absent for the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOOR: &str = r#"{"name":"door","initial":"shut","states":["shut","open"],"transitions":[
        {"trigger":"open","source":"shut","dest":"open","conditions":"unlocked","unless":["jammed"]},
        {"trigger":"close","source":"open","dest":"shut"},
        {"trigger":"reset","source":"*","dest":"shut"}]}"#;

    #[test]
    fn mw_092_a_machine_moves_only_where_it_may() {
        let door = Machine::parse(DOOR).unwrap();
        assert_eq!(door.available(), ["open", "reset"]);
        assert!(door.trigger("close", &BTreeMap::new()).is_err());
        assert!(door.trigger("open", &BTreeMap::new()).is_err(), "the guard is not vouched for");
        let unlocked = BTreeMap::from([("unlocked".to_owned(), true)]);
        assert_eq!(door.trigger("open", &unlocked).unwrap().state(), "open");
        let jammed = BTreeMap::from([("unlocked".to_owned(), true), ("jammed".to_owned(), true)]);
        assert!(door.trigger("open", &jammed).is_err());
        assert_eq!(door.replay(&["open".into(), "close".into()]).unwrap().state(), "shut");
    }

    #[test]
    fn mw_091_what_could_run_code_or_is_ambiguous_is_refused() {
        let spoil = |from: &str, to: &str| Machine::parse(&DOOR.replacen(from, to, 1));
        assert!(spoil(r#""dest":"open""#, r#""dest":"gone""#).is_err());
        assert!(spoil(r#""initial":"shut""#, r#""initial":"ajar""#).is_err());
        assert!(spoil(r#""unlocked""#, r#""os.system""#).is_err());
        assert!(spoil(r#""trigger":"close","#, r#""trigger":"close","before":"rm","#).is_err());
        assert!(spoil(r#""trigger":"reset""#, r#""trigger":"close""#).is_err());
        assert!(Machine::parse("ls").is_err());
        let door = Machine::parse(DOOR).unwrap();
        let many = (0..=limits::STATES).map(|number| number.to_string());
        let vast = Machine { states: door.states.iter().cloned().chain(many).collect(), ..door };
        assert!(vast.validate().is_err(), "what takes long to check is not checked");
    }
}
