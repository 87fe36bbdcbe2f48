import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bindingsOf, parsePipeline } from '../src/index.ts';
import type { Command, ExpressionScope } from '../src/index.ts';

/**
 * Scripts are run by real shells with hostile values in every place where an expression is allowed. `./show` prints its
 * arguments, one a line and in brackets, so that a value split into words, or read as code, is seen in the output.
 */
const SHOW = '#!/bin/sh\nfor argument in "$@"; do printf "[%s]\\n" "$argument"; done\n';
/** The shells of this machine, each once: `sh` is often another name for one of the others. */
const SHELLS = ['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh'].filter(
  (shell, index, all) => pathOf(shell) !== '' && all.findIndex((other) => pathOf(other) === pathOf(shell)) === index,
);

function pathOf(shell: string): string {
  return spawnSync('sh', ['-c', `readlink -f "$(command -v ${shell})"`], { encoding: 'utf8' }).stdout.trim();
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-shell-'));
  writeFileSync(join(folder, 'show'), SHOW, { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HOSTILE = [
  '$(touch canary)',
  '`touch canary`',
  '"; touch canary; "',
  "'; touch canary; '",
  '; touch canary',
  '&& touch canary',
  '| touch canary',
  '\n touch canary\n',
  '${IFS}touch${IFS}canary',
  '$(touch${IFS}canary)',
  'refs/heads/$(touch${IFS}canary)',
  'a;id>canary',
  '> canary',
  '< /etc/passwd',
  '* ?',
  '~',
  '\\',
  '\\"',
  "\\'",
  '$((1+1))',
  '$[1+1]',
  'a[$(touch canary)]',
  '#',
  ' # ',
  '!!',
  '%s%n',
  '-n',
  '--help',
  '{a,b}',
  'EOF',
  '\nEOF\ntouch canary\n',
  '}',
  '${',
  '"',
  "'",
  '`',
  '$',
  '',
  ' ',
  'a  b',
  'ünïcødé 🚀',
  '}}"$(touch canary)"',
  '\'"$(touch canary)"\'',
  '\ttab',
  ')',
  '(',
  ';;',
  'esac',
  ']]',
  '&',
  "$'\\x24(touch canary)'",
];

/** Each script with `@` for the expression, and what `show` must print for a value. */
const PLACES: readonly {
  readonly name: string;
  readonly script: string;
  readonly expected: (value: string) => string;
  readonly shells?: readonly string[];
}[] = [
  { name: 'a word of its own', script: './show @', expected: (value) => `[${value}]\n` },
  { name: 'within a word', script: './show a@b', expected: (value) => `[a${value}b]\n` },
  { name: 'two in a word', script: './show @@', expected: (value) => `[${value}${value}]\n` },
  { name: 'double quotes', script: './show "a @ b"', expected: (value) => `[a ${value} b]\n` },
  { name: 'double quotes beside letters', script: './show "a@b"', expected: (value) => `[a${value}b]\n` },
  { name: 'single quotes', script: "./show 'a @ b'", expected: (value) => `[a ${value} b]\n` },
  { name: 'mixed quotes', script: `./show '"@'"'@"`, expected: (value) => `["${value}'${value}]\n` },
  { name: 'assignment', script: 'x=@\n./show "$x"', expected: (value) => `[${value}]\n` },
  { name: 'quoted assignment', script: 'x="<@>"; ./show "$x"', expected: (value) => `[<${value}>]\n` },
  { name: 'export', script: 'export X=@; ./show "$X"', expected: (value) => `[${value}]\n` },
  { name: 'a loop', script: 'for x in a @; do ./show "$x"; done', expected: (value) => `[a]\n[${value}]\n` },
  { name: 'the subject of case', script: 'case @ in\n  *) ./show @ ;;\nesac', expected: (value) => `[${value}]\n` },
  {
    name: 'a pattern of case',
    script: 'case "$PROBE" in @) ./show same ;; *) ./show other ;; esac',
    expected: () => '[same]\n',
  },
  { name: 'a test', script: 'if [ x@ = "x$PROBE" ]; then ./show same; fi', expected: () => '[same]\n' },
  {
    name: 'a conditional',
    script: 'if [[ "$PROBE" == @ && ( -n "x@" ) ]]; then ./show same; fi',
    expected: () => '[same]\n',
    shells: ['bash', 'zsh', 'ksh'],
  },
  { name: 'a command substitution', script: './show "$(printf "%s." @)"', expected: (value) => `[${value}.]\n` },
  {
    name: 'nested substitutions',
    script: './show "$(printf "%s." "$(printf "%s." "@")")"',
    expected: (value) => `[${value}..]\n`,
  },
  { name: 'a subshell', script: '(./show @); { ./show "@"; }', expected: (value) => `[${value}]\n[${value}]\n` },
  { name: 'a pipe', script: 'printf "%s\\n" @ | cat', expected: (value) => `${value}\n` },
  { name: 'a here-document', script: 'cat <<EOF\n<@>\nEOF\n./show end', expected: (value) => `<${value}>\n[end]\n` },
  {
    name: 'an indented here-document',
    script: 'if true; then\n\tcat <<-END\n\t<@> "@" \'@\'\n\tEND\nfi',
    expected: (value) => `<${value}> "${value}" '${value}'\n`,
  },
  {
    name: 'after a quoted here-document',
    script: "cat <<'EOF'\n$(x) ` ' \"\nEOF\n./show @",
    expected: (value) => `$(x) \` ' "\n[${value}]\n`,
  },
  {
    name: 'after comments with quotes',
    script: './show a # it\'s @ "\n./show @ # @',
    expected: (value) => `[a]\n[${value}]\n`,
  },
  { name: 'after a continued line', script: './show a \\\n  @', expected: (value) => `[a]\n[${value}]\n` },
  { name: 'a function', script: 'f() { ./show "$1" @; }\nf @', expected: (value) => `[${value}]\n[${value}]\n` },
  {
    name: 'case in a substitution',
    script: './show "$(case x in x) printf %s @ ;; (y) echo no;; esac; printf .)"',
    expected: (value) => `[${value}.]\n`,
  },
  { name: 'after arithmetic', script: 'n=$(( (1 + 2) * 3 )); ./show "$n" @', expected: (value) => `[9]\n[${value}]\n` },
  {
    name: 'after an expansion',
    script: './show "${UNSET:-a b}${UNSET:-"c d"}" @',
    expected: (value) => `[a bc d]\n[${value}]\n`,
  },
  {
    name: 'a redirection beside it',
    script: './show @ 2>/dev/null >out; cat out',
    expected: (value) => `[${value}]\n`,
  },
  {
    name: 'an array',
    script: 'a=(x @ "y@")\n./show "${a[@]}"',
    expected: (value) => `[x]\n[${value}]\n[y${value}]\n`,
    shells: ['bash', 'zsh'],
  },
  {
    name: 'after an escaped ANSI quote',
    script: "./show $'it\\'s' @",
    expected: (value) => `[it's]\n[${value}]\n`,
    shells: ['bash', 'zsh'],
  },
  { name: 'a here-string', script: 'cat <<< @', expected: (value) => `${value}\n`, shells: ['bash', 'zsh', 'ksh'] },
  {
    name: 'a process substitution',
    script: 'cat <(printf "%s\\n" @)',
    expected: (value) => `${value}\n`,
    shells: ['bash', 'zsh', 'ksh'],
  },
];

function commandOf(script: string, shell: string): Command {
  // `@` alone stands for the expression; `[@]` is the shell's own.
  const text = script.replace(/(?<!\[)@/g, '${{ webhook.ref }}');
  const file = JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { run: text, shell } } });
  const result = parsePipeline(file, { template: true });
  if (!result.ok) throw new Error(`${script}: ${JSON.stringify(result.diagnostics)}`);
  const command = result.definition.stages[0]?.commands[0];
  if (command === undefined) throw new Error('no command');
  return command;
}

function scopeOf(value: string): ExpressionScope {
  return {
    stages: {},
    matrix: {},
    env: {},
    run: {},
    pipeline: {},
    webhook: { ref: value },
    inputs: {},
    success: true,
    failure: false,
  };
}

// Standard input is /dev/null: bash takes a socket there for a remote login, and would read ~/.bashrc.
function run(shell: string, command: Command, value: string): { output: string; error: string } {
  const env = { PATH: process.env['PATH'] ?? '', PROBE: value, ...bindingsOf(command, scopeOf(value)) };
  const result = spawnSync(shell, ['-c', command.script], {
    cwd: folder,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { output: result.stdout, error: result.stderr };
}

/** Command substitution drops line breaks at the end of an output; no place here ends one with the value. */
describe.each(SHELLS)('no value changes what %s executes', (shell) => {
  const places = PLACES.filter((place) => place.shells === undefined || place.shells.includes(shell));

  it.each(places)('$name: every hostile value arrives as it is, in as many words as before', ({ script, expected }) => {
    const command = commandOf(script, shell);
    // One process runs the script once for each value, so that the test costs one start of a shell and not fifty.
    const names = Object.keys(command.bindings);
    const file = join(folder, 'script');
    writeFileSync(file, command.script);
    const loop = HOSTILE.map(
      (_, index) =>
        `PROBE="$V${index}"; export PROBE; ${names.map((name) => `${name}="$V${index}"; export ${name};`).join(' ')} printf '%s\\036' "$(. ./script 2>&1; printf .)"`,
    );
    const env = {
      PATH: process.env['PATH'] ?? '',
      ...Object.fromEntries(HOSTILE.map((value, index) => [`V${index}`, value])),
    };
    const result = spawnSync(shell, ['-c', loop.join('\n')], {
      cwd: folder,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const outputs = result.stdout
      .split('\u001e')
      .slice(0, -1)
      .map((output) => output.slice(0, -1));
    expect(outputs).toEqual(HOSTILE.map(expected));
    expect(existsSync(join(folder, 'canary'))).toBe(false);
  });

  it('random values in random places arrive as they are', () => {
    const commands = places.map((place) => ({ place, command: commandOf(place.script, shell) }));
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.constantFrom(...HOSTILE, ...'$`"\'\\;&|(){}<>\n '), { maxLength: 6 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...commands),
        text.filter((value) => !value.includes('\0')),
        ({ place, command }, value) => {
          const { output, error } = run(shell, command, value);
          expect({ output, error }).toEqual({ output: place.expected(value), error: '' });
        },
      ),
      { numRuns: 60 },
    );
    expect(readdirSync(folder).filter((name) => !['show', 'script', 'out', 'f'].includes(name))).toEqual([]);
  });
});

describe('scripts made of random pieces', () => {
  // No piece reads `x` again: what a script does with a variable that it has set is its own affair.
  const piece = fc.constantFrom(
    '@',
    '@',
    '@',
    '@',
    '"',
    '"',
    "'",
    "'",
    '$(',
    ')',
    '${y:-',
    '${y',
    '}',
    '$((',
    '))',
    '((',
    '`',
    '\\',
    '\n',
    ' ',
    ' ',
    ' ',
    ';',
    '|',
    '&&',
    '#',
    'echo ',
    'x=',
    'a=(',
    '[[ ',
    ' ]]',
    '[ ',
    ' ]',
    ' -eq ',
    ' = ',
    'let ',
    'eval ',
    'test ',
    '-v ',
    'unset ',
    'case ',
    ' in ',
    ' esac',
    ';;',
    '<<E\n',
    '\nE\n',
    "<<'E'\n",
    '<<-E\n',
    'if ',
    '; then ',
    '; fi',
    '{ ',
    '; }',
    '(',
    '>f',
    '$',
    "$'",
    '$"',
    'f() { ',
    'for i in ',
    '; do ',
    '; done',
    'export ',
    'let ',
    'a[',
    ']',
    '0',
  );
  const script = fc.array(piece, { minLength: 2, maxLength: 14 }).map((pieces) => pieces.join(''));

  it.each(SHELLS)('either are refused or run nothing that a value holds (%s)', (shell) => {
    fc.assert(
      fc.property(
        script.filter((text) => text.includes('@') && text.trim() !== ''),
        (text) => {
          const yaml = JSON.stringify({
            pipeline: { name: 'p' },
            stages: { a: { run: text.replaceAll('@', '${{ webhook.ref }}'), shell } },
          });
          const result = parsePipeline(yaml, { template: true });
          const command = result.ok ? result.definition.stages[0]?.commands[0] : undefined;
          if (command === undefined) return;
          for (const value of [
            '$(echo >canary)',
            'x[$(echo >canary)]',
            '`echo >canary`',
            "'; echo >canary; '",
            '"; echo >canary; "',
            '\necho >canary\n',
            ') ; echo >canary ; (',
            'E\necho >canary\n',
          ]) {
            const env = { PATH: process.env['PATH'] ?? '', ...bindingsOf(command, scopeOf(value)) };
            spawnSync(shell, ['-c', command.script], { cwd: folder, env, stdio: 'ignore', timeout: 10_000 });
            expect({ text, value, ran: existsSync(join(folder, 'canary')) }).toEqual({ text, value, ran: false });
          }
        },
      ),
      { numRuns: Number(process.env['PENSTOCK_SHELL_FUZZ_RUNS'] ?? 150) },
    );
  });
});

describe('an expression is refused where its value could become code', () => {
  const refused: readonly (readonly [string, string])[] = [
    ['\\let @', 'let'],
    ["'let' @", 'let'],
    ['l\\et @', 'let'],
    ['"ev"al @', 'eval'],
    ['l\\\net @', 'let'],
    ['$x @', 'expansion or a pattern'],
    ['"$x" -c @', 'expansion or a pattern'],
    ['l[e]t @', 'expansion or a pattern'],
    ['{let,x} @', 'expansion or a pattern'],
    ['`echo let` @', 'expansion or a pattern'],
    ['$(echo let) @', 'expansion or a pattern'],
    ["$'let' @", 'expansion or a pattern'],
    ['eval @', 'eval'],
    ['eval "echo @"', 'eval'],
    ['eval "$(printf %s @)"', 'eval'],
    ['command eval @', 'eval'],
    ['if eval @; then :; fi', 'eval'],
    ['sh -c "echo @"', 'sh -c'],
    ["bash -c 'echo @'", 'bash -c'],
    ['/bin/bash -ec "@"', 'bash -c'],
    ['sudo -u root sh -c "@"', 'sh -c'],
    ['docker exec box sh -c "@"', 'sh -c'],
    ['env A=1 bash -c @', 'bash -c'],
    ['bash @', 'script'],
    ['bash -x @', 'script'],
    ['echo --shell=/bin/bash @', 'script'],
    ['. @', 'code'],
    ['source @', 'code'],
    ['trap "@" EXIT', 'trap'],
    ['alias a=@', 'alias'],
    ['@', 'choose the program'],
    ['@ --version', 'choose the program'],
    ['"@" x', 'choose the program'],
    ['X=1 @', 'choose the program'],
    ['exec @', 'choose the program'],
    ['sudo @', 'choose the program'],
    ['xargs @', 'choose the program'],
    ['true && @', 'choose the program'],
    ['if @; then :; fi', 'choose the program'],
    ['$(@)', 'choose the program'],
    ['echo $((1 + @))', 'arithmetic'],
    ['echo "$((@))"', 'arithmetic'],
    ['(( x = @ ))', 'arithmetic'],
    ['for ((i=0;i<@;i++)); do :; done', 'arithmetic'],
    ['let x=@', 'let'],
    ['echo $[@]', '$['],
    ['[[ @ -eq 1 ]]', 'compute'],
    ['[ @ -gt 1 ]', 'compute'],
    ['test -v @', 'compute'],
    ['[[ -v @ ]]', 'compute'],
    ['declare -i x=@', 'declare'],
    ['typeset x=@', 'typeset'],
    ['declare -i n\nn=@', 'integer'],
    ['export @', 'name'],
    ['readonly @', 'name'],
    ['a[@]=1', 'subscript'],
    ['a=([@]=1)', 'subscript'],
    ['unset @', 'unset'],
    ['read @', 'read'],
    ['printf -v @ x', 'printf'],
    ['echo ${x:-@}', '${'],
    ['echo "${a[@]}"', '${'],
    ['echo "${x#@}"', '${'],
    ['echo `echo @`', 'backtick'],
    ['echo "`echo @`"', 'backtick'],
    ["cat <<'EOF'\n@\nEOF", 'quoted'],
    ['cat <<\\EOF\n@\nEOF', 'quoted'],
    ['cat <<@\n@\n@', 'delimiter'],
    ['cat <<EOF\n$(echo @)\nEOF', 'here-document'],
    ['cat <<EOF\n${x:-@}\nEOF', 'here-document'],
    ['bash <<EOF\necho @\nEOF', 'code'],
    ['cat <<EOF | sh\necho @\nEOF', 'pipes'],
    ['echo @ | sh', 'pipes'],
    ['[[ x ==@ | tar cf out.tar @ ]', "within '[[ ]]'"],
    ['[[ a && tar cf out.tar @ ]]', "within '[[ ]]'"],
    ['echo @; env | docker build -', 'prints its variables'],
    ['echo @; { sudo env; } | docker build -', 'prints its variables'],
    ['echo @; (cd x && printenv) | docker build -', 'prints its variables'],
    ['echo @; export -p | cat | docker build -', 'prints its variables'],
    ['env | docker build - && echo @', 'prints its variables'],
    ['echo @ | sudo bash -s', 'pipes'],
    ['echo @ | python3', 'pipes'],
    ['bash <<< @', 'code'],
    ['python3 -c \'print("@")\'', 'code'],
    ['node -e "@"', 'code'],
    ['perl -ne "@" x', 'code'],
    ['awk "{print @}" x', 'code'],
    ['sed -i "s/x/@/" x', 'code'],
    ['ssh host "echo @"', 'ssh'],
    ['make V=@', 'make'],
    ['su -c "@"', 'su'],
    ['watch "@"', 'watch'],
    ['git -c "alias.x=@" x', 'code'],
    ['env -S "@"', 'choose the program'],
    ['xargs env -S "@"', 'choose the program'],
    ['PS4=@', 'code'],
    ['BASH_ENV=@ x', 'code'],
    ['PATH=@:$PATH x', 'code'],
    ['exit @', 'exit'],
    ['echo \\@', 'backslash'],
    ['echo "\\@"', 'backslash'],
    ['echo $@x', "'$'"],
    ['echo "$@"', "'$'"],
    ["echo $'@'", "$'"],
    ['echo $"@"', 'translated'],
    ["echo $'a\\'b' @", 'differently'],
    ['echo "@', 'not closed'],
    ["echo '@", 'not closed'],
    ['echo $(echo @', 'not closed'],
    ['cat <<EOF\n@', 'not closed'],
    ['echo @ )', 'closes nothing'],
    ['echo a(@)', 'differently'],
    ['for @ in a; do :; done', 'name'],
    ['function @ { :; }', 'name'],
  ];

  it.each(refused)('%j is refused', (script, fragment) => {
    const text = script.replaceAll('@', '${{ webhook.ref }}');
    const result = parsePipeline(JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { run: text } } }), {
      template: true,
    });
    expect(result.ok).toBe(false);
    const messages = result.ok ? [] : result.diagnostics.map((diagnostic) => diagnostic.message);
    expect(messages.join('\n')).toContain(fragment);
  });

  it('is refused in scripts for other programs than shells', () => {
    const result = parsePipeline(
      'pipeline: {name: p}\nstages:\n  a:\n    shell: python3\n    run: print("${{ run.id }}")\n',
    );
    expect(result.ok ? [] : result.diagnostics.map(({ line, column, message }) => ({ line, column, message }))).toEqual(
      [
        {
          line: 5,
          column: 17,
          message: "an expression cannot stand in a script for 'python3', whose quoting is not known",
        },
      ],
    );
  });
});

