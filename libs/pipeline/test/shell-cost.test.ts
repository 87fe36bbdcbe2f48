/** What it takes to look at a script with expressions: in proportion to its length, for all files of all strangers are read on one thread. */
import { describe, expect, it, vi } from 'vitest';
import { parsePipeline } from '../src/index.ts';
import { CommandLine } from '../src/shell/command-line.ts';
import { commandIndex } from '../src/shell/shell-words.ts';

const times = (count: number, text: string): string => Array.from({ length: count }, () => text).join(' ');

/** How many words are looked at by patterns while a file with this command is read. */
function looksAt(run: string): number {
  const looks = vi.spyOn(RegExp.prototype, 'test');
  parsePipeline(JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { run } } }));
  const count = looks.mock.calls.length;
  looks.mockRestore();
  return count;
}

describe('a long command', () => {
  it.each(['sh x', 'node x', 'busybox', 'awk x', 'x', '-a'])(
    'full of `%s` takes twice as long for twice the words',
    (word) => {
      const value = '${{ run.id }}';
      const [once, twice] = [200, 400].map((count) => looksAt(`docker exec x ${times(count, word)} ${value}`)) as [
        number,
        number,
      ];
      expect(twice).toBeLessThan(2.5 * once);
    },
  );
});

describe('a command behind many assignments, or options of what starts it,', () => {
  it.each(['', 'env', 'nice', 'timeout -s'])('as in `%s A=b …`, takes twice as long for twice of them', (start) => {
    const [once, twice] = [200, 400].map((count) =>
      looksAt(`${start} ${times(count, 'A=b')} ${times(count, '-x')} echo \${{ run.id }}`),
    ) as [number, number];
    expect(twice).toBeLessThan(2.5 * once);
  });

  it.each([
    ['env -u A B=c', 4],
    ['env -u', 3],
    ['nice -n 5 time -p make all', 5],
    ['A=b C=d', 2],
    ['if ! sudo -u x make', 5],
    ['make A=b', 0],
  ])('is found: %s', (text, index) => {
    const words: string[] = [];
    for (const word of text.split(' ')) {
      words.push(word);
      commandIndex(words);
    }
    expect(commandIndex(words)).toBe(index);
    expect(commandIndex(text.split(' '))).toBe(index);
  });
});

describe('a long command line', () => {
  const count = 50;
  const piped = (words: readonly string[]): CommandLine => {
    const line = new CommandLine(undefined);
    for (let index = 0; index < count; index += 1) {
      line.addExpression(index);
      line.addMember(words);
      if (index > 0) line.addReader(words);
      line.pipe();
    }
    return line;
  };

  it('has each command that reads judged once, for all values that flow to it', () => {
    const flows = [...piped(['cat']).flows()];
    expect(flows).toHaveLength(count - 1);
    expect(flows.map(({ indexes }) => indexes().length)).toEqual(flows.map((_, at) => at + 1));
  });

  it('has each command told once that reads what commands of a kind print', () => {
    expect([...piped(['env']).readersBehind(([word]) => word === 'env')]).toHaveLength(count - 1);
    expect([...piped(['cat']).readersBehind(([word]) => word === 'env')]).toEqual([]);
  });
});
