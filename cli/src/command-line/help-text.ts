/** Help texts, made from the same descriptions that arguments are read by. */
import { COMMON_OPTIONS } from './arguments.ts';
import type { CommandSpec, OptionSpec } from './command.ts';

const WIDTH = 96;

export function helpOf(spec: CommandSpec): string {
  const options = Object.entries<OptionSpec>({ ...spec.options, ...COMMON_OPTIONS });
  const sections = [
    `${usageOf(spec)}\n`,
    `${wrap(spec.about, '')}\n`,
    section(
      'Options',
      options.map(([name, option]) => [optionUsage(name, option), option.text]),
    ),
    section('Environment', spec.environment ?? []),
    section('Examples', spec.examples),
    section(
      'Exit codes',
      spec.exitCodes.map(([code, meaning]) => [String(code), meaning]),
    ),
  ];
  return sections.filter((part) => part !== '').join('\n');
}

/** Broken between two of its actions where it is too long for a line. */
function usageOf({ name, usage }: CommandSpec): string {
  const head = `Usage: penstock ${name} `;
  const lines: string[] = [];
  for (const action of usage.split(' | ')) {
    const last = lines.at(-1);
    if (last === undefined || head.length + last.length + ' | '.length + action.length > WIDTH) lines.push(action);
    else lines[lines.length - 1] = `${last} | ${action}`;
  }
  return head + lines.join(` |\n${' '.repeat(head.length)}`);
}

export function overview(version: string, commands: readonly (readonly [name: string, summary: string])[]): string {
  return [
    `Penstock ${version}: a CI/CD pipeline engine that never loses a run.\n`,
    'Usage: penstock <command> [options]\n',
    section('Commands', commands),
    section('First steps', [
      ['penstock run', 'run the pipeline file of this folder here and now, without a server'],
      ['penstock serve', 'start a server on this machine; it prints its address and its key'],
      ['penstock trigger', 'send the pipeline file to that server and follow its logs'],
      ['penstock login', 'log in to a server, there as yourself and not with its key'],
      ['penstock help run', 'everything about one command'],
    ]),
    wrap(
      'A pipeline file is .pipeline.yaml, .pipeline.yml or .pipeline/pipeline.yaml; docs/pipeline.md describes it.',
      '',
    ),
    '',
  ].join('\n');
}

/** What there is below a name such as `extension`. */
export function groupOverview(group: string, commands: readonly (readonly [name: string, summary: string])[]): string {
  return [section('Commands', commands), wrap(`'penstock help ${group} NAME' explains one of them.`, ''), ''].join(
    '\n',
  );
}

function optionUsage(name: string, option: OptionSpec): string {
  const value = option.type === 'string' ? ` ${option.value ?? 'VALUE'}` : '';
  return `${option.short === undefined ? '    ' : `-${option.short}, `}--${name}${value}`;
}

function section(title: string, rows: readonly (readonly [left: string, right: string])[]): string {
  if (rows.length === 0) return '';
  const width = Math.min(36, Math.max(...rows.map(([left]) => left.length)));
  const lines = rows.map(([left, right]) => {
    const indent = ' '.repeat(width + 4);
    const text = wrap(right, indent);
    return left.length > width ? `  ${left}\n${indent}${text}` : `  ${left.padEnd(width)}  ${text}`;
  });
  return `${title}:\n${lines.join('\n')}\n`;
}

/** Breaks at spaces; every line but the first begins with the indent. */
function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${indent}`);
}