describe('a whole number that the file gives to its matrix', () => {
  const fileWith = (script: string, values: readonly unknown[]): string =>
    JSON.stringify({
      pipeline: { name: 'p' },
      stages: { a: { matrix: { v: values }, run: script.replaceAll('@', '${{ matrix.v }}') } },
    });

  it.each([
    ['(exit @); ./show $?', '[7]'],
    ['f() { return @; }; f || ./show $?', '[7]'],
    ['[ @ -eq 7 ] && ./show same', '[same]'],
    ['test @ -gt 6 && test 8 -gt "@" && ./show between', '[between]'],
    ['./show $((@ + 1)) "$(( 2 * (@) ))"', '[8]\n[14]'],
    ["sh -c './show @'", '[7]'],
    ['eval "./show @"', '[7]'],
    ['for x in a b; do ./show $x; [ @ -lt 8 ] && break; done', '[a]'],
    ['unset MAKEFLAGS; set -- a b c d e f g h; shift @; ./show "$1"', '[h]'],
  ])('%j may stand where others are refused', (script, printed) => {
    const result = parsePipeline(fileWith(script, [7]));
    if (!result.ok) throw new Error(result.diagnostics.map(({ message }) => message).join('\n'));
    const [command = { script: '', bindings: {} }] = result.definition.stages[0]?.commands ?? [];
    for (const shell of SHELLS) {
      const env = { ...process.env, ...bindingsOf(command, { matrix: { v: '7' } } as unknown as ExpressionScope) };
      const { stdout, stderr } = spawnSync(shell, ['-c', command.script], { cwd: folder, env, encoding: 'utf8' });
      expect([shell, stdout, stderr]).toEqual([shell, `${printed}\n`, '']);
    }
  });

  it.each([
    ['exit @', [1, 'two']],
    ['exit @', ['1;id']],
    ['exit @', ['0x1f']],
    ['exit @', ['010']],
    ['exit @', ['1\n2']],
    ['echo $((@))', ['a[$(id)]']],
    ['[ @ -eq 1 ]', [1, '']],
    ['@', [1]],
    ['echo @ | sh', [1]],
    ['exit ${{ matrix.v == 1 }}', [1]],
    ['exit ${{ run.id }}', [1]],
  ])('%j with %j is refused as others are', (script, values) => {
    expect(parsePipeline(fileWith(script, values)).ok).toBe(false);
  });

  it('is none where a combination lacks it', () => {
    const matrix = { v: [1], include: [{ v: 2, code: 3 }, { os: 'linux' }] };
    const fileOf = (name: string): string =>
      JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { matrix, run: `exit \${{ matrix.${name} }}` } } });
    expect(parsePipeline(fileOf('code')).ok).toBe(false);
  });
});

describe('an expression in a comment', () => {
  it('is dropped, and its value is not passed at all', () => {
    const command = commandOf('./show a # @', 'sh');
    expect(command).toEqual({ script: './show a # ', bindings: {} });
  });
});

describe('a script without expressions', () => {
  it('stays as it is, whatever it holds', () => {
    fc.assert(
      fc.property(
        fc
          .string({ unit: 'grapheme', minLength: 1 })
          .filter((script) => script.trim() !== '' && !script.includes('${{') && !script.includes('\0')),
        (script) => {
          expect(commandOf(script.replaceAll('@', 'at'), 'sh').script).toBe(script.replaceAll('@', 'at'));
        },
      ),
    );
  });
});
