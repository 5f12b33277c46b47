//! HTTP routes of the server: pages, events, files and metrics.
//!
//! Every request passes authentication first. Invariants:
//! - Each response is restricted to this browser and this page (no store, no frames, no script but
//!   the server's own).
//! - Work that needs the disk runs outside the event loop, with a limit on concurrent requests.
//! - A request that cannot be served gets a one-line response.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{DefaultBodyLimit, Form, Path, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::auth::{self, RequestIdentity, Verdict};
use super::form::{self, FormCheck, FormError, FormValues};
use super::launch::LaunchError;
use super::live_runs::{self, StateSubscription, View};
use super::{ServerState, files, listen, metrics, page, run_list, topology};

/// Size limit of a form, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Shortest and longest interval between two events to a client that follows a run.
const EVENT: Duration = Duration::from_millis(250);
const ALIVE: Duration = Duration::from_secs(5);

/// Content security policy of the server's pages.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Content security policy of files in runs: a report's own script runs in a sandbox without an
/// origin and without network access.
const POLICY_FILE: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; \
                           script-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'";

type Pairs = Vec<(String, String)>;

/// Returns the router with all routes.
pub(super) fn router(shared: Arc<ServerState>) -> Router {
    Router::new()
        .route("/", get(live))
        .route("/live/events", get(events))
        .route("/live/topology", get(drawn))
        .route("/live.js", get(script))
        .route("/style.css", get(style))
        .route("/new", get(new).post(begin))
        .route("/stop", post(stop))
        .route("/runs", get(runs))
        .route("/runs/{run}/{*path}", get(file))
        .route("/compare", get(compare))
        .route("/metrics", get(numbers))
        .fallback(nothing)
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&shared), guarded))
        .with_state(shared)
}

/// Returns a one-line response.
fn line(status: StatusCode, text: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n"))
        .into_response()
}

async fn nothing() -> Response {
    line(StatusCode::NOT_FOUND, "not found")
}

/// Authenticates a request and adds the security headers to every response.
async fn guarded(State(shared): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let query: Pairs =
        Query::try_from_uri(request.uri()).map(|Query(pairs)| pairs).unwrap_or_default();
    let token = query.iter().find(|(key, _)| key == "token").map(|(_, value)| value.as_str());
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let caller = RequestIdentity { headers: request.headers(), token, changes };
    let mut answer = match auth::judge(&shared.token, &shared.names, shared.port, &caller) {
        Verdict::Welcome => answered(request, next).await,
        Verdict::FirstVisit if request.uri().path() == "/" && !changes => first_visit(&shared),
        // Resources that a page loads carry no token in their address.
        Verdict::FirstVisit => {
            let mut answer = answered(request, next).await;
            if let (false, Ok(cookie)) = (changes, cookie(&shared).parse()) {
                answer.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            answer
        }
        Verdict::Unknown => line(
            StatusCode::UNAUTHORIZED,
            "missing or invalid token (hint: open the address that 'planimeter serve' printed)",
        ),
        Verdict::OtherHost => line(
            StatusCode::MISDIRECTED_REQUEST,
            "invalid Host header (hint: use the server's address or localhost, or add the name \
             with --server-name)",
        ),
        Verdict::OtherPage => {
            line(StatusCode::FORBIDDEN, "only pages of this server may send changes")
        }
    };
    let headers = answer.headers_mut();
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        // With no referrer policy at all, browsers would not state either that a form comes from
        // this server.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    shared.counts.answer(answer.status().as_u16());
    answer
}

async fn answered(request: Request, next: Next) -> Response {
    let late = || {
        line(StatusCode::SERVICE_UNAVAILABLE, "timeout (hint: request less, or try again later)")
    };
    listen::in_time(next.run(request)).await.unwrap_or_else(late)
}

/// Returns the cookie that replaces the token in the address of later requests.
///
/// The first visit sets the cookie with a page instead of a redirect: a `SameSite=Strict` cookie is
/// not sent along a redirect that another site started.
fn cookie(shared: &ServerState) -> String {
    let (name, token) = (auth::cookie_name(shared.port), shared.token.text());
    format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/")
}

fn first_visit(shared: &ServerState) -> Response {
    let page = "<!DOCTYPE html><html lang=\"en\"><meta http-equiv=\"refresh\" content=\"0;url=/\"><title>planimeter</title>\
                <a href=\"/\">continue</a>";
    ([(header::SET_COOKIE, cookie(shared))], Html(page)).into_response()
}

fn asked<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a str> {
    pairs.iter().find(|(its, _)| its == key).map(|(_, value)| value.as_str())
}

async fn live(Query(pairs): Query<Pairs>) -> Response {
    Html(page::live(asked(&pairs, "run")).into_string()).into_response()
}

async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], page::SCRIPT).into_response()
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], page::style()).into_response()
}

