import { takeAll, type SourceMap } from './source.ts';

/** GitLab's and Woodpecker's axes: a map of lists of texts. */
export function axesOf(map: SourceMap): Record<string, string[]> {
  return Object.fromEntries(
    takeAll(map).flatMap(({ key, value }) => {
      const texts =
        value.kind === 'list'
          ? value.items.flatMap((item) => (item.kind === 'text' ? [item.text] : []))
          : value.kind === 'text'
            ? [value.text]
            : [];
      return texts.length === 0 ? [] : [[key, [...new Set(texts)]]];
    }),
  );
}
