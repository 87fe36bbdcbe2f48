/** The command as a user has it: a real process in a temporary folder. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** The data folder of a server that runs on this machine is not the tests' business. */
const NO_DATA = 'no-data-here';
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Uint8Array;
}

export class RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandEnd>;
  stdout = '';
  stderr = '';
  #waiters: (() => void)[] = [];

  constructor(args: readonly string[], { cwd, env, input }: CommandOptions) {
    this.child = spawn(process.execPath, [MAIN, ...args], {
      cwd,
      env: { ...cleanEnv(), XDG_DATA_HOME: join(cwd, NO_DATA), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.child.stdin?.on('error', () => {});
    this.child.stdin?.end(input ?? '');
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take('stdout', text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#take('stderr', text));
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
        this.#wake();
      });
    });
  }

  /** Resolves when the output holds the text; rejects when the command ends without it. */
  async until(stream: 'stdout' | 'stderr', text: string): Promise<void> {
    while (!this[stream].includes(text)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`ended without ${JSON.stringify(text)}: ${this.stdout}\n${this.stderr}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  #take(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}

export function start(args: readonly string[], options: CommandOptions): RunningCommand {
  const command = new RunningCommand(args, options);
  onTestFinished(() => {
    if (command.child.exitCode === null && command.child.signalCode === null) command.child.kill('SIGKILL');
  });
  return command;
}

export async function penstock(args: readonly string[], options: CommandOptions): Promise<CommandEnd> {
  return await start(args, options).ended;
}

/** A folder with these files, removed after the test. */
export function folder(files: Readonly<Record<string, string>> = {}): string {
  const path = mkdtempSync(join(tmpdir(), 'penstock-cli-test-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

/** A pipeline file around these stages, each line indented as it stands. */
export function pipeline(stages: string): Record<string, string> {
  return { '.pipeline.yaml': `pipeline: {name: test}\nstages:\n${stages.replace(/^\n+/, '')}\n` };
}

export interface JsonEvent {
  readonly type: string;
  readonly stage?: string;
  readonly [field: string]: unknown;
}

/** Without the line that names the run. */
export function eventsOf(text: string): JsonEvent[] {
  return jsonLines(text).filter(({ type }) => type !== 'run');
}

export function jsonLines(text: string): JsonEvent[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JsonEvent);
}

/** `stage_started build` and the like, without the log. */
export function outlineOf(events: readonly JsonEvent[]): string[] {
  return events
    .filter((event) => event.type !== 'stage_log')
    .map((event) => [event.type, event.stage ?? event['status']].join(' '));
}

export function linesOf(events: readonly JsonEvent[], stage?: string): string[] {
  return events
    .filter((event) => event.type === 'stage_log' && (stage === undefined || event.stage === stage))
    .map((event) => String(event['line']));
}

/** Processes that have this text in their environment, zombies not counted. */
export function processesWith(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark) &&
          !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
        );
      } catch {
        return false;
      }
    });
}

/** Resolves when the condition holds; what is looked at is the kernel's and tells nobody when it changes. */
export async function eventually(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function cleanEnv(): Record<string, string | undefined> {
  const env: Record<string, string | undefined> = { ...process.env };
  for (const name of Object.keys(env)) {
    if (/^(SERVICE_|PENSTOCK_|FORCE_COLOR|NO_COLOR|NODE_OPTIONS|VITEST)/.test(name)) delete env[name];
  }
  return env;
}
