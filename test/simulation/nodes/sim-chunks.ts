/**
 * What keeps a stage's log at its runner, as a model of the real store of chunks: each chunk is sent until the broker has it, so
 * that some come twice and not all in their order; what it lacks when a stage has ended lies on disk with the result.
 */
import type { Chunk } from '@penstock/bus';
import type { Chunks } from '@penstock/runner/testing';
import type { SimBroker } from '../world/broker.ts';

const CHUNK_RETRY_MS = 200;

interface SimChunksParts {
  readonly runner: string;
  ask<T>(work: (broker: SimBroker) => T): Promise<T>;
  pause(milliseconds: number): Promise<void>;
}

export function simChunks({ runner, ask, pause }: SimChunksParts): Chunks {
  const open = (runId: string): SimOutgoing =>
    new SimOutgoing(async (chunk, isWanted) => {
      while (isWanted()) {
        const stored = await ask((broker) => broker.storeChunk(runId, runner, chunk)).catch(() => null);
        if (stored !== null) return;
        await pause(CHUNK_RETRY_MS);
      }
    });
  return {
    open,
    resend: async (runId, _runner, { inline }) => {
      const log = open(runId);
      for (const text of inline) log.append(fromDisk(text));
      await log.stored();
    },
    close: () => {},
  };
}

class SimOutgoing {
  readonly #send: (chunk: Chunk, isWanted: () => boolean) => Promise<void>;
  readonly #unacknowledged = new Set<Chunk>();
  #waiting: (() => void)[] = [];
  #dropped = false;

  constructor(send: (chunk: Chunk, isWanted: () => boolean) => Promise<void>) {
    this.#send = send;
  }

  append(given: Chunk): void {
    if (this.#dropped) return;
    // Its output is valid during the call only.
    const chunk = { ...given, output: Buffer.from(given.output) };
    this.#unacknowledged.add(chunk);
    void this.#send(chunk, () => !this.#dropped).then(() => {
      this.#unacknowledged.delete(chunk);
      if (this.#unacknowledged.size > 0 || this.#dropped) return;
      for (const resolve of this.#waiting.splice(0)) resolve();
    });
  }

  stored(): Promise<void> {
    if (this.#unacknowledged.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  keep(): ReturnType<ReturnType<Chunks['open']>['keep']> {
    if (this.#unacknowledged.size === 0) return undefined;
    const inline = [...this.#unacknowledged].map(onDisk);
    return { inline, files: [] };
  }

  drop(): void {
    this.#dropped = true;
    this.#unacknowledged.clear();
  }
}

function onDisk({ output, ...head }: Chunk): string {
  return JSON.stringify({ ...head, text: Buffer.from(output).toString('latin1') });
}

function fromDisk(line: string): Chunk {
  const { text, ...head } = JSON.parse(line) as Omit<Chunk, 'output'> & { readonly text: string };
  return { ...head, output: Buffer.from(text, 'latin1') };
}
