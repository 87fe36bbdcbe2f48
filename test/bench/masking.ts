/** What looking for secrets costs the output of a stage: processor time on top of what chunks of lines take, in the same run. */
import { randomBytes } from 'node:crypto';
import { Chunker, MaskingSink, secretsOf, type OutputSink } from '@penstock/executor';

const SECRETS = 50;
const PART_BYTES = 64 * 1024;
const BYTES = 300e6;
const ROUNDS = 3;
const TARGET_RATE = 200e6;

export async function benchMasking(): Promise<string[]> {
  const values = new Map(
    Array.from({ length: SECRETS }, (_, index) => [`S${index}`, randomBytes(24).toString('base64url')]),
  );
  const uses = [...values.keys()].map((name) => ({ variable: name, name, file: false }));
  const { mask } = await secretsOf(uses, values);
  const output = Buffer.from(
    Array.from(
      { length: 8_000 },
      (_, index) =>
        `2026-01-01T00:00:00 INFO worker-${index % 17} id=${randomBytes(6).toString('hex')} took ${index} ms\n`,
    ).join(''),
  );
  const newChunker = (): Chunker => new Chunker({ bytesMax: Infinity, emit: () => {} });
  const [plain, masked] = [[] as number[], [] as number[]];
  for (let round = 0; round < ROUNDS; round += 1) {
    plain.push(await secondsFor(newChunker(), output));
    masked.push(await secondsFor(new MaskingSink(newChunker(), mask), output));
  }
  const seconds = Math.min(...masked) - Math.min(...plain);
  const rate = BYTES / Math.max(seconds, Number.EPSILON);
  const share = (1 - 1 / (1 + TARGET_RATE / rate)) * 100;
  return [
    `${SECRETS} secrets: ${(rate / 1e6).toFixed(0)} MB/s of processor time; of a log of ${TARGET_RATE / 1e6} MB/s that is ${share.toFixed(1)} % of its throughput (target 15 % at most)`,
  ];
}

async function secondsFor(sink: OutputSink, output: Buffer): Promise<number> {
  const before = process.cpuUsage();
  for (let written = 0; written < BYTES; written += output.length)
    for (let at = 0; at < output.length; at += PART_BYTES)
      await sink.write('stdout', output.subarray(at, at + PART_BYTES));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
