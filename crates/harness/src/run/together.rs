//! Work on several arms at the same time.

use tithe_machine::{fault::Fault, threads};

/// Does `work` for each of `items`, each in a thread of its own; returns the results, in their order.
///
/// A server dies with the thread that has started it: `work` must not start anything that is to stay.
///
/// # Errors
/// The first fault in the order of `items`, when all have ended.
pub(super) fn together<T, R>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, Fault> + Sync,
) -> Result<Vec<R>, Fault>
where
    T: Send,
    R: Send,
{
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| threads::within(scope, move || work(item))).collect();
        let ended: Vec<Result<R, Fault>> = threads
            .into_iter()
            .map(|thread| thread?.join().unwrap_or_else(|_| Err(Fault::Machine("a thread panicked".to_owned()))))
            .collect();
        ended.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_work_at_once_and_the_first_fault_counts() {
        let meeting = Barrier::new(3);
        let work = |item: u32| {
            // No thread passes before all are there.
            meeting.wait();
            if item > 1 { Err(Fault::Machine(format!("no {item}"))) } else { Ok(item * 10) }
        };
        assert_eq!(together([1, 0, 1], work), Ok(vec![10, 0, 10]));
        assert_eq!(together([1, 2, 3], work), Err(Fault::Machine("no 2".to_owned())));
        assert_eq!(together([], |item: u32| Ok(item)), Ok(vec![]));
    }
}
