/**
 * The tables of docs/events.md, made from libs/run/src/public-events.ts: one for every member of the union `PublicEvent`, with
 * a row for every field. What stands in the interfaces in a form that is not understood here is an error, so that nothing can
 * be left out unnoticed.
 */

interface EventInterface {
  readonly about: string;
  readonly fields: readonly Field[];
}

interface Field {
  readonly name: string;
  readonly isOptional: boolean;
  readonly type: string;
  readonly about: string;
}

/** Throws a RangeError that quotes what it does not understand. */
export function eventTables(source: string): string {
  return membersOf(source)
    .map((name) => tableOf(interfaceOf(source, name)))
    .join('\n\n');
}

function membersOf(source: string): string[] {
  const union = /^export type PublicEvent =([^;]+);$/m.exec(source)?.[1];
  if (union === undefined) throw new RangeError('there is no union PublicEvent');
  return union
    .split('|')
    .map((member) => member.trim())
    .filter((member) => member !== '');
}

function interfaceOf(source: string, name: string): EventInterface {
  const match = new RegExp(`^/\\*\\* (.+) \\*/\n(?:export )?interface ${name} \\{\n((?:  .*\n)+)\\}$`, 'm').exec(
    source,
  );
  if (match === null) throw new RangeError(`there is no interface ${name} with a docstring of one line`);
  const [, about = '', body = ''] = match;
  return { about, fields: fieldsOf(body) };
}

function fieldsOf(body: string): Field[] {
  const fields: Field[] = [];
  let about = '';
  for (const line of body.trimEnd().split('\n')) {
    const comment = /^ {2}\/\*\* (.+) \*\/$/.exec(line);
    const field = /^ {2}readonly (\w+)(\??): ([^;]+);$/.exec(line);
    if (comment !== null) [, about = ''] = comment;
    else if (field !== null) {
      const [, name = '', mark, type = ''] = field;
      fields.push({ name, isOptional: mark === '?', type, about });
      about = '';
    } else throw new RangeError(`not understood: ${line}`);
  }
  return fields;
}

function tableOf({ about, fields }: EventInterface): string {
  const rows = fields.map(
    ({ name, isOptional, type, about: meaning }) =>
      `| \`${name}\`${isOptional ? ' (optional)' : ''} | ${typeText(type)} | ${meaning} |`,
  );
  const type = fields.find(({ name }) => name === 'type')?.type ?? '';
  return [
    `### \`${type.replaceAll("'", '')}\``,
    '',
    about,
    '',
    '| field | value | meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n');
}

/** Alternatives as a list; a bar would end the cell. */
function typeText(type: string): string {
  const alternatives = type
    .split('|')
    .map((each) => each.trim())
    .filter((each) => each !== 'undefined');
  return alternatives
    .map((each) => (each.startsWith("'") || each === 'true' ? `\`${each.replaceAll("'", '"')}\`` : wordFor(each)))
    .join(', ');
}

function wordFor(type: string): string {
  if (type === 'StageReason') return 'a [reason](#reasons)';
  if (type === 'TestsSummary') return 'an object of four numbers';
  if (type === '`service:${string}`') return '`"service:<name>"`';
  if (type === 'readonly string[]') return 'array of string';
  if (type === 'string' || type === 'number') return type;
  throw new RangeError(`no word for the type ${type}`);
}
