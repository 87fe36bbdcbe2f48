/** Reads one stage of the file, before its matrix is expanded and its dependencies are found. */
import { checkBesideApproval, readApproval } from './approval.ts';
import { readArtifacts } from './artifacts.ts';
import { readCaches } from './cache.ts';
import type { StageDraft } from './drafts.ts';
import { readCommand } from './command.ts';
import type { CommandContext } from './command.ts';
import type { Command, RetryCause, RetryPolicy, Template } from '../model/definition.ts';
import { readEnvironment } from './environment.ts';
import type { Part } from '../expressions/expression.ts';
import {
  fieldOf,
  kindOf,
  mustBe,
  nameFault,
  oneOf,
  readBoolean,
  readDuration,
  readInteger,
  readKeys,
  readList,
  readMap,
  readName,
  readScalar,
  readWord,
  stepRemedy,
} from './fields.ts';
import type { Field } from './fields.ts';
import { readGenerates } from './generates.ts';
import { readIdTokens } from './id-tokens.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { readUse } from './extension-use.ts';
import type { StageReader } from './extension-use.ts';
import { numbersOf, readMatrix } from './matrix.ts';
import type { MatrixBudget } from './matrix.ts';
import { readPlace } from './place.ts';
import { readReports } from './reports.ts';
import { readQuarantine } from './quarantine.ts';
import { readSecrets } from './secrets.ts';
import { workdirFault } from './workdir.ts';
import { quoted } from '../text/printable.ts';
import { findExpressions, hasExpression, readExpression, readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import type { Span } from '../text/text-position.ts';
import { RETRY_KEYS, STAGE_KEYS } from './vocabulary.ts';
import type { MapEntry } from '../yaml/yaml-tree.ts';

const RETRY_CAUSES: readonly RetryCause[] = ['failure', 'timeout', 'lost'];
export const NO_RETRY: RetryPolicy = {
  max: 0,
  backoff: 'constant',
  delayMs: PIPELINE_LIMITS.retryDelayMsDefault,
  on: ['failure'],
};

/** What every client of the web takes out of an address: kept files of a stage with such a name could not be asked for. */
const DOT_SEGMENTS: ReadonlySet<string> = new Set(['.', '..']);
const NO_ADDRESS = "a stage that keeps files cannot be called '.' or '..': its name is a part of their addresses";

/** Reads the stage of one entry of `stages`. Problems are noted; what could not be read has its default. */
export function readStage(entry: MapEntry, reader: StageReader, budget: MatrixBudget): StageDraft {
  const { problems } = reader;
  const path = `stages.${entry.key.length > 80 ? `${entry.key.slice(0, 79)}…` : entry.key}`;
  const fault = nameFault(entry.key, PIPELINE_LIMITS.stageNameLengthMax);
  if (fault !== undefined) problems.add(entry.keySpan, path, `the name of a stage ${fault}`);
  const where = `in stage ${quoted(entry.key)}`;
  const keys = readStageKeys(entry, where, path, reader);
  const sites: ExpressionSite[] = [];
  const field = <Value>(
    key: (typeof STAGE_KEYS)[number],
    read: (field: Field) => Value | undefined,
  ): Value | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : read(fieldOf(found, path, problems));
  };
  const shell = field('shell', readShell);
  const when = field('when', (value) => readWhen(value, reader, sites));
  const matrix = field('matrix', (value) => readMatrix(value, entry.key, budget));
  const use = readUse(keys, path, matrix, reader, sites);
  return {
    name: entry.key,
    nameSpan: entry.keySpan,
    path,
    after:
      field('after', (value) => readList(value, 'a stage name or a list of them', PIPELINE_LIMITS.stagesMax)) ?? [],
    when: when?.parsed.expression,
    runsAfterFailure: when?.parsed.calls.some((call) => call.name !== 'success') ?? false,
    commands: field('run', (value) => readRun(value, { shell, numbers: numbersOf(matrix) }, reader, sites)) ?? [],
    env: field('env', (value) => readEnvironment(value, 'stage-env', reader, sites)) ?? new Map<string, Template>(),
    timeoutMs: field('timeout', (value) =>
      readDuration(value, PIPELINE_LIMITS.timeoutMsMin, PIPELINE_LIMITS.timeoutMsMax),
    ),
    retry: field('retry', readRetry),
    allowFailure: field('allow_failure', readBoolean) ?? false,
    workdir: field('workdir', (value) => readWorkdir(value, reader, sites)),
    shell,
    workspace: field('workspace', (value) => readWord(value, ['shared', 'fresh'])),
    runsOn: field('runs_on', (value) => readLabels(value, reader, sites)) ?? [],
    outputs: use?.extension?.body.outputs.map(({ name }) => name) ?? field('outputs', readOutputs) ?? [],
    secrets: field('secrets', readSecrets),
    secretsSpan: keys.get('secrets')?.keySpan,
    idTokens: field('id_token', readIdTokens),
    idTokensSpan: keys.get('id_token')?.keySpan,
    place: readPlace(keys, path, reader, sites),
    artifacts: field('artifacts', (value) => {
      if (DOT_SEGMENTS.has(entry.key) && !reader.extensions.standing) problems.add(entry.keySpan, path, NO_ADDRESS);
      return readArtifacts(value);
    }),
    reports: field('reports', readReports),
    quarantine: field('quarantine', readQuarantine),
    quarantineSpan: keys.get('quarantine')?.keySpan,
    caches: field('cache', (value) => readCaches(value, reader, sites)),
    approval: field('approval', (value) => readApproval(value, reader, sites)),
    approvalSpan: keys.get('approval')?.keySpan,
    generates: field('generates', readGenerates),
    generatesSpan: keys.get('generates')?.keySpan,
    use,
    matrix,
    isMatrix: keys.has('matrix'),
    sites,
  };
}

