/** What a request says of the bytes that it wants: some of them (`Range`), or none that it has already (`If-None-Match`). */

export interface ByteRange {
  readonly from: number;
  /** The first byte not wanted any more. */
  readonly to: number;
}

/** `whole` also for what is no range of bytes, or several of them: a server may ignore those. */
export function rangeOf(header: string | undefined, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '');
  if (match === null) return 'whole';
  const [first, last] = [match[1] ?? '', match[2] ?? ''];
  if (first === '') {
    if (last === '') return 'whole';
    const from = Math.max(0, size - Number(last));
    return from < size ? { from, to: size } : 'unsatisfiable';
  }
  const from = Number(first);
  const to = last === '' ? size : Math.min(size, Number(last) + 1);
  if (last !== '' && Number(last) < from) return 'whole';
  return from < size ? { from, to } : 'unsatisfiable';
}

/** Whether `If-None-Match` names this tag. */
export function namesTag(header: string | undefined, etag: string): boolean {
  return (
    header !== undefined &&
    header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === etag)
  );
}
