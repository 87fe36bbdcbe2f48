/** Extensions as a text's `uses` have been resolved to them. */
import type { ResolvedExtension } from '../src/index.ts';

export const HASH = 'a'.repeat(64);

export function extension(uses: string, body: string, head = ''): ResolvedExtension {
  const [id = '', range = ''] = uses.split('@');
  const version = /^\d+\.\d+\.\d+$/.test(range) ? range : '1.2.3';
  return {
    uses,
    id,
    version,
    hash: HASH,
    manifest: `id: ${id}\nversion: ${version}\ndescription: For a test.\n${head}${body}`,
  };
}

/** One that is made of stages. */
export const SUITE = extension(
  'test/suite@^1',
  `inputs:
  target: {required: true}
  mode: {type: choice, options: [fast, full], default: fast}
outputs:
  version: {description: What was built, value: '\${{ stages.compile.outputs.version }}'}
  label: {value: '\${{ inputs.target }}-\${{ stages.compile.outputs.version }}'}
env: {MODE: '\${{ inputs.mode }}'}
stages:
  compile:
    run: ./build "\${{ inputs.target }}"
    outputs: [version]
  unit:
    run: test "\${{ stages.compile.outputs.version }}"
    after: compile
    when: stages.compile.outputs.version != ''
  lint:
    run: lint
    after: compile
    timeout: 5m
  clean:
    run: clean
    after: [unit, lint]
    when: always()
`,
);
