/**
 * The times that two processes must agree on (docs/protocols.md): each stands here once, with what depends on it. What one process
 * decides alone (how often it looks, how long it tries) stands where it is used.
 *
 * TIMES-1 An owner stops answering before its membership can have ended: `ACT_WITHIN_MS` is below `MEMBERSHIP_MS`, with room for
 *         a renewal that is under way.
 * TIMES-2 A runner's processes are gone before its lease ends: the fence is the lease less `FENCE_MS`, and a renewal comes before the
 *         fence even with the shortest lease.
 * TIMES-3 A scheduler lets a credit be before the runner does, and a runner renews it before the scheduler does.
 */

/** P3: how long a scheduler's membership lives without a renewal: its partitions stand still for so long after it died. */
export const MEMBERSHIP_MS = 6_000;
/** Renewals in the life of a membership: two may be lost. */
export const MEMBERSHIP_RENEWALS = 3;
/** P4: an owner answers reads and repeats effects only while its last accepted renewal was sent less than this ago. */
export const ACT_WITHIN_MS = 4_000;
/** P35: an owner grants only while it has heard within this of what is paused; two heartbeats of its watch. */
export const CONTROLS_HEARD_WITHIN_MS = 4_000;

/** P10: how long a runner's lease lives without a renewal, where `SERVICE_RUNNER_LEASE_SECS` says nothing else. */
export const RUNNER_LEASE_MS = 15_000;
/** The shortest lease that leaves time for a renewal before the fence. */
export const RUNNER_LEASE_MS_MIN = 6_000;
/** Renewals in the life of a runner's lease. */
export const RUNNER_LEASE_RENEWALS = 5;
/** P15: the guard's deadline is so long before the lease's end: time for it to notice, to kill and for the kernel to clear up. */
export const FENCE_MS = 3_000;

/**
 * P11: a runner takes no grant for a credit that is older, by its boot clock: that clock goes on while the machine is suspended, so
 * that nothing starts from an offer made before.
 */
export const CREDIT_MS = 30_000;
/** P11: a scheduler spends no credit that is older, so that a grant does not arrive for a credit that is just over. */
export const CREDIT_SPENT_WITHIN_MS = 25_000;
/** P11: a runner replaces a credit that is older, so that one is always open at the scheduler. */
export const CREDIT_RENEWED_AFTER_MS = 15_000;

/** P12, P14: an owner sends a grant or a stop again that is not answered. */
export const JOB_REPEAT_MS = 2_000;
/** P12, P14: a runner answers a grant or a stop at once; an owner waits no longer for one answer. */
export const RUNNER_ANSWER_MS = 2_000;
/** P14: a runner refuses a grant that comes after its stop, and remembers stops for so long. */
export const STOPS_KEPT_MS = 60_000;
/** P14: a cancelled attempt whose processes are gone is `gone` so much later, whatever the broker lacks of its log. */
export const GONE_WITHOUT_LOG_MS = 10_000;
/** P16: a runner sends a result again that no owner has answered. */
export const RESULT_REPEAT_MS = 2_000;

/**
 * P7: no gateway takes a run's id that is further ahead of its clock, and no owner takes an id for one that nobody can have created
 * which is not further ahead of its opening.
 */
export const RUN_ID_AHEAD_MS = 60_000;

/** P20: who watches a run or waits for its end asks its owner again, so that a lost last event is noticed. */
export const WATCH_ASK_MS = 15_000;

/** P34: the chunks of an archived run stay in `LOGS` for so long at least, by the boot clock of who removes them. */
export const ARCHIVED_KEPT_MS = 5 * 60_000;
/** P34: what `LOGS` answers counts only so long after a moment at which the run was not archived, by the reader's boot clock. */
export const LOGS_READ_WITHIN_MS = 2 * 60_000;
