/**
 * Which runs are of pull requests, and what is done about them. It draws from a source of its own: worlds without pull
 * requests are as they would be without it.
 */
import type { CreateRequest } from '@penstock/bus';
import { Random } from '../../support/random.ts';
import type { World } from '../world/world.ts';

const NUMBERS = 2;
const COMMITS = 4;

export class PullRequestDraws {
  readonly #world: World;
  readonly #random: Random;
  #sequence = 0;

  constructor(world: World) {
    this.#world = world;
    this.#random = new Random(world.seed + 0x9e37);
  }

  /** Deliveries have their sequences in the order in which they were stored; their runs are created in any. */
  drawn(request: CreateRequest): CreateRequest {
    const random = this.#random;
    if (!random.chance(this.#world.profile.pulls)) return request;
    const number = 1 + random.int(NUMBERS);
    const fork = random.chance(0.5);
    const isElsewhere = random.chance(0.1);
    this.#sequence += 1;
    const pullRequest = { number, branch: 'main', fork, ...(isElsewhere ? {} : { sequence: this.#sequence }) };
    const ended = isElsewhere ? ({ pipelineName: 'elsewhere', status: 'CANCELLED' } as const) : request.ended;
    return {
      ...request,
      ...(ended === undefined ? {} : { ended, yaml: '' }),
      ...(fork && ended === undefined ? { held: 'approval' } : {}),
      ...(random.chance(0.2) ? { keepsSuperseded: true } : {}),
      origin: {
        kind: 'webhook',
        provider: 'git_host_a',
        repository: 'acme/demo',
        ref: `refs/pull/${number}/head`,
        commit: String(random.int(COMMITS)).repeat(40),
        defaultBranch: 'main',
        ...(fork && this.#world.profile.keeps > 0 ? { trusted: false } : {}),
        pullRequest,
      },
    };
  }

  /** How long after its delivery its run is created. */
  drawLateness({ origin }: CreateRequest): number {
    if (origin.pullRequest === undefined || !this.#random.chance(0.3)) return 0;
    return this.#random.between(0, this.#world.profile.illMs / 2);
  }

  /** When somebody approves it; undefined: nobody does. */
  drawApproval({ held }: CreateRequest): number | undefined {
    return held === undefined || !this.#random.chance(0.6) ? undefined : this.#random.exponential(3_000);
  }
}
