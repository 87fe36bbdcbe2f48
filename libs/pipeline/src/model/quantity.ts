/** Processors and bytes as people write them for containers: `2`, `0.5`, `500m`; `512Mi`, `4Gi`, `1G`. */

const BYTES: Readonly<Record<string, number>> = {
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
  k: 1000,
  M: 1000 ** 2,
  G: 1000 ** 3,
  T: 1000 ** 4,
};

/** Undefined where the text is none. A count of bytes has a unit: a bare number is a mistake more often than not. */
export function parseBytes(text: string): number | undefined {
  const found = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(Ki|Mi|Gi|Ti|k|M|G|T)$/.exec(text);
  return found === null ? undefined : Math.ceil(Number(found[1]) * (BYTES[found[2] ?? ''] ?? 0));
}

export function parseProcessors(text: string): number | undefined {
  const found = /^(?:([0-9]{1,4}(?:\.[0-9]{1,3})?)|([0-9]{1,7})m)$/.exec(text);
  if (found === null) return undefined;
  return found[1] === undefined ? Number(found[2]) / 1000 : Number(found[1]);
}

/** The shortest exact way to write a count of bytes. */
export function formatBytes(bytes: number): string {
  for (const unit of ['Ti', 'Gi', 'Mi', 'Ki'])
    if (bytes % (BYTES[unit] ?? 1) === 0 && bytes > 0) return `${bytes / (BYTES[unit] ?? 1)}${unit}`;
  return `${bytes} bytes`;
}
