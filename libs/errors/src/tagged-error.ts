/**
 * What every error class of Penstock extends. Callers decide by `tag`, which is the class's own name as a literal type,
 * or by `instanceof`; nobody decides by a message. `cause` is kept wherever there is one.
 */
export abstract class TaggedError extends Error {
  abstract readonly tag: string;

  override get name(): string {
    return this.tag;
  }
}
