/**
 * Scripts that complete the command in a shell, made whole from the descriptions of all commands: a key pressed in a shell
 * starts nothing and asks no server.
 */
import { COMMON_OPTIONS } from './arguments.ts';
import type { CommandSpec, OptionSpec } from './command.ts';

export interface Completable {
  readonly name: string;
  readonly summary: string;
  readonly spec: CommandSpec;
}

interface Option {
  readonly long: string;
  readonly short: string | undefined;
  readonly text: string;
  /** What follows: nothing, a file or folder, or a value that nobody can guess. */
  readonly takes: 'nothing' | 'file' | 'value';
}

/** Longer explanations belong into the help. */
const TEXT_CHARS_MAX = 72;

export const SHELLS: Readonly<Record<string, (commands: readonly Completable[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Words that may stand after the name: `ls`, `pause` and `resume` of `ls | pause <ID> | resume <ID>`. */
export function actionsOf({ usage }: CommandSpec): string[] {
  const inner = /^<([a-z|-]+)>$/u.exec(usage)?.[1] ?? usage;
  if (!inner.includes('|')) return [];
  const words = inner.split('|').map((part) => part.trim().split(' ', 1)[0] ?? '');
  return words.every((word) => /^[a-z][a-z-]*$/u.test(word)) ? words : [];
}

function optionsOf(spec: CommandSpec): Option[] {
  return Object.entries<OptionSpec>({ ...spec.options, ...COMMON_OPTIONS }).map(([name, option]) => ({
    long: `--${name}`,
    short: option.short === undefined ? undefined : `-${option.short}`,
    text: shortText(option.text),
    takes: option.type === 'boolean' ? 'nothing' : /^(FILE|DIR|FOLDER)$/u.test(option.value ?? '') ? 'file' : 'value',
  }));
}

function takesFile({ usage }: CommandSpec): boolean {
  return /\[(file|folder)\]|<(file|folder)>/u.test(usage);
}

/** Names of one word; those of two are found below their group. */
function topOf(commands: readonly Completable[]): readonly Completable[] {
  return commands.filter(({ name }) => !name.includes(' '));
}

function groupedOf(commands: readonly Completable[]): readonly Completable[] {
  return commands.filter(({ name }) => name.includes(' '));
}

function bashScript(commands: readonly Completable[]): string {
  const patterns = (takes: Option['takes']): string =>
    commands
      .flatMap(({ name, spec }) =>
        optionsOf(spec)
          .filter((option) => option.takes === takes)
          .flatMap(({ long, short }) => [long, ...(short === undefined ? [] : [short])])
          .map((option) => shellQuoted(`${name} ${option}`)),
      )
      .join('|');
  const grouped = groupedOf(commands);
  return `# Completes penstock in bash: source <(penstock completion bash)
_penstock() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" command="\${COMP_WORDS[1]}"
  local actions="" options="" files="" place=2
  COMPREPLY=()
  compopt +o default 2>/dev/null
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${shellQuoted(
      topOf(commands)
        .map(({ name }) => name)
        .join(' '),
    )} -- "$current"))
    return
  fi
  if ((COMP_CWORD > 2)); then
    case "$command \${COMP_WORDS[2]}" in
      ${grouped.map(({ name }) => shellQuoted(name)).join('|')})
        command="$command \${COMP_WORDS[2]}"
        place=3
        ;;
    esac
  fi
  case "$command $previous" in
    ${patterns('value')}) return ;;
    ${patterns('file')})
      compopt -o default 2>/dev/null
      return
      ;;
  esac
  case "$command" in
${commands
  .map(
    ({ name, spec }) =>
      `    ${shellQuoted(name)}) actions=${shellQuoted(actionsOf(spec).join(' '))} files=${takesFile(spec) ? 1 : "''"} options=${shellQuoted(
        optionsOf(spec)
          .map(({ long }) => long)
          .join(' '),
      )} ;;`,
  )
  .join('\n')}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif ((COMP_CWORD == place)) && [[ -n $actions ]]; then
    COMPREPLY=($(compgen -W "$actions" -- "$current"))
  elif [[ -n $files ]]; then
    compopt -o default 2>/dev/null
  fi
}
complete -o default -F _penstock penstock
`;
}

function zshScript(commands: readonly Completable[]): string {
  const top = topOf(commands).map(({ name, summary }) => shellQuoted(`${name}:${summary.replaceAll(':', '\\:')}`));
  return `#compdef penstock
# Completes penstock in zsh: a file _penstock in a folder of $fpath, or: source <(penstock completion zsh)
_penstock() {
  local command=$words[2]
  if ((CURRENT == 2)); then
    local -a names=(
      ${top.join('\n      ')}
    )
    _describe command names
    return
  fi
  if ((CURRENT > 3)); then
    case "$words[2] $words[3]" in
      ${groupedOf(commands)
        .map(({ name }) => shellQuoted(name))
        .join('|')})
        command="$words[2] $words[3]"
        shift words
        ((CURRENT -= 1))
        ;;
    esac
  fi
  shift words
  ((CURRENT -= 1))
  case $command in
${commands
  .map(
    ({ name, spec }) => `    ${shellQuoted(name)})
      _arguments ${[...optionsOf(spec).map(zshOption), ...zshPlaces(spec)].join(' \\\n        ')}
      ;;`,
  )
  .join('\n')}
  esac
}
if [[ $funcstack[1] == _penstock ]]; then _penstock "$@"; else compdef _penstock penstock; fi
`;
}

