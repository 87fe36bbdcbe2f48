/**
 * How many stages a runner executes at once where nobody has said it. Stages wait more than they compute: for the network, for a
 * disk, for other machines; those that compute share the processors, and end no later in all than if they had come one after the other.
 * What cannot be shared is memory, so that says how many there are.
 */
import { availableParallelism } from 'node:os';
import { machineMemory } from '@penstock/service';

/** What a stage with a compiler or a test runner takes. */
const STAGE_MEMORY_BYTES = 2 * 1024 ** 3;
/** The rest is the system's and the engine's. */
const MEMORY_SHARE = 0.9;
/** Of more, the processors have more turns between them than work. */
const SLOTS_A_PROCESSOR_MAX = 8;
const SLOTS_MIN = 2;

export interface SlotsRoom {
  readonly processors: number;
  readonly memoryBytes: number;
}

/** `stageMemoryBytes`: what a stage may take, where that is said. */
export function defaultSlots(stageMemoryBytes = STAGE_MEMORY_BYTES, room: SlotsRoom = roomHere()): number {
  const { processors, memoryBytes } = room;
  const fit = Math.floor((memoryBytes * MEMORY_SHARE) / stageMemoryBytes);
  return Math.max(SLOTS_MIN, processors, Math.min(processors * SLOTS_A_PROCESSOR_MAX, fit));
}

function roomHere(): SlotsRoom {
  return { processors: availableParallelism(), memoryBytes: machineMemory() };
}
