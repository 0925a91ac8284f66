//! NDJSON progress stream: response body of a long request.
//!
//! The work runs on the blocking pool and reports its progress; the body sends the latest progress every
//! [`limits::control_socket::PROGRESS_WAIT`], changed or not, and thereby detects a disconnected client. Guarantees:
//! dropping the body, or stopping the server, cancels the work at its next report. Non-goals: the work.

use std::convert::Infallible;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use catalog::{Actor, CatalogError};
use engine::progress::WorkProgress;
use http_body::Frame;
use protocol::error::ApiError;
use service::state::AppState;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{StreamLine, log, log_and_reply};
use crate::limits;
use crate::management::{AdminRequest, AdminResponse, execute};

/// Lines of the response to a long request.
pub(super) struct ProgressBody {
    /// Latest progress; dropped with the body, which its sender detects.
    progress: watch::Receiver<WorkProgress>,
    ticks: Interval,
    work: Option<JoinHandle<Result<AdminResponse, CatalogError>>>,
}

impl ProgressBody {
    /// Starts the work. `held` is dropped when the work has ended, which may be after the body is dropped.
    pub(super) fn start(app: AppState, request: AdminRequest, held: impl Send + 'static) -> Self {
        let (sender, progress) = watch::channel(WorkProgress::default());
        let work = spawn_blocking(move || {
            let _held = held;
            execute(
                &app.store,
                &app.catalog.acting_as(Actor::operator()),
                request,
                &mut |progress| {
                    sender.send_replace(progress);
                    match sender.is_closed() || app.is_draining() {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                },
            )
        });
        let mut ticks = interval(limits::control_socket::PROGRESS_WAIT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { progress, ticks, work: Some(work) }
    }
}

impl http_body::Body for ProgressBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        let line = match Pin::new(work).poll(context) {
            Poll::Ready(ended) => {
                self.work = None;
                // The work panicked, or the runtime is shutting down.
                let internal =
                    |error: tokio::task::JoinError| ApiError::internal(error.to_string());
                last_line(ended.map_err(internal).and_then(|done| done.map_err(ApiError::from)))
            }
            Poll::Pending => {
                std::task::ready!(self.ticks.poll_tick(context));
                // The next call polls the timer again, after this line was consumed.
                StreamLine::Progress((*self.progress.borrow()).into())
            }
        };
        Poll::Ready(Some(Ok(Frame::data(line.bytes()))))
    }
}

fn last_line(done: Result<AdminResponse, ApiError>) -> StreamLine {
    match done {
        Ok(reply) => StreamLine::Reply(Box::new(reply)),
        Err(error) => {
            log(&error);
            StreamLine::Refusal {
                error: log_and_reply(&error).to_owned(),
                code: error.code().to_owned(),
            }
        }
    }
}

impl StreamLine {
    fn bytes(&self) -> Bytes {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        Bytes::from(text)
    }
}
