/** What was asked of a run is recorded also where nobody can tell whether it was done: who does not answer may have done it all the same. */
import { Unavailable } from '@penstock/errors';

/** There is room for a run's id and the name of a stage. */
const TARGET_CHARACTERS_MAX = 1_000;

/** `record` gets `ok`, or the code of the error; of refusals it hears nothing. */
export async function audited<T>(done: Promise<T>, record: (outcome: string) => void): Promise<T> {
  try {
    const result = await done;
    record('ok');
    return result;
  } catch (error) {
    if (error instanceof Unavailable) record(error.code);
    throw error;
  }
}

/** As it was asked for: at that time nobody may know whether there is such a run. */
export function targetOf(asked: string | null | undefined): string {
  return (asked ?? '').slice(0, TARGET_CHARACTERS_MAX);
}