function zshOption({ long, short, text, takes }: Option): string {
  const value = takes === 'nothing' ? '' : takes === 'file' ? ':file:_files' : ':value: ';
  const described = `[${text.replaceAll(/[[\]:\\]/gu, '\\$&')}]${value}`;
  return short === undefined ? shellQuoted(`*${long}${described}`) : `'*'{${short},${long}}${shellQuoted(described)}`;
}

function zshPlaces(spec: CommandSpec): string[] {
  const actions = actionsOf(spec);
  return [
    ...(actions.length === 0 ? [] : [shellQuoted(`1:action:(${actions.join(' ')})`)]),
    takesFile(spec) ? "'*:file:_files'" : "'*: : '",
  ];
}

function fishScript(commands: readonly Completable[]): string {
  const lines = commands.flatMap(({ name, summary, spec }) => {
    const [first = '', second] = name.split(' ');
    const at = `__penstock_at ${shellQuoted(name)}`;
    const own =
      second === undefined
        ? `complete -c penstock -n __fish_use_subcommand -a ${fishQuoted(first)} -d ${fishQuoted(summary)}`
        : `complete -c penstock -n ${fishQuoted(`__penstock_second ${first}`)} -a ${fishQuoted(second)} -d ${fishQuoted(summary)}`;
    const actions = actionsOf(spec);
    const isGroup = commands.some((other) => other.name.startsWith(`${name} `));
    return [
      own,
      ...(actions.length === 0 || isGroup
        ? []
        : [`complete -c penstock -n ${fishQuoted(`__penstock_second ${name}`)} -a ${fishQuoted(actions.join(' '))}`]),
      ...(takesFile(spec) ? [`complete -c penstock -n ${fishQuoted(at)} -F`] : []),
      ...optionsOf(spec).map(
        ({ long, short, text, takes }) =>
          `complete -c penstock -n ${fishQuoted(at)} -l ${long.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}${FISH_TAKES[takes]} -d ${fishQuoted(text)}`,
      ),
    ];
  });
  return `# Completes penstock in fish: penstock completion fish > ~/.config/fish/completions/penstock.fish
function __penstock_at --argument-names command
    set -l words (commandline -opc)
    set -l name "$words[2]"
    if contains -- "$words[2] $words[3]" ${groupedOf(commands)
      .map(({ name }) => fishQuoted(name))
      .join(' ')}
        set name "$words[2] $words[3]"
    end
    test "$name" = "$command"
end
function __penstock_second --argument-names command
    set -l words (commandline -opc)
    test (count $words) -eq 2; and test "$words[2]" = "$command"
end
complete -c penstock -f
${lines.join('\n')}
`;
}

const FISH_TAKES: Readonly<Record<Option['takes'], string>> = { nothing: '', file: ' -r -F', value: ' -x' };

/** The first sentence, or as much of it as fits. */
function shortText(text: string): string {
  const sentence = /^.*?(?=[.;:](?: |$)|$)/su.exec(text)?.[0] ?? text;
  if (sentence.length <= TEXT_CHARS_MAX) return sentence;
  return `${sentence.slice(0, sentence.lastIndexOf(' ', TEXT_CHARS_MAX))} …`;
}

/** For bash and zsh. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/gu, '\\$&')}'`;
}
