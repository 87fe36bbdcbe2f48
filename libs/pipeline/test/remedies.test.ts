/** What is said to people who bring the words of another engine. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parsePipeline, type Diagnostic } from '../src/index.ts';

const REFUSED = join(import.meta.dirname, 'fixtures/refused');

const diagnosticsOf = (text: string): readonly Diagnostic[] => {
  const result = parsePipeline(text);
  return result.ok ? [] : result.diagnostics;
};
const remedyOf = (text: string): string | undefined => diagnosticsOf(text)[0]?.suggestion;
const inStage = (line: string): string => `pipeline: {name: p}\nstages:\n  a:\n    run: x\n    ${line}\n`;
const atTheTop = (line: string): string => `${line}\npipeline: {name: p}\nstages: {a: {run: x}}\n`;

describe('a key of another engine', () => {
  it.each([
    ['continue_on_error: true', "did you mean 'allow_failure'?"],
    ['continue-on-error: true', "did you mean 'allow_failure'?"],
    ['continueOnError: true', "did you mean 'allow_failure'?"],
    ['failure: ignore', "did you mean 'allow_failure'?"],
    ['timeout_minutes: 5', "did you mean 'timeout'?"],
    ['timeout-minutes: 5', "did you mean 'timeout'?"],
    ['timeoutInMinutes: 5', "did you mean 'timeout'?"],
    ['dependsOn: b', "did you mean 'after'?"],
    ['depends_on: b', "did you mean 'after'?"],
    ['workingDirectory: b', "did you mean 'workdir'?"],
    ['runs-on: linux', "did you mean 'runs_on'?"],
    ['RUN: b', "did you mean 'run'?"],
    ['pool: linux', "did you mean 'runs_on'?"],
    ['settings: {a: b}', "did you mean 'with'?"],
    ['artifact_paths: a', "did you mean 'artifacts'?"],
    ['displayName: b', "a stage is named by its key under 'stages'"],
    ['block: deploy', "a stage with 'approval' and no 'run' waits for a person"],
    ['manual: true', "a stage with 'approval' and no 'run' waits for a person"],
    ['fail-fast: true', "it stands in 'matrix'"],
    ['schedule: "0 0 * * *"', 'it stands at the top of the file'],
    ['cron: "0 0 * * *"', "it stands at the top of the file, as 'schedule'"],
    ['cancel-in-progress: true', "it stands in 'concurrency' at the top of the file"],
  ])('is refused in a stage with our key for it: %s', (line, remedy) => {
    expect(remedyOf(inStage(line))).toBe(remedy);
  });

  it.each([
    ['cache: x', 'it stands in a stage'],
    ['retry: 2', 'it stands in a stage'],
    ['timeout-minutes: 5', "it stands in a stage, as 'timeout'"],
    ['run-name: x', "did you mean 'pipeline.name'?"],
    ['schedules: x', "did you mean 'schedule'?"],
    ['pr: [main]', "it stands under 'on', as 'pull_request'"],
    ['version: 2.1', 'a file is one pipeline; leave it out'],
    ['cancel_in_progress: true', "it stands in 'concurrency'"],
    ['test: {script: x}', "stages stand under 'stages'"],
  ])('is refused at the top with its place: %s', (line, remedy) => {
    expect(remedyOf(atTheTop(line))).toBe(remedy);
  });

  it('is refused in a service, and in resources, with what to do', () => {
    expect(remedyOf(inStage("services: {db: {image: 'postgres:18', ports: [5432]}}"))).toBe(
      'a stage reaches a service by its name, at any port; leave it out',
    );
    expect(remedyOf(inStage('resources: {disk: 4Gi}'))).toBe("there are 'cpu' and 'memory'");
  });

  it('that nobody knows is refused with those that there are', () => {
    expect(remedyOf(inStage('frobnicate: x'))).toMatch(/^there are 'run', 'uses', .* and 'generates'$/);
    expect(remedyOf(atTheTop(`${'frobnicate'.repeat(20)}: x`))).toMatch(/^there are 'engine', .* and 'stages'$/);
  });

  it('always has a remedy', () => {
    const without = readdirSync(REFUSED).flatMap((name) =>
      diagnosticsOf(readFileSync(join(REFUSED, name), 'utf8'))
        .filter(({ message, suggestion }) => message.startsWith('unknown key') && suggestion === undefined)
        .map(({ message }) => `${name}: ${message}`),
    );
    expect(without).toEqual([]);
  });
});

describe('what is missing', () => {
  it('is named with what to write', () => {
    expect(diagnosticsOf('engine: x\n').map(({ message, suggestion }) => `${message}: ${suggestion}`)).toEqual([
      "'pipeline.name' is missing: write pipeline: {name: …} at the top of the file",
      "'stages' is missing: it is a map of names to stages, each with a 'run'",
    ]);
    expect(remedyOf('pipeline: {name: p}\nstages:\n  a: {env: {A: b}}\n')).toBe(
      "a stage has 'run', 'uses' or 'approval'",
    );
  });

  it('steps of other engines among the commands are told to be stages', () => {
    const steps = 'pipeline: {name: p}\nstages:\n  a:\n    run:\n      - name: one\n        run: x\n      - y\n';
    expect(remedyOf(steps)).toMatch(/^an entry is a command itself: a step .* is a stage$/);
  });
});
