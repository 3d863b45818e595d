//! Provenance: which program made a run, where, when and with what.

use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The program that runs, as it knows itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The program's name.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The commit that was checked out when it was built, if known.
    pub commit: Option<String>,
}

/// One stretch of work on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSession {
    /// The program that did the work.
    pub origin: Origin,
    /// The machine's name.
    pub host: String,
    /// Operating system and processor.
    pub system: String,
    /// Threads that ran units, here or on other machines.
    pub threads: usize,
    /// The process: two sessions may begin in the same moment.
    pub process: u32,
    /// When it began, in UTC.
    pub started: String,
    /// When it ended, in UTC; missing if the process was killed.
    pub ended: Option<String>,
    /// Units computed; not known if the process was killed.
    pub units: Option<usize>,
}

/// The history of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// SHA-256 of spec.toml.
    pub specification_sha256: String,
    /// Instructions of the simulations.
    pub instruction_set: String,
    /// Units of the plan.
    pub units: usize,
    /// All stretches of work, in the order in which they began.
    pub sessions: Vec<WorkSession>,
    /// SHA-256 of result.parquet, once there is one.
    pub result_sha256: Option<String>,
}

impl WorkSession {
    /// A session that begins now.
    pub(crate) fn begin(origin: &Origin, threads: usize) -> Self {
        WorkSession {
            origin: origin.clone(),
            host: gethostname::gethostname().to_string_lossy().into_owned(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            threads,
            process: std::process::id(),
            started: now(),
            ended: None,
            units: None,
        }
    }

    pub(crate) fn end(&mut self, units: usize) {
        self.ended = Some(now());
        self.units = Some(units);
    }
}

fn now() -> String {
    stamp(SystemTime::now())
}

/// The last second that RFC 3339 can write, 9999-12-31T23:59:59Z, counted from 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// A time for the history; a clock that is set before 1970 or after 9999 is written as the nearest of the two.
fn stamp(time: SystemTime) -> String {
    let last = UNIX_EPOCH + Duration::from_secs(LAST_SECOND);
    humantime::format_rfc3339_millis(time.clamp(UNIX_EPOCH, last)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_or_after_9999_is_written_as_the_nearest_time() {
        let after = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap();
        assert_eq!(stamp(UNIX_EPOCH - Duration::from_secs(99_999_999_999)), "1970-01-01T00:00:00.000Z");
        assert_eq!(stamp(UNIX_EPOCH - Duration::from_nanos(1)), "1970-01-01T00:00:00.000Z");
        assert_eq!(stamp(after(1_000_000_000)), "2001-09-09T01:46:40.000Z");
        for late in [LAST_SECOND + 1, i64::MAX as u64] {
            assert_eq!(stamp(after(late)), "9999-12-31T23:59:59.000Z");
        }
    }
}