function readStageKeys(entry: MapEntry, where: string, path: string, reader: StageReader): Map<string, MapEntry> {
  const { value } = entry;
  const { problems } = reader;
  if (value.kind !== 'map') {
    problems.add(
      value,
      path,
      `stage ${quoted(entry.key)} must be a map with 'run', not ${kindOf(value)}`,
      value.kind === 'scalar' && value.text !== '' ? "write the command under it, as 'run: …'" : undefined,
    );
    return new Map();
  }
  const keys = readKeys(value, STAGE_KEYS, where, path, problems);
  checkBesideApproval(keys, entry.key, path, problems);
  const willRun = keys.has('run') || keys.has('uses') || keys.has('approval');
  if (!willRun)
    problems.add(
      entry.keySpan,
      path,
      `stage ${quoted(entry.key)} has no 'run'`,
      "a stage has 'run', 'uses' or 'approval'",
    );
  return keys;
}

export function readRun(
  field: Field,
  context: CommandContext,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Command[] | undefined {
  const nodes = readList(field, 'a command or a list of commands', PIPELINE_LIMITS.commandsMax, stepRemedy);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0) field.problems.add(field.node, field.path, "'run' has no commands");
  const commands: Command[] = [];
  for (const node of nodes) {
    const command = readCommand(node, field.path, context, reader, sites);
    if (command !== undefined) commands.push(command);
  }
  return commands;
}

/** A condition, with or without `${{ }}` around the whole of it. */
function readWhen(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): ExpressionSite | undefined {
  const node = readScalar(field, "a condition such as stages.build.status == 'SUCCESS'");
  if (node === undefined) return undefined;
  const { problems, path } = field;
  let source = node.text;
  if (hasExpression(node.text)) {
    const { pieces } = findExpressions(node.text);
    const [piece] = pieces;
    if (
      pieces.length !== 1 ||
      piece === undefined ||
      node.text.slice(0, piece.from).trim() !== '' ||
      node.text.slice(piece.to).trim() !== ''
    ) {
      problems.add(node, path, "a condition is one expression, with or without '${{ }}' around the whole of it");
      return undefined;
    }
    source = piece.source;
  }
  const spanOf = (part: Part): Span => {
    const at = reader.text.indexOf(source, node.start);
    return at === -1 || at + source.length > node.end ? node : { start: at + part.from, end: at + part.to };
  };
  const site = readExpression(source, 'when', path, spanOf, problems);
  if (site !== undefined) sites.push(site);
  return site;
}

