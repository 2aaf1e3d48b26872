//! Bringing in what other platforms exported.

use askama::Template;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use futures::StreamExt;
use serde_json::json;
use yore_domain::job::{Job, JobState};
use yore_domain::{Error, JobId, Result, Span, Timestamp};
use yore_engine::{Call, Credentials, Engine, Secret, TokenKind, Work};
use yore_http::multipart::{Form, Piece};

use super::login;
use crate::desk::Desk;
use crate::intake::aside::Aside;
use crate::intake::{Order, Summary, plain_name};
use crate::markup::{bytes, grouped};
use crate::trouble::{Page, Trouble, foreign_form, shown};
use crate::visit::{Posted, Shell, Visit};

/// The field of the form that holds the file.
const FILE: &str = "export";
/// How many jobs are looked through for imports.
const JOBS: usize = 100;
/// How long the longest import takes.
const LONGEST: Span = Span::days(2);

#[derive(Template)]
#[template(path = "import.html")]
struct ImportPage {
    shell: Shell,
    imports: Vec<Row>,
    limit: String,
}

struct Row {
    id: String,
    name: String,
    state: &'static str,
    at: Timestamp,
}

#[derive(Template)]
#[template(path = "imported.html")]
struct JobPage {
    shell: Shell,
    id: String,
    name: String,
    running: bool,
    percent: u64,
    found: String,
    read: String,
    trouble: Option<String>,
    report: Option<Told>,
    /// Whether what was only looked through can be brought in.
    waits: bool,
}

