//! Levels 1 and 2: operations, time, scope and consent, the same on every way.

use serde_json::{Value, json};

use super::way::{Refusal, Said};
use super::{Fault, Level, Outcome, Probe, Report, Way, ensure, passed};
use crate::failure::Result;

const KINDS: [&str; 5] = ["semantic", "episodic", "procedural", "working", "identity"];

impl Probe {
    pub(super) async fn basics(&self, report: &mut Report, on: &'static str, way: &Way) -> Result {
        use Level::{L1, L2};
        let mut note =
            |level, name, what, fault: Fault| report.note(level, name, what, on, passed(fault));
        note(
            L1,
            "capabilities",
            "version 1.0, five kinds, signals and bounds are stated",
            self.capabilities(way).await?,
        );
        note(
            L1,
            "remember",
            "each kind is created, with an id of the right form",
            self.kinds(way).await?,
        );
        note(
            L1,
            "get",
            "a record comes back as it was said; a missing one is not_found",
            self.get(way).await?,
        );
        note(
            L1,
            "recall",
            "what was said is found, with signals and a score",
            self.recall(way).await?,
        );
        note(
            L1,
            "refusal",
            "bad records and unknown major versions are invalid_record",
            self.refusals(way).await?,
        );
        note(
            L2,
            "revise",
            "a revision supersedes, and the prior stays for its time",
            self.revise(way).await?,
        );
        note(
            L2,
            "forget",
            "what was forgotten is not recalled, and get says so",
            self.forget(way).await?,
        );
        note(L2, "provenance", "where a record came from comes back", self.provenance(way).await?);
        note(
            L2,
            "scope",
            "another project and another owner do not see it",
            self.scopes(way).await?,
        );
        note(L2, "consent", "what may not be exported cannot be public", self.consent(way).await?);
        note(
            L2,
            "retention",
            "what may be kept no longer is not recalled",
            self.retention(way).await?,
        );
        let redaction = match &self.reader {
            Some(reader) => passed(self.redaction(way, reader).await?),
            None => Outcome::Skipped("no token of a reader was given (--reader)".to_owned()),
        };
        report.note(
            L2,
            "redaction",
            "redacted members do not cross, and no stale proof does",
            on,
            redaction,
        );
        Ok(())
    }

    async fn capabilities(&self, way: &Way) -> Result<Fault> {
        let Ok(said) = way.call("capabilities", &json!({})).await? else {
            return Ok(Err("capabilities were refused".to_owned()));
        };
        let kinds = said["kinds"].as_array().cloned().unwrap_or_default();
        Ok(ensure(said["ump"] == "1.0", format!("ump is {}", said["ump"]))
            .and_then(|()| {
                ensure(
                    KINDS.iter().all(|kind| kinds.contains(&(*kind).into())),
                    "a kind is missing",
                )
            })
            .and_then(|()| ensure(said["retrieval_signals"].is_array(), "no retrieval_signals"))
            .and_then(|()| ensure(said["max_recall"].as_u64().is_some(), "no max_recall"))
            .and_then(|()| ensure(said["server"]["name"].is_string(), "no server.name")))
    }

    async fn kinds(&self, way: &Way) -> Result<Fault> {
        for kind in KINDS {
            let mut record = self.record(&self.unique("a kind of its own"));
            record["kind"] = kind.into();
            match self.keep(way, &record).await? {
                Err(why) => return Ok(Err(format!("{kind}: {why}"))),
                Ok(id) => {
                    let rest = id.strip_prefix("urn:ump:").unwrap_or_default();
                    let well = !rest.is_empty()
                        && rest.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'));
                    if !well {
                        return Ok(Err(format!("{id} is no id")));
                    }
                    self.take_back(way, &id).await?;
                }
            }
        }
        Ok(Ok(()))
    }

    async fn get(&self, way: &Way) -> Result<Fault> {
        let text = format!("  {}\n\nwith blanks \n", self.unique("text"));
        let id = match self.keep(way, &self.record(&text)).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let got = way.call("get", &json!({"id": id})).await?.unwrap_or_default();
        let missing = way.call("get", &json!({"id": "urn:ump:aaaaaaaaaaaaaaaaaaaaaaaaaa"})).await?;
        self.take_back(way, &id).await?;
        Ok(ensure(got["record"]["body"]["text"] == text.as_str(), "the text changed")
            .and_then(|()| ensure(got["record"]["id"] == id.as_str(), "the id changed"))
            .and_then(|()| ensure(got["record"]["time"]["created"].is_string(), "no time.created"))
            .and_then(|()| refused(&missing, &["not_found"], "a missing id")))
    }

