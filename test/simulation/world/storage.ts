/** What the simulated storage of objects holds. */
export class SimStorage {
  up = true;
  readonly objects = new Map<string, { readonly bytes: Uint8Array; readonly storedAt: number }>();
}
