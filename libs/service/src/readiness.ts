/** Whether what a service needs answers, each within the time that a probe has, and by its name where it does not. */
import { within } from '@penstock/async';

/** Less than a probe of the internal port takes at most: its answer says what is missing. */
const ANSWER_MS_MAX = 1_800;

/** By what they are called in the reason. Rejects with the first that fails, or does not answer in time. */
export async function allAnswer(probes: Readonly<Record<string, () => Promise<void>>>): Promise<void> {
  await Promise.all(
    Object.entries(probes).map(([name, probe]) =>
      within(ANSWER_MS_MAX, probe(), () => {
        throw new Error(`${name} does not answer`);
      }),
    ),
  );
}