    async fn recall(&self, way: &Way) -> Result<Fault> {
        let text = self.unique("the kettle stands on the left shelf");
        let id = match self.keep(way, &self.record(&text)).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let scope = json!({"owner": self.owner, "project": self.project});
        let answer =
            way.call("recall", &json!({"query": "where is the kettle", "scope": scope})).await?;
        let empty = way.call("recall", &json!({"query": "  ", "scope": scope})).await?;
        self.take_back(way, &id).await?;
        let answer = answer.unwrap_or_default();
        let results = answer["results"].as_array().cloned().unwrap_or_default();
        let Some(hit) = results.iter().find(|one| one["record"]["id"] == id.as_str()) else {
            return Ok(Err("what was just said is not found".to_owned()));
        };
        let signals = hit["signals"].as_object().is_some_and(|signals| !signals.is_empty());
        Ok(ensure(signals, "no signals")
            .and_then(|()| ensure(hit["score"].is_number(), "no score"))
            .and_then(|()| refused(&empty, &["invalid_record"], "an empty query")))
    }

    async fn refusals(&self, way: &Way) -> Result<Fault> {
        type Spoil = fn(&mut Value);
        let spoilt: [(&str, Spoil); 5] = [
            ("an empty text", |record| record["body"]["text"] = "".into()),
            ("an unknown kind", |record| record["kind"] = "mood".into()),
            ("an unknown major version", |record| record["ump"] = "9.0".into()),
            ("an unknown visibility", |record| record["scope"]["visibility"] = "all".into()),
            ("a confidence of 2", |record| record["lifecycle"] = json!({"confidence": 2})),
        ];
        for (what, spoil) in spoilt {
            let mut record = self.record(&self.unique("spoilt"));
            spoil(&mut record);
            let answer = way.call("remember", &json!({"record": record})).await?;
            if let Ok(kept) = &answer
                && let Some(id) = kept["id"].as_str()
            {
                self.take_back(way, id).await?;
            }
            if let Err(why) = refused(&answer, &["invalid_record", "unsupported"], what) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    async fn revise(&self, way: &Way) -> Result<Fault> {
        let word = self.unique("");
        let mut first = self.record(&format!("the capital is Rome{word}"));
        first["time"] =
            json!({"created": "2026-01-01T00:00:00Z", "valid_from": "2026-01-01T00:00:00Z"});
        let old = match self.keep(way, &first).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let patch = json!({"body": {"text": format!("the capital is Oslo{word}")}});
        let answer = way.call("revise", &json!({"id": old, "patch": patch})).await?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(format!("revise was refused: {refusal:?}"))),
        };
        let new = answer["id"].as_str().unwrap_or_default().to_owned();
        let supersedes = answer["supersedes"].as_array().cloned().unwrap_or_default();
        let query = format!("capital{word}");
        let now = self.found(way, &query, |_| {}).await?;
        let then = self
            .found(way, &query, |input| {
                input["filter"] = json!({"valid_at": "2026-01-02T00:00:00Z"})
            })
            .await?;
        let prior = way.call("get", &json!({"id": old})).await?.unwrap_or_default();
        self.take_back(way, &new).await?;
        let closed = &prior["record"]["time"]["valid_to"];
        let by = prior["record"]["superseded_by"].as_array().cloned().unwrap_or_default();
        Ok(ensure(!new.is_empty() && new != old, "a revision needs a new id")
            .and_then(|()| {
                ensure(supersedes.contains(&old.as_str().into()), "supersedes lacks the prior")
            })
            .and_then(|()| ensure(now.contains(&new), "the successor is not found"))
            .and_then(|()| ensure(!now.contains(&old), "the prior is still found"))
            .and_then(|()| ensure(then.contains(&old), "the prior is not found for its own time"))
            .and_then(|()| ensure(closed.is_string(), "the prior is not closed"))
            .and_then(|()| {
                ensure(by.contains(&new.as_str().into()), "superseded_by lacks the successor")
            }))
    }

    async fn forget(&self, way: &Way) -> Result<Fault> {
        let text = self.unique("to be forgotten");
        let id = match self.keep(way, &self.record(&text)).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let answer = way.call("forget", &json!({"id": id, "reason": "probe"})).await?;
        let after = self.found(way, &text, |_| {}).await?;
        let asked = self
            .found(way, &text, |input| input["filter"] = json!({"status": ["tombstoned"]}))
            .await?;
        let got = way.call("get", &json!({"id": id})).await?.unwrap_or_default();
        self.take_back(way, &id).await?;
        let result = answer.unwrap_or_default();
        Ok(ensure(result["result"] == "tombstoned", format!("forget answered {result}"))
            .and_then(|()| ensure(!after.contains(&id), "it is still recalled"))
            .and_then(|()| ensure(!asked.contains(&id), "it is recalled for those who ask for it"))
            .and_then(|()| {
                ensure(got["record"]["lifecycle"]["status"] == "tombstoned", "get does not say so")
            }))
    }

    async fn provenance(&self, way: &Way) -> Result<Fault> {
        let mut record = self.record(&self.unique("from somewhere"));
        record["provenance"] = json!({"actor": "somebody", "actor_kind": "import", "method": "probe",
            "source": {"ref": "file:x", "provider": "elsewhere"}, "evidence": [{"ref": "file:y", "weight": 0.5}]});
        let id = match self.keep(way, &record).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let got = way.call("get", &json!({"id": id})).await?.unwrap_or_default();
        self.take_back(way, &id).await?;
        let said = &got["record"]["provenance"];
        Ok(ensure(
            said["actor_kind"] == "import" && said["method"] == "probe",
            "actor or method changed",
        )
        .and_then(|()| {
            ensure(said["source"] == record["provenance"]["source"], "the source changed")
        })
        .and_then(|()| {
            ensure(said["evidence"] == record["provenance"]["evidence"], "the evidence changed")
        }))
    }

