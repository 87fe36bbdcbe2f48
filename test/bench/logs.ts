/**
 * Log lines a second from one stage to one client of its log stream, through everything: pipe, runner, broker, gateway, HTTP;
 * beside what the stage's own command writes into a pipe that is only read.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startServer, trigger } from '../support/server.ts';

const LINES = 300_000;
const LINE = 'x'.repeat(100);
const SCRIPT = `yes ${LINE} | head -n ${LINES}`;

export async function benchLogs(): Promise<string[]> {
  const server = await startServer({ env: { SERVICE_LOG_BYTES_MAX: String(256 * 1024 * 1024) } });
  try {
    const yaml = ['pipeline:', '  name: lines', 'stages:', '  print:', `    run: '${SCRIPT}'`].join('\n');
    const start = performance.now();
    const runId = await trigger(server, yaml);
    const response = await fetch(`${server.url}/pipeline/${runId}/logs`, {
      headers: { authorization: `Bearer ${server.apiKey}` },
    });
    const lines = await countLines(response);
    const rate = lines / ((performance.now() - start) / 1000);
    const floor = await pipeFloor();
    return [
      `${lines} lines of ${LINE.length} bytes to one client: ${rate.toFixed(0)} lines/s (target 150,000); the same command into a pipe: ${floor.toFixed(0)} lines/s`,
    ];
  } finally {
    await server.stop();
  }
}

async function countLines(response: Response): Promise<number> {
  let count = 0;
  let rest = '';
  const decoder = new TextDecoder();
  if (response.body === null) return 0;
  for await (const bytes of response.body) {
    const text = rest + decoder.decode(bytes, { stream: true });
    const end = text.lastIndexOf('\n') + 1;
    for (let at = text.indexOf('event: stage_log'); at >= 0 && at < end; at = text.indexOf('event: stage_log', at + 16))
      count += 1;
    rest = text.slice(end);
  }
  return count;
}

async function pipeFloor(): Promise<number> {
  const start = performance.now();
  const child = spawn('sh', ['-c', SCRIPT], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.resume();
  await once(child, 'close');
  return LINES / ((performance.now() - start) / 1000);
}
