/** Where a stage asks to run, as a definition holds it. */
import { describe, expect, it } from 'vitest';
import { diagnosticLine, parseManifest, parsePipeline } from '../src/index.ts';
import type { PipelineDefinition, ResolvedExtension, StageDefinition } from '../src/index.ts';

type Options = NonNullable<Parameters<typeof parsePipeline>[1]>;

function parsed(stages: string, options: Options = {}): PipelineDefinition {
  const result = parsePipeline(`pipeline: {name: p}\nstages:\n${stages}`, options);
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition;
}

function refused(stages: string, options: Options = {}): string[] {
  const result = parsePipeline(`pipeline: {name: p}\nstages:\n${stages}`, options);
  return result.ok ? [] : result.diagnostics.map(diagnosticLine);
}

const placesOf = (definition: PipelineDefinition): StageDefinition['place'][] =>
  definition.stages.map(({ place }) => place);

const extension = (uses: string, body: string): ResolvedExtension => ({
  uses,
  id: uses.split('@')[0] ?? '',
  version: '1.2.3',
  hash: 'a'.repeat(64),
  manifest: `id: ${uses.split('@')[0]}\nversion: 1.2.3\ndescription: For a test.\n${body}`,
});

describe('the place of a stage', () => {
  it('is nothing where the stage asks for nothing', () => {
    expect(parsed('  a: {run: x}\n').stages[0]).not.toHaveProperty('place');
  });

  it('is in the units of those who run it', () => {
    const definition = parsed(`  a:
    run: x
    image: {name: 'node:26', entrypoint: tini, user: node, pull: always}
    services:
      db: {image: postgres:17, env: {PORT: 5432}, ready: pg_isready, ready_timeout: 2m}
    resources: {cpu: 1500m, memory: 1.5Gi}
    network: none
`);
    expect(placesOf(definition)).toEqual([
      {
        image: { name: 'node:26', entrypoint: ['tini'], user: 'node', pull: 'always' },
        services: [
          {
            name: 'db',
            image: { name: 'postgres:17' },
            env: { PORT: ['5432'] },
            ready: 'pg_isready',
            readyTimeoutMs: 120_000,
          },
        ],
        resources: { cpu: 1.5, memoryBytes: 1_610_612_736 },
        network: 'none',
      },
    ]);
  });

  it('has the image that the values of its matrix choose', () => {
    const definition = parsed(
      '  a:\n    run: x\n    image: node:${{ matrix.node }}\n    services: {db: {image: "pg:${{ matrix.db }}"}}\n    matrix: {node: [24, 26], db: [17]}\n',
    );
    expect(placesOf(definition).map((place) => [place?.image?.name, place?.services?.[0]?.image.name])).toEqual([
      ['node:24', 'pg:17'],
      ['node:26', 'pg:17'],
    ]);
  });

  it('is one object for all combinations that share it', () => {
    const [first, second] = placesOf(
      parsed('  a: {run: x, image: node, services: {db: {image: pg, env: {A: b}}}, matrix: {n: [1, 2]}}\n'),
    );
    expect(first).toBe(second);
  });

  it.each([
    'node',
    'node:26',
    'library/node',
    'localhost:5000/team/app',
    'registry.example/a/b_c/d-e:1.2-rc.1',
    `ghcr.io/x/y@sha256:${'0a'.repeat(32)}`,
    `x:1@sha256:${'0a'.repeat(32)}`,
  ])('an image can be called %s', (name) => {
    expect(placesOf(parsed(`  a: {run: x, image: '${name}'}\n`))[0]?.image?.name).toBe(name);
  });

  it.each(['-v', 'a b', 'a:', 'a/', '/a', 'a//b', 'A', 'a@b', 'a:b:c', 'a;b', 'a\\nb', `a${'b'.repeat(600)}`])(
    'an image cannot be called %s',
    (name) => {
      expect(refused(`  a: {run: x, image: "${name}"}\n`)).toHaveLength(1);
    },
  );

  it('is refused at its key where it cannot be had', () => {
    const lacking: Options['lacking'] = new Map([
      ['image', { message: 'no containers', suggestion: 'install podman' }],
    ]);
    expect(refused('  a:\n    run: x\n    image: node\n  b: {run: y}\n', { lacking })).toEqual([
      'line 5, column 5: no containers (install podman)',
    ]);
    expect(
      refused('  a: {run: x, matrix: {n: [1, 2]}, image: node}\n  b: {run: y, network: none}\n', { lacking }),
    ).toHaveLength(1);
  });
});

describe('the place of an extension', () => {
  const lint = extension(
    'test/lint@^1',
    'run: lint\nimage: "lint:${{ inputs.version }}"\nresources: {memory: 1Gi}\ninputs: {version: {default: "3"}}\nservices: {db: {image: pg, env: {V: "${{ inputs.version }}"}}}\n',
  );
  const suite = extension('test/suite@^1', 'stages:\n  one: {run: x}\n  two: {run: y, image: own, network: none}\n');

  it('holds for its command, below what the stage says that uses it', () => {
    const [plain, other] = placesOf(
      parsed(
        '  a: {uses: test/lint@^1}\n  b: {uses: test/lint@^1, with: {version: "4"}, resources: {cpu: 1}, network: none}\n',
        { extensions: [lint] },
      ),
    );
    expect(plain).toEqual({
      image: { name: 'lint:3' },
      services: [{ name: 'db', image: { name: 'pg' }, env: { V: ['3'] } }],
      resources: { memoryBytes: 1_073_741_824 },
    });
    expect(other).toMatchObject({ image: { name: 'lint:4' }, resources: { cpu: 1 }, network: 'none' });
  });

  it('can be chosen by a matrix through an input, and by nothing that only the run knows', () => {
    const names = placesOf(
      parsed('  a: {uses: test/lint@^1, with: {version: "${{ matrix.v }}"}, matrix: {v: [1, 2]}}\n', {
        extensions: [lint],
      }),
    ).map((place) => place?.image?.name);
    expect(names).toEqual(['lint:1', 'lint:2']);
    expect(refused('  a: {uses: test/lint@^1, with: {version: "${{ run.id }}"}}\n', { extensions: [lint] })).toEqual([
      expect.stringContaining('known only while the run goes on'),
    ]);
  });

  it('made of stages is what each of them says, and for the others what the stage says that uses it', () => {
    const definition = parsed('  a: {uses: test/suite@^1, image: given}\n', { extensions: [suite] });
    expect(placesOf(definition)).toEqual([{ image: { name: 'given' } }, { image: { name: 'own' }, network: 'none' }]);
  });

  it('is refused where the stage stands that uses it', () => {
    const lacking: Options['lacking'] = new Map([['image', { message: 'no containers' }]]);
    expect(refused('  a: {uses: test/lint@^1}\n', { extensions: [lint], lacking })).toEqual([
      'line 3, column 3: no containers',
    ]);
  });

  it('belongs to a command; the stages of one that is made of stages have their own', () => {
    const result = parseManifest('id: test/x\nversion: 1.0.0\ndescription: d\nimage: node\nstages:\n  a: {run: x}\n');
    expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([
      "line 4, column 1: 'image' belongs to 'run'; each stage has its own",
    ]);
  });
});
