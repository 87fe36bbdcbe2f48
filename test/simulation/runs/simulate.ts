/** One seed: live its world, and say what was found. */
import { Violation } from '../world/errors.ts';
import type { Mutation } from '../world/mutations.ts';
import type { Profile } from '../world/profile.ts';
import { mutationProfiles } from './mutation-profiles.ts';
import { Simulation } from './simulation.ts';

export interface Outcome {
  readonly seed: number;
  readonly steps: number;
  /** Milliseconds of the world's own time. */
  readonly virtualMs: number;
  readonly marks: ReadonlyMap<string, number>;
  readonly failure?:
    | { readonly rule: string; readonly message: string; readonly stack: string | undefined }
    | undefined;
  /** What happened, where it was asked for. */
  readonly lines: readonly string[];
  readonly profile: Profile;
}

export async function simulate(
  seed: number,
  options: {
    readonly mutation?: Mutation | undefined;
    readonly traced?: boolean | undefined;
    readonly profile?: Partial<Profile> | undefined;
  } = {},
): Promise<Outcome> {
  const simulation = new Simulation(seed, {
    ...options,
    profile: { ...(options.mutation === undefined ? {} : mutationProfiles[options.mutation]), ...options.profile },
  });
  let failure: Outcome['failure'];
  try {
    await simulation.run();
  } catch (error) {
    const thrown = error instanceof Error ? error : new Error(String(error));
    failure = {
      rule: thrown instanceof Violation ? thrown.rule : thrown.name,
      message: thrown.message,
      stack: thrown.stack,
    };
  }
  const { world } = simulation;
  return {
    seed,
    steps: simulation.steps,
    virtualMs: world.now,
    marks: world.marks.counts,
    failure,
    lines: world.lines,
    profile: world.profile,
  };
}

/** A failing seed as text: what broke, its last steps, and how to see it again. */
export function report(outcome: Outcome, lines = 60): string {
  const { failure, seed, steps, virtualMs } = outcome;
  if (failure === undefined)
    return `seed ${seed}: ${steps} steps, ${(virtualMs / 1000).toFixed(1)} s of its own time, nothing found`;
  return [
    ...outcome.lines.slice(-lines),
    `seed ${seed} breaks ${failure.message}`,
    `after ${steps} steps, ${(virtualMs / 1000).toFixed(1)} s of its own time${failure.rule === 'progress' || failure.stack === undefined ? '' : `\n${failure.stack}`}`,
    `again: npm run simulate -- --seed ${seed} --trace`,
  ].join('\n');
}
