/** Extensions without a server: made, checked, run and packed; and what a local run does with `uses`. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventsOf, folder as plainFolder, linesOf, penstock, type CommandEnd } from './command.ts';
import { fakeServer } from './fake-server.ts';

/** A server that nothing listens for: what needs one fails at once. */
const NOWHERE = 'http://127.0.0.1:1';

/** With a cache in it, whose packages are read-only: they can be removed once they are writable again. */
function folder(files: Readonly<Record<string, string>> = {}): string {
  const path = plainFolder(files);
  onTestFinished(() => {
    execFileSync('chmod', ['-R', 'u+w', path]);
  });
  return path;
}

async function run(cwd: string, ...args: string[]): Promise<CommandEnd> {
  return await penstock(args, { cwd, env: { XDG_CACHE_HOME: join(cwd, '.cache'), SERVICE_URL: NOWHERE } });
}

function write(cwd: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
}

const MANIFEST =
  'id: utility/show\nversion: 1.0.0\ndescription: Shows its input\ninputs: {text: {required: true}, n: {type: number, default: 1}}\noutputs: [shown]\nrun: |\n  printf "%s\\n" "$INPUT_TEXT"\n  echo "shown=${{ inputs.text }}" >> "$SERVICE_OUTPUT"\n  ls "$SERVICE_EXTENSION_PATH"\n';

describe('penstock extension', () => {
  it('init begins one that can be checked, run and packed', async () => {
    const cwd = folder();
    expect(await run(cwd, 'extension', 'init', 'utility/hello')).toMatchObject({
      code: 0,
      stdout: 'hello/extension.yaml\nhello/greet.sh\nhello/README.md\nhello/CHANGELOG.md\n',
    });
    expect(await run(cwd, 'extension', 'check', 'hello')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('utility/hello 0.1.0: Greets somebody') as unknown,
    });
    const tested = await run(cwd, 'extension', 'test', 'hello', 'who=$(touch hacked)', 'language=de');
    expect([tested.code, tested.stderr], tested.stdout).toEqual([0, 'output greeting=Guten Tag, $(touch hacked)\n']);
    const packed = await run(cwd, 'extension', 'pack', 'hello', '-o', 'a.tgz');
    expect((await run(cwd, 'extension', 'pack', 'hello', '-o', 'b.tgz')).stdout).toBe(packed.stdout);
    expect(readFileSync(join(cwd, 'a.tgz')).equals(readFileSync(join(cwd, 'b.tgz')))).toBe(true);
    expect((await run(cwd, 'extension', 'check', 'a.tgz')).stdout).toContain(packed.stdout.trim());
    expect(await run(cwd, 'extension', 'init', 'utility/hello')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('hello is not empty') as unknown,
    });
  });

  it.each([
    [['extension', 'init', 'utlity/hello'], "'utlity' is not a category of extensions (did you mean 'utility'?)"],
    [['extension', 'init', 'utility/Hello'], "'Hello' cannot be the name of an extension"],
    [['extension', 'chek'], "there is no command 'extension chek', did you mean 'extension check'?"],
    [['extension', 'check', 'nowhere'], 'there is no nowhere here: name the folder of the extension'],
    [['extension', 'check'], '. has no extension.yaml: it is no extension'],
    [['extension', 'test', 'x', 'y'], "'y' is no input: write it as name=value"],
    [['extension', 'yank', 'utility/hello'], "'utility/hello' names no version: utility/hello@1.0.0"],
    [['extension', 'sign'], 'name the private key: --key FILE'],
    [['extension', 'publish', '--privat'], "'extension publish' has no option --privat; did you mean --private?"],
  ])('%j is refused in one line', async (args, message) => {
    const { code, stdout, stderr } = await run(folder(), ...args);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
  });

  it('check points at what is wrong in the manifest and in the files', async () => {
    const cwd = folder();
    write(cwd, {
      'bad/extension.yaml': MANIFEST.replace('type: number', 'type: nubmer'),
      'links/extension.yaml': MANIFEST,
    });
    symlinkSync('/etc/passwd', join(cwd, 'links', 'x'));
    expect(await run(cwd, 'extension', 'check', 'bad')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /'type' must be 'string'[^]*bad\/extension\.yaml:4:44[^]*did you mean 'number'/,
      ) as unknown,
    });
    expect(await run(cwd, 'extension', 'check', 'links')).toMatchObject({
      code: 1,
      stderr: "penstock: links: the package holds a link: 'x'\n",
    });
  });

  it('test checks the inputs, and tells a failure by its code', async () => {
    const cwd = folder();
    write(cwd, {
      'show/extension.yaml': MANIFEST,
      'fails/extension.yaml': 'id: utility/fails\nversion: 1.0.0\ndescription: d\nrun: exit 3\n',
    });
    expect(await run(cwd, 'extension', 'test', 'show', 'n=many')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/needs the input 'text'[^]*must be a number, not 'many'/) as unknown,
    });
    expect(await run(join(cwd, 'show'), 'extension', 'test', 'text=a = b')).toMatchObject({
      code: 0,
      stderr: 'output shown=a = b\n',
    });
    expect((await run(cwd, 'extension', 'test', 'fails')).code).toBe(1);
  });

  it('keygen writes a key that only its owner can read, and never over another', async () => {
    const cwd = folder();
    const made = await run(cwd, 'extension', 'keygen');
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^[A-Za-z0-9+/]{43}=\n$/)]);
    expect(statSync(join(cwd, 'extension.key')).mode & 0o777).toBe(0o600);
    expect(await run(cwd, 'extension', 'keygen')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('extension.key is there already') as unknown,
    });
    write(cwd, { 'show/extension.yaml': MANIFEST, 'no.key': 'top secret' });
    expect((await run(cwd, 'extension', 'sign', '--key', 'extension.key', 'show')).stdout).toMatch(
      /^[A-Za-z0-9+/]{86}==\n$/,
    );
    const refused = await run(cwd, 'extension', 'sign', '--key', 'no.key', 'show');
    expect([refused.code, refused.stderr]).toEqual([2, expect.not.stringContaining('top secret')]);
  });

  it('shows its commands, and the help of each', async () => {
    const cwd = folder();
    expect((await run(cwd, 'extension')).stdout).toContain('extension publish  send it to the registry');
    for (const args of [
      ['help', 'extension', 'pack'],
      ['extension', 'pack', '--help'],
    ])
      expect((await run(cwd, ...args)).stdout).toContain('Usage: penstock extension pack');
  });
});