/// Streams a run's state: the newest one whenever the client is ready, without a queue.
async fn events(State(shared): State<Arc<ServerState>>, Query(pairs): Query<Pairs>) -> Response {
    let Ok(place) = Arc::clone(&shared.listeners).try_acquire_owned() else {
        return line(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many clients follow runs (hint: close one)",
        );
    };
    let run = asked(&pairs, "run").map(str::to_string);
    let watcher = shared.watching.watch();
    let follower = Follower { shared, watcher, run, place, told: None };
    let alive = KeepAlive::new().interval(ALIVE);
    Sse::new(follower.stream()).keep_alive(alive).into_response()
}

/// A client that follows a run.
struct Follower {
    shared: Arc<ServerState>,
    watcher: StateSubscription,
    run: Option<String>,
    /// Permit for one of the clients that may follow; released on drop.
    #[expect(dead_code, reason = "released on drop")]
    place: OwnedSemaphorePermit,
    told: Option<String>,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(self, |mut follower| async move {
            loop {
                if follower.told.is_some() {
                    tokio::time::sleep(EVENT).await;
                    // A run started here is reported before it writes events.
                    let _ = tokio::time::timeout(ALIVE, follower.watcher.views.changed()).await;
                }
                let views = follower.watcher.views.borrow_and_update().clone();
                let text = told(&follower.shared, &views, follower.run.as_deref());
                let is_news = follower.told.as_ref() != Some(&text);
                if is_news {
                    follower.told = Some(text.clone());
                    return Some((Ok(Event::default().data(text)), follower));
                }
            }
        })
    }
}

/// Returns the state that a page receives, as JSON.
fn told(shared: &ServerState, views: &[View], run: Option<&str>) -> String {
    let runs: Vec<_> =
        views.iter().map(|view| json!({ "run": view.run, "state": view.state.word() })).collect();
    let started = shared.starter.status();
    let view = live_runs::of(views, run).map(|view| {
        let process = view.picture.begun.process;
        let is_ours = started.as_ref().is_some_and(|it| it.runs && it.process == process);
        json!({
            "run": view.run,
            "address": run_list::address(&view.run),
            "state": view.state.word(),
            "left_s": view.picture.seconds_left(live_runs::now_ms()),
            "stoppable": is_ours,
            "unreadable": view.unreadable,
            "picture": &*view.picture,
        })
    });
    json!({ "runs": runs, "view": view, "started": started }).to_string()
}

async fn drawn(State(shared): State<Arc<ServerState>>, Query(pairs): Query<Pairs>) -> Response {
    match live_runs::of(&shared.watching.views(), asked(&pairs, "run")) {
        Some(view) => Html(topology::svg(&view.picture).into_string()).into_response(),
        None => line(StatusCode::NOT_FOUND, "no live data of this run"),
    }
}

async fn numbers(State(shared): State<Arc<ServerState>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics::text(&shared)).into_response()
}

/// Runs blocking disk work outside the event loop.
async fn beside<T: Send + 'static>(
    shared: &Arc<ServerState>,
    work: impl FnOnce(&ServerState) -> T + Send + 'static,
) -> Result<T, Response> {
    let failed = |_| line(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
    let place = Arc::clone(&shared.busy).acquire_owned().await.map_err(|_| nothing_more())?;
    let own = Arc::clone(shared);
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&own);
        drop(place);
        done
    });
    done.await.map_err(failed)
}

