/** The second word of commands that have several actions: `penstock token create`. */
import { printableText } from '../output/printable-text.ts';
import { nearestWord } from './nearest.ts';
import { UsageError } from '../process/errors.ts';

/** Words of other programs that mean the same: nobody has to remember which of them this one takes. */
const SYNONYMS = new Map([
  ['list', 'ls'],
  ['remove', 'rm'],
  ['delete', 'rm'],
]);

/** Throws `UsageError`, with the nearest one and all of them, where the command has no such action. */
export function actionOf<Action>(command: string, word: string, actions: Readonly<Record<string, Action>>): Action {
  const known = Object.hasOwn(actions, word) ? word : (SYNONYMS.get(word) ?? word);
  const action = Object.hasOwn(actions, known) ? actions[known] : undefined;
  if (action !== undefined) return action;
  const names = Object.keys(actions);
  const close = nearestWord(word, names);
  const meant = close === undefined ? '' : `, did you mean '${command} ${close}'?`;
  throw new UsageError(
    `there is no command '${command} ${printableText(word)}'${meant}\nThe commands are ${names.map((name) => `${command} ${name}`).join(', ')}.`,
    command,
  );
}
