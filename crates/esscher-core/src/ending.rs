//! How long work ended: one list of words for integrations, flows, descents and trainings.

/// How long work ended. Where and with which numbers is said by the result that carries the ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// All that was asked for was done: the last time was reached, all steps were taken.
    Completed,
    /// Nothing moves any more: the gradient is as small as was asked for.
    Stationary,
    /// The goal that was set was reached before all steps were taken.
    GoalReached,
    /// The covariance lost a direction.
    Collapsed,
    /// The solution becomes infinite in finite time.
    BlownUp,
    /// Numbers grew beyond what was allowed, or beyond sense.
    Diverged,
    /// No step was short enough: the solution is singular or extremely stiff there.
    Stuck,
    /// The allowance of steps is spent.
    OutOfSteps,
    /// The monitor asked to stop.
    Stopped,
}

impl Ending {
    /// All endings, the good ones first.
    pub const ALL: [Ending; 9] = [
        Ending::Completed,
        Ending::Stationary,
        Ending::GoalReached,
        Ending::Collapsed,
        Ending::BlownUp,
        Ending::Diverged,
        Ending::Stuck,
        Ending::OutOfSteps,
        Ending::Stopped,
    ];

    /// The word under which tables, documents and every door know the ending.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Stationary => "stationary",
            Ending::GoalReached => "goal-reached",
            Ending::Collapsed => "collapsed",
            Ending::BlownUp => "blown-up",
            Ending::Diverged => "diverged",
            Ending::Stuck => "stuck",
            Ending::OutOfSteps => "out-of-steps",
            Ending::Stopped => "stopped",
        }
    }

    /// The ending of this name, if there is one.
    ///
    /// ```
    /// use esscher_core::Ending;
    /// assert!(Ending::ALL.iter().all(|&ending| Ending::from_name(ending.name()) == Some(ending)));
    /// assert_eq!(Ending::from_name("reached the end time"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Ending::ALL.into_iter().find(|ending| ending.name() == name)
    }
}
