//! HTTP for monitoring: metrics, health and the state of the units.

mod command_metrics;
mod listener;
mod metrics;
mod pair_metrics;
#[cfg(test)]
mod tests;
mod volume_metrics;

use crate::telemetry::Snapshot;
use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use listener::Listener;
use serde_json::json;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Time limit for a request to the shards.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests the state of all shards; none if they do not reply.
pub(crate) type Source = Arc<dyn Fn() -> BoxFuture<'static, Option<Snapshot>> + Send + Sync>;

/// Serves HTTP until `stop` completes.
pub(crate) async fn serve(
    listener: TcpListener,
    source: Source,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(Listener::new(listener), router(source)).with_graceful_shutdown(stop).await
}

fn router(source: Source) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/api/units", get(units))
        .route("/api/stats", get(stats))
        .with_state(source)
}

async fn snapshot(source: &Source) -> Result<Snapshot, Response> {
    match tokio::time::timeout(PATIENCE, source()).await {
        Ok(Some(snapshot)) => Ok(snapshot),
        Ok(None) => Err(unavailable("the store is shutting down")),
        Err(_) => Err(unavailable("the store does not reply in time")),
    }
}

fn unavailable(reason: &str) -> Response {
    let body = json!({ "status": "unavailable", "reason": reason });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn metrics(State(source): State<Source>) -> Response {
    match snapshot(&source).await {
        Ok(snapshot) => match metrics::render(&snapshot) {
            Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
            Err(error) => unavailable(&error.to_string()),
        },
        Err(response) => response,
    }
}

/// A store that replies is healthy. A full store, or full volumes, still read and delete; the page
/// says that they are full. Keys are served also where the volumes of a shard are not; the page
/// names the shards.
async fn health(State(source): State<Source>) -> Response {
    match snapshot(&source).await {
        Ok(snapshot) => {
            let refusal = snapshot.refusal();
            let mut health = json!({ "status": "ok", "writable": refusal.is_none() });
            if let Some(reason) = refusal {
                health["reason"] = json!(reason);
            }
            let not_mounted = snapshot.volumes.iter().filter(|of| of.not_mounted.is_some());
            let mut shards: Vec<u64> = not_mounted.map(|of| of.shard).collect();
            // A shard has several sets.
            shards.sort_unstable();
            shards.dedup();
            if !shards.is_empty() {
                health["status"] = "degraded".into();
                health["volumes_not_mounted"] = shards.into();
            }
            Json(health).into_response()
        }
        Err(response) => response,
    }
}

async fn units(State(source): State<Source>) -> Response {
    match snapshot(&source).await {
        Ok(snapshot) => Json(snapshot.units).into_response(),
        Err(response) => response,
    }
}

async fn stats(State(source): State<Source>) -> Response {
    match snapshot(&source).await {
        Ok(snapshot) => Json(snapshot).into_response(),
        Err(response) => response,
    }
}
