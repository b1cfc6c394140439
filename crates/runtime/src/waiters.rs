//! Tasks that wait in line for something that another task of the same thread does.

use std::collections::VecDeque;
use std::task::Waker;

/// Names a wait in a [`WaitList`].
pub(crate) type Ticket = u64;

struct Waiting {
    ticket: Ticket,
    waker: Waker,
}

/// Who waits, in the order of arrival.
#[derive(Default)]
pub(crate) struct WaitList {
    line: VecDeque<Waiting>,
    tickets: Ticket,
}

impl WaitList {
    /// Joins the line, or, with a ticket that still stands in it, changes whom to wake.
    pub fn wait(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) {
        let place = ticket.and_then(|ticket| self.place(ticket));
        if let Some(waiting) = place.and_then(|place| self.line.get_mut(place)) {
            waiting.waker.clone_from(waker);
            return;
        }
        self.tickets += 1;
        *ticket = Some(self.tickets);
        self.line.push_back(Waiting { ticket: self.tickets, waker: waker.clone() });
    }

    /// Takes whoever waits longest out of the line.
    pub fn pop(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|waiting| waiting.waker)
    }

    /// Whether the ticket still stands in the line.
    pub fn contains(&self, ticket: Ticket) -> bool {
        self.place(ticket).is_some()
    }

    /// Leaves the line; false where it was called before.
    pub fn leave(&mut self, ticket: Ticket) -> bool {
        let place = self.place(ticket);
        if let Some(place) = place {
            self.line.remove(place);
        }
        place.is_some()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Tickets rise along the line, so a place is found by halving.
    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.line.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()
    }
}