/// What became of a file, in numbers.
struct Told {
    counts: Vec<(&'static str, String)>,
    platforms: Vec<(String, u64)>,
    faults: Vec<(String, String)>,
    more_faults: u64,
    dry_run: bool,
    proposed: u64,
}

pub(crate) async fn show(visit: Visit) -> Page {
    let jobs = visit.engine().jobs(&visit.call, JOBS).await?;
    let row = |job: Job| Row {
        id: job.id.to_string(),
        name: name(&job),
        state: match job.state {
            JobState::Completed => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Queued | JobState::Running => {
                if visit.desk.intakes.progress(job.id).is_some() { "running" } else { "cut off" }
            }
        },
        at: job.created,
    };
    let imports = jobs.into_iter().filter(|job| job.kind == "import").take(20).map(row);
    Ok(shown(&ImportPage {
        imports: imports.collect(),
        limit: bytes(visit.desk.options.upload_bytes),
        shell: visit.shell("import"),
    }))
}

/// What the file of an import was called.
fn name(job: &Job) -> String {
    job.input["asked"]["name"].as_str().unwrap_or("an import").to_owned()
}

/// Shows how far an import has come, and in the end what became of it.
pub(crate) async fn look(Path(id): Path<String>, visit: Visit) -> Page {
    let id: JobId = id.parse().map_err(|_| Error::NotFound)?;
    // First: one that ends in between has ended, and was not cut off.
    let progress = visit.desk.intakes.progress(id);
    let job = visit.engine().work_named(&visit.call, Work::Import, id).await?;
    let running = progress.is_some() && !job.state.is_final();
    let progress = progress.unwrap_or_default();
    let trouble = match job.state {
        JobState::Failed => Some(job.error.clone().unwrap_or_default()),
        JobState::Queued | JobState::Running if !running => Some(
            "it was cut off when the server ended; import the file again, and what came in is known"
                .to_owned(),
        ),
        JobState::Queued | JobState::Running | JobState::Completed | JobState::Cancelled => None,
    };
    let report = serde_json::from_value::<Summary>(job.report.clone()).ok();
    Ok(shown(&JobPage {
        shell: visit.shell("import"),
        id: id.to_string(),
        name: name(&job),
        running,
        percent: progress
            .read
            .saturating_mul(100)
            .checked_div(progress.total)
            .unwrap_or(0)
            .min(100),
        found: grouped(progress.found),
        read: bytes(progress.read),
        trouble,
        waits: visit.desk.intakes.waits(id),
        report: report.filter(|_| job.state == JobState::Completed).map(Told::from),
    }))
}

/// Brings in a file that was only looked through.
pub(crate) async fn bring(Path(id): Path<String>, Posted { visit, .. }: Posted) -> Page {
    let id: JobId = id.parse().map_err(|_| Error::NotFound)?;
    let tried = visit.engine().work_named(&visit.call, Work::Import, id).await?;
    if !visit.desk.intakes.waits(id) {
        let gone = "the file is no longer here; send it again";
        return Err(Error::conflict(gone).into());
    }
    let asked = json!({ "name": name(&tried) });
    let job = visit.engine().begin_work(&visit.call, Work::Import, asked).await?;
    match visit.desk.intakes.claim(id, job.id).map_err(Error::internal)? {
        Some(order) => Ok(begun(&visit, job, order).await?),
        None => Err(Error::conflict("the file was brought in already").into()),
    }
}

/// Reads a file beside, and leads to where that is seen.
async fn begun(visit: &Visit, job: Job, order: Order) -> Result<Response> {
    let (engine, intakes) = (visit.engine().clone(), visit.desk.intakes.clone());
    let place = format!("/app/import/{}", job.id);
    let call = own_call(&engine, &visit.call).await?;
    tokio::spawn(async move {
        intakes.run(engine.clone(), call.clone(), job, order).await;
        login::give_back(&engine, &call).await;
    });
    Ok(Redirect::to(&place).into_response())
}

impl From<Summary> for Told {
    fn from(summary: Summary) -> Self {
        let rows = [
            ("conversations read", summary.conversations),
            ("messages", summary.messages),
            ("memories", summary.memories),
            ("attachments", summary.attachments),
            ("new", summary.imported),
            ("added to", summary.merged),
            ("known already", summary.duplicates),
            ("erased here before", summary.erased),
            ("held by your rules", summary.held),
            ("proposed to you", summary.proposed),
        ];
        let always = |name: &str| name == "new";
        Self {
            counts: rows
                .into_iter()
                .filter(|(name, count)| *count > 0 || always(name))
                .map(|(name, count)| (name, grouped(count)))
                .collect(),
            platforms: summary.platforms.into_iter().collect(),
            faults: summary.faults,
            more_faults: summary.more_faults,
            dry_run: summary.dry_run,
            proposed: summary.proposed + summary.held,
        }
    }
}

/// What a form said before and beside its file.
#[derive(Default)]
struct Fields(Vec<(String, String)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name)?;
        Some(found.1.trim()).filter(|value| !value.is_empty())
    }
}

/// A file that is on its way in.
struct Arriving {
    job: Job,
    path: std::path::PathBuf,
    file: Aside,
}

/// Takes a file, and begins to read it once it is here.
pub(crate) async fn upload(State(desk): State<Desk>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let visit = match Visit::from_request_parts(&mut parts, &desk).await {
        Ok(visit) => visit,
        Err(response) => return response,
    };
    match receive(&visit, &parts, body).await {
        Ok(response) => response,
        Err(error) => Trouble::from(error).into_response(),
    }
}

