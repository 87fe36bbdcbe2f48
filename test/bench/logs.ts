/**
 * Log lines a second from one stage to one client of its log stream, through everything: pipe, runner, broker, gateway, HTTP;
 * beside what the stage's own command writes into a pipe that is only read, and what the broker stores of the same bytes. What the
 * server takes for it in processor time and memory stands beside it, for a machine that has something else to do.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connectBus, createLogWriter, encodeChunk, ensureStreams, subjects } from '@penstock/bus';
import { startTestBroker } from '@penstock/testkit';
import { startServer, trigger } from '../support/server.ts';
import { memoryOf } from './process-memory.ts';
import { processorTimes } from './processor-times.ts';

const LINES = 1_000_000;
const LINE = 'x'.repeat(100);
const SCRIPT = `yes ${LINE} | head -n ${LINES}`;
const CHUNK_BYTES = 64 * 1024;
const MIB = 1024 * 1024;

export async function benchLogs(): Promise<string[]> {
  const server = await startServer({ env: { SERVICE_LOG_BYTES_MAX: String(512 * MIB) } });
  try {
    // What is done once in the life of a server is not part of the figure.
    await linesOf(await watch(server, await trigger(server, pipeline('true'))));
    const before = { cpu: processorTimes(server.pid).own, memory: memoryOf(server.pid, 'VmRSS') };
    const start = performance.now();
    const lines = await linesOf(await watch(server, await trigger(server, pipeline(SCRIPT))));
    const seconds = (performance.now() - start) / 1000;
    const cpu = (processorTimes(server.pid).own - before.cpu) / lines;
    const peak = memoryOf(server.pid, 'VmHWM');
    const stored = await brokerFloor();
    const piped = await pipeFloor();
    const rate = lines / seconds;
    return [
      `${lines} lines of ${LINE.length} bytes to one client: ${rate.toFixed(0)} lines/s (target 500,000); the same bytes into the broker: ${stored.toFixed(0)} lines/s (${((100 * rate) / stored).toFixed(0)} %), the same command into a pipe: ${piped.toFixed(0)} lines/s`,
      `  ${(cpu * 1000).toFixed(1)} us of the server's processor time a line; its memory ${before.memory.toFixed(0)} MB before, ${peak.toFixed(0)} MB at its peak (target 400 MB)`,
    ];
  } finally {
    await server.stop();
  }
}

function pipeline(script: string): string {
  return ['pipeline:', '  name: lines', 'stages:', '  print:', `    run: '${script}'`].join('\n');
}

async function watch(
  server: { readonly url: string; readonly apiKey: string },
  runId: string,
): Promise<IncomingMessage> {
  const request = get(`${server.url}/pipeline/${runId}/logs`, {
    headers: { authorization: `Bearer ${server.apiKey}` },
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

/** Only counted: what a client does with them is not the server's. */
async function linesOf(response: IncomingMessage): Promise<number> {
  const wanted = Buffer.from('\nevent: stage_log\n');
  let count = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of response as AsyncIterable<Buffer>) {
    const text = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let end = 0;
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, end)) {
      count += 1;
      end = at + wanted.length;
    }
    rest = text.subarray(Math.max(end, text.length - wanted.length + 1));
  }
  return count;
}

/** The same bytes in the largest chunks, as a runner stores them. */
async function brokerFloor(): Promise<number> {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  try {
    await ensureStreams(bus, { partitions: 1, journalBytesMax: 256 * MIB, logsBytesMax: 512 * MIB });
    const writer = createLogWriter(bus);
    const line = Buffer.from(`${LINE}\n`);
    const linesOfChunk = Math.floor(CHUNK_BYTES / line.length);
    const output = Buffer.alloc(linesOfChunk * line.length, line);
    const stored: Promise<unknown>[] = [];
    const start = performance.now();
    for (let offset = 0; offset < LINES * line.length; offset += output.length) {
      await writer.room();
      const parts = [['stdout', output.length] as const];
      const chunk = encodeChunk({ stage: 'print', attempt: 1, offset, at: Date.now(), parts, output });
      stored.push(writer.publish(subjects.log('bench', 'r1'), chunk));
    }
    await Promise.all(stored);
    return LINES / ((performance.now() - start) / 1000);
  } finally {
    await bus.close();
    await broker.stop();
  }
}

async function pipeFloor(): Promise<number> {
  const start = performance.now();
  const child = spawn('sh', ['-c', SCRIPT], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.resume();
  await once(child, 'close');
  return LINES / ((performance.now() - start) / 1000);
}
