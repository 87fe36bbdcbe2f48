import { describe, expect, it } from 'vitest';
import { diagnosticLine, parseManifest, usesOf } from '../src/index.ts';
import { SUITE } from './suite-extension.ts';

describe('parseManifest', () => {
  const lines = (text: string): string[] => {
    const result = parseManifest(text);
    return result.ok ? [] : result.diagnostics.map(diagnosticLine);
  };
  const HEAD = 'id: build/x\nversion: 1.0.0\ndescription: d\n';

  it('tells what the extension is', () => {
    expect(parseManifest(SUITE.manifest)).toEqual({
      ok: true,
      manifest: {
        id: 'test/suite',
        version: '1.2.3',
        description: 'For a test.',
        form: 'stages',
        uses: [],
        inputs: [
          { name: 'target', variable: 'INPUT_TARGET', type: 'string', description: '', required: true, options: [] },
          {
            name: 'mode',
            variable: 'INPUT_MODE',
            type: 'choice',
            description: '',
            required: false,
            options: ['fast', 'full'],
            default: 'fast',
          },
        ],
        outputs: [
          { name: 'version', description: 'What was built' },
          { name: 'label', description: '' },
        ],
      },
    });
  });

  it.each([
    ['', ['line 1, column 1: the file is empty']],
    ['[]', ["line 1, column 1: a manifest is a map with 'id', 'version' and 'description', not a list"]],
    [
      'run: x\n',
      [
        "line 1, column 1: 'id' is missing",
        "line 1, column 1: 'version' is missing",
        "line 1, column 1: 'description' is missing",
      ],
    ],
    [HEAD, ["line 1, column 1: the manifest has neither 'run' nor 'stages'"]],
    [
      `${HEAD}run: x\nstages: {a: {run: x}}\n`,
      ["line 5, column 1: 'run' and 'stages' cannot stand together (make the command a stage)"],
    ],
    [`${HEAD}run: x\nconcurrency: {group: a}\n`, ["line 5, column 1: unknown key 'concurrency' in the manifest"]],
    [
      'id: biuld/x\nversion: v1.0\ndescription: ""\nrun: x\n',
      [
        "line 1, column 5: 'biuld' is not a category of extensions (did you mean 'build'?)",
        "line 2, column 10: 'v1.0' is not a version as of semver.org: MAJOR.MINOR.PATCH (did you mean '1.0.0'?)",
        "line 3, column 14: 'description' must not be empty (one line that says what the extension does)",
      ],
    ],
    [
      'id: build/../x\nversion: 01.0.0\ndescription: d\nrun: x\n',
      [
        "line 1, column 5: 'build/../x' is not the id of an extension: <category>/<name> (the categories are build, test, deploy, notify, security, utility)",
        "line 2, column 10: '01.0.0' is not a version as of semver.org: MAJOR.MINOR.PATCH (did you mean '1.0.0'?)",
      ],
    ],
    [
      `${HEAD}run: echo \${{ inputs.nam }}\ninputs: {name: }\n`,
      ["line 4, column 15: there is no 'inputs.nam' (did you mean 'name'?)"],
    ],
    [
      `${HEAD}run: echo \${{ stages.a.status }} \${{ webhook.ref }}\n`,
      [
        "line 4, column 15: 'stages' cannot be used in this extension (take the value as an input)",
        "line 4, column 38: 'webhook' is known in the server's template only",
      ],
    ],
    [
      `${HEAD}run: eval "\${{ inputs.name }}"\ninputs: {name: }\n`,
      ['line 4, column 12: this expression could change what the shell executes'],
    ],
    [
      `${HEAD}stages: {a: {run: x}}\noutputs: [v]\n`,
      [
        "line 5, column 10: an extension with 'stages' says where each output comes from (outputs: {version: {value: '${{ stages.build.outputs.version }}'}})",
      ],
    ],
    [
      `${HEAD}stages: {a: {run: x, outputs: [v]}}\noutputs: {w: {value: '\${{ stages.a.outputs.w }}'}}\n`,
      ["line 5, column 27: stage 'a' has no output 'w' (did you mean 'v'?)"],
    ],
    [
      `${HEAD}stages: {a: {run: x, after: b}}\n`,
      ["line 4, column 29: stage 'a' comes after 'b', which is not a stage"],
    ],
    [`${HEAD}stages: {a: {run: x, runs_on: 'a b'}}\n`, ["line 4, column 31: 'a b' cannot be a label"]],
    [
      `${HEAD}run: x\ninputs:\n  a: {type: int}\n  b: {type: choice}\n  c: {type: number, default: x}\n  d: {required: true, default: x}\n  e-f: {}\n  e_f: {}\n  g: {type: choice, options: [x, x]}\n  h: {options: [x], default: y}\n  9: {}\n`,
      [
        "line 6, column 13: 'type' must be 'string', 'number', 'boolean' or 'choice', not 'int'",
        "line 7, column 7: the input 'b' is a choice without 'options' (options: [one, other])",
        "line 8, column 30: 'default' must be a number, not 'x'",
        "line 9, column 32: the input 'd' is required, so that its default is never used (remove 'required' or 'default')",
        "line 11, column 3: the inputs 'e-f' and 'e_f' would share the variable 'INPUT_E_F'",
        "line 12, column 34: the option 'x' stands twice",
        "line 13, column 30: 'default' must be one of 'x', not 'y'",
        "line 14, column 3: '9' cannot be the name of an input: letters, digits, '_' and '-', no digit first",
      ],
    ],
    [
      `# ${'x'.repeat(65_536)}\n${HEAD}run: x\n`,
      ['line 1, column 1: the manifest is larger than 64 KiB (put scripts into files of the package)'],
    ],
  ])('points at what is wrong: %#', (text, expected) => {
    expect(lines(text)).toEqual(expected.map((line) => expect.stringContaining(line) as unknown));
  });
});

describe('usesOf', () => {
  it('finds each use once, in pipelines and in manifests, and never throws', () => {
    expect(
      usesOf(
        'stages:\n  a: {uses: build/node@^1}\n  b: {uses: build/node@^1}\n  c: {uses: test/junit@1.0.0}\n  d: {uses: bad}\n  e: [uses]\n',
      ),
    ).toEqual(['build/node@^1', 'test/junit@1.0.0']);
    for (const text of ['', '[', 'stages: 3', '['.repeat(5_000), '\0', 'a: *b']) expect(usesOf(text)).toEqual([]);
  });
});
