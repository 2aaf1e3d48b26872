//! For who looks after a tenant: its users, how long their vaults keep things, what is protected
//! from deletion, and the audit chain of each.

use askama::Template;
use axum::extract::Path;
use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, MemoryId, Result, TenantId, Timestamp};
use yore_engine::{AuditQuery, Call, Retention, VaultRef};

use super::{Line, back};
use crate::form::Form;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

const LINES: usize = 50;

#[derive(Template)]
#[template(path = "admin.html")]
struct AdminPage {
    shell: Shell,
    tenant: String,
    users: Vec<User>,
}

/// A user of the tenant.
struct User {
    name: String,
    href: String,
    created: Timestamp,
}

#[derive(Template)]
#[template(path = "user.html")]
struct UserPage {
    shell: Shell,
    user: User,
    did: String,
    conversations_days: String,
    memories_days: String,
    children_days: String,
    child: &'static str,
    lines: Vec<Line>,
    older: Option<String>,
}

/// The tenant of the sign-in. Whoever looks after one sees no other.
async fn tenant(visit: &Visit) -> Result<(TenantId, String)> {
    let found = visit.engine().tenants(&visit.call).await?;
    let only = found.into_iter().next().ok_or(Error::NotFound)?;
    Ok((only.id, only.name.unwrap_or_else(|| "the whole server".to_owned())))
}

/// The call of an administrator about the vault of a user.
fn about(visit: &Visit, user: &str) -> Call {
    Call { vault: VaultRef::Owner(user.to_owned()), ..visit.call.clone() }
}

fn place(user: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(user.as_bytes()).collect();
    format!("/app/admin/users/{}", encoded.replace('+', "%20"))
}

pub(crate) async fn show(visit: Visit) -> Page {
    let (id, name) = tenant(&visit).await?;
    let users = visit.engine().users(&visit.call, id).await?;
    let users = users.into_iter().map(|info| User {
        href: place(&info.owner),
        name: info.owner,
        created: info.created,
    });
    Ok(shown(&AdminPage { shell: visit.shell("admin"), tenant: name, users: users.collect() }))
}

/// Makes a user with an empty vault.
pub(crate) async fn add(Posted { visit, form }: Posted) -> Page {
    let (id, _) = tenant(&visit).await?;
    visit.engine().add_user(&visit.call, id, form.get("name").unwrap_or_default()).await?;
    Ok(back("/app/admin", "user"))
}

/// Removes a user whose vault is empty.
pub(crate) async fn remove(Path(user): Path<String>, Posted { visit, .. }: Posted) -> Page {
    let (id, _) = tenant(&visit).await?;
    visit.engine().remove_user(&visit.call, id, &user).await?;
    Ok(back("/app/admin", "user-gone"))
}

pub(crate) async fn user(Path(user): Path<String>, visit: Visit) -> Page {
    let (engine, call) = (visit.engine(), about(&visit, &user));
    let (id, _) = tenant(&visit).await?;
    let info = engine.user(&visit.call, id, &user).await?;
    let kept = engine.retention(&call).await?;
    let guarded = engine.guardianship(&call).await?;
    let before = visit.query.get("before").and_then(|number| number.parse().ok());
    let query = AuditQuery {
        limit: LINES,
        newest_first: true,
        before: before.map(yore_domain::Seq),
        ..AuditQuery::default()
    };
    let entries = engine.audit(&call, query).await?;
    let older = entries
        .last()
        .filter(|_| entries.len() == LINES)
        .map(|last| format!("{}?before={}", place(&user), last.seq.0));
    let days = |days: Option<u32>| days.map(|days| days.to_string()).unwrap_or_default();
    Ok(shown(&UserPage {
        shell: visit.shell("admin"),
        user: User { href: place(&info.owner), name: info.owner, created: info.created },
        did: info.did,
        conversations_days: days(kept.conversations_days),
        memories_days: days(kept.memories_days),
        children_days: days(kept.children_days),
        child: match guarded.child {
            None => "not said",
            Some(true) => "a child",
            Some(false) => "no child",
        },
        lines: entries.into_iter().map(Line::from).collect(),
        older,
    }))
}

/// Decides how long the vault of a user keeps things.
pub(crate) async fn retention(Path(user): Path<String>, Posted { visit, form }: Posted) -> Page {
    let retention = Retention {
        conversations_days: days(&form, "conversations_days")?,
        memories_days: days(&form, "memories_days")?,
        children_days: days(&form, "children_days")?,
    };
    visit.engine().set_retention(&about(&visit, &user), retention).await?;
    Ok(back(&place(&user), "kept"))
}

fn days(form: &Form, name: &'static str) -> Result<Option<u32>> {
    let days = form.get(name).map(str::parse).transpose();
    days.map_err(|_| Error::invalid(name, "must be a number of days"))
}

/// Protects a conversation or a memory of a user from deletion, or releases it.
pub(crate) async fn hold(Path(user): Path<String>, Posted { visit, form }: Posted) -> Page {
    let (engine, call) = (visit.engine(), about(&visit, &user));
    let held = form.get("held") == Some("yes");
    let id = form.get("id").unwrap_or_default();
    engine.demand(&call, "legal-hold", Verb::Admin).await?;
    match form.get("what") {
        Some("memory") => {
            let id: MemoryId = id.parse().map_err(|_| Error::NotFound)?;
            engine.legal_hold(&call, id, held).await?;
        }
        Some(_) | None => {
            let id: ConversationId = id.parse().map_err(|_| Error::NotFound)?;
            engine.hold_conversation(&call, id, held).await?;
        }
    }
    Ok(back(&place(&user), if held { "legal-hold" } else { "released" }))
}