describe('penstock extension test', () => {
  it('prints the outputs that an extension of stages declares, and not those of its stages', async () => {
    const cwd = folder();
    write(cwd, {
      'two-step/extension.yaml': [
        'id: test/two-step',
        'version: 1.0.0',
        'description: Two steps',
        'inputs: {who: {required: true}}',
        "outputs: {whole-text: {value: '${{ inputs.who }}: ${{ stages.first.outputs.said }} ${{ stages[''mat (n=2)''].outputs.n }}'}, run: {value: '${{ run.id }}'}}",
        'stages:',
        '  first: {run: \'echo "said=$INPUT_WHO!" >> "$SERVICE_OUTPUT"\', outputs: [said]}',
        '  mat: {run: \'echo "n=${{ matrix.n }}" >> "$SERVICE_OUTPUT"\', outputs: [n], matrix: {n: [1, 2]}}',
        '',
      ].join('\n'),
    });
    chmodSync(join(cwd, 'two-step'), 0o755);
    const { code, stderr } = await run(cwd, 'extension', 'test', 'two-step', 'who=$me');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^output whole-text=\$me: \$me! 2\noutput run=[0-9a-f-]{36}\n$/),
    ]);
  });
});

describe('uses without a server', () => {
  /** A lock and a cache as `penstock lock` leaves them: `extension test` fills the cache. */
  async function locked(): Promise<string> {
    const cwd = folder({
      '.pipeline.yaml':
        'pipeline: {name: p}\nstages:\n  show:\n    uses: utility/show@^1\n    with: {text: from the lock}\n',
    });
    write(cwd, { 'show/extension.yaml': MANIFEST });
    chmodSync(join(cwd, 'show'), 0o755);
    await run(cwd, 'extension', 'test', 'show', 'text=x');
    const hash = (await run(cwd, 'extension', 'pack', 'show')).stdout.trim();
    write(cwd, {
      '.pipeline.lock': JSON.stringify({
        lockVersion: 1,
        extensions: [{ uses: 'utility/show@^1', id: 'utility/show', version: '1.0.0', hash }],
      }),
    });
    return cwd;
  }

  it('runs what is locked and in the cache, and validates it', async () => {
    const cwd = await locked();
    const { code, stdout, stderr } = await run(cwd, 'run', '--json');
    expect([code, stderr]).toEqual([0, '']);
    expect(linesOf(eventsOf(stdout))).toEqual(['from the lock', 'extension.yaml']);
    expect(await run(cwd, 'validate')).toMatchObject({ code: 0, stderr: '' });
    write(cwd, { '.pipeline.yaml': 'pipeline: {name: p}\nstages:\n  show: {uses: utility/show@^1, with: {txt: x}}\n' });
    expect(await run(cwd, 'validate')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/needs the input 'text'[^]*has no input 'txt'[^]*did you mean 'text'/) as unknown,
    });
  });

  it('says what a lock is good for where a server would have to be asked', async () => {
    const cwd = await locked();
    write(cwd, { '.pipeline.yaml': 'pipeline: {name: p}\nstages:\n  a: {uses: utility/other@^1}\n' });
    const { code, stderr } = await run(cwd, 'run');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/cannot reach the server[^]*utility\/other@\^1[^]*penstock lock/),
    ]);
    expect(await run(cwd, 'validate')).toMatchObject({
      code: 0,
      stderr: 'penstock: not checked, for they are in no lock or were never fetched: utility/other@^1.\n',
    });
  });

  it.each([
    ['{', 'it is not JSON'],
    ['{"lockVersion": 9, "extensions": []}', "its 'lockVersion' is not 1"],
  ])('refuses a lock that is none: %s', async (text, message) => {
    const cwd = await locked();
    write(cwd, { '.pipeline.lock': text });
    expect(await run(cwd, 'run')).toMatchObject({
      code: 2,
      stderr: `penstock: .pipeline.lock cannot be used: ${message}${message.startsWith('its') ? ': it was written by another version of Penstock' : ''}; write it anew with 'penstock lock --update'\n`,
    });
  });

  it('a lock whose package is not the one of its hash is of no use to a local run', async () => {
    const cwd = await locked();
    write(cwd, {
      '.pipeline.lock': JSON.stringify({
        lockVersion: 1,
        extensions: [
          {
            uses: 'utility/show@^1',
            id: 'utility/show',
            version: '2.0.0',
            hash: (await run(cwd, 'extension', 'pack', 'show')).stdout.trim(),
          },
        ],
      }),
    });
    expect(await run(cwd, 'run')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "was resolved to 'utility/show@2.0.0', and its manifest is of 'utility/show@1.0.0'",
      ) as unknown,
    });
  });
});

