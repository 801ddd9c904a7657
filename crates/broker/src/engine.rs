//! The thread that does all work with the broker. Other threads hand it work and wait for a bounded time.

use std::{
    future::Future,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use tithe_machine::fault::Fault;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::AbortHandle,
};

use crate::{address::BrokerUrl, words};

/// Extra time that a caller waits for its work: the thread may not have had a processor.
const GRACE: Duration = Duration::from_secs(2);

/// A thread with a runtime; ended when dropped.
pub(crate) struct Engine {
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts one.
    ///
    /// # Errors
    /// If the kernel gives no thread or no descriptor.
    pub fn start() -> Result<Self, Fault> {
        let failed = |error| Fault::machine("cannot start the thread of the link", error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            let _ = runtime.block_on(stopped);
            // A pending name lookup must not block the drop.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("broker".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    /// The result of `work` with the broker `at`, which ends by itself after `within`.
    ///
    /// # Errors
    /// The errors of `work`, or that it did not end. The library panics on some invalid input of a broker: that ends
    /// the work, not the thread.
    pub fn call<T: Send + 'static>(
        &self,
        at: &BrokerUrl,
        within: Duration,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let task = self.runtime.spawn(async move {
            // If the caller no longer waits, the result is dropped here, in the runtime.
            let _ = sender.try_send(work.await);
        });
        match receiver.recv_timeout(within.saturating_add(GRACE)) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(words::broken(at)),
            Err(RecvTimeoutError::Timeout) => {
                task.abort();
                Err(words::silent(at))
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Background work in an engine's thread; ended when dropped.
pub(crate) struct Task(AbortHandle);

impl Task {
    /// Starts `work`. Only to be called from work of an engine.
    pub fn begin(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at() -> BrokerUrl {
        "tls://broker".parse().expect("an address")
    }

    #[test]
    fn work_is_done_in_its_thread_and_ends_with_it() {
        let engine = Engine::start().unwrap();
        let name = engine.call(&at(), MINUTE, async { Ok(thread::current().name().map(str::to_owned)) });
        assert_eq!(name, Ok(Some("broker".to_owned())));
        let (told, ended) = mpsc::channel::<()>();
        let task = engine.call(&at(), MINUTE, async move {
            Ok(Task::begin(async move {
                let _told = told;
                std::future::pending().await
            }))
        });
        drop(engine);
        assert_eq!(ended.recv(), Err(mpsc::RecvError));
        drop(task);
    }

    #[test]
    fn what_goes_on_for_ever_or_panics_is_an_error_and_keeps_nobody_else() {
        let engine = Engine::start().unwrap();
        let forever = engine.call(&at(), Duration::ZERO, std::future::pending::<Result<(), Fault>>());
        assert_eq!(forever, Err(words::silent(&at())));
        let panics = engine.call(&at(), MINUTE, async { Ok(Vec::<u8>::new().remove(0)) });
        assert_eq!(panics, Err(words::broken(&at())));
        assert_eq!(engine.call(&at(), MINUTE, async { Ok(1) }), Ok(1));
    }
}
