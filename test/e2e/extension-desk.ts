/** Who makes extensions and uses them: a folder with a cache of its own, and the files of a suite that is published from it. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const COMMAND = fileURLToPath(new URL('../../bootstrap/penstock.js', import.meta.url));

export interface CommandEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder of a user, with a cache of its own. */
export class Desk {
  readonly folder = mkdtempSync(join(tmpdir(), 'penstock-desk-'));
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      writeFileSync(join(this.folder, path), text);
    }
  }

  async penstock(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandEnd> {
    return await new Promise((resolve) => {
      const options = {
        cwd: this.folder,
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          XDG_CACHE_HOME: join(this.folder, '.cache'),
          ...this.#env,
          ...env,
        },
        maxBuffer: 1e7,
      };
      execFile(process.execPath, [COMMAND, ...args], options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr });
      });
    });
  }

  remove(): void {
    // Packages are unpacked read-only.
    execFile('chmod', ['-R', 'u+w', this.folder], () => rmSync(this.folder, { recursive: true, force: true }));
  }
}

/** Two runs differ in their times, and in how the lines of different stages interleave. */
export function comparable({ stdout }: CommandEnd): string[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .filter((line) => !line.startsWith('{"type":"run"'))
    .map((line) => JSON.stringify({ ...(JSON.parse(line) as object), timestamp: 'T' }))
    .toSorted();
}

const SUITE = `id: test/suite
version: 1.0.0
description: Builds for one target and checks it in two ways
inputs:
  target: {required: true}
outputs:
  version: {value: '\${{ stages.compile.outputs.version }}-\${{ inputs.target }}'}
stages:
  compile:
    run: sh "$SERVICE_EXTENSION_PATH/compile.sh"
    outputs: [version]
  greet:
    uses: utility/hello@^0.1
    with: {who: '\${{ stages.compile.outputs.version }}'}
    after: compile
  lint:
    run: exit 3
    after: compile
    allow_failure: true
  clean:
    run: echo "cleaned after \${{ stages.lint.status }}"
    after: [greet, lint]
    when: always()
`;

const PIPELINE = `pipeline: {name: suites}
stages:
  prepare: {run: 'echo prepared'}
  suite:
    uses: test/suite@1
    after: prepare
    with: {target: 'os-\${{ matrix.os }}'}
    matrix: {os: [linux, mac]}
  skipped:
    uses: test/suite@1
    after: prepare
    when: stages.prepare.status == 'FAILED'
    with: {target: never}
  publish:
    run: echo "\${{ stages['suite (os=linux)'].outputs.version }} \${{ stages['suite (os=mac)'].status }}"
    after: suite
`;

export async function publishSuite(desk: Desk): Promise<void> {
  desk.write({
    'suite/extension.yaml': SUITE,
    'suite/compile.sh': 'echo "compiling for $INPUT_TARGET"\necho "version=1.$INPUT_TARGET" >> "$SERVICE_OUTPUT"\n',
    '.pipeline.yaml': PIPELINE,
  });
  expect(await desk.penstock(['extension', 'init', 'utility/hello'])).toMatchObject({ code: 0 });
  for (const name of ['hello', 'suite'])
    expect(await desk.penstock(['extension', 'publish', name])).toMatchObject({ code: 0, stderr: '' });
}