describe('a server that cannot resolve all of a file', () => {
  it('is reported at those places only, and of the others what is wrong with them', async () => {
    const { url } = await fakeServer({
      graphql: ({ variables }) => {
        const uses = variables['uses'] as string[];
        const unresolved = uses
          .filter((each) => each !== 'utility/show@^1')
          .flatMap((each) =>
            ['^1', '^2'].map((range) => ({
              uses: each,
              message: `It uses 'build/none@${range}', which is not there.`,
              candidates: [],
            })),
          );
        if (unresolved.length > 0)
          return {
            body: { data: null, errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT', unresolved } }] },
          };
        return {
          body: {
            data: {
              resolveExtensions: uses.map((each) => ({
                uses: each,
                id: 'utility/show',
                version: '1.0.0',
                hash: 'a'.repeat(64),
                manifest: MANIFEST,
              })),
            },
          },
        };
      },
    });
    const file =
      'pipeline: {name: p}\nstages:\n  a: {uses: utility/show@^1, with: {text: x}}\n  b: {uses: utility/show@^1, with: {txt: x, text: y}}\n  c: {uses: utility/broken@^1}\n';
    const cwd = folder({ '.pipeline.yaml': file });
    const { code, stdout, stderr } = await penstock(['run'], {
      cwd,
      env: { XDG_CACHE_HOME: join(cwd, '.cache'), SERVICE_URL: url },
    });
    expect([code, stdout]).toEqual([2, '']);
    expect([...stderr.matchAll(/^error: (.*)$/gm)].map(([, message]) => message)).toEqual([
      "extension 'utility/show' has no input 'txt'",
      "It uses 'build/none@^1', which is not there. It uses 'build/none@^2', which is not there.",
      '2 problems in .pipeline.yaml',
    ]);
  });
});
