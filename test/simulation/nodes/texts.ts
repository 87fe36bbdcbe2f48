/** Where a scheduler of a world reads the texts of runs: some at once, others take a while, as on another thread. */
import { parsePipeline } from '@penstock/pipeline';
import type { Texts } from '@penstock/scheduler/testing';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';

/** Of texts that are not read at once: the share, and the longest that it takes. */
const LATE = 0.2;
const LATE_MS_MAX = 600;

export function simTexts(world: World, node: SimNode): Texts {
  const { definitions, random } = world;
  const later = (): Promise<void> => world.pause(node, random.between(0, LATE_MS_MAX));
  return {
    definitions,
    reader: {
      atOnce: ({ yaml, extensions }) => {
        if (!random.chance(LATE)) return definitions.find(yaml, extensions);
        world.mark('text read later');
        return undefined;
      },
      read: async ({ yaml, extensions }) => {
        await later();
        return definitions.find(yaml, extensions);
      },
      readAgain: async ({ yaml, extensions }) => {
        if (random.chance(LATE)) await later();
        return definitions.find(yaml, extensions);
      },
      readAdded: async (text, options) => {
        if (random.chance(LATE)) {
          world.mark('added stages read later');
          await later();
        }
        return parsePipeline(world.mutation === 'forgets-added-stages' ? '' : text, options);
      },
    },
  };
}