function readRetry(field: Field): RetryPolicy | undefined {
  if (field.node.kind === 'scalar') {
    const max = readInteger(field, 0, PIPELINE_LIMITS.retryMax);
    return max === undefined ? undefined : { ...NO_RETRY, max };
  }
  const map = readMap(field, `a number from 0 to ${PIPELINE_LIMITS.retryMax} or a map with 'max'`);
  if (map === undefined) return undefined;
  const { problems, path } = field;
  const keys = readKeys(map, RETRY_KEYS, "in 'retry'", path, problems);
  const inner = (key: (typeof RETRY_KEYS)[number]): Field | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : fieldOf(found, path, problems);
  };
  const max = inner('max');
  if (max === undefined)
    problems.add(
      map,
      path,
      "'retry' has no 'max'",
      `'max' is the number of further attempts, up to ${PIPELINE_LIMITS.retryMax}`,
    );
  const [backoff, delay, on] = [inner('backoff'), inner('delay'), inner('on')];
  return {
    max: (max === undefined ? undefined : readInteger(max, 0, PIPELINE_LIMITS.retryMax)) ?? 0,
    backoff:
      (backoff === undefined ? undefined : readWord(backoff, ['constant', 'exponential'] as const)) ?? NO_RETRY.backoff,
    delayMs:
      (delay === undefined ? undefined : readDuration(delay, 0, PIPELINE_LIMITS.retryDelayMsMax)) ?? NO_RETRY.delayMs,
    on: (on === undefined ? undefined : readCauses(on)) ?? NO_RETRY.on,
  };
}

function readCauses(field: Field): RetryCause[] | undefined {
  const nodes = readList(field, `${oneOf(RETRY_CAUSES)}, or a list of them`, RETRY_CAUSES.length);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0) mustBe(field, `${oneOf(RETRY_CAUSES)}, or a list of them`);
  const causes: RetryCause[] = [];
  for (const node of nodes) {
    const cause = readWord({ ...field, node }, RETRY_CAUSES);
    if (cause !== undefined && !causes.includes(cause)) causes.push(cause);
  }
  return causes;
}

/** A program without arguments: what follows it is decided by the runner, which passes the script. */
export function readShell(field: Field): string | undefined {
  const shell = readName(field, 'the name or path of a program', PIPELINE_LIMITS.pathLengthMax);
  if (shell === undefined) return undefined;
  if (/^[A-Za-z0-9_./+][A-Za-z0-9_./+-]*$/.test(shell) && !shell.endsWith('/')) return shell;
  mustBe(
    field,
    "the name or path of a program, such as 'bash' or '/bin/bash'",
    shell.includes(' ') ? "options cannot be given here; begin the script with 'set -e' or the like" : undefined,
  );
  return undefined;
}

function readWorkdir(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): Template | undefined {
  const node = readScalar(field, 'a path within the working folder');
  if (node === undefined) return undefined;
  const { problems, path } = field;
  if (node.text === '' || node.text.length > PIPELINE_LIMITS.pathLengthMax || /\p{Cc}/u.test(node.text)) {
    problems.add(
      node,
      path,
      `'workdir' must be a path of 1 to ${PIPELINE_LIMITS.pathLengthMax} characters on one line`,
    );
    return undefined;
  }
  if (workdirFault(node.text) !== undefined) {
    problems.add(node, path, `'workdir' must stay within the working folder, which ${quoted(node.text)} leaves`);
    return undefined;
  }
  return readTemplate(node, 'workdir', path, reader, sites);
}

function readLabels(
  field: Field,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): { template: Template; span: Span }[] | undefined {
  const nodes = readList(field, 'a label or a list of labels', PIPELINE_LIMITS.labelsMax);
  return nodes?.map((node) => ({ template: readTemplate(node, 'runs-on', field.path, reader, sites), span: node }));
}

export function readOutputs(field: Field): string[] | undefined {
  const nodes = readList(field, 'a list of names', PIPELINE_LIMITS.outputsMax);
  if (nodes === undefined) return undefined;
  const names = new Set<string>();
  for (const node of nodes) {
    if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(node.text) || node.text.length > PIPELINE_LIMITS.outputNameLengthMax) {
      field.problems.add(
        node,
        field.path,
        `${quoted(node.text)} cannot be the name of an output: letters, digits, '_' and '-', no digit first`,
      );
    } else if (names.has(node.text))
      field.problems.add(node, field.path, `the output ${quoted(node.text)} is named twice`);
    names.add(node.text);
  }
  return [...names];
}
