/**
 * What it costs to know who asks: a trivial query without a token, with an access token and with a personal token, in
 * turn in one run, by their rates and by the processor time of each. Whether time tells a foreign run from none. How
 * long a revocation takes to count.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { buckets, putExpiring, type Bus } from '@penstock/bus';
import {
  newPersonalToken,
  REVOCATION_TTL_MS,
  revocationKeys,
  signAccessToken,
  tenantOfUser,
  type AuthCalls,
  type AuthVerb,
} from '@penstock/identity';
import { newRunId } from '@penstock/run';
import { answerCalls } from '@penstock/service';
import type { RunDocument, RunsRepository } from '@penstock/store';
import type { LoadPlan, RequestResult } from './gateway-client.ts';

export interface IdentityBench {
  readonly port: number;
  /** Of auth. */
  readonly bus: Bus;
  readonly runs: RunsRepository;
  readonly jwtSecret: string;
  foreignRun(tenant: string): RunDocument;
  load(plan: LoadPlan): Promise<RequestResult & { readonly seconds: number }>;
}

const ROUNDS = 5;
const ROUND_MS = 1_500;
const CONNECTIONS = 20;
const CALLS = 2_000;
const REVOCATIONS = 25;

export async function benchIdentity(bench: IdentityBench): Promise<string[]> {
  const { bus } = bench;
  const user = { id: 'bench-user', email: 'bench@example.com', tier: 'free', isAdmin: false };
  const auth = answerCalls(bus, 'auth', {
    token: () => ({ user, scopes: ['read'], tokenId: 'bench-token' }),
    'token.used': () => null,
    // What a reader of runs is known by as an approver.
    names: () => ({ names: ['bench'], by: 'bench' }),
    // On a machine so busy that the watch of revocations begins anew, each session is asked after meanwhile.
    session: () => ({ live: true, userId: user.id }),
    'access.of': () => ({ grants: [] }),
  } satisfies { [V in AuthVerb]?: () => AuthCalls[V]['answer'] });
  await bus.flush();
  try {
    return [
      await costOfTokens(bench, user.id),
      await foreignAndUnknown(bench, user.id),
      await delayOfRevocations(bench, user.id),
    ];
  } finally {
    auth.stop();
  }
}

function accessToken({ jwtSecret }: IdentityBench, sub: string, sid: string): Promise<string> {
  return signAccessToken(jwtSecret, {
    sub,
    sid,
    email: 'bench@example.com',
    tier: 'free',
    admin: false,
    at: Date.now(),
  });
}

async function costOfTokens(bench: IdentityBench, userId: string): Promise<string> {
  const plan = {
    kind: 'requests',
    port: bench.port,
    path: '/graphql',
    body: '{"query":"{ health }"}',
    connections: CONNECTIONS,
    durationMs: ROUND_MS,
  } as const;
  const callers = {
    none: undefined,
    jwt: await accessToken(bench, userId, 'bench-session'),
    personal: newPersonalToken(),
  };
  const rates: Record<keyof typeof callers, number[]> = { none: [], jwt: [], personal: [] };
  const costs: typeof rates = { none: [], jwt: [], personal: [] };
  // The first round warms up the server, and does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, token] of Object.entries(callers) as [keyof typeof callers, string | undefined][]) {
      const before = process.cpuUsage();
      const { perSecond, answered } = await bench.load({ ...plan, token });
      const { user, system } = process.cpuUsage(before);
      if (round === 0) continue;
      rates[name].push(perSecond);
      costs[name].push((user + system) / answered);
    }
  }
  const rate = (name: keyof typeof callers): string => `${Math.round(medianOf(rates[name]))}/s`;
  const percent = (ratio: number): string => `${((ratio - 1) * 100).toFixed(1)} %`;
  const more = (name: keyof typeof callers): string =>
    `${rate(name)} (${percent(medianOf(rates.none) / medianOf(rates[name]))} more a query, ${percent(medianOf(costs[name]) / medianOf(costs.none))} more processor time)`;
  return `GraphQL health without a token ${rate('none')} (${medianOf(costs.none).toFixed(1)} us of processor time each); with an access token ${more('jwt')}; with a personal token ${more('personal')}`;
}

async function foreignAndUnknown(bench: IdentityBench, userId: string): Promise<string> {
  const foreign = bench.foreignRun(tenantOfUser('somebody-else'));
  await bench.runs.saveBatch([foreign]);
  const unknown = newRunId({ now: Date.now(), key: 'service/bench', random: randomBytes(8) });
  const token = await accessToken(bench, userId, 'bench-session');
  const times: Record<'foreign' | 'unknown', number[]> = { foreign: [], unknown: [] };
  for (let call = 0; call < CALLS; call++) {
    for (const [kind, id] of [
      ['foreign', foreign.state.id],
      ['unknown', unknown],
    ] as const) {
      const from = performance.now();
      const answer = await ask(bench.port, token, `{ run(id: "${id}") { id } }`);
      times[kind].push(performance.now() - from);
      if (answer !== '{"data":{"run":null}}') throw new Error(answer);
    }
  }
  return `run(id) of a foreign run ${medianOf(times.foreign).toFixed(3)} ms, of an unknown one ${medianOf(times.unknown).toFixed(3)} ms (medians of ${CALLS}, in turn)`;
}

async function delayOfRevocations(bench: IdentityBench, userId: string): Promise<string> {
  const delays: number[] = [];
  for (let count = 0; count < REVOCATIONS; count++) {
    const session = randomUUID();
    const token = await accessToken(bench, userId, session);
    if ((await ask(bench.port, token, '{ health }')).includes('errors')) throw new Error('a new token is refused');
    const from = performance.now();
    await putExpiring(
      bench.bus,
      buckets.revocations,
      revocationKeys.session(session),
      { before: Date.now() },
      REVOCATION_TTL_MS,
    );
    while (!(await ask(bench.port, token, '{ health }')).includes('UNAUTHENTICATED'));
    delays.push(performance.now() - from);
  }
  return `a revoked session is refused after ${medianOf(delays).toFixed(1)} ms (median of ${REVOCATIONS}), ${Math.max(...delays).toFixed(1)} ms at most, its writing included`;
}

async function ask(port: number, token: string, query: string): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return await (
    await fetch(`http://127.0.0.1:${port}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
  ).text();
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
