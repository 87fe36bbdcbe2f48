/** Mutants of what a stage is given and of what it leaves: P31 to P33. */
import type { Check, Mutant } from '../mutant.ts';

const slips: Check = { tests: 'services/auth/test/slips.test.ts' };
const kept: Check = { tests: 'services/registry/test/artifacts.test.ts' };
const caches: Check = { tests: 'services/registry/test/caches.test.ts' };

export const secretsAndObjects: readonly Mutant[] = [
  {
    rule: 'P31',
    breaks: 'answers the slip of another runner',
    file: 'services/auth/src/routes/slips.ts',
    find: "if (slip.runner !== runner) return refused('its slip is for another runner');",
    replace: '',
    noticedBy: [slips],
  },
  {
    rule: 'P31',
    breaks: 'answers a slip that has run out',
    file: 'services/auth/src/routes/slips.ts',
    find: "if (now() > slip.until) return refused('its slip has run out');",
    replace: '',
    noticedBy: [slips],
  },
  {
    rule: 'P31',
    breaks: 'answers for an attempt that the lease of its session does not list',
    file: 'services/auth/src/routes/slips.ts',
    find: 'if (lease === null || !lists(lease.value, slip))',
    replace: 'if (lease === null)',
    noticedBy: [slips],
  },
  {
    rule: 'P31',
    breaks: 'takes a slip that nobody has signed',
    file: 'libs/bus/src/contract/slip.ts',
    find: 'if (given.length !== right.length || !timingSafeEqual(given, right)) return null;',
    replace: 'if (given.length !== right.length) return null;',
    noticedBy: [slips],
  },
  {
    rule: 'P31',
    breaks: 'takes the secrets of another attempt for its own',
    file: 'services/runner/src/session/slip-desk.ts',
    find: 'if (content.run === runId && content.stage === stage && content.attempt === attempt) return content;',
    replace: 'if (content.run === runId && content.stage === stage) return content;',
    noticedBy: [{ tests: 'services/runner/test/stage-secrets.test.ts' }],
  },
  {
    rule: 'P32',
    breaks: 'sweeps what attempts of a living run have stored',
    file: 'services/registry/src/artifacts/sweep.ts',
    find: 'if (run.open) return undefined;',
    replace: '',
    noticedBy: [kept],
  },
  {
    rule: 'P32',
    breaks: 'sweeps what was stored a moment ago',
    file: 'services/registry/src/artifacts/sweep.ts',
    find: 'if (storedAt >= before) continue;',
    replace: '',
    noticedBy: [kept],
  },
  {
    rule: 'P32',
    breaks: 'sweeps a run whose list cannot be read',
    file: 'services/registry/src/artifacts/sweep.ts',
    find: 'await namedBy(parts, runId, now).catch(() => undefined);',
    replace: 'await namedBy(parts, runId, now).catch(() => new Set<string>());',
    noticedBy: [kept],
  },
  {
    rule: 'P33',
    breaks: 'lets an attempt read in a run that its own has taken over nothing of',
    file: 'services/registry/src/artifacts/keeper.ts',
    find: 'if (run !== request.ref.runId && !readsRuns.includes(run))',
    replace: 'if (readsRuns.includes(run) && run === undefined)',
    noticedBy: [kept],
  },
  {
    rule: 'P33',
    breaks: 'lets a run without trust write caches',
    file: 'services/registry/src/caches/cache-keeper.ts',
    find: 'if (caches == null || caches.write === null) throw',
    replace: 'if (caches == null) throw',
    noticedBy: [caches],
  },
  {
    rule: 'P33',
    breaks: 'hands out an archive that is damaged',
    file: 'services/registry/src/artifacts/contents.ts',
    find: 'if (error instanceof ObjectDamaged) return false;',
    replace: 'if (error instanceof ObjectDamaged) return true;',
    noticedBy: [caches],
  },
];
