/**
 * Answers the slips of runners (P31): the values that one attempt's stage names, sealed to the session that runs it.
 *
 * SLIPS-1 Only what a scheduler has signed, for this runner, and while it has not run out.
 * SLIPS-2 Only while the session's lease, as the stream's leader knows it, lists the attempt; sealed to the key in that very lease.
 * SLIPS-3 Values are read anew for each answer, and stand in none that is not sealed.
 * SLIPS-4 That a repository has no secret of its own is answered to a slip that nobody has signed, too: so schedulers that have no key
 *     may have connected repositories, and whoever names such a secret is told where the key is missing. Not to runners of a fleet,
 *     whose machines may be a stranger's: who lets those in has a key.
 * SLIPS-5 To a runner of a fleet only while it is let in, and to a tenant's own only for runs of that tenant, whatever was signed (P37).
 */
import { buckets, claimsOfSlip, isFleetRunner, leaseAtLeader, readSlip, subjects } from '@penstock/bus';
import type {
  Bus,
  BusSubscription,
  CloneRequest,
  RunnerLease,
  Slip,
  SlipAnswer,
  SlipContent,
  SlipRequest,
} from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { FleetGrant } from '../flows/fleet.ts';
import { sealTo, userOfTenant } from '@penstock/identity';
import type { CloneSecrets } from '../model/clone-secrets.ts';
import { idTokensFor, type IdTokenSources } from '../model/id-tokens.ts';
import { chooseSecret } from '../model/secret-choice.ts';
import type { KeptSecret, StageSecrets } from '../model/stage-secrets.ts';

export interface SlipsOptions {
  readonly bus: Bus;
  readonly secrets: StageSecrets;
  readonly clones: CloneSecrets;
  /** Whether a repository is cloned only once it is proved to be its user's. */
  readonly needsProofs: boolean;
  readonly idTokens: IdTokenSources;
  /** Of 32 bytes in base64, shared with the schedulers; without it every slip is refused. */
  readonly slipKey: string | undefined;
  readonly grantOf: (runner: string) => Promise<FleetGrant | null>;
  readonly log: Pick<Log, 'warn'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const EVERYBODYS: FleetGrant = {};
/** All values of one stage. */
const STAGE_BYTES_MAX = 256 * 1024;
/** Those of the stage, and one for each of its images. */
const NAMES_MAX = 40;

export function answerSlips(options: SlipsOptions): BusSubscription {
  const { bus, log } = options;
  return bus.respond<SlipRequest, SlipAnswer>(
    subjects.slip('*'),
    async (request, { subject }) => {
      try {
        return await answer(request, subject.split('.')[1] ?? '', options);
      } catch (error) {
        log.warn({ err: error }, 'a slip could not be answered; its runner asks again');
        return { kind: 'unavailable' };
      }
    },
    { queue: 'auth' },
  );
}

async function answer(
  { slip: text, tokensOnly }: SlipRequest,
  runner: string,
  options: SlipsOptions,
): Promise<SlipAnswer> {
  const { bus, slipKey, secrets, clones, idTokens, now } = options;
  const slip = slipKey === undefined || typeof text !== 'string' ? null : readSlip(slipKey, text);
  const claimed = cloneAsked(slip ?? (typeof text === 'string' && !isFleetRunner(runner) ? claimsOfSlip(text) : null));
  if (claimed !== undefined && !(await clones.isNamed(claimed))) return { kind: 'none' };
  if (slipKey === undefined) return refused('auth has no SERVICE_SLIP_KEY, which schedulers sign by');
  if (slip === null) return refused('its slip is not signed by the SERVICE_SLIP_KEY of auth');
  if (slip.runner !== runner) return refused('its slip is for another runner');
  if (now() > slip.until) return refused('its slip has run out');
  const grant = isFleetRunner(runner) ? await options.grantOf(runner) : EVERYBODYS;
  if (grant === null) return refused('it is not, or no longer, let in by a runner token');
  if (grant.tenant !== undefined && grant.tenant !== slip.tenant)
    return refused("its slip is for another tenant's run");
  const lease = await leaseAtLeader<RunnerLease>(bus, buckets.runners, `${runner}.${slip.session}`);
  if (lease === null || !lists(lease.value, slip)) return { kind: 'unlisted' };
  const { sealTo: publicKey } = lease.value;
  if (publicKey === undefined) return refused('its runner has no key that values could be sealed to');
  const asked = cloneAsked(slip);
  if (asked !== undefined) {
    const found = await clones.find(asked, options.needsProofs);
    if (found.kind !== 'found') return found;
    const { run, stage, attempt } = slip;
    const content: SlipContent = { run, stage, attempt, values: {}, withheld: [], clone: found.secret };
    return { kind: 'sealed', sealed: await sealTo(publicKey, content) };
  }
  const values = await contentOf(tokensOnly === true ? { ...slip, names: [] } : slip, secrets);
  const wantsTokens = values.withheld.length === 0 && (slip.audiences?.length ?? 0) > 0;
  const content = wantsTokens ? { ...values, idTokens: await idTokensFor(slip, idTokens) } : values;
  return { kind: 'sealed', sealed: await sealTo(publicKey, content) };
}

/** Of a slip for a checkout. */
function cloneAsked(slip: Partial<Slip> | null): Omit<CloneRequest, 'sealTo'> | undefined {
  const { tenant, provider, repository, cloneUrl } = slip ?? {};
  if (typeof cloneUrl !== 'string' || typeof provider !== 'string' || typeof repository !== 'string') return undefined;
  const userId = typeof tenant === 'string' ? userOfTenant(tenant) : undefined;
  return userId === undefined ? undefined : { userId, provider, repository, cloneUrl };
}

function refused(why: string): SlipAnswer {
  return { kind: 'refused', why };
}

function lists({ attempts }: RunnerLease, slip: Slip): boolean {
  return attempts.some(
    ({ runId, stage, attempt, session }) =>
      runId === slip.run && stage === slip.stage && attempt === slip.attempt && session === slip.session,
  );
}

async function contentOf(slip: Slip, secrets: StageSecrets): Promise<SlipContent> {
  const { run, stage, attempt } = slip;
  const names = slip.names.slice(0, NAMES_MAX);
  const kept = names.length === 0 ? [] : await secrets.ofTenant(slip.tenant);
  const [values, withheld, used] = [
    new Map<string, string>(),
    [] as { name: string; why: string }[],
    [] as KeptSecret[],
  ];
  let bytes = 0;
  for (const name of names) {
    const choice = chooseSecret(name, slip, kept);
    const value = 'why' in choice ? choice : await openedValue(choice.secret, secrets);
    if ('why' in value) {
      withheld.push({ name, why: value.why });
      continue;
    }
    bytes += value.bytes.length;
    if (bytes > STAGE_BYTES_MAX)
      withheld.push({ name, why: `the secrets of one stage have at most ${STAGE_BYTES_MAX} bytes together` });
    else values.set(name, Buffer.from(value.bytes).toString('base64'));
    if ('secret' in choice) used.push(choice.secret);
  }
  // What nobody gets has not been used.
  if (withheld.length > 0) return { run, stage, attempt, values: {}, withheld };
  await secrets.used(used.map(({ id }) => id));
  return { run, stage, attempt, values: Object.fromEntries(values), withheld };
}

async function openedValue(
  { id }: KeptSecret,
  secrets: StageSecrets,
): Promise<{ readonly bytes: Uint8Array } | { readonly why: string }> {
  const bytes = await secrets.open(id);
  return bytes === null ? { why: 'none of the keys in SERVICE_MASTER_KEY opens it: set it anew' } : { bytes };
}
