//! A process of a server under test, in a process group of its own with all its descendants.
//!
//! Guarantees: none of them outlives its value, nor a SIGINT or SIGTERM to the bench; workers whose parent has ended
//! are ended too. Non-goals: a SIGKILL of the bench.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::process;

const STOP_MAX: Duration = Duration::from_secs(10);
/// Time for workers to end after their parent.
const WORKERS_STOP_MAX: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// Exit code after a signal, as of shells after SIGINT.
const INTERRUPTED: i32 = 130;

/// Groups that run.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A running process with its descendants. Dropping it stops all of them.
pub struct ProcessGroup {
    leader: Child,
    group: Pid,
}

impl ProcessGroup {
    /// Starts a program in a new process group, without standard input and output.
    ///
    /// # Errors
    ///
    /// The program, and why it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        end_groups_on_signals();
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        // A signal either finds the group in the list, or ends the bench before the process starts.
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let leader = command.spawn().map_err(|error| format!("starting {program}: {error}"))?;
        let group = Pid::from_child(&leader);
        groups.push(group);
        Ok(Self { leader, group })
    }

    /// Returns the id of the started process.
    pub fn id(&self) -> u32 {
        self.leader.id()
    }

    /// Returns the exit status of the started process once it has ended.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.leader.try_wait().ok().flatten()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::TERM);
        wait_until(STOP_MAX, || self.exit_status().is_some());
        wait_until(WORKERS_STOP_MAX, || test_kill_process_group(self.group).is_err());
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.leader.wait();
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|group| *group != self.group);
    }
}

fn wait_until(most: Duration, is_over: impl FnMut() -> bool) {
    let deadline = Instant::now() + most;
    let mut is_over = is_over;
    while !is_over() && Instant::now() < deadline {
        thread::sleep(POLL);
    }
}

/// Starts a thread, once, that ends all groups and this process on SIGINT and SIGTERM: they reach the process group of
/// the bench only.
fn end_groups_on_signals() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            let waited = runtime.and_then(|runtime| runtime.block_on(interrupted()));
            if let Err(error) = waited {
                eprintln!("warning: servers outlive this process on a signal: {error}");
                return;
            }
            let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
            for group in groups.iter() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
            // Others started processes, too.
            for id in process::own_descendants() {
                let id = i32::try_from(id).ok().and_then(Pid::from_raw);
                let _ = id.map(|id| kill_process(id, Signal::KILL));
            }
            std::process::exit(INTERRUPTED);
        });
    });
}

/// Waits for the first of both signals.
async fn interrupted() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
