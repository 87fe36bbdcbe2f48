/** What the bus costs over the bare client, side by side on the same broker: the repetitions are interleaved. */
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { connectBus, createLogWriter, ensureStreams, openLog, subjects } from '@penstock/bus';
import { startTestBroker } from '@penstock/testkit';

const REPETITIONS = 5;
const APPENDS = 1_000;
const REQUESTS = 4_000;
const CHUNKS = 2_000;
/** A commit of one small run's events. */
const COMMIT = Buffer.alloc(300, 'x');
/** About 14 lines. */
const CHUNK = Buffer.alloc(2_048, 'x');
const MIB = 1024 * 1024;

export async function benchBus(): Promise<string[]> {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  const answering = await connectBus({ servers: broker.url, name: 'bench-answering' });
  const raw = await connect({ servers: broker.url });
  const rawAnswering = await connect({ servers: broker.url });
  try {
    await ensureStreams(bus, { partitions: 2, journalBytesMax: 256 * MIB, logsBytesMax: 256 * MIB });
    const store = jetstream(raw);
    const log = openLog(bus, 0);
    let sequence = 0;
    let commit = 0;
    const append = async (): Promise<void> => {
      const result = await log.append(COMMIT, { commitId: `c${commit++}`, expectedSequence: sequence });
      if (!result.ok) throw new Error('deposed by nobody');
      sequence = result.sequence;
    };
    const publish = async (): Promise<unknown> => store.publish(subjects.journal(1), COMMIT);

    answering.respond('bench.bus', (body) => body);
    rawAnswering.subscribe('bench.raw', {
      callback: (_, message) => void message.respond(JSON.stringify(message.json())),
    });
    await Promise.all([answering.flush(), rawAnswering.flush()]);
    const body = { runIds: ['0191d3a4-8b7e-7cc0-8000-000000000001'], newest: 20 };
    const request = (): Promise<unknown> => bus.request('bench.bus', body, { timeoutMs: 5_000 });
    const rawRequest = async (): Promise<unknown> =>
      (await raw.request('bench.raw', JSON.stringify(body), { timeout: 5_000 })).json();

    const writer = createLogWriter(bus);
    const chunk = async (): Promise<void> => {
      await writer.room();
      await writer.publish(subjects.log('bench', 'r1'), CHUNK);
    };
    const rawChunk = (): Promise<unknown> => store.publish(subjects.log('bench', 'r2'), CHUNK);

    return [
      await beside(
        'appends to a partition log, one in flight',
        append,
        'acknowledged publishes of the client',
        publish,
        APPENDS,
        1,
      ),
      await beside('requests, one in flight', request, "the client's", rawRequest, REQUESTS, 1),
      await beside('requests, 100 in flight', request, "the client's", rawRequest, REQUESTS, 100),
      await beside('log chunks of 2 KiB stored, 256 in flight', chunk, "the client's publishes", rawChunk, CHUNKS, 256),
    ];
  } finally {
    await Promise.all([bus.close(), answering.close(), raw.close(), rawAnswering.close()]);
    await broker.stop();
  }
}

async function beside(
  ours: string,
  our: () => Promise<unknown>,
  theirs: string,
  their: () => Promise<unknown>,
  count: number,
  inFlight: number,
): Promise<string> {
  const rates: [number[], number[]] = [[], []];
  // The first round warms up and is not counted.
  for (let repetition = 0; repetition <= REPETITIONS; repetition += 1) {
    const pair = [await rate(our, count, inFlight), await rate(their, count, inFlight)] as const;
    if (repetition === 0) continue;
    rates[0].push(pair[0]);
    rates[1].push(pair[1]);
  }
  const [mine, limit] = [median(rates[0]), median(rates[1])];
  return `${ours}: ${mine.toFixed(0)}/s beside ${theirs}: ${limit.toFixed(0)}/s (${((100 * mine) / limit).toFixed(0)} %)`;
}

async function rate(once: () => Promise<unknown>, count: number, inFlight: number): Promise<number> {
  const start = performance.now();
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun++ < count) await once();
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (1_000 * count) / (performance.now() - start);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
}