    async fn scopes(&self, way: &Way) -> Result<Fault> {
        let text = self.unique("in one project");
        let id = match self.keep(way, &self.record(&text)).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let elsewhere =
            self.found(way, &text, |input| input["scope"]["project"] = "elsewhere".into()).await?;
        let whose = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
        let others = self.found(way, &text, |input| input["scope"]["owner"] = whose.into()).await?;
        let here = self.found(way, &text, |_| {}).await?;
        self.take_back(way, &id).await?;
        Ok(ensure(here.contains(&id), "it is not found in its own scope")
            .and_then(|()| ensure(!elsewhere.contains(&id), "another project sees it"))
            .and_then(|()| ensure(!others.contains(&id), "another owner sees it")))
    }

    async fn consent(&self, way: &Way) -> Result<Fault> {
        let mut record = self.record(&self.unique("not for export"));
        record["consent"] = json!({"exportable": false});
        record["scope"]["visibility"] = "public".into();
        let answer = way.call("remember", &json!({"record": record})).await?;
        if let Ok(kept) = &answer
            && let Some(id) = kept["id"].as_str()
        {
            self.take_back(way, id).await?;
        }
        Ok(refused(&answer, &["consent_violation"], "a public record that may not be exported"))
    }

    async fn retention(&self, way: &Way) -> Result<Fault> {
        let text = self.unique("kept too long");
        let mut record = self.record(&text);
        record["time"] = json!({"created": "2020-01-01T00:00:00Z"});
        record["consent"] = json!({"retention": "P1D"});
        let answer = way.call("remember", &json!({"record": record})).await?;
        let scope = json!({"owner": self.owner, "project": self.project});
        let recalled =
            way.call("recall", &json!({"query": text, "scope": scope, "limit": 50})).await?;
        let recalled = recalled.unwrap_or_default().to_string().contains(&text);
        if let Ok(kept) = &answer
            && let Some(id) = kept["id"].as_str()
        {
            self.take_back(way, id).await?;
        }
        let refused = matches!(&answer, Err(Refusal { code, .. }) if code == "consent_violation");
        Ok(ensure(refused || answer.is_ok(), format!("answered {answer:?}"))
            .and_then(|()| ensure(!recalled, "it is recalled after its time")))
    }

    async fn redaction(&self, way: &Way, reader: &yore_client::Client) -> Result<Fault> {
        let secret = self.unique("secret");
        let mut record = self.record(&self.unique("a door"));
        record["body"]["structured"] = json!({"code": secret, "door": "front"});
        record["consent"] = json!({"redact": ["body.structured.code"]});
        let id = match self.keep(way, &record).await? {
            Ok(id) => id,
            Err(why) => return Ok(Err(why)),
        };
        let reader = match way {
            Way::Http(_) => Way::Http(reader.clone()),
            Way::Mcp(_) => match super::Tools::open(reader.clone(), &self.mcp).await? {
                Ok(tools) => Way::Mcp(tools),
                Err(why) => return Ok(Err(why)),
            },
        };
        let copy = reader.call("get", &json!({"id": id})).await?;
        let write =
            reader.call("remember", &json!({"record": self.record(&self.unique("x"))})).await?;
        self.take_back(way, &id).await?;
        let copy = match copy {
            Ok(copy) => copy,
            Err(refusal) => return Ok(Err(format!("the reader was refused: {refusal:?}"))),
        };
        Ok(ensure(!copy.to_string().contains(&secret), "the redacted member was handed out")
            .and_then(|()| {
                ensure(
                    copy["record"].get("integrity").is_none_or(verifies(&copy)),
                    "a stale proof was handed out",
                )
            })
            .and_then(|()| refused(&write, &["forbidden_scope"], "a write by a reader")))
    }

    /// Takes back what the probe made, for good where that is allowed.
    pub(super) async fn take_back(&self, way: &Way, id: &str) -> Result {
        let hard = way.call("forget", &json!({"id": id, "reason": "probe", "hard": true})).await?;
        match hard {
            Ok(_) => Ok(()),
            // What may not be erased is at least forgotten; more cannot be done.
            Err(_) => way.call("forget", &json!({"id": id, "reason": "probe"})).await.map(drop),
        }
    }
}

fn verifies(copy: &Value) -> impl FnOnce(&Value) -> bool {
    let record = copy["record"].as_object().cloned().unwrap_or_default();
    move |_| yore_canon::seal::verify(&record).is_ok()
}

/// Whether a request was refused with one of these codes.
pub(super) fn refused(answer: &Said, codes: &[&str], what: &str) -> Fault {
    match answer {
        Ok(_) => Err(format!("{what} was accepted")),
        Err(Refusal { code, .. }) if codes.contains(&code.as_str()) => Ok(()),
        Err(Refusal { code, status }) => {
            Err(format!("{what} was answered with code {code:?} (status {status:?})"))
        }
    }
}
