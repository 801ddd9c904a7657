//! An agent: offers the lanes of its machine to one run after the other.
//!
//! It does only what its own command line allows, whatever a plan asks for. It opens connections to the targets that it
//! was started with, reads no file that a message names, and starts no program. Certificates and keys that a
//! coordinator sends lie in a folder of its own while it works for that run.
//!
//! One thread listens and answers roll calls; another one measures. While slots are measured, neither gets any message.

pub(super) mod replica;
mod target;
mod work;

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, secret::Secret};
use tithe_model::record::Machine;
use tithe_plugin::product::Product;

pub use self::target::{AllowedTarget, names_files};
use self::work::{Ordered, Work};
use super::{
    link::{Answer, Delivery, Link, PROMPT, Subscription, tells_time},
    message::{
        Enlistment, FrameOrder, Hello, Order, PROTOCOL, ROLL_CALL, Reply, Report, Said, coordinator, coordinator_clock,
        read, write,
    },
};

/// Longest wait for a message: ctrl-C is noticed after at most this time.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How often it checks that the coordinator of its run is still alive.
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// For how long it tries to hand over what it has measured.
const REPORT_WITHIN: Duration = Duration::from_secs(30);

/// What an agent offers, as it was started.
pub struct AgentConfig {
    /// Its name, for people.
    pub name: String,
    /// Lanes.
    pub lanes: u32,
    /// Servers that it may connect to.
    pub targets: Vec<AllowedTarget>,
    /// The databases of this build.
    pub products: Vec<&'static dyn Product>,
    /// Its machine.
    pub machine: Machine,
}

impl AgentConfig {
    /// The description that this process sends while it is free.
    fn hello(&self) -> Hello {
        Hello {
            id: Secret::random(8).expose_hex(),
            name: self.name.clone(),
            tithe: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            lanes: self.lanes,
            machine: self.machine.clone(),
            busy_with: None,
            observes: false,
        }
    }
}

/// What an agent reports to its listener.
pub enum AgentEvent {
    /// It works for this run from now on.
    Enlisted(String),
    /// It is free again, for this reason.
    Free(String),
    /// It has measured frames; how many of this run so far.
    Measured(u64),
    /// Something that the user should know.
    Warning(String),
}

/// Serves one run after the other until `cancelled`.
///
/// # Errors
/// When the link cannot be used at all. A link that is lost later is waited for.
pub fn serve(
    link: &dyn Link,
    config: &AgentConfig,
    cancelled: &AtomicBool,
    tell: &mut dyn FnMut(AgentEvent),
) -> Result<(), Fault> {
    let hello = config.hello();
    let _clock = link.tell_time(&hello.clock())?;
    let calls = link.subscribe(ROLL_CALL)?;
    let orders = link.subscribe(&hello.orders())?;
    let shared =
        Shared { hello, state: Mutex::default(), aborted: AtomicBool::new(false), ended: AtomicBool::new(false) };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| answer_calls(link, &shared, calls));
        scope.spawn(|| take_orders(link, config, &shared, orders, &sender));
        work(link, config, &shared, &receiver, cancelled, tell);
        shared.ended.store(true, Ordering::SeqCst);
    });
    Ok(())
}

/// What the threads of an agent share.
struct Shared {
    /// The description that it sends while it is free.
    hello: Hello,
    state: Mutex<State>,
    /// The frame that is being measured is no longer needed.
    aborted: AtomicBool,
    ended: AtomicBool,
}

/// What an agent is doing.
#[derive(Default)]
struct State {
    /// The run that it works for.
    run: Option<String>,
    /// Ticket of the frame that it measures.
    measuring: Option<u64>,
    /// Ticket of the frame whose start is known, and when it begins, ns.
    go: Option<(u64, u64)>,
}

impl Shared {
    /// The state is whole even if a thread panicked: nothing that can panic happens under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the work for `run`; false if a frame of it was ordered meanwhile.
    fn release(&self, run: &str) -> bool {
        let mut state = self.state();
        let free = state.measuring.is_none() && state.run.as_deref() == Some(run);
        if free {
            state.run = None;
        }
        free
    }

