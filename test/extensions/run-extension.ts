/** Runs one of the extensions that come along, as a stage would, without a pipeline around it. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packFolder, unpackPackage } from '@penstock/extension';
import { bindingsOf, diagnosticLine, parsePipeline, renderTemplate, type ExpressionScope } from '@penstock/pipeline';
import { onTestFinished } from 'vitest';

const EXTENSIONS = fileURLToPath(new URL('../../extensions', import.meta.url));

export interface ExtensionEnd {
  readonly code: number | null;
  readonly output: string;
  readonly outputs: Readonly<Record<string, string>>;
}

/** Two runs may not have anything in common but the package. */
export async function runExtension(
  id: string,
  inputs: Readonly<Record<string, string>>,
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<ExtensionEnd> {
  const scratch = temporary();
  const { bytes, hash, manifest, manifestText } = await packFolder(join(EXTENSIONS, id));
  // As a runner has it: read-only, and at a place that the extension cannot know.
  const folder = join(scratch, 'package');
  await unpackPackage(
    (async function* all() {
      yield bytes;
    })(),
    folder,
    { hash },
  );
  const uses = `${id}@${manifest.version}`;
  const parsed = parsePipeline(JSON.stringify({ pipeline: { name: 'p' }, stages: { stage: { uses, with: inputs } } }), {
    extensions: [{ uses, id, version: manifest.version, hash, manifest: manifestText }],
  });
  if (!parsed.ok) throw new Error(parsed.diagnostics.map(diagnosticLine).join('\n'));
  const [stage] = parsed.definition.stages;
  if (stage === undefined) throw new Error('there is no stage');
  const scope: ExpressionScope = {
    stages: {},
    matrix: {},
    env: {},
    run: { id: 'r' },
    pipeline: { name: 'p' },
    webhook: {},
    inputs: {},
    success: true,
    failure: false,
  };
  const env = Object.fromEntries(
    Object.entries(stage.env).map(([name, template]) => [name, renderTemplate(template, scope)]),
  );
  const outputFile = join(scratch, 'output');
  writeFileSync(outputFile, '');
  const end = { code: 0 as number | null, output: '' };
  for (const command of stage.commands) {
    const child = spawn(stage.shell ?? 'sh', ['-c', command.script], {
      cwd: options.cwd,
      env: {
        PATH: process.env['PATH'],
        HOME: scratch,
        ...env,
        ...options.env,
        ...bindingsOf(command, { ...scope, env }),
        SERVICE_OUTPUT: outputFile,
        SERVICE_EXTENSION_PATH: folder,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (end.output += text));
    end.code = await new Promise((resolve) => child.once('close', resolve));
    if (end.code !== 0) break;
  }
  const lines = readFileSync(outputFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return {
    ...end,
    outputs: Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    ),
  };
}

/** A folder that is gone after the test, with these files. */
export function folderWith(files: Readonly<Record<string, string | Buffer>> = {}): string {
  const folder = temporary();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-extension-'));
  onTestFinished(() => {
    // The package in it is read-only.
    execFileSync('chmod', ['-R', 'u+w', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