async fn receive(visit: &Visit, parts: &Parts, body: axum::body::Body) -> Result<Response> {
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let mut form = kind
        .and_then(|kind| Form::of(kind, FILE))
        .ok_or_else(|| Error::invalid("body", "must be a form with a file"))?;
    let (mut fields, mut arriving) = (Fields::default(), None);
    let taken = take(visit, body, &mut form, &mut fields, &mut arriving).await;
    let Some(Arriving { job, path, file }) = arriving else {
        return match taken {
            Ok(()) if !visit.is_mark(fields.get("csrf").unwrap_or_default()) => Ok(foreign_form()),
            Ok(()) => Err(Error::invalid(FILE, "choose a file first")),
            Err(Stop::Foreign) => Ok(foreign_form()),
            Err(Stop::Wrong(error)) => Err(error),
        };
    };
    let (engine, intakes) = (visit.engine().clone(), visit.desk.intakes.clone());
    let (wrong, key) = match (taken, file.finish()) {
        (Ok(()), Ok(key)) => (None, key),
        (Err(Stop::Wrong(error)), _) | (Ok(()), Err(error)) => (Some(error), None),
        (Err(Stop::Foreign), _) => return Ok(foreign_form()),
    };
    if let Some(error) = wrong {
        let room = path.parent().map(std::path::Path::to_owned);
        if let Some(room) = room {
            // What cannot be removed now goes before the next import.
            let _ = std::fs::remove_dir_all(room);
        }
        intakes.fail(&engine, &visit.call, job, &error).await;
        return Err(error);
    }
    let order = Order {
        file: path,
        key,
        password: fields.get("password").map(str::to_owned),
        dry_run: fields.get("dry_run").is_some(),
        draws: fields.get("propose").is_some(),
    };
    begun(visit, job, order).await
}

/// A call with a token of its own, so that an import goes on when its owner signs out.
async fn own_call(engine: &Engine, call: &Call) -> Result<Call> {
    let note = Some("reads an import".to_owned());
    let token = engine.issue_token(call, TokenKind::Owner, Some(LONGEST), note).await?;
    let bearer = Some(Secret::new(token));
    let credentials = Credentials { bearer, ..Credentials::default() };
    Ok(Call { credentials, ..call.clone() })
}

/// Why a form is not taken to its end.
enum Stop {
    /// It has not the mark of this sign-in.
    Foreign,
    Wrong(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

/// Takes the form as it arrives. Nothing is stored before its mark is seen.
async fn take(
    visit: &Visit,
    body: axum::body::Body,
    form: &mut Form,
    fields: &mut Fields,
    arriving: &mut Option<Arriving>,
) -> std::result::Result<(), Stop> {
    let most = visit.desk.options.upload_bytes;
    let (mut pieces, mut count) = (body.into_data_stream(), 0_u64);
    while let Some(some) = pieces.next().await {
        let some = some.map_err(|_| Error::invalid("body", "it ended early"))?;
        count += some.len() as u64;
        if count > most {
            return Err(Error::too_large("the file", bytes(most)).into());
        }
        for piece in form.take(&some)? {
            match piece {
                Piece::Field(name, value) => fields.0.push((name, value)),
                Piece::Begins(name) => {
                    if !visit.is_mark(fields.get("csrf").unwrap_or_default()) {
                        return Err(Stop::Foreign);
                    }
                    // Without a file chosen, a browser sends one without a name.
                    if !name.is_empty() && arriving.is_none() {
                        *arriving = Some(begin(visit, &name).await?);
                    }
                }
                Piece::File(some) => {
                    if let Some(arriving) = arriving {
                        arriving.file.write(&some)?;
                    }
                }
            }
        }
    }
    if form.ended() { Ok(()) } else { Err(Error::invalid("body", "it ended early").into()) }
}

/// Writes the job down and makes room for its file.
async fn begin(visit: &Visit, name: &str) -> Result<Arriving> {
    let spool = visit.desk.options.spool.as_ref();
    let spool = spool.ok_or_else(|| Error::Unsupported {
        what: "this server has no room for files".to_owned(),
    })?;
    let name = plain_name(name);
    let asked = json!({ "name": name });
    let job = visit.engine().begin_work(&visit.call, Work::Import, asked).await?;
    let room = visit.desk.intakes.room(spool, job.id).map_err(Error::internal)?;
    let path = room.join(name);
    let file = std::fs::File::create_new(&path).map_err(Error::internal)?;
    Ok(Arriving { job, path, file: Aside::new(file) })
}