    /// When the first slot of the frame of `ticket` begins, ns; `None` if that is not known yet.
    fn start_ns(&self, ticket: u64) -> Option<u64> {
        self.state().go.filter(|(of, _)| *of == ticket).map(|(_, start_ns)| start_ns)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

/// Answers all roll calls with this agent's description.
fn answer_calls(link: &dyn Link, shared: &Shared, mut calls: Box<dyn Subscription>) {
    while !shared.has_ended() {
        // A lost link comes back, and a caller that was not heard meanwhile calls again.
        let Some(Delivery { reply_to: Some(reply_to), .. }) = heard(&mut *calls) else { continue };
        let hello = Hello { busy_with: shared.state().run.clone(), ..shared.hello.clone() };
        // A caller that gets no answer calls again.
        let _ = write(&hello).and_then(|hello| link.publish(&reply_to, &hello));
    }
}

/// The next message; `None` if none came or the link is lost, which takes the same waiting time.
fn heard(subscription: &mut dyn Subscription) -> Option<Delivery> {
    subscription.next(POLL_INTERVAL).unwrap_or_else(|_| {
        std::thread::sleep(POLL_INTERVAL);
        None
    })
}

/// Takes orders: those that change something at once, and those that `sender` hands to the worker.
fn take_orders(
    link: &dyn Link,
    config: &AgentConfig,
    shared: &Shared,
    mut orders: Box<dyn Subscription>,
    sender: &Sender<Ordered>,
) {
    while !shared.has_ended() {
        let Some(Delivery { body, reply_to }) = heard(&mut *orders) else { continue };
        let reply = match read::<Order>(&body) {
            Some(order) => take_order(config, shared, order, sender),
            None => Reply::Refused("this agent does not understand the order: run one version of tithe".to_owned()),
        };
        let told = reply_to.map(|to| write(&reply).and_then(|reply| link.publish(&to, &reply)));
        // A coordinator that gets no answer asks again, or treats this agent as lost.
        drop(told);
    }
}

fn take_order(config: &AgentConfig, shared: &Shared, order: Order, sender: &Sender<Ordered>) -> Reply {
    // Connects to servers, so no lock is held.
    if let Order::Enlist(enlistment) = &order
        && let Some(why) = refused(enlistment).or_else(|| work::obstacle(&config.products, &config.targets, enlistment))
    {
        return Reply::Refused(why);
    }
    let mut state = shared.state();
    match order {
        Order::Enlist(enlistment) => match state.run.as_ref().filter(|run| **run != enlistment.run) {
            Some(run) => Reply::Busy(run.clone()),
            None => hand_over(&mut state, enlistment.run.clone(), sender, Ordered::Enlist(enlistment)),
        },
        Order::Measure(order) if state.run.as_ref() != Some(&order.run) => {
            drop(order);
            Reply::NotEnlisted
        }
        Order::Measure(order) => match state.measuring {
            // Its answer was lost, and the order came again.
            Some(ticket) if ticket == order.ticket => Reply::Accepted,
            // A coordinator that orders another frame has given this one up, and that message was lost.
            Some(_) => {
                shared.aborted.store(true, Ordering::SeqCst);
                Reply::Busy(order.run)
            }
            None => {
                (state.measuring, state.go) = (Some(order.ticket), None);
                shared.aborted.store(false, Ordering::SeqCst);
                let run = order.run.clone();
                hand_over(&mut state, run, sender, Ordered::Measure(order))
            }
        },
        Order::Go { ticket, start_ns } if state.measuring == Some(ticket) => {
            state.go = Some((ticket, start_ns));
            Reply::Accepted
        }
        Order::Abort { ticket } if state.measuring == Some(ticket) => {
            shared.aborted.store(true, Ordering::SeqCst);
            Reply::Accepted
        }
        Order::Go { .. } | Order::Abort { .. } => Reply::NotEnlisted,
        Order::Release { run } if state.run.as_ref() == Some(&run) => {
            shared.aborted.store(true, Ordering::SeqCst);
            hand_over(&mut state, run, sender, Ordered::Release)
        }
        Order::Release { .. } => Reply::NotEnlisted,
    }
}

fn hand_over(state: &mut State, run: String, sender: &Sender<Ordered>, ordered: Ordered) -> Reply {
    state.run = Some(run);
    match sender.send(ordered) {
        Ok(()) => Reply::Accepted,
        // It ends, and may be back as another process.
        Err(_) => Reply::NotEnlisted,
    }
}

/// Why this agent refuses the run of `enlistment`.
fn refused(enlistment: &Enlistment) -> Option<String> {
    let Enlistment { tithe, protocol, .. } = enlistment;
    let ours = env!("CARGO_PKG_VERSION");
    let other = tithe != ours || *protocol != PROTOCOL;
    other.then(|| {
        format!(
            "this agent is tithe {ours} (protocol {PROTOCOL}), and the coordinator is tithe {tithe} (protocol {protocol}): \
             run one version everywhere"
        )
    })
}

/// Works through what is ordered.
fn work(
    link: &dyn Link,
    config: &AgentConfig,
    shared: &Shared,
    orders: &Receiver<Ordered>,
    cancelled: &AtomicBool,
    tell: &mut dyn FnMut(AgentEvent),
) {
    let mut work: Result<Work, String> = idle();
    let mut seen_alive = Instant::now();
    while !cancelled.load(Ordering::SeqCst) {
        match orders.recv_timeout(POLL_INTERVAL) {
            Ok(Ordered::Enlist(enlistment)) => {
                seen_alive = Instant::now();
                let run = enlistment.run.clone();
                match Work::new(&config.products, &enlistment) {
                    Ok(begun) => {
                        work = Ok(begun);
                        tell(AgentEvent::Enlisted(run));
                    }
                    Err(fault) => {
                        tell(AgentEvent::Warning(format!("run {run}: {fault}")));
                        // The coordinator gets this reason when it asks for a frame.
                        work = Err(fault.to_string());
                    }
                }
            }
            Ok(Ordered::Measure(order)) => {
                measure(link, config, shared, &mut work, *order, cancelled, tell);
                let mut state = shared.state();
                (state.measuring, state.go) = (None, None);
                seen_alive = Instant::now();
            }
            Ok(Ordered::Release) => {
                work = idle();
                shared.state().run = None;
                tell(AgentEvent::Free("the run has ended".to_owned()));
            }
            Err(_) => {}
        }
        // A statement of its own, so that the lock is not held during the request to the coordinator.
        let run = shared.state().run.clone();
        if let Some(run) = run.filter(|_| seen_alive.elapsed() > ALIVE_EVERY) {
            seen_alive = Instant::now();
            if is_gone(link, &run) && shared.release(&run) {
                work = idle();
                tell(AgentEvent::Free("the coordinator of its run is gone".to_owned()));
            }
        }
    }
}

/// The error of an agent that works for no run.
fn idle() -> Result<Work, String> {
    Err("this agent has no plan".to_owned())
}

/// True if no coordinator answers clock requests for `run`; false also while the link is lost.
fn is_gone(link: &dyn Link, run: &str) -> bool {
    tells_time(link, &coordinator_clock(run)) == Ok(false)
}

/// Measures the frame of `order` and reports the result.
fn measure(
    link: &dyn Link,
    config: &AgentConfig,
    shared: &Shared,
    work: &mut Result<Work, String>,
    order: FrameOrder,
    cancelled: &AtomicBool,
    tell: &mut dyn FnMut(AgentEvent),
) {
    let (run, ticket) = (order.run.clone(), order.ticket);
    let report = |said| Report { agent: shared.hello.id.clone(), ticket, said };
    let unwanted = || cancelled.load(Ordering::SeqCst) || shared.aborted.load(Ordering::SeqCst);
    let mut start = |serving| {
        // An agent that gets a start time was heard, even if it does not know that.
        let heard = || unwanted() || shared.start_ns(ticket).is_some();
        let handed_in = hand_in(link, &run, &report(Said::Ready(serving)), &heard);
        if handed_in.is_err() && shared.start_ns(ticket).is_none() {
            return None;
        }
        await_go(link, shared, (&run, ticket), &unwanted)
    };
    let outcome = match work {
        Ok(work) => work.measure(&config.targets, order, &mut start, &shared.aborted),
        Err(why) => Err(Fault::Refused(why.clone())),
    };
    let said = match outcome {
        Ok(Some(part)) => Said::Measured(Box::new(part)),
        Ok(None) => return,
        Err(fault) => Said::Failed(fault.to_string()),
    };
    if let (Said::Measured(_), Ok(work)) = (&said, &work) {
        tell(AgentEvent::Measured(work.measured));
    }
    if let Err(fault) = hand_in(link, &run, &report(said), &unwanted) {
        tell(AgentEvent::Warning(format!("a frame of run {run} was refused: {fault}")));
    }
}

/// Waits until the coordinator sends the start of the first slot; `None` when it does not want the frame any more, or
/// is gone.
fn await_go(link: &dyn Link, shared: &Shared, (run, ticket): (&str, u64), unwanted: &dyn Fn() -> bool) -> Option<u64> {
    let mut seen_alive = Instant::now();
    loop {
        if let Some(start_ns) = shared.start_ns(ticket) {
            return Some(start_ns);
        }
        if unwanted() {
            return None;
        }
        if seen_alive.elapsed() > ALIVE_EVERY {
            seen_alive = Instant::now();
            if is_gone(link, run) {
                return None;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends `report` to the coordinator of `run` until it confirms it, it is gone or the report is `unwanted`.
fn hand_in(link: &dyn Link, run: &str, report: &Report, unwanted: &dyn Fn() -> bool) -> Result<(), Fault> {
    let subject = coordinator(run);
    let written = write(report)?;
    let deadline = Instant::now() + REPORT_WITHIN;
    loop {
        let mut gone = false;
        let why = match link.request(&subject, &written, PROMPT) {
            Ok(Answer::Reply(_)) => return Ok(()),
            Ok(Answer::NoResponders) => {
                gone = is_gone(link, run);
                "the coordinator is gone".to_owned()
            }
            Ok(Answer::TimedOut) => "the coordinator does not answer".to_owned(),
            Err(fault) => fault.to_string(),
        };
        if gone || unwanted() || Instant::now() > deadline {
            return Err(Fault::Connection(why));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::agents::tests::{config, frame_order, hello, plan};

    /// An agent that works for this run, and measures the frame of this ticket.
    fn at(run: Option<&str>, measuring: Option<u64>) -> Shared {
        let state = State { run: run.map(str::to_owned), measuring, go: None };
        let [aborted, ended] = [false; 2].map(AtomicBool::new);
        Shared { hello: hello("a"), state: Mutex::new(state), aborted, ended }
    }

    /// Its reply to `order`, what its worker gets, and what it is at then.
    fn taken(shared: &Shared, order: Order) -> String {
        let (sender, receiver) = mpsc::channel();
        let reply = take_order(&config("a", 1), shared, order, &sender);
        let word = |ordered: Ordered| match ordered {
            Ordered::Enlist(_) => " enlist",
            Ordered::Measure(_) => " measure",
            Ordered::Release => " release",
        };
        let handed_over: String = receiver.try_iter().map(word).collect();
        let aborted = if shared.aborted.load(Ordering::SeqCst) { " aborted" } else { "" };
        let state = shared.state();
        format!("{reply:?}{handed_over}{aborted}, measuring {:?}, go {:?}", state.measuring, state.go)
    }

    #[test]
    fn an_order_is_taken_by_an_agent_of_its_run_that_measures_its_frame() {
        let plan = plan("c");
        let measure = |run: &str, ticket: u64| {
            let order = FrameOrder { run: run.to_owned(), ..frame_order(&plan, ticket) };
            Order::Measure(Box::new(order))
        };
        let release = |run: &str| Order::Release { run: run.to_owned() };
        let orders = || {
            [
                ("measure r 7", measure("r", 7)),
                ("measure r 8", measure("r", 8)),
                ("measure s 7", measure("s", 7)),
                ("go 7", Order::Go { ticket: 7, start_ns: 5 }),
                ("go 8", Order::Go { ticket: 8, start_ns: 5 }),
                ("abort 7", Order::Abort { ticket: 7 }),
                ("abort 8", Order::Abort { ticket: 8 }),
                ("release r", release("r")),
                ("release s", release("s")),
            ]
        };
        let mut text = String::new();
        for (run, measuring) in [(None, None), (Some("r"), None), (Some("r"), Some(7))] {
            text += &format!("run {run:?}, measuring {measuring:?}\n");
            let not_taken = format!("NotEnlisted, measuring {measuring:?}, go None");
            for (name, order) in orders() {
                let taken = taken(&at(run, measuring), order);
                text += &if taken == not_taken { String::new() } else { format!("  {name}: {taken}\n") };
            }
        }
        expect![[r#"
            run None, measuring None
            run Some("r"), measuring None
              measure r 7: Accepted measure, measuring Some(7), go None
              measure r 8: Accepted measure, measuring Some(8), go None
              release r: Accepted release aborted, measuring None, go None
            run Some("r"), measuring Some(7)
              measure r 7: Accepted, measuring Some(7), go None
              measure r 8: Busy("r") aborted, measuring Some(7), go None
              go 7: Accepted, measuring Some(7), go Some((7, 5))
              abort 7: Accepted aborted, measuring Some(7), go None
              release r: Accepted release aborted, measuring Some(7), go None
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn an_agent_leaves_its_own_run_alone_and_not_within_a_frame() {
        for (run, measuring, leaves) in
            [(Some("r"), None, true), (Some("r"), Some(7), false), (Some("s"), None, false), (None, None, false)]
        {
            let shared = at(run, measuring);
            assert_eq!(shared.release("r"), leaves, "{run:?} {measuring:?}");
            assert_eq!(shared.state().run.as_deref(), run.filter(|_| !leaves));
        }
    }

    #[test]
    fn a_start_is_that_of_its_frame() {
        let shared = at(Some("r"), Some(7));
        assert_eq!(shared.start_ns(7), None);
        shared.state().go = Some((7, 5));
        assert_eq!([shared.start_ns(7), shared.start_ns(8)], [Some(5), None]);
    }
}
