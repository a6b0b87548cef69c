//! The choices that make a run: given in order, or drawn.

use std::fmt;

/// The choices of one run. A search begins with the first run and advances to the next until there is none.
pub(super) struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
    rng: Option<fastrand::Rng>,
}

impl Choices {
    /// The run that takes the first of everything.
    pub(super) fn first() -> Self {
        Self { made: Vec::new(), at: 0, rng: None }
    }

    /// A run drawn from a seed. Half of its choices are the ordinary one, or it would never get far.
    pub(super) fn drawn(seed: u64) -> Self {
        Self { rng: Some(fastrand::Rng::with_seed(seed)), ..Self::first() }
    }

    /// One of `options`, as a number from zero.
    pub(super) fn choose(&mut self, options: usize) -> usize {
        let chosen = match self.made.get(self.at) {
            Some((chosen, _)) => *chosen,
            None => {
                let ordinary = self.rng.as_mut().is_none_or(|rng| rng.bool());
                let drawn = self.rng.as_mut().map_or(0, |rng| rng.usize(..options));
                let drawn = if ordinary { 0 } else { drawn };
                self.made.push((drawn, options));
                drawn
            }
        };
        self.at += 1;
        chosen
    }

    /// Goes on to the next run: the last choice that had another option takes it, and all after it begin anew.
    pub(super) fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, options)) = self.made.pop() {
            if chosen + 1 < options {
                self.made.push((chosen + 1, options));
                return true;
            }
        }
        false
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made.iter().try_for_each(|(chosen, _)| write!(f, "{chosen} "))
    }
}