fn nothing_more() -> Response {
    line(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping")
}

/// Returns a page, or the page with the error.
fn shown(found: Result<Result<maud::Markup, String>, Response>) -> Response {
    match found {
        Ok(Ok(markup)) => Html(markup.into_string()).into_response(),
        Ok(Err(why)) => {
            let page = page::wrong("Cannot show this page", &why).into_string();
            (StatusCode::BAD_REQUEST, Html(page)).into_response()
        }
        Err(response) => response,
    }
}

async fn runs(State(shared): State<Arc<ServerState>>, Query(pairs): Query<Pairs>) -> Response {
    shown(beside(&shared, move |shared| run_list::runs(shared, &pairs)).await)
}

async fn compare(State(shared): State<Arc<ServerState>>, Query(pairs): Query<Pairs>) -> Response {
    let names = pairs.into_iter().filter(|(key, _)| key == "run").map(|(_, name)| name);
    let names: Vec<String> = names.take(2 * run_list::COMPARED_MAX).collect();
    shown(beside(&shared, move |shared| run_list::compare(shared, &names)).await)
}

async fn file(
    State(shared): State<Arc<ServerState>>,
    Path((run, path)): Path<(String, String)>,
) -> Response {
    let read = move |shared: &ServerState| {
        let here = files::read(&shared.folder, &run, &path);
        here.or_else(|| {
            let (folder, name) = shared.elsewhere.as_ref()?.brought(&run).ok()?;
            files::read(&folder, &name, &path)
        })
    };
    let found = beside(&shared, read).await;
    match found {
        Ok(Some((kind, bytes))) => {
            let headers =
                [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY_FILE)];
            (headers, bytes).into_response()
        }
        Ok(None) => line(
            StatusCode::NOT_FOUND,
            "no such file of a run (hint: run 'planimeter report RUN' to build the report)",
        ),
        Err(response) => response,
    }
}

async fn new(Query(pairs): Query<Pairs>) -> Response {
    Html(form::form(&FormValues::of(&pairs), &FormCheck::Nothing).into_string()).into_response()
}

async fn begin(
    State(shared): State<Arc<ServerState>>,
    pairs: Result<Form<Pairs>, FormRejection>,
) -> Response {
    let pairs = match pairs {
        Ok(Form(pairs)) => pairs,
        Err(rejection) => return line(rejection.status(), &rejection.body_text()),
    };
    let filled = FormValues::of(&pairs);
    let is_start = asked(&pairs, "do") == Some("start");
    let words = match filled.words() {
        Ok(words) => words,
        Err(why) => {
            let status = match why {
                FormError::Wrong(_) => StatusCode::BAD_REQUEST,
                FormError::Forbidden(_) => StatusCode::FORBIDDEN,
            };
            return formed(status, &filled, &FormCheck::Wrong(None, why.line().into()));
        }
    };
    let command = form::line(&words, &shared.folder.display().to_string());
    let own = command.clone();
    let done = beside(&shared, move |shared| {
        let would = shared.starter.dry(&words)?;
        if is_start { shared.starter.start(&words, own).map(|_| None) } else { Ok(Some(would)) }
    });
    match done.await {
        Ok(Ok(None)) => Redirect::to("/").into_response(),
        Ok(Ok(Some(would))) => formed(StatusCode::OK, &filled, &FormCheck::Would(command, would)),
        Ok(Err(refused)) => {
            let status = match refused {
                LaunchError::Busy(_) => StatusCode::CONFLICT,
                LaunchError::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
                LaunchError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            formed(status, &filled, &FormCheck::Wrong(Some(command), refused.to_string()))
        }
        Err(response) => response,
    }
}

fn formed(status: StatusCode, filled: &FormValues, said: &FormCheck) -> Response {
    (status, Html(form::form(filled, said).into_string())).into_response()
}

async fn stop(State(shared): State<Arc<ServerState>>) -> Response {
    match shared.starter.stop() {
        true => Redirect::to("/").into_response(),
        false => line(StatusCode::CONFLICT, "no run that was started here is active"),
    }
}
